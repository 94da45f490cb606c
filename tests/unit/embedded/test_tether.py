"""What is started on a tether dies with the process that started it, and not with a thread of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil

from heliograph.embedded.tether import Tether

PARENT = """
import sys, pathlib
from heliograph.embedded.tether import Tether
child = Tether().start(["sleep", "600"], pathlib.Path(sys.argv[1]))
print(child.pid, flush=True)
sys.stdin.read()
"""


def test_a_killed_parent_leaves_no_child(tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path / "log")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        parent.send_signal(signal.SIGKILL)
    gone, alive = psutil.wait_procs([child], timeout=10)
    assert (gone and not alive) or child.status() == psutil.STATUS_ZOMBIE


def test_the_child_outlives_the_thread_that_asked_for_it(tmp_path: Path) -> None:
    tether = Tether()
    started: list[subprocess.Popen[bytes]] = []
    thread = threading.Thread(target=lambda: started.append(tether.start(["sleep", "600"], tmp_path / "log")))
    thread.start()
    thread.join()
    [child] = started
    try:
        assert child.poll() is None
    finally:
        child.kill()
        assert child.wait() == -signal.SIGKILL


def test_the_command_keeps_the_pid_and_writes_to_the_log(tmp_path: Path) -> None:
    child = Tether().start(["sh", "-c", "echo pid $$; exit 3"], tmp_path / "log")
    assert child.wait() == 3
    assert (tmp_path / "log").read_text() == f"pid {child.pid}\n"


def test_nothing_is_started_for_a_parent_that_is_already_gone(tmp_path: Path) -> None:
    program = Path(sys.modules[Tether.__module__].__file__ or "")
    wrong_parent = str(os.getpid() + 1)
    command = [sys.executable, str(program), wrong_parent, "touch", str(tmp_path / "made")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "is gone" in done.stderr
    assert not (tmp_path / "made").exists()
