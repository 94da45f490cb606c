"""`heliograph` with some arguments, to its end: what it printed and its exit status."""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from functools import cache
from pathlib import Path

COMMAND_SECONDS = 120.0


@dataclass(frozen=True)
class Said:
    """What a command printed, and its exit status."""

    code: int
    out: str
    err: str


def command(*arguments: str, timeout_seconds: float = COMMAND_SECONDS) -> Said:
    """`heliograph` with these arguments, in a process of its own (tests/support/command_server.py)."""
    with tempfile.TemporaryDirectory(prefix="heliograph-said-") as folder:
        out, err = Path(folder) / "out", Path(folder) / "err"
        request = {
            "arguments": arguments,
            "environ": dict(os.environ),
            "folder": str(Path.cwd()),
            "out": str(out),
            "err": str(err),
        }
        code = _server(threading.get_ident()).ask(json.dumps(request), timeout_seconds)
        return Said(code, out.read_text(), err.read_text())


class _Server:
    """It ends with its standard input, and so with this process."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.command_server"],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        atexit.register(self._process.communicate)

    def ask(self, request: str, timeout_seconds: float) -> int:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(f"{request}\n".encode())
        self._process.stdin.flush()
        ready, _, _ = select.select([self._process.stdout], [], [], timeout_seconds)
        if not ready:
            os.killpg(self._process.pid, signal.SIGKILL)
            _server.cache_clear()
            raise AssertionError(f"heliograph still runs after {timeout_seconds:.0f} s: {request}")
        return int(self._process.stdout.readline())


@cache
def _server(thread: int) -> _Server:
    """One for each thread that gives commands: a server does one at a time."""
    return _Server()
