"""Whether a process of this machine lives."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from heliograph.control import machine
from heliograph.control.machine import is_gone, this_machine


def test_a_process_that_lives_is_not_gone_and_one_that_ended_is() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert not is_gone(this_machine(), child.pid)
    finally:
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert is_gone(this_machine(), child.pid), "nobody has waited for it yet, but it is dead"
        child.communicate()
    assert is_gone(this_machine(), child.pid)


def test_nothing_is_known_of_processes_elsewhere() -> None:
    assert not is_gone("another machine", 2**22 + 1)
    assert not is_gone("", 2**22 + 1)


def test_where_the_machine_cannot_be_told_nobody_is_gone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(machine, "_BOOT_ID", tmp_path / "none")
    assert this_machine() == ""
    assert not is_gone(this_machine(), 2**22 + 1)
