"""Makes planned faults happen to the parts of a stage, and mends them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from heliograph.embedded.settings import CONTROLLER_ID
from tests.histories.schedule import Planned
from tests.histories.stage import TOPICS, Stage
from tests.support.relay import Relay
from tests.support.spark_cluster import freeze, signal_to, thaw

T = TypeVar("T")
Mend = Callable[[], None]
_ROOT = Path(__file__).parents[2]
_MOVE_SECONDS = 15.0


class Faults:
    """`begin` returns how the fault is mended when its time is over."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def begin(self, fault: Planned) -> Mend:
        name = fault.kind.name
        if fault.kind.part == "mirror":
            return self._mirror(name, fault)
        return self._cluster(name, fault)

    def _cluster(self, name: str, fault: Planned) -> Mend:
        cluster, broker = self._stage.cluster(fault.kind.part), fault.broker
        if "lines" in name:
            return _line(cluster.relays[broker], name)
        if "controller" in name:
            cluster.kill(CONTROLLER_ID)
            return lambda: cluster.restart(CONTROLLER_ID, wait=False)
        if "frozen" in name:
            cluster.freeze(broker)
            return lambda: cluster.thaw(broker)
        if "leaders" in name:
            self._move_leaders(fault)
            return _nothing
        if "kill" in name:
            cluster.kill(broker)
        else:
            cluster.terminate(broker)
        return lambda: cluster.restart(broker, wait=False)

    def _move_leaders(self, fault: Planned) -> None:
        cluster, prefix = self._stage.cluster(fault.kind.part), "" if fault.kind.part == "source" else "A."
        topics = [f"{prefix}{topic}={partitions}" for topic, partitions in TOPICS.items()]
        command = [sys.executable, "-m", "tests.histories.leaders", cluster.bootstrap, str(fault.broker), *topics]
        # Brokers that do not answer now keep their leaders: other faults may be under way.
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(command, cwd=_ROOT, capture_output=True, timeout=_MOVE_SECONDS, check=False)

    def _mirror(self, name: str, fault: Planned) -> Mend:
        if fault.kind.may_repeat:
            self._stage.hit_mirror()
        if "driver" in name:
            return self._driver(name)
        if "clean restart" in name:
            self._stage.stop_mirror()
            return self._stage.start_mirror
        if "Spark worker" in name:
            return self._spark_worker(fault.pick)
        if "executor" in name:
            return self._executor(name, fault.pick)
        found = self._stage.python_workers() if "worker" in name else self._stage.run.jvms()
        return _signalled(_one(sorted(found), fault.pick), name) if found else _nothing

    def _spark_worker(self, pick: float) -> Mend:
        """Its executor ends with it."""
        spark = self._stage.spark
        assert spark is not None
        name = _one(spark.workers, pick)
        spark.kill_worker(name)
        return lambda: spark.start_worker(name, wait=False)

    def _executor(self, name: str, pick: float) -> Mend:
        found = self._stage.executors()
        if not found:
            return _nothing  # the last fault took it along and it is not there again
        victim = _one(found, pick)
        if "frozen" in name:
            family = freeze(victim)
            return lambda: thaw(family)
        signal_to(victim, signal.SIGKILL)
        return _nothing

    def _driver(self, name: str) -> Mend:
        if "frozen" in name:
            return _signalled(self._stage.run.pid, name)
        self._stage.kill_mirror()
        return self._stage.start_mirror


def _one(found: Sequence[T], pick: float) -> T:
    return found[int(pick * len(found))]


def _line(relay: Relay, name: str) -> Mend:
    """Every connection of the mirror to one broker; nobody else uses them."""
    if "cut" in name:
        relay.cut()
        return _nothing
    relay.freeze()
    return relay.thaw


def _signalled(pid: int, name: str) -> Mend:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP if "frozen" in name else signal.SIGKILL)
    return (lambda: _wake(pid)) if "frozen" in name else _nothing


def _wake(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)


def _nothing() -> None:
    return
