"""Spark's own cluster manager on loopback: a master and workers as processes that can be killed, frozen and started again."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil
import pyspark

from heliograph.embedded import tether
from tests.support.processes import children
from tests.support.waiting import wait_until

HERE = "127.0.0.1"
_PACKAGE = "org.apache.spark.deploy"
_STARTER = ThreadPoolExecutor(max_workers=1, thread_name_prefix="spark")
"""The kernel ends a tethered process together with the thread that started it."""
_AT = ("--host", HERE, "--port", "0", "--webui-port", "0")


class SparkCluster:
    """Ports are chosen by Spark; `folder` gets the logs, and a folder `work` with what executors print."""

    def __init__(self, folder: Path, workers: int = 1, cores: int = 4) -> None:
        self._folder, self._cores = folder, cores
        self._names = [f"worker-{number}" for number in range(1, workers + 1)]
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._starts = 0
        self.address = ""

    def __enter__(self) -> Self:
        try:
            self._start("master", f"{_PACKAGE}.master.Master", *_AT)
            wait_until(lambda: self._address() != "", "the master listens")
            self.address = self._address()
            for name in self._names:
                self.start_worker(name, wait=False)
            wait_until(lambda: self._registered() == len(self._names), "the workers are registered")
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def workers(self) -> tuple[str, ...]:
        return tuple(self._names)

    def start_worker(self, name: str, *, wait: bool = True) -> None:
        before = self._registered()
        more = ("--cores", str(self._cores), "--memory", "1g", self.address)
        self._start(name, f"{_PACKAGE}.worker.Worker", *_AT, *more)
        if wait:
            wait_until(lambda: self._registered() > before, f"{name} is registered")

    def kill_worker(self, name: str) -> None:
        """kill -9 of the worker's JVM alone; its executors find out by themselves."""
        self._processes[name].kill()
        self._processes[name].wait()

    def signal_worker(self, name: str, number: int) -> None:
        """To the worker's JVM alone: its executors are other processes."""
        self._processes[name].send_signal(number)

    def executors(self) -> list[psutil.Process]:
        """The JVMs that run tasks, in the order of their workers."""
        found = []
        for name in self._names:
            process = self._processes[name]
            if process.poll() is None:
                found += [child for child in children(psutil.Process(process.pid)) if _is_executor(child)]
        return found

    def stop(self) -> None:
        """Kill what is left of all, executors that were frozen too."""
        left = [
            child
            for process in self._processes.values()
            if process.poll() is None
            for child in children(psutil.Process(process.pid))
        ]
        for process in self._processes.values():
            process.kill()
        for child in left:
            signal_to(child, signal.SIGKILL)
        for process in self._processes.values():
            process.wait()

    def _start(self, name: str, *command: str) -> None:
        program = Path(pyspark.__file__).parent / "bin" / "spark-class"
        environment = os.environ | {"SPARK_LOCAL_IP": HERE, "SPARK_HOME": str(program.parent.parent)}
        environment |= {"SPARK_WORKER_DIR": str(self._folder / "work"), "SPARK_DAEMON_MEMORY": "256m"}
        # On a tether: a killed pytest leaves no Spark behind. Executors end with their worker.
        wrapped = [sys.executable, "-I", "-S", tether.__file__, str(os.getpid()), str(program), *command]
        with self._log(name).open("ab") as stream:
            self._processes[name] = _STARTER.submit(
                subprocess.Popen, wrapped, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, env=environment
            ).result()

    def _log(self, name: str) -> Path:
        return self._folder / f"{name}.log"

    def _address(self) -> str:
        found = re.search(r"Starting Spark master at (spark://\S+)", self._log("master").read_text())
        return found[1] if found else ""

    def _registered(self) -> int:
        return self._log("master").read_text().count("Registering worker")


def signal_to(process: psutil.Process, number: int) -> None:
    """One that has just ended needs none."""
    try:
        process.send_signal(number)
    except psutil.NoSuchProcess:
        return


def freeze(process: psutil.Process) -> list[psutil.Process]:
    """SIGSTOP for a process and all below it, from the top, so that none of them notices; `thaw` takes what this returns."""
    family = [process, *children(process)]
    for one in family:
        signal_to(one, signal.SIGSTOP)
    return family


def thaw(family: list[psutil.Process]) -> None:
    for one in family:
        signal_to(one, signal.SIGCONT)


def _is_executor(process: psutil.Process) -> bool:
    try:
        return any("CoarseGrainedExecutorBackend" in word for word in process.cmdline())
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return False
