"""Tokens from a server on loopback, and from files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from heliograph.errors import AccessRefused, ConnectionLost
from heliograph.kafka.tokens import Tokens, _renew_after, tokens_of
from heliograph.model.security import Refresh, Secret, TokenSource
from tests.support.token_server import TokenServer, serving_tokens


@pytest.fixture
def server() -> Iterator[TokenServer]:
    with serving_tokens(TokenServer("me", "s3cret")) as running:
        yield running


def source(server: TokenServer, secret: str = "s3cret", **more: object) -> TokenSource:  # noqa: S107  a test's
    quick: dict[str, object] = {"backoff_ms": 1, "backoff_max_ms": 20}
    return TokenSource(server.url, "me", Secret(secret), **(quick | more))  # type: ignore[arg-type]  # a test's shorthand


def test_a_token_is_fetched_once_and_kept(server: TokenServer) -> None:
    tokens = Tokens(source(server, scope="mirror"))
    assert tokens.token() == tokens.token()
    assert server.asked == [{"grant_type": ["client_credentials"], "scope": ["mirror"]}]


def test_one_source_has_one_keeper_in_a_process(server: TokenServer) -> None:
    assert tokens_of(source(server)) is tokens_of(source(server))
    assert tokens_of(source(server)) is not tokens_of(source(server, "other"))


def test_a_token_that_is_due_is_fetched_again(server: TokenServer) -> None:
    server.life_s = 0
    tokens = Tokens(source(server))
    tokens.token()
    tokens.token()
    assert len(server.asked) == 2


def test_a_busy_endpoint_is_asked_again_but_not_for_ever(server: TokenServer) -> None:
    server.busy = 2
    assert Tokens(source(server, backoff_max_ms=30_000)).token()
    server.busy = 1_000
    with pytest.raises(ConnectionLost, match="answers with status 503"):
        Tokens(source(server)).token()


def test_a_refusal_is_not_tried_again_and_names_no_secret(server: TokenServer) -> None:
    with pytest.raises(AccessRefused, match=r"gives no token for client me \(status 401, invalid_client\)") as caught:
        Tokens(source(server, "wrong-s3cret")).token()
    assert "s3cret" not in str(caught.value)
    assert len(server.asked) == 1


def test_an_answer_without_a_token_is_a_refusal(server: TokenServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "answer", lambda *_: (200, {"hello": "world"}))
    with pytest.raises(AccessRefused, match="answers without an access_token: is it a token endpoint"):
        Tokens(source(server)).token()


def test_credentials_are_url_encoded_where_asked(server: TokenServer) -> None:
    server.client_secret = "a%2Bb"
    assert Tokens(source(server, "a+b", urlencode=True)).token()


def test_nobody_there_is_no_refusal() -> None:
    nobody = TokenSource("http://127.0.0.1:1/token", "me", Secret("s3cret"), backoff_ms=1, backoff_max_ms=5)
    with pytest.raises(ConnectionLost, match="http://127.0.0.1:1/token does not answer") as caught:
        Tokens(nobody).token()
    assert not isinstance(caught.value, AccessRefused)


def test_a_token_may_stand_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a token"
    path.write_text("abc\n")
    assert Tokens(TokenSource(path.as_uri())).token() == "abc"
    with pytest.raises(AccessRefused, match="none cannot be read: No such file"):
        Tokens(TokenSource((tmp_path / "none").as_uri())).token()


def test_extensions_are_told(server: TokenServer) -> None:
    assert Tokens(source(server, extensions=(("pool", "p"),))).extensions() == {"pool": "p"}


@pytest.mark.parametrize(
    ("life_s", "low", "high"), [(3600, 2880, 3060), (1000, 700, 700), (400, 60, 100), (300, 240, 255), (0, 0, 0)]
)
def test_a_token_is_renewed_in_good_time(life_s: int, low: float, high: float) -> None:
    assert low <= _renew_after(TokenSource("x", refresh=Refresh()), life_s) <= high
