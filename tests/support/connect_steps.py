"""Steps of the tests of Connect's REST: the two connectors that copy nothing, a cluster that hangs, a flow that another has."""

from __future__ import annotations

import asyncio
import socket

from heliograph.kafka.client import ClusterClient
from heliograph.kafka.groups import connect_groups
from heliograph.model.clusters import Cluster
from heliograph.replication.mm2_live import STABLE, ConnectGroup
from tests.support.connect_pair import Pair, Side, settled
from tests.support.groups import commit
from tests.support.mirror import word
from tests.support.topics import create_topic
from tests.support.waiting import wait_until
from tests.support.writers import samples, write

PACKAGE = "org.apache.kafka.connect.mirror"
RECORDS = 100


def add_the_other_two(pair: Pair) -> None:
    """Heartbeats and checkpoints arrive, on both sides, and come and go with their connectors."""
    topic, source = pair.ours.topic, pair.ours.clusters.a.bootstrap
    group, half = f"{topic}-readers", RECORDS // 2
    commit(source, group, {(topic, 0): half})
    quick = {
        "Checkpoint": {
            "groups": group,
            "emit_checkpoints_interval_seconds": "1",
            "checkpoints_topic_replication_factor": "1",
        },
        "Heartbeat": {"emit_heartbeats_interval_seconds": "1", "heartbeats_topic_replication_factor": "1"},
    }
    for kind, more in quick.items():
        without = {"topics": None, "producer_override_linger_ms": None}
        fields = {"connector_class": f"{PACKAGE}.Mirror{kind}Connector", **without, **more}
        pair.ask(
            "POST",
            "/connectors",
            lambda side, kind=kind, fields=fields: {"name": kind, "config": side.config(**fields)},
        )
    pair.wait_each(lambda side: side.beats() >= 2, "heartbeats arrive")
    pair.wait_each(lambda side: side.checkpointed(group) == {0: half}, "the group has a checkpoint")
    for kind in quick:
        pair.wait_for("RUNNING RUNNING", kind)
        pair.wait_each(lambda side, kind=kind: side.tells_topics(kind), f"{kind} tells what it writes")
        for what in ("", "/config", "/status", "/tasks", "/tasks/0/status", "/topics"):
            pair.ask("GET", f"/connectors/{kind}{what}")
    pair.ask("GET", "/connectors?expand=status&expand=info")
    pair.ask("PUT", "/connectors/Heartbeat/pause")
    pair.wait_for("PAUSED PAUSED", "Heartbeat")
    pair.ask("GET", "/connectors/Heartbeat/status")
    for kind in quick:
        pair.ask("PUT", f"/connectors/{kind}/stop")
        pair.wait_for("STOPPED", kind)
        for what in ("/status", "/tasks", "/topics"):
            pair.ask("GET", f"/connectors/{kind}{what}")
        look_at_offsets_that_nobody_reads(pair, kind)
    beaten = [side.beats() for side in pair.sides]
    write(source, topic, samples(RECORDS, partitions=2, seed=3))
    pair.wait_copied(3 * RECORDS + 20)
    commit(source, group, {(topic, 0): 2 * half})
    pair.ask("PUT", "/connectors/orders/restart")  # a method that there is not; and time in which nothing may happen
    assert pair.ours.beats() == beaten[1], "what is stopped writes no heartbeats"
    assert pair.ours.checkpointed(group) == {0: half}, "nor checkpoints"
    for kind in quick:
        pair.ask("PUT", f"/connectors/{kind}/resume")
        pair.wait_for("RUNNING RUNNING", kind)
    pair.wait_each(lambda side: side.checkpointed(group) == {0: 2 * half}, "checkpoints go on")
    pair.wait_each(lambda side: side.beats() > beaten[pair.sides.index(side)], "heartbeats go on")
    pair.ask("POST", "/connectors/Heartbeat/restart?includeTasks=true")
    pair.wait_for("RUNNING RUNNING", "Heartbeat")
    for kind in quick:
        pair.ask("DELETE", f"/connectors/{kind}")
        pair.ask("GET", f"/connectors/{kind}")


def look_at_offsets_that_nobody_reads(pair: Pair, kind: str) -> None:
    """Connect has rows for what these two wrote, each with offset 0, which no connector reads; we have none."""
    theirs, ours = (side.rest.get(f"/connectors/{kind}/offsets") for side in pair.sides)
    assert {row["offset"]["offset"] for row in theirs["offsets"]} == {0}
    assert ours == {"offsets": []}


def wait_until_taken(side: Side, name: str, when: str) -> None:
    """A MirrorMaker 2 has the flow: it is FAILED with that as trace and without tasks, once those of before have ended."""

    def is_failed() -> bool:
        _, body = side.rest.ask("GET", f"/connectors/{name}/status")
        found = body.get("connector", {})
        taken = found.get("state") == "FAILED" and f"(connector '{name}'): stop it first" in found["trace"]
        return taken and body["tasks"] == []

    wait_until(is_failed, f"{name} says that a MirrorMaker 2 copies it, {when}", every=0.2)


def post_to_a_cluster_that_hangs(side: Side) -> None:
    """It is made and says so, and its status says what is wrong; taken out again it leaves nothing."""
    name = word()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        servers = ",".join([f"127.0.0.1:{silent.getsockname()[1]}"] * 5)
        config = side.config(source_cluster_alias=name, source_cluster_bootstrap_servers=servers)
        status, body = side.rest.ask("POST", "/connectors", {"name": name, "config": config})
        assert (status, body["name"], body["tasks"]) == (201, name, [])
        assert name in side.rest.get("/connectors")
        side.wait_for("FAILED", name)
        assert side.rest.get(f"/connectors/{name}/status")["connector"]["trace"]
        assert side.rest.ask("PUT", f"/connectors/{name}/pause")[0] == 202
        assert side.rest.ask("DELETE", f"/connectors/{name}") == (204, "")
    assert name not in side.rest.get("/connectors")


class Taken:
    """Inside `with` a connector of the same name in Connect has a flow of ours, and a task of it. It finds nothing to copy."""

    def __init__(self, pair: Pair, name: str) -> None:
        self._theirs = pair.connect
        self._name = name
        self._topic = f"{name}-{word()}"

    def __enter__(self) -> None:
        create_topic(self._theirs.clusters.a.bootstrap, self._topic)
        config = self._theirs.config(source_cluster_alias=self._name, topics=self._topic)
        status, body = settled(self._theirs.rest, "POST", "/connectors", {"name": self._name, "config": config})
        assert status == 201, body
        self._theirs.wait_for("RUNNING RUNNING", self._name)
        # Of a connector that had this name before Connect may still tell that. Its group says who has it now.
        wait_until(self._is_assigned, f"a worker of Connect has {self._name}", every=0.2)

    def _is_assigned(self) -> bool:
        async def groups() -> list[ConnectGroup]:
            client = ClusterClient(Cluster("theirs", (self._theirs.clusters.b.bootstrap,)))
            try:
                return await connect_groups(client)
            finally:
                client.close()

        members = [one for group in asyncio.run(groups()) if group.state == STABLE for one in group.members]
        return any(task >= 0 for one in members for task in (one.tasks or {}).get(self._name, ()))

    def __exit__(self, *about: object) -> None:
        assert settled(self._theirs.rest, "DELETE", f"/connectors/{self._name}", None)[0] == 204
        # Connect tells of the one that is gone for a while: the next of this name would seem to run before it does.
        self._theirs.wait_for("", self._name)
