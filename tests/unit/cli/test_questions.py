"""Asking before something is done."""

from __future__ import annotations

import io

import pytest

from heliograph.cli.questions import confirmed
from heliograph.errors import ConfigError


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_who_said_yes_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert confirmed("Really?", yes=True)


def test_where_nobody_can_be_asked_yes_must_be_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    with pytest.raises(ConfigError, match="Really\\? Nobody can be asked here: say --yes"):
        confirmed("Really?", yes=False)


@pytest.mark.parametrize(
    ("answer", "meant"), [("y\n", True), ("YES\n", True), ("\n", False), ("no\n", False), ("", False)]
)
def test_only_yes_is_yes(monkeypatch: pytest.MonkeyPatch, answer: str, meant: bool) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    assert confirmed("Really?", yes=False) is meant
