"""The two mirrors: their files, their processes. Both as a person starts them, with nothing of the other in them."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from heliograph.embedded.mirrormaker import MirrorMaker
from heliograph.embedded.tether import Tether
from heliograph.errors import SetupError
from tests.bench.figures import HELIOGRAPH
from tests.bench.lab import Lab
from tests.support.heliograph_run import write_properties

PROGRAM = Path(sys.executable).with_name("heliograph")
_STOP_SECONDS = 30.0
_ALIASES = {"heliograph": "A", "mirrormaker2": "M"}
_INTERNAL = ("checkpoints.topic", "heartbeats.topic", "offset-syncs.topic")
_STORES = ("offset.storage", "status.storage", "config.storage")


class Mirror(Protocol):
    """`pid` raises SetupError when it does not run."""

    @property
    def pid(self) -> int: ...

    def start(self) -> object: ...

    def stop(self) -> None: ...


@dataclass(frozen=True)
class Task:
    """What a mirror is to carry: one topic, and how its producer is told to write (codec and linger: MirrorMaker 2 only)."""

    topic: str
    codec: str = "none"
    linger_ms: int = 20
    more: Mapping[str, str] = field(default_factory=dict)
    """Further lines of the file."""


class Heliograph:
    """`heliograph run FILE` with its default settings; it dies with this process."""

    def __init__(self, properties: Path, log: Path, program: Path = PROGRAM) -> None:
        self._command = [str(program), "run", str(properties), "--spark-log", str(log.with_suffix(".spark"))]
        self._log = log
        self._tether = Tether()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        if self._process is None or self._process.poll() is not None:
            raise SetupError(f"Heliograph does not run: {_last_line(self._log)}")
        return self._process.pid

    def start(self) -> None:
        self._process = self._tether.start(self._command, self._log)

    def kill(self) -> None:
        """kill -9 of the driver; what it leaves behind ends by itself."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self) -> None:
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def remote_topic(system: str, topic: str) -> str:
    return f"{_ALIASES[system]}.{topic}"


def mirror(system: str, lab: Lab, task: Task, program: Path = PROGRAM) -> Mirror:
    """Not started yet. Its file and its log have names of their own in the lab's directory. `program` is Heliograph's."""
    number = sum(1 for _ in lab.directory.glob("*.properties"))
    stem = lab.directory / f"{number:02d}-{task.topic}-{system}"
    settings = _common(_ALIASES[system], lab, task.topic) | dict(task.more)
    if system == HELIOGRAPH:
        file = write_properties(stem.with_suffix(".properties"), settings)
        return Heliograph(file, stem.with_suffix(".log"), program)
    tuned = settings | _tuned(task)
    return MirrorMaker(write_properties(stem.with_suffix(".properties"), tuned), stem.with_suffix(".log"))


def _common(alias: str, lab: Lab, topic: str) -> dict[str, str]:
    return {
        "clusters": f"{alias}, B",
        f"{alias}.bootstrap.servers": lab.source.bootstrap,
        "B.bootstrap.servers": lab.target.bootstrap,
        f"{alias}->B.enabled": "true",
        f"{alias}->B.topics": topic,
        f"B->{alias}.enabled": "false",
        "replication.factor": "1",
        "heartbeats.topic.replication.factor": "1",
        "checkpoints.topic.replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
    }


def _tuned(task: Task) -> dict[str, str]:
    """MirrorMaker 2 as one who wants it fast would run it on two cores."""
    alias = _ALIASES["mirrormaker2"]
    return {f"{name}.replication.factor": "1" for name in (*_INTERNAL, *_STORES)} | {
        "tasks.max": "2",
        "dedicated.mode.enable.internal.rest": "false",
        "emit.heartbeats.enabled": "true",
        f"{alias}.consumer.fetch.min.bytes": "1",
        "B.producer.batch.size": "262144",
        "B.producer.linger.ms": str(task.linger_ms),
        "B.producer.compression.type": task.codec,
    }


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return lines[-1] if lines else f"it printed nothing into {log.name}"
