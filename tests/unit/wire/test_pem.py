from __future__ import annotations

import ssl
from datetime import UTC, datetime

import pytest

from heliograph.wire.pem import Block, blocks, elements, pem_of, validity

# Made with OpenSSL: one that ends in 2126 (GeneralizedTime), one without a common name.
LONG = """\
-----BEGIN CERTIFICATE-----
MIIBqzCCAVGgAwIBAgIUKVSLXJJOnD1rSBPNMslE06+9SWowCgYIKoZIzj0EAwIw
KjETMBEGA1UECgwKSGVsaW9ncmFwaDETMBEGA1UEAwwKYnJva2VyIG9uZTAgFw0y
NjExMTYwMjMwNTdaGA8yMTI2MTAyMzAyMzA1N1owKjETMBEGA1UECgwKSGVsaW9n
cmFwaDETMBEGA1UEAwwKYnJva2VyIG9uZTBZMBMGByqGSM49AgEGCCqGSM49AwEH
A0IABEH/0ix7oaOMPr63i5Z86wKOpuHtA6mWC9Bv/Db33fZbMJTlcMjBbNW4fIzx
uugj5JwGFjz7B1nQceDIhk7CoOSjUzBRMB0GA1UdDgQWBBSKG8MCWyXYgPWeZAx9
d6mejmVAiDAfBgNVHSMEGDAWgBSKG8MCWyXYgPWeZAx9d6mejmVAiDAPBgNVHRMB
Af8EBTADAQH/MAoGCCqGSM49BAMCA0gAMEUCIQDX+j6dRR1BWakQLgerlSd1V+N1
AFC6Phv4BKReb567BQIgEW0QoSLzgo3lrkXxlRf6tLWgT3H48yBcqscrjmyVKP8=
-----END CERTIFICATE-----
"""
NAMELESS = """\
-----BEGIN CERTIFICATE-----
MIIBNjCB6aADAgECAhQvDh/Gd7E+a6b2zZP9blDw+HVktTAFBgMrZXAwETEPMA0G
A1UECgwGTm9ib2R5MB4XDTI2MTExNjAyMzA1N1oXDTI2MTIxNjAyMzA1N1owETEP
MA0GA1UECgwGTm9ib2R5MCowBQYDK2VwAyEAKdNA82Oy18PFopd9CkBEj7f3zcWS
T3QXvwVu5hvyCqCjUzBRMB0GA1UdDgQWBBTKYw5nu2NffNhJtGbCba0vwDtzfTAf
BgNVHSMEGDAWgBTKYw5nu2NffNhJtGbCba0vwDtzfTAPBgNVHRMBAf8EBTADAQH/
MAUGAytlcANBAD9UZr+W/i9yLIC5pAy1/Z7mnqOxrzNij8x7LoP0Xk3K1GPrnfSj
8t6R5p3ewkbzHCTQ6x+7YQ7lIey51kYhHAU=
-----END CERTIFICATE-----
"""
OLD_KEY = """\
-----BEGIN RSA PRIVATE KEY-----
Proc-Type: 4,ENCRYPTED
DEK-Info: AES-256-CBC,0011

c2VjcmV0
-----END RSA PRIVATE KEY-----
"""


def test_blocks_come_in_order_whatever_stands_around_them() -> None:
    found = blocks(f"subject=x\n{LONG}\n\nand\r\n{NAMELESS.replace(chr(10), chr(13) + chr(10))}")
    assert [block.label for block in found] == ["CERTIFICATE", "CERTIFICATE"]
    assert [block.der for block in found] == [ssl.PEM_cert_to_DER_cert(text) for text in (LONG, NAMELESS)]


def test_a_block_may_stand_in_one_line_as_in_a_properties_file() -> None:
    assert blocks(LONG.replace("\n", " ")) == blocks(LONG)


def test_a_block_is_written_as_openssl_writes_it() -> None:
    (block,) = blocks(LONG.replace("\n", " "))
    assert block.text == LONG == pem_of("CERTIFICATE", [block.der])


def test_the_headers_of_an_encrypted_key_are_kept() -> None:
    (block,) = blocks(OLD_KEY)
    assert block.text == OLD_KEY
    assert (block.is_key, block.is_encrypted) == (True, True)


@pytest.mark.parametrize(
    ("label", "is_key", "is_encrypted"),
    [("PRIVATE KEY", True, False), ("ENCRYPTED PRIVATE KEY", True, True), ("CERTIFICATE", False, False)],
)
def test_a_block_says_what_it_is_and_not_what_it_holds(label: str, is_key: bool, is_encrypted: bool) -> None:
    block = Block(label, b"s3cret")
    assert (block.is_key, block.is_encrypted) == (is_key, is_encrypted)
    assert repr(block) == f"Block({label}, 6 bytes)"


def test_a_damaged_block_is_an_error_and_no_block_is_none() -> None:
    assert blocks("nothing here") == []
    with pytest.raises(ValueError, match="a CERTIFICATE block that is damaged"):
        blocks("-----BEGIN CERTIFICATE-----\nMIIB*\n-----END CERTIFICATE-----")


@pytest.mark.parametrize(
    ("text", "ends", "owner"),
    [
        (LONG, datetime(2126, 10, 23, 2, 30, 57, tzinfo=UTC), "broker one"),
        (NAMELESS, datetime(2026, 12, 16, 2, 30, 57, tzinfo=UTC), "nobody by name"),
    ],
)
def test_a_certificate_says_until_when_it_holds(text: str, ends: datetime, owner: str) -> None:
    found = validity(blocks(text)[0].der)
    assert (found.begins, found.ends, found.owner) == (datetime(2026, 11, 16, 2, 30, 57, tzinfo=UTC), ends, owner)


def test_two_digits_of_a_year_from_50_on_are_the_last_century() -> None:
    der = blocks(NAMELESS)[0].der.replace(b"261116023057Z", b"501116023057Z")
    assert validity(der).begins.year == 1950


@pytest.mark.parametrize("der", [b"", b"\x30", b"\x30\x05abc", b"\x30\x02\x30\x00", blocks(LONG)[0].der[:100]])
def test_what_is_no_certificate_is_an_error(der: bytes) -> None:
    with pytest.raises(ValueError, match="a certificate that cannot be read"):
        validity(der)


def test_elements_have_short_and_long_lengths() -> None:
    assert elements(b"\x04\x01a\x04\x81\x02bc\x05\x00") == [(4, b"a"), (4, b"bc"), (5, b"")]
