"""The commands that tests give are those of a shell: the same words, the same exit status, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.commands import Said, command

FILE = "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\n"


def program(*arguments: str) -> Said:
    """The installed program."""
    path = Path(sys.executable).with_name("heliograph")
    done = subprocess.run(
        [str(path), *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    return Said(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(("--version",), 0), (("config", "mm2.properties"), 0), (("nonsense",), 2)],
)
def test_a_command_says_what_the_program_says(
    arguments: tuple[str, ...], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mm2.properties").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "60")
    said = command(*arguments)
    assert said == program(*arguments)
    assert (said.code, bool(said.out), bool(said.err)) == (code, code == 0, code != 0)


def test_a_command_that_does_not_end_is_ended_and_the_next_one_is_served(tmp_path: Path) -> None:
    """It opens a pipe that nobody writes to."""
    os.mkfifo(tmp_path / "silent.properties")
    with pytest.raises(AssertionError, match=r"still runs after 1 s: .*silent"):
        command("config", str(tmp_path / "silent.properties"), timeout_seconds=1.0)
    assert command("--version").code == 0
