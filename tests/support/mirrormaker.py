"""The real MirrorMaker 2 for tests: its file, killed with -9, and whether its group has forgotten it.

It writes heartbeats and internal topics: use clusters of the test's own.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from heliograph.embedded.mirrormaker import MirrorMaker
from heliograph.embedded.settings import Jvm
from heliograph.kafka.client import ClusterClient
from heliograph.kafka.groups import connect_groups
from heliograph.model.clusters import Cluster
from tests.support.heliograph_run import write_properties
from tests.support.waiting import wait_until

QUICK_GROUPS = {"group.min.session.timeout.ms": "1000"}
"""For the target's brokers: a worker that was killed is forgotten within seconds."""
_SMALL = (
    "checkpoints.topic",
    "heartbeats.topic",
    "offset-syncs.topic",
    "offset.storage",
    "status.storage",
    "config.storage",
)


def mirrormaker_lines(source: str, target: str) -> dict[str, str]:
    """Lines for MirrorMaker 2 that Heliograph passes over, for a flow between these aliases on single brokers."""
    return {f"{name}.replication.factor": "1" for name in _SMALL} | {
        "tasks.max": "1",
        "emit.heartbeats.enabled": "false",
        "emit.offset-syncs.enabled": "true",
        "sync.topic.acls.enabled": "false",
        "sync.topic.configs.enabled": "false",
        f"{target}.offset.storage.partitions": "2",
        f"{target}.status.storage.partitions": "1",
        f"{target}.session.timeout.ms": "2000",
        f"{target}.heartbeat.interval.ms": "500",
        f"{target}.scheduled.rebalance.max.delay.ms": "0",
        f"{target}.producer.linger.ms": "0",
        f"{target}.plugin.discovery": "service_load",
        f"{source}.consumer.metadata.max.age.ms": "1000",
    }


class Worker:
    """One MirrorMaker 2 process; inside `with` it runs, afterwards it is dead."""

    def __init__(self, directory: Path, settings: Mapping[str, str]) -> None:
        number = sum(1 for _ in directory.glob("mirrormaker-*.properties"))
        properties = write_properties(directory / f"mirrormaker-{number}.properties", settings)
        self.log = properties.with_suffix(".log")
        self._process = MirrorMaker(properties, self.log, Jvm(heap="512m"))

    def __enter__(self) -> Self:
        self._process.start()
        return self

    def __exit__(self, *about: object) -> None:
        self._process.stop()

    def kill(self) -> None:
        os.kill(self._process.pid, signal.SIGKILL)

    def stop(self) -> None:
        """SIGTERM: it stores its progress."""
        self._process.stop()


def wait_until_forgotten(bootstrap: str, group: str) -> None:
    """The group's coordinator has seen that nobody is left."""

    async def names() -> list[str]:
        client = ClusterClient(Cluster("groups", (bootstrap,)))
        try:
            return [found.name for found in await connect_groups(client)]
        finally:
            client.close()

    wait_until(lambda: group not in asyncio.run(names()), f"{group} has no members", every=0.2)
