"""Who may ask: tokens and pace."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from starlette.responses import Response

from heliograph.config.flows import ServerSettings
from heliograph.rest.guard import Guard, Pace, Tokens
from tests.support.rest import Rest


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
def served(settings: ServerSettings) -> Iterator[str]:
    """A real server whose every path answers 204, behind the guard."""
    server = uvicorn.Server(uvicorn.Config(Guard(Response(status_code=204), settings), lifespan="off", log_config=None))
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
