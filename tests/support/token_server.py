"""A token endpoint on loopback: client credentials in, an unsigned JWT out, which a test's broker takes."""

from __future__ import annotations

import base64
import contextlib
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs


@dataclass
class TokenServer:
    """`life_s` is how long its tokens are good; `busy` answers are 503 first; `asked` are the forms it got."""

    client_id: str
    client_secret: str
    life_s: int = 3600
    busy: int = 0
    asked: list[dict[str, list[str]]] = field(default_factory=list)
    url: str = ""

    def answer(self, authorization: str, form: str) -> tuple[int, dict[str, object]]:
        if self.busy:
            self.busy -= 1
            return 503, {}
        self.asked.append(parse_qs(form))
        wanted = base64.b64encode(f"{self.client_id}:{self.client_secret}".encode()).decode()
        if authorization != f"Basic {wanted}":
            return 401, {"error": "invalid_client"}
        return 200, {"access_token": self.token(), "token_type": "Bearer", "expires_in": self.life_s}

    def token(self) -> str:
        now = time.time_ns() // 1_000_000_000
        claims = {"sub": self.client_id, "iat": now, "exp": now + self.life_s, "scope": "mirror"}
        return f"{_part({'alg': 'none'})}.{_part(claims)}."


def _part(claims: dict[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")


@contextlib.contextmanager
def serving_tokens(server: TokenServer) -> Iterator[TokenServer]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = self.rfile.read(int(self.headers["Content-Length"])).decode()
            status, body = server.answer(self.headers.get("Authorization", ""), form)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, format: str, *args: object) -> None:
            """A test says itself what went wrong."""

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.url = f"http://127.0.0.1:{listening.server_address[1]}/token"
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        listening.shutdown()
        listening.server_close()
        thread.join()
