"""The mirror as a user starts it: `heliograph run FILE ...` as a process, with its whole family in view."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from heliograph.embedded import tether
from tests.support.doors import address_lines
from tests.support.forked_run import ForkedRun
from tests.support.processes import children, lives
from tests.support.waiting import wait_until

STOP_SECONDS = 60.0
PROGRAM = Path(sys.executable).with_name("heliograph")
"""The program that a user starts."""
_STARTER = ThreadPoolExecutor(max_workers=1, thread_name_prefix="heliograph-run")
"""Every program is started from this thread: the kernel ends a tethered process together with the thread that started it."""


def write_properties(path: Path, settings: Mapping[str, str]) -> Path:
    """A properties file with these lines, in this order; it opens no port unless it says which."""
    lines = {**settings, "listeners": settings.get("listeners", "none")}
    # Whole or not at all, as an editor saves it: a run may look at the file in this moment.
    aside = path.with_name(f"{path.name}.new")
    aside.write_text("".join(f"{name} = {value}\n" for name, value in lines.items()))
    aside.rename(path)
    return path


def two_cluster_settings(source: str, target: str, topics: str, **more: str) -> dict[str, str]:
    """MirrorMaker 2's lines for one flow A->B; `more` has `_` for `.` and wins."""
    settings = {
        "clusters": "A, B",
        **address_lines("A", source),
        **address_lines("B", target),
        "A->B.enabled": "true",
        "A->B.topics": topics,
        "B->A.enabled": "false",
        "replication.factor": "1",
        "heartbeats.replication.enabled": "false",  # the clusters may be shared with tests that write them
        "emit.heartbeats.enabled": "false",
        "emit.offset-syncs.enabled": "false",
        "commit.source.group": "false",
    }
    return settings | {name.replace("_", "."): value for name, value in more.items()}


class HeliographRun:
    """One `heliograph run`. Inside `with` it runs; at the end its whole family is dead."""

    def __init__(
        self,
        properties: Path,
        *options: str,
        environ: Mapping[str, str] | None = None,
        program: Path | None = None,
    ) -> None:
        """`program` is started as a shell starts it; without one the run is forked from a process that has imported it."""
        self._program = program
        self._arguments = ["run", str(properties), *options]
        self._environ = dict(environ) if environ is not None else None
        self.stdout = _own_file(properties)
        self.stderr = self.stdout.with_suffix(".err")
        self._process: subprocess.Popen[bytes] | ForkedRun | None = None
        self._seen: dict[int, psutil.Process] = {}

    def start(self) -> Self:
        """Start it on a tether: a killed pytest leaves no run behind."""
        if self._program is None:
            self._process = ForkedRun(self._arguments, self._environ, self.stdout, self.stderr)
        else:
            self._process = _STARTER.submit(self._start, self._program).result()
        return self

    def _start(self, program: Path) -> subprocess.Popen[bytes]:
        # Tether.start writes both streams to one log; the tests look at each alone.
        wrapped = [sys.executable, "-I", "-S", tether.__file__, str(os.getpid()), str(program), *self._arguments]
        with self.stdout.open("wb") as out, self.stderr.open("wb") as err:
            return subprocess.Popen(
                wrapped,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=self._environ,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._started().pid

    @property
    def output(self) -> str:
        """Everything it has printed so far, both streams."""
        # A run that was asked for a moment ago has not opened its second file yet.
        files = [path for path in (self.stdout, self.stderr) if path.exists()]
        return "".join(path.read_text(errors="replace") for path in files)

    @property
    def exit_status(self) -> int | None:
        return self._started().poll()

    def wait_for_text(self, text: str, timeout_seconds: float = 180.0) -> None:
        """Return when it has printed `text`; fail with what it printed when it ends or the time is over."""

        def printed() -> bool:
            if text in self.output:
                return True
            assert self.exit_status is None, f"ended with {self.exit_status} before {text!r}:\n{self.output}"
            return False

        wait_until(printed, f"heliograph printed {text!r}", timeout_seconds)

    def wait(self, timeout_seconds: float = 120.0) -> int:
        """Its exit status, once it ends by itself."""
        try:
            return self._started().wait(timeout_seconds)
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f"heliograph still runs after {timeout_seconds:.0f} s:\n{self.output}") from error

    def terminate(self, timeout_seconds: float = STOP_SECONDS) -> int:
        """SIGTERM, and its exit status."""
        self._family()
        self._started().send_signal(signal.SIGTERM)
        return self.wait(timeout_seconds)

    def kill(self) -> None:
        """kill -9 of the driver's Python process alone; what it leaves behind must end by itself."""
        self._family()
        self._started().kill()
        self._started().wait()

    def kill_tree(self) -> None:
        """kill -9 of the driver, its JVM and all Python workers. Idempotent."""
        family = self._family()
        for process in family:
            _kill(process)
        if self._process is not None:
            self._process.wait()
        psutil.wait_procs(family, timeout=10)

    def jvms(self) -> list[int]:
        """Process ids of Spark's JVMs."""
        return [process.pid for process in self._family() if _name(process) == "java"]

    def daemons(self) -> list[int]:
        """Process ids of pyspark's daemons: the parents of the Python workers."""
        return [process.pid for process in self._family() if _is_daemon(process) and not _is_daemon(_parent(process))]

    def workers(self) -> list[int]:
        """Process ids of the Python workers that the daemons forked."""
        return [process.pid for process in self._family() if is_worker(process)]

    def carriers(self) -> list[int]:
        """Those of them that carry lanes now: a task has a line to the driver for as long as it lives. The others are idle."""
        try:
            found = psutil.Process(self.pid).net_connections(kind="tcp")
        except psutil.NoSuchProcess:
            return []
        doors = {one.laddr.port for one in found if one.status == psutil.CONN_LISTEN}
        return [worker for worker in self.workers() if _talks_to(worker, doors)]

    def survivors(self) -> list[int]:
        """Process ids of everything that was ever seen of its family and still lives."""
        return [process.pid for process in self._seen.values() if lives(process)]

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill_tree()

    def _started(self) -> subprocess.Popen[bytes] | ForkedRun:
        assert self._process is not None, "start() comes first"
        return self._process

    def _family(self) -> list[psutil.Process]:
        """The living processes of the family; those that lost their parent are still known from earlier looks."""
        roots = [process for process in self._seen.values() if lives(process)]
        if self._process is not None and self._process.poll() is None:
            with contextlib.suppress(psutil.NoSuchProcess):  # it ended just now
                roots.append(psutil.Process(self._process.pid))
        for root in roots:
            self._seen.setdefault(root.pid, root)
            for child in children(root):
                self._seen.setdefault(child.pid, child)
        return [process for process in self._seen.values() if lives(process)]


def _own_file(properties: Path) -> Path:
    """For one run alone: two of the same file may be made before either is started."""
    for number in itertools.count():
        path = properties.with_name(f"{properties.stem}-{number}.out")
        with contextlib.suppress(FileExistsError):
            path.touch(exist_ok=False)
            return path
    raise AssertionError


def _parent(process: psutil.Process) -> psutil.Process | None:
    try:
        return process.parent()
    except psutil.NoSuchProcess:
        return None


def _name(process: psutil.Process | None) -> str:
    try:
        return process.name() if process else ""
    except psutil.NoSuchProcess:
        return ""


def _is_daemon(process: psutil.Process | None) -> bool:
    """Workers are forks of the daemon and have its command line."""
    try:
        return process is not None and not {"pyspark.daemon", "heliograph.spark.daemon"}.isdisjoint(process.cmdline())
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return False


def is_worker(process: psutil.Process) -> bool:
    """A Python worker: a fork of pyspark's daemon."""
    return _is_daemon(process) and _is_daemon(_parent(process))


def _talks_to(process: int, ports: set[int]) -> bool:
    try:
        found = psutil.Process(process).net_connections(kind="tcp")
    except psutil.NoSuchProcess:
        return False
    return any(one.status == psutil.CONN_ESTABLISHED and one.raddr.port in ports for one in found)


def _kill(process: psutil.Process) -> None:
    try:
        process.kill()
    except psutil.NoSuchProcess:
        return
