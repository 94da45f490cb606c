"""TLS on our own sockets: the context, the handshake, and what a failed one means in one sentence.

Knows certificates and OpenSSL's words; must not know Kafka's messages. A TlsSocket takes a plain one's place: it says
BlockingIOError where a plain one would, so that a connection need not know which it has.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from heliograph.errors import AccessRefused, SetupError
from heliograph.kafka.keystores import own_pem, trust_pem
from heliograph.model.security import Tls

_RECORD_BYTES = 16_384
_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_EXPIRED, _NOT_YET = 10, 9
_OTHER_NAME = (62, 64)
_ANY_TIME = 0x200000  # OpenSSL's X509_V_FLAG_NO_CHECK_TIME, for which Python has no name
# Alerts by which a broker says that it does not take our certificate; in TLS 1.3 they come with the first answer.
_OUR_CERTIFICATE = ("CERTIFICATE", "UNKNOWN_CA", "ACCESS_DENIED", "HANDSHAKE_FAILURE")
_NO_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG")


class TlsSocket(ssl.SSLSocket):
    """Encrypts. Small buffers leave together: each would cost a record of its own."""

    def sendmsg(self, buffers: Sequence[memoryview], *_: Any) -> int:  # type: ignore[override]  # as a Connection calls it
        first: bytes | memoryview = buffers[0]
        if len(first) < _RECORD_BYTES and len(buffers) > 1:
            first = _joined(buffers)
        try:
            return self.send(first)
        except (ssl.SSLWantWriteError, ssl.SSLWantReadError) as error:
            raise BlockingIOError from error

    def recv_into(self, buffer: Any, *_: Any) -> int:
        try:
            return super().recv_into(buffer)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError) as error:
            raise BlockingIOError from error


def _joined(buffers: Sequence[memoryview]) -> bytes:
    """As many of the first buffers as fit one record; the same ones again if it must be tried again."""
    chosen: list[memoryview] = []
    size = 0
    for buffer in buffers:
        if size + len(buffer) > _RECORD_BYTES:
            break
        chosen.append(buffer)
        size += len(buffer)
    return b"".join(chosen)


@lru_cache(maxsize=64)
def ssl_context(tls: Tls, at_any_time: bool = False) -> ssl.SSLContext:
    """The context of these settings, made once per process; SetupError where a store cannot be used.

    `at_any_time`: one that takes expired certificates too. For looking at them, never for talking.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.sslsocket_class = TlsSocket
    context.minimum_version = min(_VERSIONS[name] for name in tls.versions)
    context.maximum_version = max(_VERSIONS[name] for name in tls.versions)
    context.check_hostname = tls.checks_host
    if at_any_time:
        context.verify_flags |= _ANY_TIME
    if tls.trust is None:
        context.load_default_certs()
    else:
        try:
            context.load_verify_locations(cadata=trust_pem(tls.trust))
        except ssl.SSLError as error:
            raise SetupError(f"{tls.trust.option} holds a certificate that cannot be read: {error.reason}") from error
    if tls.own is not None:
        _load_own(context, tls)
    return context


def _load_own(context: ssl.SSLContext, tls: Tls) -> None:
    """OpenSSL takes a key from a file alone: one that only this user can read, gone once it is read."""
    assert tls.own is not None  # noqa: S101  the caller looked
    password = tls.key_password.reveal() if tls.key_password else ""
    with tempfile.NamedTemporaryFile("w", prefix="heliograph-", suffix=".pem") as file:  # mkstemp: mode 0600
        file.write(own_pem(tls.own, tls.key_password))
        file.flush()
        try:
            context.load_cert_chain(file.name, password=password)
        except ssl.SSLError as error:
            hint = "ssl.key.password does not open it, or it" if password else "it"
            raise SetupError(
                f"{tls.own.option}: the private key cannot be used: {hint} does not belong to the first certificate "
                f"({error.reason or 'bad decrypt'})"
            ) from error


async def shake_hands(sock: socket.socket, host: str, tls: Tls, at_any_time: bool = False) -> TlsSocket:
    """The socket with TLS on it; AccessRefused where a certificate is not what it must be. Closes it on failure."""
    loop = asyncio.get_running_loop()
    context = ssl_context(tls, at_any_time)
    secure = context.wrap_socket(sock, server_hostname=host.rstrip("."), do_handshake_on_connect=False)
    assert isinstance(secure, TlsSocket)  # noqa: S101  sslsocket_class
    try:
        while True:
            try:
                secure.do_handshake()
                return secure
            except ssl.SSLWantReadError:
                await _ready(loop.add_reader, loop.remove_reader, secure.fileno())
            except ssl.SSLWantWriteError:
                await _ready(loop.add_writer, loop.remove_writer, secure.fileno())
    except BaseException:
        secure.close()
        raise


async def _ready(add: Any, remove: Any, descriptor: int) -> None:
    ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    add(descriptor, _wake, ready)
    try:
        await ready
    finally:
        remove(descriptor)


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def refusal(error: BaseException | None, host: str, tls: Tls | None) -> AccessRefused | None:
    """What a failed handshake means, if trying again cannot help; None for anything else."""
    if tls is None or not isinstance(error, ssl.SSLError):
        return None
    if isinstance(error, ssl.SSLCertVerificationError):
        return AccessRefused(_distrust(error, host, tls))
    reason = str(getattr(error, "reason", "") or "").upper()  # one that ended the connection may have none
    if any(word in reason for word in _NO_TLS):
        return AccessRefused(
            "it does not speak TLS: set security.protocol to PLAINTEXT or SASL_PLAINTEXT, or correct the port"
        )
    if "ALERT" in reason and any(word in reason for word in _OUR_CERTIFICATE):
        return AccessRefused(_unwanted(reason, tls))
    if "PROTOCOL_VERSION" in reason or "UNSUPPORTED_PROTOCOL" in reason:
        allowed = ", ".join(tls.versions)
        return AccessRefused(f"it speaks none of the TLS versions of ssl.enabled.protocols ({allowed})")
    return None


def _distrust(error: ssl.SSLCertVerificationError, host: str, tls: Tls) -> str:
    if error.verify_code == _EXPIRED:
        return "its certificate has expired: the broker needs a new one (or this machine's clock is wrong)"
    if error.verify_code == _NOT_YET:
        return "its certificate is not valid yet: is this machine's clock right?"
    if error.verify_code in _OTHER_NAME:
        return (
            f"its certificate is not for {host}: reach it by a name that the certificate has (bootstrap.servers, the "
            "broker's advertised.listeners), or leave ssl.endpoint.identification.algorithm empty to check no names"
        )
    trusted = "the CAs that this machine trusts: set ssl.truststore.location" if tls.trust is None else tls.trust.option
    advice = "" if tls.trust is None else ": add its CA there"
    return f"its certificate is not signed by any of {trusted}{advice} ({error.verify_message})"


def _unwanted(reason: str, tls: Tls) -> str:
    said = reason.rpartition("ALERT_")[2].replace("_", " ").lower()
    if tls.own is None:
        return f"it wants a certificate of ours ({said}): set ssl.keystore.location"
    return f"it does not take our certificate of {tls.own.option} ({said}): is it expired, or its CA unknown to the broker?"
