"""CPU and memory of a mirror: one process and all that it started, also what has ended since."""

from __future__ import annotations

import threading
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from tests.support.processes import children, command_of, lives

EVERY_SECONDS = 0.5
_GRACE_SECONDS = 10.0


class Family:
    """A process and its descendants. Those seen once stay known when their parent dies."""

    def __init__(self, pid: int) -> None:
        root = psutil.Process(pid)
        self._members = {pid: root}
        self._cpu = {pid: 0.0}
        self._parts = {pid: _part(root)}
        self._lock = threading.Lock()

    def look(self) -> None:
        """Find descendants that are new. Costs milliseconds: it reads the whole process table."""
        with self._lock:
            for member in list(self._members.values()):
                for child in children(member):
                    if child.pid not in self._members:
                        self._members[child.pid] = child
                        self._cpu[child.pid] = 0.0
                    # Each time: a process that was just forked still has its parent's command line. One that ended has none.
                    if child.pid not in self._parts or command_of(child):
                        self._parts[child.pid] = _part(child)

    def cpu_seconds(self) -> float:
        """User and system time of all members ever known; of those that ended, as of the last call."""
        with self._lock:
            for pid, member in self._members.items():
                try:
                    times = member.cpu_times()
                except psutil.NoSuchProcess:
                    continue
                # A zombie still says what it used, one that is gone keeps what it said last.
                self._cpu[pid] = max(self._cpu[pid], times.user + times.system)
            return sum(self._cpu.values())

    def by_part(self) -> dict[str, float]:
        """CPU seconds of the driver, of the REST server, of the JVM and of all Python workers, as of the last `cpu_seconds`."""
        with self._lock:
            sums: dict[str, float] = {}
            for pid, seconds in self._cpu.items():
                sums[self._parts[pid]] = sums.get(self._parts[pid], 0.0) + seconds
            return sums

    def pss_mb(self) -> float:
        """Proportional set size: pages that members share are counted once."""
        with self._lock:
            pids = list(self._members)
        return sum(_pss_kib(pid) for pid in pids) * 1024 / 1e6

    def kill(self) -> list[int]:
        """kill -9 of what does not end by itself within seconds; the process ids that had to be killed."""
        self.look()
        living = [member for member in self._members.values() if lives(member)]
        _, left = psutil.wait_procs(living, timeout=_GRACE_SECONDS)
        for member in left:
            try:
                member.kill()
            except psutil.NoSuchProcess:
                continue
        psutil.wait_procs(left, timeout=10)
        return [member.pid for member in left]


class Sampler:
    """Looks at a family every half second from a thread of its own, inside `with`."""

    def __init__(self, family: Family) -> None:
        self._family = family
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)
        self.peak_pss_mb = 0.0

    def sample(self) -> None:
        self._family.look()
        self._family.cpu_seconds()
        self.peak_pss_mb = max(self.peak_pss_mb, self._family.pss_mb())

    def _run(self) -> None:
        while not self._over.is_set():
            self.sample()
            self._over.wait(EVERY_SECONDS)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()


def _part(process: psutil.Process) -> str:
    command = command_of(process)
    if command and command[0].endswith("java"):
        return "JVM"  # its own command line names the workers' daemon
    if any("spark.daemon" in word for word in command):
        return "workers"
    return "REST server" if "heliograph.rest.server" in command else "driver"


def _pss_kib(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")), 0)
