"""What a failed handshake means, and how buffers leave."""

from __future__ import annotations

import socket
import ssl

import pytest

from heliograph.errors import SetupError
from heliograph.kafka.tls import _joined, refusal, ssl_context
from heliograph.model.security import Secret, Store, Tls

TRUST = Store("ssl.truststore.location", "PEM", text=Secret("x"))


def failure(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, reason)
    error.reason = reason
    return error


def distrust(code: int) -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_code, error.verify_message = code, "said OpenSSL"
    return error


@pytest.mark.parametrize(
    ("error", "tls", "sentence"),
    [
        (distrust(10), Tls(), "its certificate has expired"),
        (distrust(9), Tls(), "its certificate is not valid yet: is this machine's clock right?"),
        (distrust(62), Tls(), "its certificate is not for b1.example"),
        (distrust(64), Tls(), "its certificate is not for b1.example"),
        (distrust(19), Tls(), "this machine trusts: set ssl.truststore.location (said OpenSSL)"),
        (distrust(20), Tls(TRUST), "signed by any of ssl.truststore.location: add its CA there (said OpenSSL)"),
        (failure("WRONG_VERSION_NUMBER"), Tls(), "it does not speak TLS: set security.protocol to PLAINTEXT"),
        (failure("TLSV13_ALERT_CERTIFICATE_REQUIRED"), Tls(), "it wants a certificate of ours (certificate required)"),
        (
            failure("TLSV1_ALERT_UNKNOWN_CA"),
            Tls(own=TRUST),
            "it does not take our certificate of ssl.truststore.location",
        ),
        (failure("TLSV1_ALERT_PROTOCOL_VERSION"), Tls(versions=("TLSv1.3",)), "ssl.enabled.protocols (TLSv1.3)"),
    ],
)
def test_a_refusal_is_one_sentence_with_the_option(error: ssl.SSLError, tls: Tls, sentence: str) -> None:
    said = refusal(error, "b1.example", tls)
    assert said is not None
    assert sentence in str(said)


@pytest.mark.parametrize("error", [failure("INTERNAL_ERROR"), ssl.SSLEOFError(8, "EOF"), OSError("reset"), None])
def test_what_may_pass_is_no_refusal(error: Exception | None) -> None:
    assert refusal(error, "b1", Tls()) is None
    assert refusal(distrust(10), "b1", None) is None


def test_small_buffers_leave_together_and_large_ones_alone() -> None:
    views = [memoryview(bytes([place]) * size) for place, size in enumerate((10, 20, 16_384, 5))]
    assert _joined(views) == bytes([0]) * 10 + bytes([1]) * 20


def test_a_context_follows_its_settings() -> None:
    context = ssl_context(Tls(checks_host=False, versions=("TLSv1.2",)))
    assert (context.check_hostname, context.verify_mode) == (False, ssl.CERT_REQUIRED)
    assert context.minimum_version == context.maximum_version == ssl.TLSVersion.TLSv1_2
    assert ssl_context(Tls()) is ssl_context(Tls())


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "ssl.keystore.key must hold one private key and its certificates as PEM; it holds 0 and 0"),
        (
            "-----BEGIN CERTIFICATE-----\n*\n-----END CERTIFICATE-----",
            "ssl.keystore.key holds a CERTIFICATE block that is",
        ),
    ],
)
def test_a_key_that_cannot_be_used_is_named_by_its_option(text: str, sentence: str) -> None:
    with pytest.raises(SetupError, match=sentence):
        ssl_context(Tls(own=Store("ssl.keystore.key", "PEM", text=Secret(text))))


def test_an_encrypted_key_without_its_password_is_refused_and_nobody_is_asked() -> None:
    block = "-----BEGIN {0}-----\nc2VjcmV0\n-----END {0}-----\n"
    text = block.format("CERTIFICATE") + block.format("ENCRYPTED PRIVATE KEY")
    with pytest.raises(SetupError, match="holds an encrypted private key: set ssl.key.password"):
        ssl_context(Tls(own=Store("ssl.keystore.key", "PEM", text=Secret(text))))


def test_a_tls_socket_takes_the_place_of_a_plain_one() -> None:
    ours, theirs = socket.socketpair()
    with theirs, ssl_context(Tls()).wrap_socket(ours, server_hostname="x", do_handshake_on_connect=False) as secure:
        secure.setblocking(False)
        with pytest.raises(ssl.SSLWantReadError):
            secure.do_handshake()
        with pytest.raises(BlockingIOError):
            secure.recv_into(bytearray(4))
