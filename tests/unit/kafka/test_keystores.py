"""Stores without keytool: PEM and JKS; tests/integration/security has PKCS12."""

from __future__ import annotations

from pathlib import Path

import pytest

from heliograph.errors import SetupError
from heliograph.kafka.keystores import carried, own_pem, trust_pem
from heliograph.model.security import PLAINTEXT, Login, Secret, Security, Store, Tls
from heliograph.wire.pem import blocks
from tests.unit.wire.test_java_keystore import KEY, WHOLE, private, store, trusted

BLOCK = "-----BEGIN {0}-----\nc2VjcmV0\n-----END {0}-----\n"
OWN = BLOCK.format("CERTIFICATE") + BLOCK.format("PRIVATE KEY")


def at(path: Path, kind: str = "JKS", password: str | None = "pass", name: str = "keystore") -> Store:  # noqa: S107  a test's
    return Store(f"ssl.{name}.location", kind, str(path), Secret(password) if password else None)


def file(folder: Path, content: bytes | str) -> Path:
    path = folder / "store"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_a_java_key_store_becomes_pem_with_its_key_last(tmp_path: Path) -> None:
    found = blocks(own_pem(at(file(tmp_path, WHOLE)), None))
    assert [(block.label, block.der) for block in found] == [
        ("CERTIFICATE", b"own"),
        ("CERTIFICATE", b"ca"),
        ("PRIVATE KEY", KEY),
    ]


def test_the_type_need_not_be_right_where_the_content_is(tmp_path: Path) -> None:
    assert blocks(own_pem(at(file(tmp_path, WHOLE), "PKCS12"), None))


def test_a_trust_store_may_be_read_without_its_password(tmp_path: Path) -> None:
    for password in ("pass", None):
        found = blocks(trust_pem(at(file(tmp_path, WHOLE), password=password, name="truststore")))
        assert [block.der for block in found] == [b"root", b"other"]


def test_what_is_carried_needs_no_file_and_no_password(tmp_path: Path) -> None:
    path = file(tmp_path, WHOLE)
    security = Security(Tls(at(path), at(path), Secret("pass")), Login("PLAIN"))
    ready = carried(security)
    path.unlink()
    assert ready.login == security.login
    assert ready.tls is not None
    assert ready.tls.own is not None
    assert ready.tls.trust is not None
    assert ready.tls.key_password is None
    assert blocks(own_pem(ready.tls.own, None))[-1].der == KEY
    assert len(blocks(trust_pem(ready.tls.trust))) == 2
    assert carried(ready) == ready
    assert "secret" not in repr(ready)
    assert carried(PLAINTEXT) == PLAINTEXT


def test_a_pem_key_stays_under_its_password(tmp_path: Path) -> None:
    text = BLOCK.format("CERTIFICATE") + BLOCK.format("ENCRYPTED PRIVATE KEY")
    tls = Tls(own=at(file(tmp_path, text), "PEM", None), key_password=Secret("k"))
    ready = carried(Security(tls)).tls
    assert ready is not None
    assert ready.key_password == Secret("k")


@pytest.mark.parametrize(
    ("content", "kind", "password", "sentence"),
    [
        (WHOLE, "JKS", "wrong", "does not open: the password of ssl.keystore.password is wrong"),
        (
            store("pass", private("me", KEY, "other", [b"own"])),
            "JKS",
            "pass",
            "does not open: the password of ssl.key.password is wrong",
        ),
        (WHOLE[:150], "JKS", "pass", "is not a whole key store (was it cut off?): it ends in the middle"),
        (store("pass", trusted("ca", b"x")), "JKS", "pass", "must hold exactly one private key, it holds 0 (none)"),
        (
            store("pass", private("a", KEY, "pass", [b"x"]), private("b", KEY, "pass", [b"y"])),
            "JKS",
            "pass",
            "must hold exactly one private key, it holds 2 (a, b)",
        ),
        (b"\x30\x82", "PKCS12", None, "is a PKCS12 store: set ssl.keystore.password"),
        (b"", "PEM", None, "must hold one private key and its certificates as PEM; it holds 0 and 0"),
        (
            OWN.encode() + OWN.encode(),
            "PEM",
            None,
            "must hold one private key and its certificates as PEM; it holds 2 and 2",
        ),
    ],
)
def test_a_store_that_is_not_in_order_says_what_is_wrong(
    tmp_path: Path, content: bytes, kind: str, password: str | None, sentence: str
) -> None:
    path = file(tmp_path, content)
    with pytest.raises(SetupError) as caught:
        own_pem(at(path, kind, password), None)
    assert str(caught.value) == f"ssl.keystore.location: file {path} {sentence}"


def test_a_trust_store_without_certificates_is_refused(tmp_path: Path) -> None:
    for content, kind in ((store("pass"), "JKS"), (b"no certificates", "PEM")):
        with pytest.raises(SetupError, match="holds no trusted certificate: put the CA of the brokers into it"):
            trust_pem(at(file(tmp_path, content), kind))


def test_pkcs12_without_keytool_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SetupError, match="is read with Java's keytool, which was not found: set JAVA_HOME"):
        own_pem(at(file(tmp_path, b"\x30\x82")), None)


def test_a_file_that_is_missing_or_cannot_be_read_says_so(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="none does not exist: correct the path, or put the file there"):
        own_pem(at(tmp_path / "none"), None)
    with pytest.raises(SetupError, match="cannot be read by this user: Is a directory"):
        own_pem(at(tmp_path), None)
