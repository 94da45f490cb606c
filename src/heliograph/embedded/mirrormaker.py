"""The real MirrorMaker 2 from Kafka's own jars, for side-by-side benchmarks and compatibility tests.

Dies with this process like the embedded brokers. Must not know what its properties file says.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

from heliograph.embedded.jars import ensure_kafka_jars
from heliograph.embedded.java import find_java
from heliograph.embedded.settings import Jvm
from heliograph.embedded.tether import Tether
from heliograph.errors import SetupError

_MAIN_CLASS = "org.apache.kafka.connect.mirror.MirrorMaker"
_STOP_SECONDS = 30.0


class MirrorMaker:
    """One MirrorMaker 2 process. The JVM's own defaults unless told otherwise: it is measured, not hindered."""

    def __init__(self, properties: Path, log: Path, jvm: Jvm | None = None) -> None:
        self._properties = properties
        self._log = log
        self._jvm = jvm or Jvm(heap="2g", full_jit=True)
        self._tether = Tether()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        if self._process is None or self._process.poll() is not None:
            raise SetupError(f"MirrorMaker 2 does not run: see {self._log}.")
        return self._process.pid

    def start(self) -> Self:
        """Start the process; it needs ten seconds or more until it copies its first record."""
        command = self._jvm.command(find_java(), ensure_kafka_jars(), _MAIN_CLASS, str(self._properties))
        self._process = self._tether.start(command, self._log)
        return self

    def stop(self) -> None:
        """Ask it to stop, kill it when it does not. Idempotent."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
