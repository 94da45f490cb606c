"""Runs commands of `heliograph` in processes forked from one that has imported them all: `python -m tests.support.command_server`.

Loading Python and the Kafka library is a CPU second, and the tests give some hundred commands. Each still has a process of its
own, with its own streams, working directory, environment and exit status. `tests.support.mirror.command` asks for them.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from heliograph.cli.main import COMMANDS, main, module_of


def serve() -> None:
    """One request per line of standard input, one exit status per line of standard output, until the input ends.

    Comes back in a process that is to run a command, after what it is told; never in the server.
    """
    requests, answers = os.fdopen(os.dup(0)), os.dup(1)
    for line in requests:
        child = os.fork()
        if child == 0:
            os.close(requests.fileno())
            os.close(answers)
            become(json.loads(line))
            return
        os.write(answers, b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    sys.exit(0)


def become(request: dict[str, Any]) -> None:
    """What a shell sets up before it starts a program."""
    for stream, path in ((0, os.devnull), (1, request["out"]), (2, request["err"])):
        opened = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        os.dup2(opened, stream)
        os.close(opened)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environ"])
    sys.argv = ["heliograph", *request["arguments"]]


if __name__ == "__main__":
    for name in COMMANDS:
        module_of(name)
    serve()
    sys.exit(main())
