"""Against stores written here by the format's rules; tests/integration/test_keystores.py has keytool's own."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence

import pytest

from heliograph.wire.java_keystore import MAGIC, KeyEntry, KeyStore, WrongPassword, read_keystore

KEY = b"a private key that is longer than one digest of twenty bytes"


def text(word: str) -> bytes:
    return struct.pack(">H", len(word)) + word.encode()


def blob(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


def certificate(data: bytes, version: int = 2) -> bytes:
    return (text("X.509") if version > 1 else b"") + blob(data)


def der(tag: int, content: bytes) -> bytes:
    assert len(content) < 256
    size = bytes([len(content)]) if len(content) < 128 else bytes([0x81, len(content)])
    return bytes([tag]) + size + content


def sealed(key: bytes, password: str) -> bytes:
    salt = bytes(range(20))
    spread = password.encode("utf-16-be")
    stream, link = b"", salt
    while len(stream) < len(key):
        link = hashlib.sha1(spread + link).digest()  # noqa: S324  the format's
        stream += link
    masked = bytes(a ^ b for a, b in zip(key, stream, strict=False))
    check = hashlib.sha1(spread + key).digest()  # noqa: S324  the format's
    return der(0x30, der(0x30, b"algorithm") + der(0x04, salt + masked + check))


def private(alias: str, key: bytes, password: str, chain: Sequence[bytes], version: int = 2) -> bytes:
    body = blob(sealed(key, password)) + struct.pack(">I", len(chain))
    return struct.pack(">I", 1) + text(alias) + bytes(8) + body + b"".join(certificate(c, version) for c in chain)


def trusted(alias: str, data: bytes, version: int = 2) -> bytes:
    return struct.pack(">I", 2) + text(alias) + bytes(8) + certificate(data, version)


def store(password: str, *entries: bytes, version: int = 2) -> bytes:
    body = MAGIC + struct.pack(">II", version, len(entries)) + b"".join(entries)
    digest = hashlib.sha1(password.encode("utf-16-be") + b"Mighty Aphrodite" + body).digest()  # noqa: S324  the format's
    return body + digest


WHOLE = store("pass", private("me", KEY, "pass", [b"own", b"ca"]), trusted("ca", b"root"), trusted("b", b"other"))


def test_keys_and_trusted_certificates_are_read() -> None:
    assert read_keystore(WHOLE, "pass") == KeyStore((KeyEntry("me", KEY, (b"own", b"ca")),), (b"root", b"other"))


def test_an_old_store_names_no_kind_of_certificate() -> None:
    old = store("p", private("me", KEY, "p", [b"own"], 1), trusted("ca", b"root", 1), version=1)
    assert read_keystore(old, "p") == KeyStore((KeyEntry("me", KEY, (b"own",)),), (b"root",))


def test_a_key_may_have_a_password_of_its_own() -> None:
    data = store("outer", private("me", KEY, "inner", [b"own"]))
    assert read_keystore(data, "outer", "inner").keys[0].key == KEY
    with pytest.raises(WrongPassword, match="does not open its key"):
        read_keystore(data, "outer")


def test_without_a_password_trusted_certificates_are_read_unchecked_and_keys_left_out() -> None:
    assert read_keystore(WHOLE, None) == KeyStore((), (b"root", b"other"))


def test_a_wrong_password_is_told_from_a_damaged_store() -> None:
    with pytest.raises(WrongPassword, match="does not open it"):
        read_keystore(WHOLE, "wrong")


@pytest.mark.parametrize("end", [4, 8, 12, 20, 60, 100, 200])
def test_a_store_that_was_cut_off_is_an_error(end: int) -> None:
    with pytest.raises(ValueError, match="it ends in the middle"):
        read_keystore(WHOLE[:end], None)


def test_other_formats_and_other_entries_are_refused() -> None:
    with pytest.raises(ValueError, match="it is no JKS key store"):
        read_keystore(b"\x30\x82", "p")
    with pytest.raises(ValueError, match="entry x is of kind 3"):
        read_keystore(store("p", struct.pack(">I", 3) + text("x") + bytes(8)), "p")


def test_a_store_shows_no_key() -> None:
    assert "private key" not in repr(read_keystore(WHOLE, "pass"))
