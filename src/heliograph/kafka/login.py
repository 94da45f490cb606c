"""The login to a broker: SASL with the library's own mechanisms, over our connection or inside the library's client.

Knows how each mechanism wants its settings; must not know where they came from. What a broker says to a refused login goes
into the sentence, what we sent does not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from kafka.errors import KafkaError
from kafka.net.sasl import get_sasl_mechanism
from kafka.protocol.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

from heliograph.errors import AccessRefused
from heliograph.kafka.tls import ssl_context
from heliograph.kafka.tokens import tokens_of
from heliograph.model.security import Login, Security

_HANDSHAKE_API, _AUTHENTICATE_API = 17, 36
_UNSUPPORTED_MECHANISM = 33
_PACKAGES = {"GSSAPI": "gssapi", "AWS_MSK_IAM": "botocore"}
_MOST_STEPS = 10
_WHO = {
    "PLAIN": "username and password of sasl.jaas.config",
    "SCRAM-SHA-256": "username and password of sasl.jaas.config, and that this user has a SCRAM-SHA-256 credential",
    "SCRAM-SHA-512": "username and password of sasl.jaas.config, and that this user has a SCRAM-SHA-512 credential",
    "OAUTHBEARER": "what the broker expects of tokens (audience, issuer, scope), and sasl.oauthbearer.scope",
    "GSSAPI": "the ticket (klist) and sasl.kerberos.service.name",
    "AWS_MSK_IAM": "the AWS credentials and the policy of their role",
}


Ask = Callable[[Any, Any, int, int], Awaitable[Any]]
"""Sends a request and decodes the answer: request, response class, API key and the newest version that we speak."""


async def log_in(ask: Ask, login: Login, host: str) -> float:
    """Say who we are; for how many seconds the broker believes it (0: for ever). AccessRefused where it does not."""
    request = SaslHandshakeRequest(mechanism=login.mechanism)
    greeting = await ask(request, SaslHandshakeResponse, _HANDSHAKE_API, 1)
    if greeting.error_code == _UNSUPPORTED_MECHANISM or login.mechanism not in greeting.mechanisms:
        offered = ", ".join(sorted(greeting.mechanisms)) or "none"
        raise AccessRefused(f"it does not take sasl.mechanism = {login.mechanism}; it takes {offered}")
    mechanism = await _mechanism(login, host)
    for _ in range(_MOST_STEPS):
        token = await _blocking(mechanism.auth_bytes, login)
        step = SaslAuthenticateRequest(auth_bytes=token)
        answer = await ask(step, SaslAuthenticateResponse, _AUTHENTICATE_API, 2)
        if answer.error_code:
            raise AccessRefused(_refused(login, answer.error_message))
        await _blocking(partial(mechanism.receive, answer.auth_bytes), login)
        if mechanism.is_done():
            break
    if not mechanism.is_authenticated():
        raise AccessRefused(_refused(login, "the exchange did not end"))
    return float(getattr(answer, "session_lifetime_ms", 0) or 0) / 1000


async def _mechanism(login: Login, host: str) -> Any:
    settings = library_login(login) | {"host": host, "security_protocol": "SASL_SSL"}
    return await _blocking(lambda: get_sasl_mechanism(login.mechanism)(**settings), login)


async def _blocking(step: Callable[[], Any], login: Login) -> Any:
    """One step of the library's. Tokens and tickets are fetched over the network, so those steps run in a thread."""
    try:
        return await asyncio.to_thread(step) if login.mechanism in ("OAUTHBEARER", *_PACKAGES) else step()
    except (KafkaError, RuntimeError, ValueError, KeyError) as error:
        raise AccessRefused(_unprepared(login, error)) from error


def _unprepared(login: Login, error: Exception) -> str:
    package = _PACKAGES.get(login.mechanism)
    if package and isinstance(error, RuntimeError):
        return (
            f"sasl.mechanism = {login.mechanism} needs the Python package {package} on the driver and every executor: "
            f"pip install {package}"
        )
    return _refused(login, f"{type(error).__name__}: {error}")


def _refused(login: Login, said: str | None) -> str:
    who = f" of {login.username}" if login.username else ""
    return f"it refuses the login{who} by {login.mechanism} ({said or 'without a word'}): check {_WHO[login.mechanism]}"


def library_login(login: Login) -> dict[str, Any]:
    """The login in the library's words."""
    settings: dict[str, Any] = {"sasl_mechanism": login.mechanism}
    if login.tokens is not None:
        return settings | {"sasl_oauth_token_provider": tokens_of(login.tokens)}
    if login.mechanism == "GSSAPI":
        return settings | {"sasl_kerberos_service_name": login.service}
    if login.password is None:
        return settings
    username = login.username
    if login.mechanism.startswith("SCRAM"):
        username = username.replace("=", "=3D").replace(",", "=2C")  # RFC 5802; the library sends it as it is
    return settings | {"sasl_plain_username": username, "sasl_plain_password": login.password.reveal()}


def library_settings(security: Security) -> dict[str, Any]:
    """All of a cluster's security in the library's words."""
    settings: dict[str, Any] = {"security_protocol": security.protocol}
    if security.tls is not None:
        settings["ssl_context"] = ssl_context(security.tls)
    if security.login is not None:
        settings |= library_login(security.login)
    return settings
