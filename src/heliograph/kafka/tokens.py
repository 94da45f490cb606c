"""OAuth tokens by client credentials, as Kafka's Java clients fetch them; kept per process until they are to be renewed.

Blocks, so asyncio code calls it in a thread. A refusal by the endpoint is AccessRefused, its silence ConnectionLost. Tokens
and secrets appear in no message.
"""

from __future__ import annotations

import base64
import binascii
import http.client
import json
import random
import socket
import threading
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus, unquote, urlencode, urlsplit

from kafka.net.sasl.oauth import AbstractTokenProvider

from heliograph.errors import AccessRefused, ConnectionLost
from heliograph.model.security import TokenSource

_WITHOUT_END_S = 300.0
"""How long a token is kept that does not say when it ends."""
_SAID_LENGTH = 200
_OPTION = "sasl.oauthbearer.token.endpoint.url"


@dataclass(frozen=True)
class _Token:
    text: str
    renew_at: float

    def __repr__(self) -> str:
        return "_Token(***)"


class Tokens(AbstractTokenProvider):  # type: ignore[misc]  # the library has no types
    """Gives a token that is still good; the library's own login asks it too."""

    def __init__(self, source: TokenSource) -> None:
        super().__init__()
        self._source = source
        self._lock = threading.Lock()
        self._kept: _Token | None = None

    def token(self) -> str:
        with self._lock:
            if self._kept is None or time.monotonic() >= self._kept.renew_at:
                text, life_s = self._fetch()
                self._kept = _Token(text, time.monotonic() + _renew_after(self._source, life_s))
            return self._kept.text

    def extensions(self) -> dict[str, str]:
        return dict(self._source.extensions)

    def _fetch(self) -> tuple[str, float]:
        """The token and for how long it is good, with growing pauses while the endpoint is silent or busy."""
        pause_s = self._source.backoff_ms / 1000
        until = time.monotonic() + self._source.backoff_max_ms / 1000
        while True:
            try:
                return self._fetch_once()
            except AccessRefused:
                raise
            except ConnectionLost:
                if time.monotonic() + pause_s > until:
                    raise
            time.sleep(pause_s)
            pause_s *= 2

    def _fetch_once(self) -> tuple[str, float]:
        source = self._source
        parts = urlsplit(source.url)
        if parts.scheme == "file":
            return _from_file(unquote(parts.path))
        try:
            status, body = _post(source)
        except (OSError, http.client.HTTPException) as error:
            # Not from the error: whoever asks whether a broker refused the connection must not find the endpoint's refusal.
            raise ConnectionLost(f"{_OPTION} {source.url} does not answer: {str(error) or 'no answer'}") from None
        if status >= 500 or status == 429:
            raise ConnectionLost(f"{_OPTION} {source.url} answers with status {status}")
        if status != 200:
            raise AccessRefused(
                f"{_OPTION} {source.url} gives no token for client {source.client_id} (status {status}{_said(body)}): "
                "check the client's id and secret"
            )
        try:
            answer = json.loads(body)
            token = str(answer["access_token"])
            life_s = float(answer.get("expires_in") or _life(token))
        except (ValueError, KeyError, TypeError) as error:
            raise AccessRefused(
                f"{_OPTION} {source.url} answers without an access_token: is it a token endpoint?"
            ) from error
        return token, life_s


@lru_cache(maxsize=64)
def tokens_of(source: TokenSource) -> Tokens:
    """One per process and source: many connections share a token."""
    return Tokens(source)


def _post(source: TokenSource) -> tuple[int, bytes]:
    parts = urlsplit(source.url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=source.connect_timeout_ms / 1000 or None)
    secret = source.client_secret.reveal() if source.client_secret else ""
    pair = [source.client_id, secret]
    joined = ":".join(map(quote_plus, pair) if source.urlencode else pair)
    form = {"grant_type": "client_credentials"} | ({"scope": source.scope} if source.scope else {})
    headers = {
        "Authorization": f"Basic {base64.b64encode(joined.encode()).decode()}",
        "Content-Type": "application/x-www-form-urlencoded",
        "Accept": "application/json",
    }
    try:
        connection.connect()
        if isinstance(connection.sock, socket.socket):
            connection.sock.settimeout(source.read_timeout_ms / 1000 or None)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request("POST", target, urlencode(form), headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def _from_file(path: str) -> tuple[str, float]:
    try:
        token = Path(path).read_text().strip()
    except OSError as error:
        raise AccessRefused(f"{_OPTION}: file {path} cannot be read: {error.strerror}") from error
    return token, _life(token)


def _life(token: str) -> float:
    """How long a JWT says it is good; its end and its begin stand in its middle part."""
    try:
        middle = token.split(".")[1]
        claims: dict[str, Any] = json.loads(base64.urlsafe_b64decode(middle + "=" * (-len(middle) % 4)))
        return max(0.0, float(claims["exp"]) - time.time_ns() / 1e9)
    except (IndexError, ValueError, KeyError, TypeError, binascii.Error):
        return _WITHOUT_END_S


def _renew_after(source: TokenSource, life_s: float) -> float:
    """Kafka's rule: at a part of its life, not before the shortest period, not after the buffer before its end."""
    refresh = source.refresh
    part = life_s * (refresh.factor + random.uniform(0, refresh.jitter))  # noqa: S311  a spread, no secret
    latest = life_s - refresh.buffer_s
    if life_s <= refresh.min_period_s + refresh.buffer_s:
        return part  # too short for both limits: Kafka gives them up then
    return max(float(refresh.min_period_s), min(part, latest))


def _said(body: bytes) -> str:
    """The error word of an OAuth answer; anything else may be a page."""
    try:
        answer = json.loads(body)
        return f", {str(answer['error'])[:_SAID_LENGTH]}"
    except (ValueError, KeyError, TypeError):
        return ""
