"""The unit in deploy/ runs the command as it is, and systemd reads it without a complaint."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

UNIT = Path(__file__).parents[3] / "deploy" / "heliograph@.service"
PROGRAM = "/opt/heliograph/bin/heliograph"


def test_every_option_of_its_command_exists() -> None:
    (line,) = re.findall(r"^ExecStart=(.*)$", UNIT.read_text(), re.MULTILINE)
    program, command, _, *options = line.split()
    assert (program, command) == (PROGRAM, "run")
    helped = subprocess.run(
        [sys.executable, "-m", "heliograph.cli.main", "run", "--help"], capture_output=True, text=True, check=True
    )
    for option in options:
        if option.startswith("--"):
            assert option in helped.stdout


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd on this machine")
def test_systemd_finds_no_fault(tmp_path: Path) -> None:
    unit = tmp_path / "heliograph@orders.service"
    unit.write_text(UNIT.read_text().replace(PROGRAM, sys.executable).replace("User=heliograph", "User=root"))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(unit)],  # noqa: S607  found on PATH just now
        capture_output=True,
        text=True,
        check=False,
    )
    mine = [text for text in (done.stdout + done.stderr).splitlines() if "heliograph@" in text]
    assert (done.returncode, mine) == (0, [])
