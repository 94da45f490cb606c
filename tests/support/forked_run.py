"""A `heliograph run` forked from a process that has imported it (tests/support/run_server.py), used like a `subprocess.Popen`."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

_LOOK_SECONDS = 0.02


class ForkedRun:
    """What the tests use of `Popen`, of a process that is the server's child and not ours."""

    def __init__(self, arguments: Sequence[str], environ: Mapping[str, str] | None, out: Path, err: Path) -> None:
        self._arguments = arguments
        self._status = out.with_suffix(".status")
        request = {
            "arguments": arguments,
            "environ": dict(os.environ if environ is None else environ),
            "folder": str(Path.cwd()),
            "out": str(out),
            "err": str(err),
            "status": str(self._status),
        }
        self.pid = _server().start(json.dumps(request))

    def poll(self) -> int | None:
        try:
            return int(self._status.read_text())
        except FileNotFoundError:
            return None

    def wait(self, timeout: float | None = None) -> int:
        until = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if until is not None and time.monotonic() > until:
                raise subprocess.TimeoutExpired(list(self._arguments), timeout or 0)
            time.sleep(_LOOK_SECONDS)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # it ended, and its status is about to be written
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class _Server:
    """It ends with its standard input, and so with this process; its runs end with it."""

    def __init__(self) -> None:
        self._one_at_a_time = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.run_server"],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        atexit.register(self._process.communicate)

    def start(self, request: str) -> int:
        assert self._process.stdin and self._process.stdout
        with self._one_at_a_time:
            self._process.stdin.write(f"{request}\n".encode())
            self._process.stdin.flush()
            return int(self._process.stdout.readline())


@cache
def _server() -> _Server:
    return _Server()
