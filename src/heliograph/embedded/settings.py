"""What an embedded Kafka node is told: its properties file, its Java command line. Pure text, no process."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from heliograph.embedded.probe import HOST
from heliograph.spark.java import QUIET

CONTROLLER_ID = 100
"""Node id of the separate controller; brokers are 1, 2, 3, ... A single broker is its own controller."""


def class_archive(jars: Path) -> Path:
    """Where embedded/prepare.py leaves the classes of these jars as a JVM keeps them in memory."""
    return jars / "classes.jsa"


@dataclass(frozen=True)
class Jvm:
    """How a JVM runs. Small and quick to start by default; `full_jit` leaves collector and compilers to the JVM."""

    heap: str = "512m"
    full_jit: bool = False
    kafka: str = ""
    """The version of Kafka whose jars it runs; empty: the newest we know."""

    def command(self, java: Path, jars: Path, main_class: str, *arguments: str) -> list[str]:
        quick = [] if self.full_jit else ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        archive = class_archive(jars)
        if quick and archive.exists():
            quick += [*QUIET.split(), f"-XX:SharedArchiveFile={archive}"]
        log = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        return [str(java), f"-Xmx{self.heap}", *quick, log, "-cp", f"{jars}/*", main_class, *arguments]


@dataclass(frozen=True)
class Listener:
    """One more door of every broker, beside the open one that brokers use among themselves."""

    protocol: str
    """SSL, SASL_PLAINTEXT or SASL_SSL"""
    ports: Mapping[int, int] = field(default_factory=dict)
    """by broker"""


@dataclass(frozen=True)
class Layout:
    """The nodes of one cluster and their ports: brokers by node id, the controller's, and those of further listeners."""

    brokers: Mapping[int, int]
    controller_port: int
    config: Mapping[str, str] = field(default_factory=dict)
    listeners: Mapping[str, Listener] = field(default_factory=dict)

    @property
    def combined(self) -> bool:
        return len(self.brokers) == 1

    @property
    def controller(self) -> int:
        return next(iter(self.brokers)) if self.combined else CONTROLLER_ID

    @property
    def nodes(self) -> tuple[int, ...]:
        """All node ids, the controller first."""
        return tuple(dict.fromkeys((self.controller, *self.brokers)))


def new_cluster_id() -> str:
    """A random cluster id that does not begin with `-`: StorageTool would take it for an option."""
    return "A" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()[1:22]


def node_properties(layout: Layout, node: int, data: Path) -> str:
    """The properties file of one node; the cluster's `config` wins over everything set here."""
    settings = _common(layout) | _role(layout, node) | {"node.id": str(node), "log.dirs": str(data)}
    return "".join(f"{key}={value}\n" for key, value in (settings | dict(layout.config)).items())


def _role(layout: Layout, node: int) -> dict[str, str]:
    controller = f"CONTROLLER://{HOST}:{layout.controller_port}"
    if node == CONTROLLER_ID:
        return {
            "process.roles": "controller",
            "listeners": controller,
            "default.replication.factor": _replicas(layout),
        }
    doors = [f"{name}://{HOST}:{listener.ports[node]}" for name, listener in layout.listeners.items()]
    broker = ",".join([f"PLAINTEXT://{HOST}:{layout.brokers[node]}", *doors])
    listeners = {"advertised.listeners": broker, "inter.broker.listener.name": "PLAINTEXT"}
    if layout.combined:
        return {"process.roles": "broker,controller", "listeners": f"{broker},{controller}"} | listeners
    return {"process.roles": "broker", "listeners": broker} | listeners


def _common(layout: Layout) -> dict[str, str]:
    replicas = _replicas(layout)
    protocols = "".join(f",{name}:{listener.protocol}" for name, listener in layout.listeners.items())
    return {
        "controller.quorum.voters": f"{layout.controller}@{HOST}:{layout.controller_port}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT{protocols}",
        "auto.create.topics.enable": "false",
        "offsets.topic.replication.factor": replicas,
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "4",
        "share.coordinator.state.topic.replication.factor": replicas,
        "share.coordinator.state.topic.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
        # A killed broker is out after four seconds, not nine.
        "broker.session.timeout.ms": "4000",
        "broker.heartbeat.interval.ms": "500",
        "controller.quorum.request.timeout.ms": "2000",
        # A compacted topic is cleaned within a second of having something to clean.
        "log.cleaner.threads": "1",
        "log.cleaner.backoff.ms": "500",
        "log.cleaner.dedupe.buffer.size": "4194304",
        "num.network.threads": "2",
        "num.io.threads": "4",
        "background.threads": "2",
    }


def _replicas(layout: Layout) -> str:
    return str(min(3, len(layout.brokers)))
