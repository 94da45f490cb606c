"""Who may ask: tokens and pace."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from heliograph.config.flows import ServerSettings
from heliograph.rest.guard import USER, Guard, Pace, Tokens, who
from tests.support.rest import Rest

NOTHING = Response(status_code=204)


def test_tokens_are_read_again_when_their_file_was_saved(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text("# people\nann: s3cret\n\nplain\n")
    tokens = Tokens(str(path))
    assert tokens.are_needed
    assert [tokens.name_of(token) for token in ("s3cret", "plain", "ann", "")] == ["ann", "token", None, None]
    path.write_text("bob: other\n")
    os.utime(path, ns=(1, 1))
    assert [tokens.name_of(token) for token in ("s3cret", "other")] == [None, "bob"]
    path.unlink()
    assert tokens.name_of("other") is None
    assert not Tokens("").are_needed


def test_an_address_has_its_pace_and_others_have_theirs() -> None:
    now = [0.0]
    pace = Pace(2, lambda: now[0])
    assert [pace.allows("a") for _ in range(21)] == [True] * 20 + [False]
    assert pace.allows("b")
    now[0] = 1.0
    assert [pace.allows("a") for _ in range(3)] == [True, True, False]
    assert all(Pace(0).allows("a") for _ in range(1000))


@contextmanager
def served(settings: ServerSettings, app: ASGIApp = NOTHING) -> Iterator[str]:
    """A real server whose every path answers 204, behind the guard."""
    server = uvicorn.Server(uvicorn.Config(Guard(app, settings), lifespan="off", log_config=None))
    door = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [door]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{door.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
        door.close()


def test_whoever_sends_too_much_hears_why_and_not_a_broken_pipe() -> None:
    """The client sends on while the answer is made: a door that closes at once would break its pipe, now and then."""
    with served(ServerSettings(body_max_bytes=1_000)) as url:
        rest = Rest(url)
        for _ in range(5):
            status, body = rest.ask("POST", "/api/v1/x", raw=b" " * 4_000_000)
            assert (status, "rest.body.max.bytes = 1,000" in body["error"]["message"]) == (413, True)
        assert rest.ask("POST", "/api/v1/x", raw=b" " * 1_000)[0] == 204


def test_who_changes_something_is_known_by_token_by_what_a_command_says_or_by_address(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("ann: s3cret\n")
    seen: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(who(Request(scope)))
        await Response(status_code=204)(scope, receive, send)

    with served(ServerSettings(), app) as url:
        for headers in (
            {},
            {"Origin": url},
            {USER: "bob@host"},
            {USER: "x" * 200},
        ):
            assert Rest(url).ask("POST", "/api/v1/x", headers=headers)[0] == 204
    with served(ServerSettings(tokens_file=str(tokens)), app) as url:
        for headers in ({}, {USER: "bob@host"}):
            bearer = {"Authorization": "Bearer s3cret"}
            assert Rest(url).ask("POST", "/api/v1/x", headers=bearer | headers)[0] == 204
    assert seen == ["127.0.0.1", "127.0.0.1 (page)", "bob@host", "x" * 100, "ann", "ann (bob@host)"]
