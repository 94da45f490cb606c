"""`heliograph forget`: the traces of one flow leave Heliograph's own topics, another flow's stay, no record is touched."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path

import pytest

from heliograph.control.clock import Clock
from heliograph.control.telemetry import TelemetryWriter
from heliograph.errors import SetupError
from heliograph.kafka.ledger import EVENTS_TOPIC, LEDGER_TOPIC, TELEMETRY_TOPIC
from heliograph.kafka.slot import Warm
from heliograph.model.clusters import Cluster
from heliograph.operations.forget import LOOK_AGAIN_SECONDS, forget
from heliograph.replication.forgetting import Forgetting
from heliograph.replication.generations import Holder, encode_holder
from heliograph.replication.ledger_keys import HolderKey
from tests.integration.protocol.harness import Mirror, carry, with_warm
from tests.support.clusters import ClusterFactory, TwoClusters
from tests.support.mirror import command, flow_file
from tests.support.topics import topic_names
from tests.support.waiting import wait_until
from tests.support.writers import samples, write


def mirrored(source: str, target: str, name: str) -> Mirror:
    """A flow that was copied, and the telemetry and holder of the run that did it."""
    mirror = Mirror(source, target, name)
    mirror.make_topic()
    write(source, name, samples(20))
    carry(mirror.open())
    with_warm(lambda warm: say(warm, mirror))
    return mirror


async def say(warm: Warm, mirror: Mirror) -> None:
    now = Clock().now_ms()
    record = json.dumps({"flow": mirror.flow, "lanes": []})
    await TelemetryWriter(warm).write(mirror.target_cluster, mirror.flow, record, now)
    holder = Holder(mirror.flow, "host", 1, "run", now, now, released=False, held=True)
    await warm.ledger(mirror.target_cluster).write([(HolderKey(mirror.flow, "run"), encode_holder(holder))], now)


def forgotten(mirror: Mirror, dry_run: bool = False, patience_s: float = 0.3) -> Forgetting:
    target = Cluster("t", (mirror.target,))
    return asyncio.run(forget(target, mirror.flow, Clock().now_ms(), dry_run, patience_s))


def test_one_flow_of_two_is_forgotten_and_then_the_last_one_takes_the_topics_with_it(
    two_clusters: TwoClusters, new_cluster: ClusterFactory, unique: str, tmp_path: Path
) -> None:
    target = new_cluster("T").bootstrap
    first = mirrored(two_clusters.a.bootstrap, target, f"{unique}one")
    second = mirrored(two_clusters.a.bootstrap, target, f"{unique}two")
    looked = forgotten(first, dry_run=True)
    assert (len(looked.ledger_keys), looked.others, looked.delete_topics) == (2, (second.flow,), ())
    assert {lane.flow for lane in first.book().lanes()} == {first.flow, second.flow}  # nothing was done
    done = forgotten(first)
    assert done == looked
    book = first.book()
    assert {lane.flow for lane in book.lanes()} == {second.flow}
    assert book.holder(second.flow) is not None
    assert [(cut.removed, cut.left) for cut in done.cuts if cut.topic == TELEMETRY_TOPIC] == [(1, 0)]
    again = forgotten(first)
    assert again.is_nothing
    first.assert_identical(20)

    file = flow_file(
        tmp_path / "two.properties",
        {f"{second.topic}s": two_clusters.a.bootstrap, f"{second.topic}t": target},
        {second.flow: second.topic},
    )
    said = command("forget", str(file), "--flow", second.flow, "--yes", "--json")
    assert said.code == 0, said.err
    assert sorted(json.loads(said.out)["deleted_topics"]) == sorted([LEDGER_TOPIC, TELEMETRY_TOPIC, EVENTS_TOPIC])
    own = {LEDGER_TOPIC, TELEMETRY_TOPIC, EVENTS_TOPIC}
    wait_until(lambda: not own & topic_names(target), "its own topics are gone from the metadata")
    second.assert_identical(20)


def test_a_flow_that_runs_is_refused_and_keeps_its_positions(two_clusters: TwoClusters, unique: str) -> None:
    mirror = mirrored(two_clusters.a.bootstrap, two_clusters.b.bootstrap, unique)
    stop, said = threading.Event(), threading.Event()

    async def run(warm: Warm) -> None:
        while not stop.is_set():
            await say(warm, mirror)
            said.set()
            await asyncio.sleep(0.1)

    running = threading.Thread(target=lambda: with_warm(run))
    running.start()
    try:
        assert said.wait(60)
        with pytest.raises(SetupError, match="is running: stop it first"):
            forgotten(mirror, patience_s=LOOK_AGAIN_SECONDS)
    finally:
        stop.set()
        running.join()
    assert mirror.flow in {lane.flow for lane in mirror.book().lanes()}
    assert len(forgotten(mirror, dry_run=True).ledger_keys) == 2  # once it has stopped it may go
