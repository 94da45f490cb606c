"""Who may ask: tokens and pace."""

from __future__ import annotations

import os
from pathlib import Path

from heliograph.rest.guard import Pace, Tokens


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
