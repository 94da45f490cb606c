"""A real Kafka cluster on loopback, one process per node, that can be killed, frozen and restarted node by node.

One broker is broker and controller in one process; several brokers have a controller process of their own, so that any
broker can be killed. No node outlives this process (see `tether`). Must not know what the cluster is used for.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Self

from heliograph.embedded.formatting import TOOL, Example, example_of, is_formatted
from heliograph.embedded.jars import KAFKA_VERSION, ensure_kafka_jars
from heliograph.embedded.java import find_java
from heliograph.embedded.probe import HOST, brokers_known_to, free_ports
from heliograph.embedded.settings import Jvm, Layout, Listener, new_cluster_id, node_properties
from heliograph.embedded.tether import Tether
from heliograph.errors import SetupError

START_SECONDS = 90.0

_LOOK_AGAIN_SECONDS = 0.05
_PORT_CHOICES = 3
_PORT_TAKEN = "Address already in use"
_examples: dict[Path, Example] = {}
"""By the jars whose tool has formatted it."""


class EmbeddedCluster:
    """Brokers 1..n. `directory` gets a folder per node; it belongs to the caller, who may remove it after `stop`.

    `listeners` are further doors by name, each with its protocol; what they need besides stands in `config`.
    """

    def __init__(
        self,
        name: str,
        directory: Path,
        brokers: int = 1,
        config: Mapping[str, str] | None = None,
        jvm: Jvm | None = None,
        *,
        listeners: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.cluster_id = new_cluster_id()
        self._directory = directory
        self._jvm = jvm or Jvm()
        self._config = dict(config or {})
        doors = {name: Listener(protocol) for name, protocol in (listeners or {}).items()}
        self._layout = Layout(dict.fromkeys(range(1, brokers + 1), 0), 0, self._config, doors)
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._tether = Tether()

    @property
    def brokers(self) -> tuple[int, ...]:
        return tuple(self._layout.brokers)

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{HOST}:{port}" for port in self._layout.brokers.values())

    def bootstrap_of(self, listener: str) -> str:
        """The brokers' addresses behind one of the further listeners."""
        return ",".join(f"{HOST}:{port}" for port in self._layout.listeners[listener].ports.values())

    @property
    def pids(self) -> dict[int, int]:
        """Process ids of the nodes that run, by node id (the separate controller's is 100)."""
        return {node: process.pid for node, process in self._processes.items() if process.poll() is None}

    def address(self, broker: int) -> str:
        return f"{HOST}:{self._layout.brokers[broker]}"

    def log(self, node: int) -> Path:
        """What the node printed: its warnings and errors."""
        return self._folder(node) / "log"

    def start(self) -> Self:
        """Format, start every node, return when every broker knows every other."""
        start_many([self])
        return self

    def stop(self) -> None:
        """Kill every node. Idempotent; the data stays in `directory`."""
        for process in self._processes.values():
            process.kill()
        for process in self._processes.values():
            process.wait()

    def kill(self, broker: int) -> None:
        """kill -9."""
        self._processes[broker].kill()
        self._processes[broker].wait()

    def terminate(self, broker: int, timeout_seconds: float = 60.0) -> None:
        """Controlled shutdown: leaders move away first."""
        self._processes[broker].terminate()
        self._processes[broker].wait(timeout_seconds)

    def restart(self, broker: int, *, wait: bool = True) -> None:
        """Start a broker again with its ports and data; one that still runs is killed first."""
        self.kill(broker)
        self._launch(broker)
        if wait:
            self._await_brokers([broker], time.monotonic() + START_SECONDS)

    def freeze(self, broker: int) -> None:
        """SIGSTOP: the sockets stay open and nobody answers."""
        self._processes[broker].send_signal(signal.SIGSTOP)
        # On a busy machine its threads go on for a while after the signal was sent.
        os.waitid(os.P_PID, self._processes[broker].pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def thaw(self, broker: int) -> None:
        self._processes[broker].send_signal(signal.SIGCONT)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @cached_property
    def _java(self) -> Path:
        return find_java()

    @cached_property
    def _jars(self) -> Path:
        return ensure_kafka_jars(version=self._jvm.kafka or KAFKA_VERSION)

    def _folder(self, node: int) -> Path:
        return self._directory / f"{self.name}-{node}"

    def _properties(self, node: int) -> str:
        return str(self._folder(node) / "server.properties")

    def _command(self, main_class: str, *arguments: str) -> list[str]:
        return self._jvm.command(self._java, self._jars, main_class, *arguments)

    def _choose_ports(self, taken: Iterable[int]) -> list[int]:
        doors = self._layout.listeners
        ports = free_ports(len(self.brokers) * (1 + len(doors)) + 1, taken)
        left = iter(ports)
        controller = next(left)
        brokers = {broker: next(left) for broker in self.brokers}
        listeners = {
            name: Listener(door.protocol, {broker: next(left) for broker in self.brokers})
            for name, door in doors.items()
        }
        self._layout = Layout(brokers, controller, self._config, listeners)
        for node in self._layout.nodes:
            self._folder(node).mkdir(parents=True, exist_ok=True)
            text = node_properties(self._layout, node, self._data(node))
            Path(self._properties(node)).write_text(text)
        return ports

    def _data(self, node: int) -> Path:
        return self._folder(node) / "data"

    def _start_formatting(self) -> dict[int, subprocess.Popen[bytes]]:
        """The tool for every node that there is no example for."""
        fresh = [node for node in self._layout.nodes if not is_formatted(self._data(node))]
        if example := _examples.get(self._jars):
            for node in fresh:
                example.write(self._data(node), self.cluster_id, node)
            return {}
        return {
            node: self._tether.start(
                self._command(TOOL, "format", "-t", self.cluster_id, "-c", self._properties(node)), self.log(node)
            )
            for node in fresh
        }

    def _finish_formatting(self, tools: Mapping[int, subprocess.Popen[bytes]]) -> None:
        for node, tool in tools.items():
            if tool.wait() != 0:
                raise _NodeEnded(self.name, node, self.log(node))
            _examples.setdefault(self._jars, example_of(self._data(node)))

    def _launch(self, node: int) -> None:
        self._processes[node] = self._tether.start(self._command("kafka.Kafka", self._properties(node)), self.log(node))

    def _launch_all(self) -> None:
        for node in self._layout.nodes:
            self._launch(node)

    def _await_brokers(self, brokers: Sequence[int], deadline: float) -> None:
        wanted = set(brokers)
        for broker in brokers:
            while not wanted <= brokers_known_to(self._layout.brokers[broker]):
                self._check_alive((self._layout.controller, broker), deadline)
                time.sleep(_LOOK_AGAIN_SECONDS)

    def _check_alive(self, nodes: Iterable[int], deadline: float) -> None:
        for node in nodes:
            if self._processes[node].poll() is not None:
                raise _NodeEnded(self.name, node, self.log(node))
        if time.monotonic() > deadline:
            raise SetupError(f"Cluster {self.name} was not up after {START_SECONDS:.0f} s: see {self._directory}.")


class _NodeEnded(SetupError):
    def __init__(self, cluster: str, node: int, log: Path) -> None:
        text = log.read_text(errors="replace")
        self.port_taken = _PORT_TAKEN in text
        super().__init__(f"Node {node} of cluster {cluster} ended by itself: {_last_words(text)} ({log})")


def _last_words(text: str) -> str:
    """The last line that is no part of a Java stack trace."""
    lines = (line for line in reversed(text.splitlines()) if line.strip() and not line[0].isspace())
    return next(lines, "it printed nothing")


def start_many(clusters: Sequence[EmbeddedCluster]) -> None:
    """Start several clusters at the same time; on failure none is left running."""
    try:
        for attempt in range(1, _PORT_CHOICES + 1):
            try:
                _start_together(clusters)
            except _NodeEnded as ended:
                # Between choosing a port and listening on it somebody else may have taken it.
                if not ended.port_taken or attempt == _PORT_CHOICES:
                    raise
                for cluster in clusters:
                    cluster.stop()
            else:
                return
    except BaseException:
        for cluster in clusters:
            cluster.stop()
        raise


def _start_together(clusters: Sequence[EmbeddedCluster]) -> None:
    deadline = time.monotonic() + START_SECONDS
    taken: list[int] = []
    for cluster in clusters:
        taken += cluster._choose_ports(taken)
    formatting = [(cluster, cluster._start_formatting()) for cluster in clusters]
    for cluster, tools in formatting:
        cluster._finish_formatting(tools)
    for cluster in clusters:
        cluster._launch_all()
    for cluster in clusters:
        cluster._await_brokers(cluster.brokers, deadline)
