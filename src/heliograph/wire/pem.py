"""PEM text and the little of a certificate's DER that is asked for: until when it holds, and whose it is.

As lenient as Kafka's own reader: text around blocks, line ends and blanks inside them do not matter, so that a block may
stand in one line of a properties file. Knows no file and no TLS.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

_BLOCK = re.compile(r"-+BEGIN\s+([A-Z0-9 ]+?)\s*-+(.*?)-+END\s+\1\s*-+", re.DOTALL)
_HEADERS = re.compile(r"\s*((?:[A-Za-z-]+:[^\r\n]*[\r\n]+)+)")
CERTIFICATE = "CERTIFICATE"
_OID, _UTC_TIME, _VERSION = 0x06, 0x17, 0xA0
_COMMON_NAME = bytes.fromhex("550403")


@dataclass(frozen=True)
class Block:
    """One block: what it is called, its bytes, and the headers of an old encrypted key. Shows nothing of its content."""

    label: str
    der: bytes
    headers: str = ""

    @property
    def is_key(self) -> bool:
        return self.label.endswith("PRIVATE KEY")

    @property
    def is_encrypted(self) -> bool:
        return self.label.startswith("ENCRYPTED") or "ENCRYPTED" in self.headers

    @property
    def text(self) -> str:
        """As OpenSSL wants it."""
        body = base64.b64encode(self.der).decode()
        wrapped = "\n".join(body[at : at + 64] for at in range(0, len(body), 64))
        headers = f"{self.headers}\n\n" if self.headers else ""
        return f"-----BEGIN {self.label}-----\n{headers}{wrapped}\n-----END {self.label}-----\n"

    def __repr__(self) -> str:
        return f"Block({self.label}, {len(self.der)} bytes)"


def blocks(text: str) -> list[Block]:
    """Every block of a text, in order; ValueError where one is damaged."""
    return [_block(label, body) for label, body in _BLOCK.findall(text)]


def _block(label: str, body: str) -> Block:
    found = _HEADERS.match(body)
    headers = "\n".join(found[1].splitlines()).strip() if found else ""
    try:
        der = base64.b64decode("".join(body[found.end() if found else 0 :].split()), validate=True)
    except binascii.Error as error:
        raise ValueError(f"a {label} block that is damaged") from error
    return Block(label, der, headers)


def pem_of(label: str, ders: Sequence[bytes]) -> str:
    return "".join(Block(label, der).text for der in ders)


@dataclass(frozen=True)
class Validity:
    """When a certificate begins and ends to hold, and the common name of its owner."""

    begins: datetime
    ends: datetime
    owner: str


def validity(der: bytes) -> Validity:
    """Read from a certificate's DER; ValueError if it is none."""
    try:
        certificate = elements(der)[0][1]
        fields = [part for part in elements(elements(certificate)[0][1]) if part[0] != _VERSION]
        # serial number, algorithm, issuer, validity, subject
        begins, ends = (_time(*part) for part in elements(fields[3][1]))
        return Validity(begins, ends, _common_name(fields[4][1]))
    except (IndexError, ValueError) as error:
        raise ValueError("a certificate that cannot be read") from error


def _common_name(subject: bytes) -> str:
    for _, name in elements(subject):
        oid, value = elements(elements(name)[0][1])[:2]
        if oid == (_OID, _COMMON_NAME):
            return value[1].decode(errors="replace")
    return "nobody by name"


def _time(tag: int, body: bytes) -> datetime:
    text = body.decode("ascii")
    if tag == _UTC_TIME:  # two digits of the year, which mean 1950 to 2049
        text = ("19" if int(text[:2]) >= 50 else "20") + text
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)


def elements(data: bytes) -> list[tuple[int, bytes]]:
    """Tag and content of every DER element in these bytes; ValueError or IndexError where they are none."""
    return list(_walk(data))


def _walk(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(data):
        tag, length = data[at], data[at + 1]
        at += 2
        if length >= 0x80:
            size = length & 0x7F
            length = int.from_bytes(data[at : at + size], "big")
            at += size
        if at + length > len(data):
            raise ValueError("an element that ends too early")
        yield tag, data[at : at + length]
        at += length
