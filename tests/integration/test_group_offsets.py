"""Group offsets on the target: exact, never under a group that reads there, back only with the group, and a reason for each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import AcknowledgeType, Consumer, ShareConsumer

from heliograph.cli.main import main
from heliograph.kafka.consumer_groups import Committed
from heliograph.kafka.share_groups import ShareGroups
from tests.integration.protocol.harness import Mirror, Opened, carry, with_client
from tests.support.clusters import TwoClusters
from tests.support.groups import Partition, Turns, commit, committed, group_offsets_job
from tests.support.guarded import Grant, GuardedCluster
from tests.support.killed_turns import Kill, killed_turn
from tests.support.topics import create_topic, delete_records, ends, topic_names
from tests.support.writers import Sample, samples, write, write_transactions

PROTOCOLS = ("classic", "consumer")


def mirrored(clusters: TwoClusters, name: str) -> Mirror:
    mirror = Mirror(clusters.a.bootstrap, clusters.b.bootstrap, name)
    mirror.policies = {"sync.group.offsets.enabled": "true"}
    return mirror


def carried(mirror: Mirror) -> Opened:
    opened = mirror.open()
    carry(opened)
    return opened


@contextmanager
def reading(bootstrap: str, group: str, topic: str, protocol: str, count: int) -> Iterator[list[bytes]]:
    """A group with a member that has read and committed so many records, and is still there."""
    settings: dict[str, Any] = {"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False}
    client = Consumer({**settings, "group.protocol": protocol, "auto.offset.reset": "earliest"})
    client.subscribe([topic])
    found: list[bytes] = []
    try:
        while len(found) < count:
            message = client.poll(20)
            assert message is not None and message.error() is None, message
            found.append(message.value())
        client.commit(message=message, asynchronous=False)
        yield found
    finally:
        client.close()


def test_offsets_go_forward_and_go_back_only_with_the_group_and_only_ours(
    two_clusters: TwoClusters, unique: str
) -> None:
    mirror = mirrored(two_clusters, unique)
    group, place = f"{unique}-g", (mirror.remote, 0)
    mirror.make_topic()
    write(mirror.source, unique, samples(100))
    turns = Turns(carried(mirror).plan, group_offsets_job)

    def moved(offset: int) -> dict[Partition, int]:
        commit(mirror.source, group, {(unique, 0): offset})
        assert turns.turn() and turns.pending() == []
        return committed(mirror.target, group)

    commit(mirror.source, group, {(unique, 0): 40})
    assert turns.pending() == [
        f"group {group}: set its offset on the target: {mirror.remote}-0 to 40 (it has no offset there)"
    ]
    assert committed(mirror.target, group) == {}
    assert moved(40) == {place: 40}
    assert moved(60) == {place: 60}
    assert moved(20) == {place: 20}, "the group went back, and what is there is ours"
    assert turns.standing["summary"] == "1 to be set"
    commit(mirror.target, group, {place: 70})
    assert moved(30) == {place: 70}, "somebody on the target read on"
    assert turns.standing["summary"] == "1 ahead on the target"
    assert moved(10) == {place: 70}
    assert moved(90) == {place: 90}
    assert moved(80) == {place: 80}, "it is ours again"
    delete_records(mirror.target, mirror.remote, 0, 85)
    assert moved(80) == {place: 85}, "an offset that is gone would send its readers to the end"
    write(mirror.source, unique, samples(20, seed=2))
    assert moved(120) == {place: 100}, "as far as it is copied"
    assert turns.standing["summary"] == "1 to be set"
    assert turns.turn() and turns.standing["summary"] == "1 waits for the copy"
    turns.plan = carried(mirror).plan
    assert moved(120) == {place: 120}
    assert turns.turn() and turns.standing["summary"] == "1 in step"
    assert turns.events == []


def test_an_empty_partition_has_its_beginning_and_a_topic_that_is_made_later_joins(
    two_clusters: TwoClusters, unique: str
) -> None:
    mirror = mirrored(two_clusters, unique)
    mirror.policies = {**mirror.policies, "topics": f"{unique}(-later)?"}
    group, later = f"{unique}-g", f"{unique}-later"
    mirror.make_topic(partitions=2)
    write(mirror.source, unique, samples(30))
    turns = Turns(carried(mirror).plan, group_offsets_job)
    commit(mirror.source, group, {(unique, 0): 30, (unique, 1): 0})
    assert turns.turn()
    first = {(mirror.remote, 0): 30, (mirror.remote, 1): 0}
    assert committed(mirror.target, group) == first

    create_topic(mirror.source, later)
    write(mirror.source, later, samples(20))
    commit(mirror.source, group, {(later, 0): 15})
    assert turns.turn() and committed(mirror.target, group) == first, "no run has looked for new topics yet"
    turns.plan = carried(mirror).plan
    assert turns.turn() and committed(mirror.target, group) == {**first, (f"{unique}s.{later}", 0): 15}
    assert turns.turn() and turns.standing["summary"] == "3 in step"
    assert {name for name in topic_names(mirror.source) if unique in name} == {unique, later}, "nothing came back"
    assert turns.events == []


def test_a_run_that_is_killed_between_note_and_commit_sends_no_group_back_and_leaves_none_behind(
    two_clusters: TwoClusters, unique: str
) -> None:
    mirror = mirrored(two_clusters, unique)
    first, second, place = f"{unique}-g", f"{unique}-h", (mirror.remote, 0)
    mirror.make_topic()
    write(mirror.source, unique, samples(100))
    turns = Turns(carried(mirror).plan, group_offsets_job)

    def killed(offset: int, kill: Kill) -> tuple[int | None, int | None]:
        """Both groups commit on the source, and a run dies over it; what they have on the target then."""
        for group in (first, second):
            commit(mirror.source, group, {(unique, 0): offset})
        killed_turn(mirror, "group offsets", kill)
        return standing()

    def standing() -> tuple[int | None, int | None]:
        return committed(mirror.target, first).get(place), committed(mirror.target, second).get(place)

    def restarted() -> tuple[int | None, int | None]:
        assert turns.turn() and turns.pending() == [], turns.events
        return standing()

    assert killed(40, Kill("commit")) == (None, None), "noted, not committed"
    assert restarted() == (40, 40)
    assert killed(60, Kill("commit", turn=2)) == (60, 40), "both noted, one committed"
    assert restarted() == (60, 60)
    assert killed(20, Kill("commit")) == (60, 60)
    commit(mirror.source, first, {(unique, 0): 30})
    assert restarted() == (30, 20), "both went back by themselves, and one has read on since"
    assert killed(50, Kill("commit", after=True)) == (50, 20)
    commit(mirror.target, second, {place: 70})
    assert restarted() == (50, 70), "what was read on the target meanwhile stays read"
    assert turns.turn() and turns.standing["summary"] == "1 in step, 1 ahead on the target"
    assert killed(80, Kill("commit")) == (50, 70)
    assert restarted() == (80, 80)
    assert turns.turn() and turns.standing["summary"] == "2 in step"
    assert turns.events == []


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_group_that_moves_over_goes_on_at_the_next_record_and_is_left_alone_while_it_reads(
    two_clusters: TwoClusters, unique: str, protocol: str
) -> None:
    mirror = mirrored(two_clusters, unique)
    group = f"{unique}-g"
    mirror.make_topic()
    write(mirror.source, unique, [Sample(b"%d" % number) for number in range(60)])
    write_transactions(mirror.source, unique, unique, transactions=3)
    turns = Turns(carried(mirror).plan, group_offsets_job)
    with reading(mirror.source, group, unique, protocol, 50):
        assert turns.turn(), "that it reads on the source is no reason to wait"
    with reading(mirror.target, group, mirror.remote, protocol, 5) as found:
        assert found == [b"50", b"51", b"52", b"53", b"54"]
        commit_elsewhere = committed(mirror.target, group)
        write(mirror.source, unique, samples(1))
        with reading(mirror.source, group, unique, protocol, 5):
            assert turns.turn()
        assert turns.standing["summary"] == "1 live on the target"
        assert committed(mirror.target, group) == commit_elsewhere
        states = turns.look()
        assert states.actions == []
    assert turns.turn() and turns.standing["summary"] in ("1 in step", "1 to be set")
    assert turns.events == []


def test_status_shows_every_group_with_its_reason_and_plan_what_is_pending(
    two_clusters: TwoClusters, unique: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mirror = mirrored(two_clusters, unique)
    mirror.make_topic()
    write(mirror.source, unique, samples(10))
    plan = carried(mirror).plan
    commit(mirror.source, f"{unique}-g", {(unique, 0): 4})
    commit(mirror.target, f"{unique}-h", {(mirror.remote, 0): 8})
    commit(mirror.source, f"{unique}-h", {(unique, 0): 5})
    file = tmp_path / "mm2.properties"
    file.write_text(
        f"{mirror.lines()}{mirror.flow}.topics = {unique}\n"
        "replication.factor = 1\nemit.heartbeats.enabled = false\nheartbeats.replication.enabled = false\n"
        "emit.checkpoints.enabled = false\nemit.offset-syncs.enabled = false\nsync.group.offsets.enabled = true\n"
    )
    assert main(["plan", str(file)]) == 0
    pending = f"group {unique}-g: set its offset on the target: {mirror.remote}-0 to 4 (it has no offset there)"
    assert pending in capsys.readouterr().out
    assert Turns(plan, group_offsets_job).turn()
    assert main(["plan", str(file)]) == 0
    assert capsys.readouterr().out == f"{mirror.flow}: nothing pending\n"
    assert main(["status", str(file), "--groups", "--json"]) == 0
    (flow,) = json.loads(capsys.readouterr().out)["flows"]
    assert flow["group_troubles"] == []
    common = {"topic": unique, "remote": mirror.remote, "partition": 0}
    assert flow["groups"] == [
        {
            **common,
            "group": f"{unique}-g",
            "committed": 4,
            "translated": 4,
            "on_target": 4,
            "state": "in step",
            "reason": "",
        },
        {
            **common,
            "group": f"{unique}-h",
            "committed": 5,
            "translated": 5,
            "on_target": 8,
            "state": "ahead on the target",
            "reason": "it was read or set there by others, and is not sent back",
        },
    ]
    assert main(["status", str(file), "--groups"]) == 0
    assert "ahead on the target: it was read or set there by others" in capsys.readouterr().out


def shared(bootstrap: str, group: str, topic: str, accept: int) -> list[bytes]:
    """What a share group's member is given first; so many of it are settled, the rest is given back."""
    settings = {"bootstrap.servers": bootstrap, "group.id": group, "share.acknowledgement.mode": "explicit"}
    client = ShareConsumer(settings)
    client.subscribe([topic])
    found: list[bytes] = []
    try:
        while len(found) < accept:
            for message in client.poll(20):
                assert message.error() is None, message.error()
                kind = AcknowledgeType.ACCEPT if len(found) < accept else AcknowledgeType.RELEASE
                client.acknowledge(message, kind)
                found.append(message.value())
            client.commit_sync(20)
    finally:
        client.close()
    return found[:accept]


def start_at(bootstrap: str, group: str, topic: str, offset: int) -> None:
    """As `kafka-share-groups --reset-offsets`: by default a share group begins at the end."""

    async def set_start(client: Any) -> None:
        assert await ShareGroups(client).commit(group, {(topic, 0): Committed(offset)}) == {}

    with_client(bootstrap, set_start)


def started_at(bootstrap: str, group: str, topic: str) -> int:
    async def ask(client: Any) -> int:
        return (await ShareGroups(client).committed([group])).offsets[group][topic, 0].offset

    return with_client(bootstrap, ask)


def test_a_share_group_begins_at_the_next_record_that_is_not_settled(two_clusters: TwoClusters, unique: str) -> None:
    mirror = mirrored(two_clusters, unique)
    group = f"{unique}-s"
    mirror.make_topic()
    write_transactions(mirror.source, unique, unique, transactions=3, size=4)
    write(mirror.source, unique, [Sample(b"%d" % number) for number in range(20)])
    first = ends(mirror.source, unique)[0] - 20
    start_at(mirror.source, group, unique, first)
    turns = Turns(carried(mirror).plan, group_offsets_job)
    assert shared(mirror.source, group, unique, 5) == [b"0", b"1", b"2", b"3", b"4"]
    assert shared(mirror.source, group, unique, 5) == [b"5", b"6", b"7", b"8", b"9"]
    # What is settled is written down by brokers with the next acknowledgement: the start may lie before it.
    start = started_at(mirror.source, group, unique)
    assert first < start <= first + 10
    downstream = ends(mirror.target, mirror.remote)[0] - (first + 20 - start)
    assert turns.pending() == [
        f"group {group}: set its offset on the target: {mirror.remote}-0 to {downstream} (it has no offset there)"
    ]
    assert turns.turn(), turns.events
    assert turns.turn() and turns.standing["summary"] == "1 in step"
    assert shared(mirror.target, group, mirror.remote, 1) == [b"%d" % (start - first)]
    start_at(mirror.target, group, mirror.remote, downstream + 4)
    assert turns.turn() and turns.standing["summary"] == "1 ahead on the target"
    assert turns.events == []


def test_a_missing_permission_is_named_and_the_other_groups_are_set(
    two_clusters: TwoClusters, kafka_jars: Path, unique: str, tmp_path: Path
) -> None:
    del kafka_jars
    guarded = GuardedCluster("G", tmp_path)
    guarded.start()
    try:
        mirror = Mirror(two_clusters.a.bootstrap, guarded.bootstrap, unique)
        mirror.policies = {"sync.group.offsets.enabled": "true"}
        own = ("CREATE", "WRITE", "READ", "DESCRIBE_CONFIGS")
        guarded.grant(*(Grant("topic", "__heliograph-", operation, prefixed=True) for operation in own))
        guarded.grant(*(Grant("topic", mirror.remote, operation) for operation in own))
        guarded.grant(Grant("transactional id", "heliograph.", "WRITE", prefixed=True))
        guarded.grant(Grant("cluster", "kafka-cluster", "DESCRIBE_CONFIGS"))
        guarded.grant(Grant("group", f"{unique}-g", "READ"))
        mirror.make_topic()
        write(mirror.source, unique, samples(10))
        turns = Turns(carried(mirror).plan, group_offsets_job)
        for group in ("g", "h"):
            commit(mirror.source, f"{unique}-{group}", {(unique, 0): 4})
        assert not turns.turn()
        guarded.grant(Grant("group", f"{unique}-h", "DESCRIBE"))
        assert not turns.turn()
        describe, read = (event.reason for event in turns.events)
        assert f"this needs DESCRIBE on the group {unique}-h of cluster {unique}t" in describe
        assert f"this needs READ on the group {unique}-h of cluster {unique}t" in read
        assert committed(guarded.bootstrap, f"{unique}-g") == {(mirror.remote, 0): 4}
        guarded.grant(Grant("group", f"{unique}-h", "READ"))
        assert turns.turn() and turns.pending() == []
        assert committed(guarded.bootstrap, f"{unique}-h") == {(mirror.remote, 0): 4}
    finally:
        guarded.stop()
