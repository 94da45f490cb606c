"""A real Kafka Connect worker in distributed mode, with connectors of MirrorMaker 2 posted to it by its REST."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Mapping
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

from kafka.protocol.consumer import JoinGroupRequest, JoinGroupResponse

from heliograph.embedded.jars import ensure_kafka_jars
from heliograph.embedded.java import find_java
from heliograph.embedded.probe import HOST, free_ports
from heliograph.embedded.settings import Jvm
from heliograph.embedded.tether import Tether
from heliograph.kafka.client import ClusterClient
from heliograph.model.clusters import Cluster
from tests.support.heliograph_run import write_properties
from tests.support.waiting import wait_until

_MAIN_CLASS = "org.apache.kafka.connect.cli.ConnectDistributed"
_BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
_ANSWER_SECONDS = 30.0
_FAULTS = 400
_NOT_YET = (404, 409, 500, 503)
"""Not found, conflict, and two faults of the server: it starts, or its group is sharing out the work."""


def mirror_source(source: tuple[str, str], target: tuple[str, str], topics: str) -> dict[str, str]:
    """The configuration of a MirrorSourceConnector between two clusters, each an alias and its addresses."""
    return {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "source.cluster.alias": source[0],
        "source.cluster.bootstrap.servers": source[1],
        "target.cluster.alias": target[0],
        "target.cluster.bootstrap.servers": target[1],
        "topics": topics,
        "tasks.max": "1",
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "sync.topic.acls.enabled": "false",
        "sync.topic.configs.enabled": "false",
        "producer.override.linger.ms": "0",
    }


class ConnectWorker:
    """One worker of the Connect cluster `group` on a Kafka cluster; inside `with` it serves, afterwards it is dead."""

    def __init__(self, directory: Path, bootstrap: str, group: str, more: Mapping[str, str] | None = None) -> None:
        """`more` are further lines of its file, which win."""
        (self._port,) = free_ports(1)
        number = sum(1 for _ in directory.glob("connect-*.properties"))
        self._properties = write_properties(
            directory / f"connect-{number}.properties", {**_worker(bootstrap, group, self._port), **(more or {})}
        )
        self.log = self._properties.with_suffix(".log")
        self._tether = Tether()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        command = Jvm(heap="512m").command(find_java(), ensure_kafka_jars(), _MAIN_CLASS, str(self._properties))
        self._process = self._tether.start(command, self.log)
        try:
            wait_until(self._serves, f"the Connect worker serves ({self.log})", every=0.2)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *about: object) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill()

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self._port}"

    def kill(self) -> None:
        """kill -9."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def freeze(self) -> None:
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGSTOP)

    def create(self, name: str, config: Mapping[str, str]) -> None:
        self._do("POST", "/connectors", {"name": name, "config": dict(config)})

    def restart_task(self, name: str) -> None:
        """Its task ends, which stores its progress, and begins anew."""
        self._do("POST", f"/connectors/{quote(name, safe='')}/tasks/0/restart")

    def _do(self, method: str, path: str, body: Any = None) -> None:
        wait_until(lambda: self._ask(method, path, body), f"{method} {path} is done ({self.log})", every=0.2)

    def _serves(self) -> bool:
        assert self._process is not None and self._process.poll() is None, f"it ended: {self.log}"
        try:
            return self._ask("GET", "/connectors")
        except OSError:
            return False

    def _ask(self, method: str, path: str, body: Any = None) -> bool:
        """False while the worker cannot do it."""
        data = None if body is None else json.dumps(body)
        connection = HTTPConnection(HOST, self._port, timeout=_ANSWER_SECONDS)
        try:
            connection.request(method, path, data, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            said = answer.read()
        finally:
            connection.close()
        assert answer.status < _FAULTS or answer.status in _NOT_YET, f"{method} {path}: {said!r}"
        return answer.status not in _NOT_YET


def keep_from_settling(bootstrap: str, group: str) -> None:
    """One more member joins the group and then says nothing: for a minute the group waits for it, and shows no tasks."""

    async def join() -> None:
        client = ClusterClient(Cluster("by-hand", tuple(bootstrap.split(","))))
        try:
            connection = await client.connection(await client.group_coordinator(group))
            protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="sessioned", metadata=b"")
            request = JoinGroupRequest(
                group_id=group,
                session_timeout_ms=60_000,
                rebalance_timeout_ms=60_000,
                member_id="",
                protocol_type="connect",
                protocols=[protocol],
            )
            # Version 3 is the last that takes a member without asking it to come again with the name it was given.
            answer = await connection.ask(request, JoinGroupResponse, 3)
            assert answer.error_code == 0, answer
        finally:
            client.close()

    asyncio.run(join())


def _worker(bootstrap: str, group: str, port: int) -> dict[str, str]:
    topics = {f"{kind}.storage.topic": f"{group}-{kind}s" for kind in ("offset", "config")}
    return {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "key.converter": _BYTES,
        "value.converter": _BYTES,
        **topics,
        "status.storage.topic": f"{group}-status",
        **{f"{kind}.storage.replication.factor": "1" for kind in ("offset", "config", "status")},
        "offset.storage.partitions": "2",
        "status.storage.partitions": "1",
        "offset.flush.interval.ms": "3600000",  # only what ends stores its progress
        "listeners": f"http://{HOST}:{port}",
        "plugin.discovery": "service_load",
        "session.timeout.ms": "2000",
        "heartbeat.interval.ms": "500",
        "scheduled.rebalance.max.delay.ms": "0",
    }
