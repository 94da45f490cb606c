"""Runs a command that cannot outlive the process that asked for it, not even when that process is killed with -9.

`Tether.start` is the caller's side. The lower part of this file is a program of its own: it asks the kernel to be killed
when its parent dies, then becomes the command (same pid). A program in between and not `preexec_fn`, because the caller
may have threads, and Python code between fork and exec can then deadlock.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PR_SET_PDEATHSIG = 1


class Tether:
    """Starts processes from one thread of its own.

    The kernel ties the death signal to the *thread* that started the process. Starting from the caller's thread would
    end a broker together with the test thread that restarted it; this thread lives as long as the process or the tether.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="tether")

    def start(self, command: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
        """Start the command, its output appended to `log`; the returned process has the command's own pid."""
        return self._thread.submit(_start, command, log).result()


def _start(command: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    wrapped = [sys.executable, "-I", "-S", __file__, str(os.getpid()), *command]
    with log.open("ab") as out:
        # A session of its own: Ctrl-C in the terminal reaches the one who stops the brokers in order, not the brokers.
        return subprocess.Popen(
            wrapped, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        )


def _become(parent: int, command: Sequence[str]) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit("the process that wanted this command is gone")
    os.execvp(command[0], list(command))


if __name__ == "__main__":
    _become(int(sys.argv[1]), sys.argv[2:])
