"""Requests to a run's REST server, by Python's own client; answers as (status, body)."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.message import Message
from typing import Any
from urllib.parse import quote

from tests.support.heliograph_run import HeliographRun
from tests.support.waiting import wait_until

LISTENS = re.compile(r"page, REST and metrics: (https?://\S+)")


@dataclass(frozen=True)
class Rest:
    """A server by its address."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        raw: bytes | None = None,
    ) -> tuple[int, Any]:
        """Status, and the body as JSON where it is that."""
        status, _, answer = self.whole(method, path, body, headers, raw)
        return status, _read(answer)

    def whole(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        raw: bytes | None = None,
    ) -> tuple[int, Message, bytes]:
        """Status, headers and body as they came."""
        data = raw if raw is not None else None if body is None else json.dumps(body).encode()
        sent = {"Content-Type": "application/json", **self.headers, **(headers or {})}
        request = urllib.request.Request(self.url + quote(path, safe="/?=&%"), data, sent, method=method)  # noqa: S310  loopback
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310  as above
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.headers, error.read()

    def get(self, path: str) -> Any:
        status, body = self.ask("GET", path)
        assert status == 200, (path, status, body)
        return body

    def flow(self, flow: str) -> dict[str, Any]:
        found: dict[str, Any] = self.get(f"/api/v1/flows/{flow}")
        return found


def rest_of(run: HeliographRun) -> Rest:
    """The server that a run says it has opened."""
    run.wait_for_text("page, REST and metrics: ")
    found = LISTENS.findall(run.output)
    return Rest(found[-1].rstrip(","))


def wait_for_flow(rest: Rest, flow: str, state: str = "running") -> None:
    def is_so() -> bool:
        status, body = rest.ask("GET", f"/api/v1/flows/{flow}")
        return status == 200 and body["state"] == state

    wait_until(is_so, f"{flow} is {state}", every=0.2)


def _read(text: bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text.decode(errors="replace")
