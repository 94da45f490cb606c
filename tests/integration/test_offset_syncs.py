"""Offset syncs: a real MirrorCheckpointConnector works from ours, and never sends a group beyond the exact answer."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from confluent_kafka import KafkaException

from heliograph.control.clock import Clock
from heliograph.control.flow_jobs import Ground, lasting_jobs
from heliograph.control.jobs import Job, JobRunner
from heliograph.control.offset_syncs import OffsetSyncJob
from heliograph.control.planner import FlowPlanner
from heliograph.kafka.slot import Warm
from heliograph.model.clusters import Cluster
from heliograph.model.events import Event
from heliograph.operations.translate import FlowTranslator
from heliograph.replication.mm2_translation import OffsetSyncStore, Sync
from heliograph.replication.offset_syncs import SyncSettings
from heliograph.replication.translation import position_of
from tests.integration.protocol.harness import Attempt, Mirror, Opened
from tests.support.clusters import ClusterFactory, TwoClusters
from tests.support.connect import ConnectWorker
from tests.support.groups import checkpoints, commit
from tests.support.guarded import Grant, GuardedCluster
from tests.support.mirrormaker import QUICK_GROUPS
from tests.support.reading import messages
from tests.support.remote_cluster_utils import translate_offsets
from tests.support.topics import ends, overrides, partition_count, stable_ends, topic_names
from tests.support.waiting import wait_until
from tests.support.writers import Sample, samples, write, write_transactions

LAG_MAX = 30
ROUNDS = 6


class Emitting:
    """The job of an opened flow, as a run makes it, without Spark. `anew`: as a run that begins now."""

    def __init__(self, opened: Opened, wanted: SyncSettings) -> None:
        jobs = replace(opened.plan.settings.jobs, offset_syncs=wanted, heartbeats=())
        settings = replace(opened.plan.settings, jobs=jobs)
        self.warm = Warm()
        self.events: list[Event] = []
        self._runner = JobRunner(opened.plan.name, lambda: True, self.events.append, Clock())
        none = cast(FlowPlanner, None)  # the job asks for the plan, not for a new one
        tell = self.events.append
        self._ground = Ground(
            settings, lambda: opened.plan, none, self.warm, Clock(), lambda: None, lambda _: None, tell
        )
        self._job: Job[Any] = self._made()

    def _made(self) -> Job[Any]:
        [job] = [job for job in lasting_jobs(self._ground) if isinstance(job, OffsetSyncJob)]
        return job

    def anew(self) -> None:
        self._job = self._made()

    async def pending(self) -> list[str]:
        found = await self._job.look()
        return [f"{action.what} {action.subject}" for action in found.actions if not action.routine]

    async def turn(self) -> bool:
        return await self._runner.once(self._job)


@dataclass(frozen=True)
class Written:
    """One record of an offset-syncs topic, taken apart by hand."""

    topic: str
    partition: int
    upstream: int
    downstream: int


def syncs_in(bootstrap: str, topic: str) -> Iterator[Written]:
    for message in messages(bootstrap, topic):
        key, value = message.key(), message.value()
        assert value is not None, "a tombstone ends MirrorMaker 2's readers"
        (length,) = struct.unpack_from(">h", key)
        assert len(key) == 2 + length + 4 and len(value) == 16
        (partition,) = struct.unpack_from(">i", key, 2 + length)
        yield Written(key[2 : 2 + length].decode(), partition, *struct.unpack(">qq", value))


def contents(bootstrap: str, topic: str) -> dict[int, tuple[object, ...]]:
    return {
        message.offset(): (message.key(), message.value(), message.timestamp())
        for message in messages(bootstrap, topic)
    }


def commit_each(bootstrap: str, topic: str, offsets: list[int]) -> None:
    """A group for each offset, which it will read next."""
    for offset in offsets:
        commit(bootstrap, f"{topic}-{offset}", {(topic, 0): offset})


def checkpoints_in(bootstrap: str, topic: str) -> dict[str, tuple[int, int]]:
    """The last (upstream, downstream) of every group."""
    try:
        read = checkpoints(bootstrap, topic) if partition_count(bootstrap, topic) else []
    except KafkaException:
        return {}  # it is being made
    return {row.group: (row.upstream, row.downstream) for row in read}


def checkpoint_connector(mirror: Mirror, location: str) -> dict[str, str]:
    return {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorCheckpointConnector",
        "source.cluster.alias": f"{mirror.topic}s",
        "source.cluster.bootstrap.servers": mirror.source,
        "target.cluster.alias": f"{mirror.topic}t",
        "target.cluster.bootstrap.servers": mirror.target,
        "topics": mirror.topic,
        "groups": f"{mirror.topic}-.*",
        "tasks.max": "1",
        "emit.checkpoints.interval.seconds": "1",
        "offset-syncs.topic.location": location,
        "checkpoints.topic.replication.factor": "1",
    }


def grow(mirror: Mirror, attempt: Attempt, number: int) -> None:
    """Markers, aborted records, records of somebody else on the target, and plain ones; all copied, and in the ledger."""
    write_transactions(mirror.source, mirror.topic, f"{mirror.topic}{number}", transactions=4, size=15)
    if number % 2:
        attempt.wait_for_position(stable_ends(mirror.source, mirror.topic)[0])
        write(mirror.target, mirror.remote, [Sample(b"somebody else's %d" % number)])
    write(mirror.source, mirror.topic, samples(40, seed=number))
    end = stable_ends(mirror.source, mirror.topic)[0]
    attempt.wait_for_position(end)

    def is_written() -> bool:
        entry = mirror.book().latest(attempt.life.run.lane.id)
        return entry is not None and entry.source_next >= end

    wait_until(is_written, "the ledger knows the position", every=0.05)


@dataclass(frozen=True)
class Flowing:
    """A flow that was carried and whose syncs were written, on one of the two clusters."""

    mirror: Mirror
    opened: Opened
    location: str

    @property
    def holder(self) -> str:
        return self.mirror.source if self.location == "source" else self.mirror.target

    @property
    def topic(self) -> str:
        return f"mm2-offset-syncs.{self.mirror.topic}{'t' if self.location == 'source' else 's'}.internal"

    def live(self) -> None:
        """Some rounds, two turns after each; the fourth finds a run that began anew."""
        with Attempt(self.opened) as attempt:
            assert asyncio.run(self._emit(attempt)) == []
            attempt.stop()
            attempt.join()

    async def _emit(self, attempt: Attempt) -> list[Event]:
        wanted = SyncSettings(self.location == "source", LAG_MAX, flush_ms=3_600_000, replication_factor=1)
        emitting = Emitting(self.opened, wanted)
        try:
            where = f"{self.mirror.topic}{self.location[0]}"
            assert await emitting.pending() == [f"create topic {self.topic} on {where}"]
            for number in range(ROUNDS):
                await asyncio.to_thread(grow, self.mirror, attempt, number)
                if number == 3:
                    emitting.anew()
                assert await emitting.turn() and await emitting.turn()
            assert await emitting.pending() == []
            return emitting.events
        finally:
            emitting.warm.close()

    def check_syncs(self) -> list[Written]:
        """The topic is as MirrorMaker 2 makes it, where it was asked for, and each sync names one record on both sides."""
        mirror, name = self.mirror, self.mirror.topic
        other = mirror.target if self.location == "source" else mirror.source
        assert overrides(self.holder, self.topic) == {"cleanup.policy": "compact"}
        assert partition_count(self.holder, self.topic) == 1 and self.topic not in topic_names(other)
        found = list(syncs_in(self.holder, self.topic))
        source, target = contents(mirror.source, name), contents(mirror.target, mirror.remote)
        assert {(one.topic, one.partition) for one in found} == {(name, 0)}
        assert all(source[one.upstream] == target[one.downstream] for one in found)
        assert len(found) == ROUNDS, (
            "each round moved by more than offset.lag.max, and the second turn found nothing new"
        )
        return found

    def check_checkpoints(self, worker: ConnectWorker, found: list[Written]) -> dict[str, int]:
        """What a real MirrorCheckpointConnector makes of the syncs, by group."""
        mirror, name = self.mirror, self.mirror.topic
        first, end = found[0].upstream, ends(mirror.source, name)[0]
        asked = sorted({first, end - 1, end, *(one.upstream + 1 for one in found), *range(first, end, 53)})
        commit_each(mirror.source, name, asked)
        worker.create(f"{name}-checkpoints", checkpoint_connector(mirror, self.location))
        theirs = f"{name}s.checkpoints.internal"
        wait_until(
            lambda: len(checkpoints_in(mirror.target, theirs)) == len(asked),
            f"MirrorMaker 2 wrote a checkpoint for each of {len(asked)} groups ({worker.log})",
            every=0.5,
        )
        seen = checkpoints_in(mirror.target, theirs)
        store = store_of(found)
        exact = asyncio.run(_exact(self.opened, asked))
        for offset in asked:
            upstream, downstream = seen[f"{name}-{offset}"]
            assert (upstream, downstream) == (offset, store.translate((name, 0), offset))
            assert downstream <= exact[offset], f"{offset}: records would be lost"
            assert all(downstream == exact[offset] for one in found if one.upstream == offset)
        return {group: downstream for group, (_, downstream) in seen.items()}


def test_a_checkpoint_connector_of_mirrormaker_2_works_from_our_syncs_on_either_cluster(
    two_clusters: TwoClusters, new_cluster: ClusterFactory, unique: str, tmp_path: Path
) -> None:
    here, there = two_clusters.a.bootstrap, new_cluster("B", config=QUICK_GROUPS).bootstrap
    both: list[tuple[Flowing, list[Written]]] = []
    for location in ("source", "target"):
        mirror = Mirror(here, there, f"{unique}{location}")
        mirror.make_topic()
        flowing = Flowing(mirror, mirror.open(), location)
        flowing.live()
        both.append((flowing, flowing.check_syncs()))
    with ConnectWorker(tmp_path, there, f"{unique}-connect") as worker:
        seen = {flowing.mirror.topic: flowing.check_checkpoints(worker, found) for flowing, found in both}
    for flowing, _ in both:
        mirror = flowing.mirror
        few = sorted(seen[mirror.topic])[::7]
        answers = translate_offsets(tmp_path, there, f"{mirror.topic}s", few)[0]
        assert answers == {(group, mirror.remote, 0): (seen[mirror.topic][group], "") for group in few}


def store_of(found: list[Written]) -> OffsetSyncStore:
    store = OffsetSyncStore(must_read_to_end=False)
    for one in found:
        store.add((one.topic, one.partition), Sync(one.upstream, one.downstream))
    store.loaded()
    return store


async def _exact(opened: Opened, offsets: list[int]) -> dict[int, int]:
    """Where a reader goes on, by offset; all are known."""
    found = {}
    [lane] = opened.plan.lanes
    async with FlowTranslator(opened.plan.settings) as translator:
        of_lane = await translator.translator(lane.id)
        for offset in offsets:
            position = position_of(await of_lane.translate(offset))
            assert position is not None
            found[offset] = position
    return found


def test_missing_permissions_are_named_one_after_the_other_and_syncs_begin_once_they_are_granted(
    two_clusters: TwoClusters, kafka_jars: Path, unique: str, tmp_path: Path
) -> None:
    del kafka_jars
    mirror = Mirror(two_clusters.a.bootstrap, two_clusters.b.bootstrap, unique)
    mirror.make_topic()
    write(mirror.source, unique, samples(10))
    opened = mirror.open()
    guarded = GuardedCluster("G", tmp_path)
    guarded.start()
    try:
        with Attempt(opened) as attempt:
            grow(mirror, attempt, 0)
            asyncio.run(_emits_once_granted(opened, guarded, f"mm2-offset-syncs.{unique}t.internal"))
        assert ends(guarded.bootstrap, f"mm2-offset-syncs.{unique}t.internal") == {0: 1}
    finally:
        guarded.stop()


async def _emits_once_granted(opened: Opened, guarded: GuardedCluster, topic: str) -> None:
    """The guarded cluster stands for the source as it is written to."""
    settings = opened.plan.settings
    there = Cluster(settings.flow.source, (guarded.bootstrap,))
    plan = replace(opened.plan, settings=replace(settings, source_writer=there, source_admin=there))
    emitting = Emitting(replace(opened, plan=plan), SyncSettings(replication_factor=1))
    try:
        for operation in ("DESCRIBE", "CREATE", "WRITE"):
            assert not await emitting.turn() and not await emitting.turn()
            event = emitting.events[-1]
            assert f"this needs {operation} on the topic" in event.reason and topic in event.reason
            await asyncio.to_thread(guarded.grant, Grant("topic", topic, operation))
        assert await emitting.turn()
        assert [event.reason for event in emitting.events][3:] == ["it goes on"]
    finally:
        emitting.warm.close()
