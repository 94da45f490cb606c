"""Java's own key store format (JKS), read: private keys with their certificates, and trusted certificates.

Supported: versions 1 and 2, X.509 certificates, the store's digest, keys under Sun's own protection. Not: secret keys
(JCEKS), DSA-era certificates of other kinds. PKCS12 is turned into this format by keytool first (kafka/keystores.py).
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from heliograph.wire.pem import elements

MAGIC = b"\xfe\xed\xfe\xed"
_PRIVATE_KEY, _TRUSTED = 1, 2
_DIGEST_BYTES = 20
_WHITENER = b"Mighty Aphrodite"


class WrongPassword(ValueError):
    """The password does not open this store, or this key."""


@dataclass(frozen=True)
class KeyEntry:
    """A private key (PKCS 8) and its certificates, its own first."""

    alias: str
    key: bytes = field(repr=False)
    chain: tuple[bytes, ...] = field(repr=False)


@dataclass(frozen=True)
class KeyStore:
    """What a store holds; certificates as DER."""

    keys: tuple[KeyEntry, ...]
    trusted: tuple[bytes, ...]


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> bytes:
        piece = self._data[self._at : self._at + size]
        if len(piece) < size:
            raise ValueError("it ends in the middle")
        self._at += size
        return piece

    def number(self) -> int:
        (value,) = struct.unpack(">I", self.take(4))
        return int(value)

    def text(self) -> str:
        (size,) = struct.unpack(">H", self.take(2))
        return self.take(size).decode(errors="replace")

    def blob(self) -> bytes:
        return self.take(self.number())


def read_keystore(data: bytes, password: str | None, key_password: str | None = None) -> KeyStore:
    """The entries. Without a password the digest is not checked and keys are left out, as Java does for trust stores.

    ValueError for what is no whole key store, WrongPassword where a password does not fit.
    """
    if data[:4] != MAGIC:
        raise ValueError("it is no JKS key store")
    body, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    reader = _Reader(body)
    reader.take(4)
    version = reader.number()
    entries = list(_entries(reader, version))
    if password is not None and hashlib.sha1(_spread(password) + _WHITENER + body).digest() != digest:  # noqa: S324  the format's
        raise WrongPassword("the password does not open it")
    trusted = tuple(certificates[0] for kind, _, _, certificates in entries if kind == _TRUSTED)
    secret = key_password if key_password is not None else password
    keys = tuple(
        KeyEntry(alias, _opened(protected, secret), certificates)
        for kind, alias, protected, certificates in entries
        if kind == _PRIVATE_KEY and secret is not None
    )
    return KeyStore(keys, trusted)


def _entries(reader: _Reader, version: int) -> Iterator[tuple[int, str, bytes, tuple[bytes, ...]]]:
    for _ in range(reader.number()):
        kind = reader.number()
        alias = reader.text()
        reader.take(8)  # when it was made
        if kind == _PRIVATE_KEY:
            protected = reader.blob()
            chain = tuple(_certificate(reader, version) for _ in range(reader.number()))
            yield kind, alias, protected, chain
        elif kind == _TRUSTED:
            yield kind, alias, b"", (_certificate(reader, version),)
        else:
            raise ValueError(f"entry {alias} is of kind {kind}, which is not known")


def _certificate(reader: _Reader, version: int) -> bytes:
    if version > 1:
        reader.text()  # X.509
    return reader.blob()


def _opened(protected: bytes, password: str) -> bytes:
    """Sun's key protector: salt, the key under a stream of SHA-1 digests, and a digest of the key."""
    sealed = elements(elements(protected)[0][1])[-1][1]  # SEQUENCE { algorithm, OCTET STRING }
    salt, masked, check = sealed[:_DIGEST_BYTES], sealed[_DIGEST_BYTES:-_DIGEST_BYTES], sealed[-_DIGEST_BYTES:]
    spread = _spread(password)
    stream = bytearray()
    link = salt
    while len(stream) < len(masked):
        link = hashlib.sha1(spread + link).digest()  # noqa: S324  the format's
        stream += link
    key = bytes(a ^ b for a, b in zip(masked, stream, strict=False))
    if hashlib.sha1(spread + key).digest() != check:  # noqa: S324  the format's
        raise WrongPassword("the password does not open its key")
    return key


def _spread(password: str) -> bytes:
    return password.encode("utf-16-be", "surrogatepass")
