"""Checkpoints: exact, monotone over restarts, and read by MirrorMaker 2's own client, its formatter, and ours."""

from __future__ import annotations

import asyncio
import re
import struct
import subprocess
from pathlib import Path
from typing import Any, cast

import pytest
from confluent_kafka.admin import ConfigResource, ResourceType

from heliograph.client import MirrorClient, RemoteOffset
from heliograph.control.clock import Clock
from heliograph.control.group_positions import GroupPositions
from heliograph.embedded.jars import ensure_kafka_jars
from heliograph.embedded.java import find_java
from heliograph.embedded.settings import Jvm
from heliograph.kafka.slot import Warm
from heliograph.model.events import EventKind
from tests.integration.protocol.harness import Attempt, Mirror, Opened, carry
from tests.support.clusters import TwoClusters
from tests.support.compaction import COMPACTED, is_cleaned_away, leave_alone
from tests.support.groups import Turns, checkpoint_job, checkpoints, commit
from tests.support.guarded import Grant, GuardedCluster
from tests.support.killed_turns import Kill, killed_turn
from tests.support.reading import committed_values
from tests.support.remote_cluster_utils import translate_offsets
from tests.support.topics import ANSWER_SECONDS, admin, create_topic, ends, partition_count
from tests.support.waiting import wait_until
from tests.support.writers import Sample, samples, write, write_transactions

_ONE_BROKER = {"checkpoints.topic.replication.factor": "1"}


def printed_by_formatter(bootstrap: str, topic: str, count: int) -> list[str]:
    """Records through kafka-console-consumer and MirrorMaker 2's formatter."""
    command = Jvm(heap="128m").command(
        find_java(),
        ensure_kafka_jars(),
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--bootstrap-server", bootstrap, "--topic", topic, "--from-beginning", "--max-messages", str(count)),
        *("--timeout-ms", "30000"),
        *("--formatter", "org.apache.kafka.connect.mirror.formatters.CheckpointFormatter"),
    )
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return [line for line in done.stdout.replace("\0", "").splitlines() if line.startswith("Checkpoint")]


def mirrored(clusters: TwoClusters, name: str) -> tuple[Mirror, str]:
    """A flow, and its checkpoints topic."""
    mirror = Mirror(clusters.a.bootstrap, clusters.b.bootstrap, name)
    mirror.policies = _ONE_BROKER
    return mirror, f"{name}s.checkpoints.internal"


def test_checkpoints_are_exact_and_mirrormaker_2s_client_its_formatter_and_ours_read_them(
    two_clusters: TwoClusters, unique: str, tmp_path: Path
) -> None:
    mirror, topic = mirrored(two_clusters, unique)
    mirror.make_topic(partitions=2)
    write(mirror.source, unique, [Sample(b"%d" % n, partition=1) for n in range(50)])
    write_transactions(mirror.source, unique, unique, transactions=6)
    carry(opened := mirror.open())
    middle, end = ends(mirror.source, unique)[0] // 2, ends(mirror.source, unique)[1]
    commit(mirror.source, f"{unique}-g", {(unique, 0): middle, (unique, 1): end}, "noted")
    commit(mirror.source, f"{unique}-h", {(unique, 1): 7})
    commit(mirror.source, f"connect-{unique}", {(unique, 1): 7})
    turns = Turns(opened.plan, checkpoint_job)
    assert [line.partition(" (")[0].partition(":")[0] for line in turns.pending()] == [
        f"topic {topic}",
        f"group {unique}-g",
        f"group {unique}-h",
    ]
    assert partition_count(mirror.target, topic) == 0
    assert turns.turn(), turns.events
    assert turns.pending() == []
    assert turns.turn() and turns.events == []

    found = {(row.group, row.partition): row for row in checkpoints(mirror.target, topic)}
    downstream = found[f"{unique}-g", 0].downstream
    assert set(found.values()) == {
        (f"{unique}-g", mirror.remote, 0, middle, downstream, "noted"),
        (f"{unique}-g", mirror.remote, 1, end, end, "noted"),
        (f"{unique}-h", mirror.remote, 1, 7, 7, ""),
    }
    assert len(checkpoints(mirror.target, topic)) == 3, "nobody moved: nothing more was written"
    ours = committed_values(mirror.target, mirror.remote, downstream)
    assert ours and ours == committed_values(mirror.source, unique, middle), "neither lost nor repeated"
    resource = ConfigResource(ResourceType.TOPIC, topic)
    configs = (client := admin(mirror.target)).describe_configs([resource])[resource].result(ANSWER_SECONDS)
    assert {entry.name: entry.value for entry in configs.values() if entry.source == 1} == {"cleanup.policy": "compact"}
    assert partition_count(mirror.target, topic) == 1
    del client

    one, by_name = f"{unique}-g", f"{unique}-.|connect-.*"
    asked, matched = translate_offsets(tmp_path, mirror.target, f"{unique}s", [one, "nobody"], by_name)
    assert asked == {(one, mirror.remote, 0): (downstream, "noted"), (one, mirror.remote, 1): (end, "noted")}
    assert matched == asked | {(f"{unique}-h", mirror.remote, 1): (7, "")}
    assert (
        f"Checkpoint{{consumerGroupId={unique}-h, topicPartition={mirror.remote}-1, upstreamOffset=7, "
        "downstreamOffset=7, metadata=}" in printed_by_formatter(mirror.target, topic, 3)
    )
    file = tmp_path / "mm2.properties"
    file.write_text(mirror.lines())
    asking = MirrorClient(file, f"{unique}t")
    told = asking.remote_consumer_offsets(one, f"{unique}s")
    assert told == {
        (mirror.remote, 0): RemoteOffset(downstream, "noted\0"),
        (mirror.remote, 1): RemoteOffset(end, "noted\0"),
    }
    all_of_them = {one: told, f"{unique}-h": {(mirror.remote, 1): RemoteOffset(7, "\0")}}
    assert asking.remote_consumer_offsets(re.compile(by_name), f"{unique}s") == all_of_them


def test_checkpoints_follow_the_group_and_the_copy_and_never_go_back_by_a_restart(
    two_clusters: TwoClusters, unique: str
) -> None:
    mirror, topic = mirrored(two_clusters, unique)
    group = f"{unique}-g"
    mirror.make_topic()
    write(mirror.source, unique, samples(100))
    turns = Turns(carried(mirror).plan, checkpoint_job)

    def at() -> list[tuple[int, int]]:
        return [row[3:5] for row in checkpoints(mirror.target, topic)]

    commit(mirror.source, group, {(unique, 0): 40})
    assert turns.turn() and at() == [(40, 40)]
    write(mirror.source, unique, samples(50, seed=2))
    commit(mirror.source, group, {(unique, 0): 150})
    assert turns.turn() and at()[1:] == [(100, 100)], "the group is ahead of the copy: as far as there is one"
    turns.plan = carried(mirror).plan
    assert turns.turn() and at()[2:] == [(150, 150)]
    # Somebody's checkpoint that lies further than the exact one, such as another mirror's: a restart does not go back.
    write(mirror.source, unique, samples(50, seed=3))
    carried(mirror)
    record = struct.pack(
        f">h{len(group)}sh{len(mirror.remote)}si",
        len(group),
        group.encode(),
        len(mirror.remote),
        mirror.remote.encode(),
        0,
    )
    write(mirror.target, topic, [Sample(struct.pack(">hqqh", 0, 160, 190, 0), record)])
    commit(mirror.source, group, {(unique, 0): 180})
    assert turns.turn() and at()[3:] == [(160, 190)]
    commit(mirror.source, group, {(unique, 0): 195})
    assert turns.turn() and at()[4:] == [(195, 195)]
    commit(mirror.source, group, {(unique, 0): 10})
    assert turns.turn() and at()[5:] == [(10, 10)], "the group itself went back"
    assert turns.events == []


def test_before_a_lane_is_opened_there_is_no_checkpoint_and_then_none_beyond_the_copy(
    two_clusters: TwoClusters, unique: str
) -> None:
    mirror, topic = mirrored(two_clusters, unique)
    group = f"{unique}-g"
    mirror.make_topic(partitions=2)
    write(mirror.source, unique, samples(20))
    commit(mirror.source, group, {(unique, 0): 12, (unique, 1): 0})
    planner = mirror.planner()
    try:
        turns = Turns(planner.apply(planner.discover()), checkpoint_job)
    finally:
        planner.close()
    assert turns.turn(), turns.events
    assert ends(mirror.target, mirror.remote) == {0: 0, 1: 0}
    assert checkpoints(mirror.target, topic) == [], "nothing of these partitions was ever copied"

    def newest() -> dict[int, tuple[int, int]]:
        return {row.partition: (row.upstream, row.downstream) for row in checkpoints(mirror.target, topic)}

    opened = mirror.open()
    turns.plan = opened.plan
    assert turns.turn() and newest() == {0: (0, 0), 1: (0, 0)}, "the copy is empty, and the group begins with it"
    carry(opened)
    assert turns.turn() and newest() == {0: (12, 12), 1: (0, 0)}
    assert turns.events == []


def test_a_run_that_is_killed_while_it_writes_checkpoints_is_followed_by_one_that_writes_the_rest_and_none_goes_back(
    two_clusters: TwoClusters, unique: str
) -> None:
    mirror, topic = mirrored(two_clusters, unique)
    mirror.make_topic()
    write(mirror.source, unique, samples(100))
    turns = Turns(carried(mirror).plan, checkpoint_job)

    def killed(offset: int, kill: Kill) -> list[tuple[int, int]]:
        commit(mirror.source, f"{unique}-g", {(unique, 0): offset})
        killed_turn(mirror, "checkpoints", kill)
        return at()

    def at() -> list[tuple[int, int]]:
        return [(row.upstream, row.downstream) for row in checkpoints(mirror.target, topic)]

    assert killed(40, Kill("append")) == [], "the topic is made, nothing is written"
    assert turns.turn() and at() == [(40, 40)]
    assert killed(60, Kill("append", after=True)) == [(40, 40), (60, 60)]
    assert turns.turn() and at() == [(40, 40), (60, 60)], "what the dead run wrote is known to the next"
    assert killed(70, Kill("append")) == [(40, 40), (60, 60)]
    assert turns.turn() and at() == [(40, 40), (60, 60), (70, 70)]
    assert turns.events == []


def carried(mirror: Mirror) -> Opened:
    opened = mirror.open()
    carry(opened)
    return opened


class TurnedClock:
    """Goes as it is told."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.mark.parametrize("refresh", ["true", "false"])
def test_new_groups_are_looked_for_at_intervals_if_at_all(two_clusters: TwoClusters, unique: str, refresh: str) -> None:
    mirror, _ = mirrored(two_clusters, unique)
    mirror.policies = {**_ONE_BROKER, "refresh.groups.interval.seconds": "100", "refresh.groups.enabled": refresh}
    mirror.make_topic()
    opened = carried(mirror)
    commit(mirror.source, f"{unique}-g", {(unique, 0): 0})

    async def groups_of_each_look() -> list[list[str]]:
        warm, clock = Warm(), TurnedClock()
        try:
            positions = GroupPositions(opened.plan.settings, lambda: opened.plan, warm, cast(Clock, clock))
            found = [await positions.look()]
            await asyncio.to_thread(commit, mirror.source, f"{unique}-h", {(unique, 0): 0})
            for seconds in (0, 101):
                clock.now_s += seconds
                found.append(await positions.look())
            return [[place.group for place in look.placed] for look in found]
        finally:
            warm.close()

    old, both = [f"{unique}-g"], [f"{unique}-g", f"{unique}-h"]
    assert asyncio.run(groups_of_each_look()) == [old, old, both if refresh == "true" else old]


def test_a_group_that_stands_still_costs_no_reading(two_clusters: TwoClusters, unique: str) -> None:
    mirror, _ = mirrored(two_clusters, unique)
    mirror.make_topic()
    write(mirror.source, unique, samples(100))
    opened = carried(mirror)
    commit(mirror.source, f"{unique}-g", {(unique, 0): 40})

    async def reads_of_each_look() -> list[int]:
        warm = Warm()
        try:
            positions = GroupPositions(opened.plan.settings, lambda: opened.plan, warm, Clock())
            counts = []
            for _ in range(3):
                assert [place.pair.downstream for place in (await positions.look()).placed] == [40]  # type: ignore[union-attr]
                clients = (warm.client(opened.plan.settings.source), warm.client(opened.plan.settings.target))
                counts.append(sum(_range_requests(client) for client in clients))
            return counts
        finally:
            warm.close()

    first, second, third = asyncio.run(reads_of_each_look())
    assert first > 0 and first == second == third


def test_a_group_whose_record_was_cleaned_away_stands_where_anyone_who_looks_now_sees_it(
    two_clusters: TwoClusters, unique: str
) -> None:
    """A run that keeps what it found before the cleaner came says `in step` where `status --groups` says `to be set`, and neither ends."""
    mirror, _ = mirrored(two_clusters, unique)
    mirror.make_topic(config=COMPACTED)
    write(mirror.source, unique, samples(100))
    opened = mirror.open()
    commit(mirror.source, f"{unique}-g", {(unique, 0): 40})

    def is_cleaned() -> bool:
        write(mirror.source, unique, samples(100, seed=2))  # the same keys; the newest segment is not cleaned
        return is_cleaned_away(mirror.source, unique, 40)

    async def places(attempt: Attempt) -> list[int]:
        warm = Warm()
        try:
            of_the_run = GroupPositions(opened.plan.settings, lambda: opened.plan, warm, Clock())
            found = [(await of_the_run.look()).placed]
            await asyncio.to_thread(wait_until, is_cleaned, "the cleaner has been there", every=0.5)
            for bootstrap, topic in ((mirror.source, unique), (mirror.target, mirror.remote)):
                await asyncio.to_thread(leave_alone, bootstrap, topic)  # both looks are at the same records
            end = ends(mirror.source, unique)[0]
            await asyncio.to_thread(attempt.wait_for_position, end)
            await asyncio.to_thread(wait_until, lambda: _known(mirror) >= end, "the ledger knows it")
            of_status = GroupPositions(opened.plan.settings, lambda: opened.plan, warm, Clock())
            found += [(await positions.look()).placed for positions in (of_the_run, of_status)]
            return [place.pair.downstream for (place,) in found]  # type: ignore[union-attr]
        finally:
            warm.close()

    with Attempt(opened) as attempt:
        attempt.wait_for_records(100)
        wait_until(lambda: _known(mirror) == 100, "the ledger knows it")
        before, of_the_run, of_status = asyncio.run(places(attempt))
    assert before == 40
    assert of_the_run == of_status > before


def _known(mirror: Mirror) -> int:
    """How far the ledger knows the one lane to be copied."""
    book = mirror.book()
    (lane,) = (one for one in book.lanes() if one.topic == mirror.topic)
    entry = book.latest(lane)
    return 0 if entry is None else entry.source_next


def _range_requests(client: Any) -> int:
    """How often a client has read a piece of a data topic."""
    kept = client._connections.items()
    return sum(connection._correlation for (_, purpose), connection in kept if purpose == "range")


def test_malformed_records_are_passed_over_counted_and_told(two_clusters: TwoClusters, unique: str) -> None:
    mirror, topic = mirrored(two_clusters, unique)
    mirror.make_topic()
    write(mirror.source, unique, samples(20))
    create_topic(mirror.target, topic, config={"cleanup.policy": "compact"})
    strange = [Sample(b"strange", b"key"), Sample(None, b"\x00\x01g\x00\x01t\x00\x00\x00\x00"), Sample(b"", b"")]
    write(mirror.target, topic, strange)
    turns = Turns(carried(mirror).plan, checkpoint_job)
    commit(mirror.source, f"{unique}-g", {(unique, 0): 5})
    assert turns.turn()
    (event,) = turns.events
    assert (event.kind, event.subject) == (EventKind.MALFORMED, topic)
    assert event.reason == f"passed over what is no checkpoint in topic {topic}: 3 records so far"
    assert turns.standing["summary"] == "1 group, 1 partition, 3 malformed records passed over"
    assert turns.pending() == []


def test_missing_permissions_are_named_and_the_rest_goes_on(kafka_jars: Path, unique: str, tmp_path: Path) -> None:
    del kafka_jars
    here, there = GuardedCluster("S", tmp_path / "s"), GuardedCluster("T", tmp_path / "t")
    here.start()
    there.start()
    mirror = Mirror(here.bootstrap, there.bootstrap, unique)
    mirror.policies = _ONE_BROKER
    topic = f"{unique}s.checkpoints.internal"
    try:
        here.grant(Grant("cluster", "kafka-cluster", "DESCRIBE"))
        here.grant(*(Grant("topic", unique, operation) for operation in ("READ", "DESCRIBE_CONFIGS")))
        here.grant(Grant("group", f"{unique}-seen", "DESCRIBE"))
        here.create_topic(unique)
        here.write(unique, 20)
        own = ("CREATE", "WRITE", "READ", "DESCRIBE_CONFIGS")
        there.grant(*(Grant("topic", "__heliograph-", operation, prefixed=True) for operation in own))
        there.grant(*(Grant("topic", mirror.remote, operation) for operation in own))
        there.grant(Grant("transactional id", "heliograph.", "WRITE", prefixed=True))
        there.grant(Grant("cluster", "kafka-cluster", "DESCRIBE_CONFIGS"))
        there.grant(Grant("group", "by-hand", "READ"))  # for the test's own reader
        turns = Turns(carried(mirror).plan, checkpoint_job)
        for group in ("seen", "hidden"):
            here.commit(f"{unique}-{group}", unique, 0, 5)
        for operation in ("DESCRIBE", "CREATE", "WRITE", "", "READ", ""):
            assert not turns.turn()
            if operation:
                there.grant(Grant("topic", topic, operation))
        describe, create, write_to, hidden, read, hidden_still = (event.reason for event in turns.events)
        assert f"this needs READ on the topic {topic} of cluster {unique}t" in describe
        assert f"create topic '{topic}'" in create and "this needs CREATE on the topic" in create
        assert f"this needs WRITE on the topic {topic} of cluster {unique}t" in write_to
        assert f"this needs DESCRIBE on the group {unique}-hidden of cluster {unique}s" in hidden
        assert f"this needs READ on the topic {topic} of cluster {unique}t" in read
        assert hidden_still == hidden
        assert [row[:5] for row in checkpoints(there.bootstrap, topic)] == [(f"{unique}-seen", mirror.remote, 0, 5, 5)]
        here.grant(Grant("group", f"{unique}-hidden", "DESCRIBE"))
        assert turns.turn() and turns.pending() == []
    finally:
        here.stop()
        there.stop()
