"""Runs `heliograph run` in processes forked from one that has imported it: `python -m tests.support.run_server`.

Its imports are two CPU seconds, and the tests start some sixty runs. `tests.support.forked_run` asks for them. A run is a
session of its own that the kernel kills with this server, and this server ends with the test process: nothing stays behind.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import sys
from pathlib import Path

from heliograph.cli.main import main, module_of
from heliograph.embedded.tether import PR_SET_PDEATHSIG
from tests.support.command_server import become

_LOOK_SECONDS = 0.05


def serve() -> None:
    """One request per line of standard input, one process id per line of standard output, until the input ends.

    The exit status of a run is written to the file that its request names. Comes back in a run, never in the server.
    """
    requests, answers = os.fdopen(os.dup(0), "rb"), os.dup(1)
    statuses: dict[int, Path] = {}
    while True:
        if select.select([requests], [], [], _LOOK_SECONDS if statuses else None)[0]:
            line = requests.readline()
            if not line:
                sys.exit(0)
            request = json.loads(line)
            server, child = os.getpid(), os.fork()
            if child == 0:
                requests.close()
                os.close(answers)
                _tie_to(server)
                become(request)
                return
            statuses[child] = Path(request["status"])
            os.write(answers, b"%d\n" % child)
        _write_ended(statuses)


def _tie_to(server: int) -> None:
    os.setsid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != server:
        sys.exit("the server of this run is gone")


def _write_ended(statuses: dict[int, Path]) -> None:
    """Appears whole or not at all: somebody looks for it."""
    for child in list(statuses):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            path = statuses.pop(child)
            aside = path.with_suffix(".new")
            aside.write_text(str(os.waitstatus_to_exitcode(status)))
            aside.rename(path)


if __name__ == "__main__":
    module_of("run")
    serve()
    sys.exit(main())
