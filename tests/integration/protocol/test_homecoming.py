"""Two flows that keep names, attempt by attempt: what is counted, what is known of ids that are new, and when a lane waits."""

from __future__ import annotations

import asyncio

from heliograph.config.load import load
from heliograph.control.opening import open_lanes
from heliograph.control.planner import FlowPlanner
from heliograph.control.starting import Wish
from heliograph.kafka.ledger import LEDGER_TOPIC
from heliograph.operations.translate import FlowTranslator
from heliograph.replication.translation import Answer, NotKnown
from tests.integration.protocol.harness import BATCH_BY_BATCH, Attempt, Opened, carry, with_warm
from tests.support.clusters import ClusterFactory, TwoClusters
from tests.support.doors import address_lines
from tests.support.reading import values
from tests.support.topics import create_topic, delete_topic, topic_names
from tests.support.waiting import wait_until
from tests.support.writers import Sample, write

IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"


class Pair:
    """A->B and B->A over one topic of the same name."""

    def __init__(self, a: str, b: str, name: str) -> None:
        self.a, self.b, self.topic = a, b, name
        lines = (
            f"clusters = {name}a, {name}b",
            *(
                f"{key} = {value}"
                for key, value in (address_lines(f"{name}a", a) | address_lines(f"{name}b", b)).items()
            ),
            f"{name}a->{name}b.enabled = true",
            f"{name}b->{name}a.enabled = true",
            f"topics = {name}",
            f"replication.policy.class = {IDENTITY}",
            "replication.factor = 1",
            "heartbeats.replication.enabled = false",
        )
        self._settings = load("\n".join(lines), "pair.properties")
        self._one_way = load(
            "\n".join(lines).replace(f"{name}a.enabled = true", f"{name}a.enabled = false"), "pair.properties"
        )
        for bootstrap in (a, b):
            create_topic(bootstrap, name)

    def open(self, back: bool = False, reset: bool = False, one_way: bool = False) -> Opened:
        settings = (self._one_way if one_way else self._settings).flows[back]
        planner = FlowPlanner(settings, self._settings.engine)
        try:
            plan = planner.apply(planner.discover())
            flow = with_warm(lambda warm: open_lanes(plan, planner, warm, True, Wish(reset)))
            return Opened(flow.plan, flow)
        finally:
            planner.close()

    def write(self, bootstrap: str, word: str, count: int) -> list[bytes]:
        made = [b"%s-%d" % (word.encode(), number) for number in range(count)]
        write(bootstrap, self.topic, (Sample(value) for value in made), enable_idempotence=True, batch_num_messages=5)
        return made


def test_a_lane_that_is_killed_counts_without_what_came_home(two_clusters: TwoClusters, unique: str) -> None:
    pair = Pair(two_clusters.a.bootstrap, two_clusters.b.bootstrap, unique)
    there = pair.open()
    mine = pair.write(pair.a, "a-early", 20)
    theirs = pair.write(pair.b, "b", 30)
    with Attempt(there, BATCH_BY_BATCH) as first:  # it runs before the other direction has any identity
        first.wait_for_records(20)
        carry(pair.open(back=True))  # its lane begins with B's first record, though both logs end alike
        mine += pair.write(pair.a, "a-late", 20)
        first.wait_for_records(40)
        assert first.life.run.counts.dropped["came home"] > 0
        first.kill()  # the ledger knows nothing of all this: the next attempt counts from offset 0
    with Attempt(there, BATCH_BY_BATCH) as second:
        mine += pair.write(pair.a, "a-again", 10)
        second.wait_for_position(80)
        assert second.records == 10
        second.stop()
    carry(pair.open(back=True))
    assert sorted(values(pair.a, unique)) == sorted(values(pair.b, unique)) == sorted([*mine, *theirs])


def test_what_came_home_is_passed_although_the_lane_never_writes(two_clusters: TwoClusters, unique: str) -> None:
    """All of B came from A, and A's own producers write where the lane back would: its place is known all the same (H4)."""
    pair = Pair(two_clusters.a.bootstrap, two_clusters.b.bootstrap, unique)
    there, back = pair.open(), pair.open(back=True)
    lane = back.plan.lanes[0].id
    for count in (30, 60):
        pair.write(pair.a, f"a-{count}", 30)
        carry(there, {there.plan.lanes[0].id.key: count})
        with Attempt(back) as attempt:
            attempt.wait_for(lambda: attempt.life.run.fetch_offset == count, "it has read all of B")  # noqa: B023  ends here
            assert attempt.position() == count, "so the next attach does not read it again"
            attempt.stop()
        book = with_warm(lambda warm: warm.ledger(back.plan.settings.target).refresh())
        entry = book.latest(lane)
        assert entry is not None and (entry.source_next, entry.sequence_next) == (count, 0)
    assert attempt.life.run.counts.dropped["came home"] > 0 and attempt.records == 0
    assert len(values(pair.a, unique)) == len(values(pair.b, unique)) == 60


def test_what_a_flow_wrote_that_the_file_no_longer_has_is_not_copied_back(
    two_clusters: TwoClusters, unique: str
) -> None:
    pair = Pair(two_clusters.a.bootstrap, two_clusters.b.bootstrap, unique)
    mine = pair.write(pair.a, "a", 10)
    theirs = pair.write(pair.b, "b", 10)
    carry(pair.open())
    carry(pair.open(back=True))  # after the last look of A->B: it has not passed these records
    mine += pair.write(pair.a, "a-late", 10)
    alone = pair.open(one_way=True)
    assert alone.plan.settings.home == f"{unique}b->{unique}a"
    carry(alone)
    assert sorted(values(pair.b, unique)) == sorted([*mine, *theirs])


async def translated(opened: Opened, topic: str, offset: int) -> Answer:
    async with FlowTranslator(opened.plan.settings) as flow:
        return (await flow.offset(topic, 0, offset)).answer


def test_without_the_other_ledger_a_lane_waits_and_a_new_one_is_not_trusted(
    two_clusters: TwoClusters, new_cluster: ClusterFactory, unique: str
) -> None:
    pair = Pair(new_cluster("H").bootstrap, two_clusters.b.bootstrap, unique)
    there = pair.open()
    theirs = pair.write(pair.b, "b", 10)
    carry(pair.open(back=True))  # the ledger on A that names their producer is lost, the records are not
    delete_topic(pair.a, LEDGER_TOPIC)
    wait_until(lambda: LEDGER_TOPIC not in topic_names(pair.a), "the ledger is gone")
    mine = pair.write(pair.a, "a", 20)
    with Attempt(there) as attempt:
        attempt.wait_reason(f"cannot be told which records {unique}b->{unique}a wrote")
        create_topic(pair.a, LEDGER_TOPIC, 16, config={"cleanup.policy": "compact"})  # before the driver looks again
        attempt.wait_reason("is not the one that this flow began with")
        attempt.stop()
    with Attempt(there) as fresh:  # a task that never saw the lost one
        fresh.wait_reason("is not the one that this flow began with")
        fresh.stop()
    answer = asyncio.run(translated(there, unique, 5))  # a record of B, which would be taken for one of A's own
    ledger = f"topic {LEDGER_TOPIC} on {unique}a is not the one that this flow began with"
    assert answer == NotKnown(f"it cannot be told which records {unique}b->{unique}a wrote: {ledger}")
    again = pair.open()
    assert "is not the one that this flow began with" in again.flow.refused[f"{there.plan.name}/{unique}/0"]
    assert (again.flow.entries, values(pair.b, unique)) == ({}, theirs)
    carry(pair.open(reset=True))
    assert sorted(values(pair.b, unique)) == sorted([*theirs, *theirs, *mine]), "trusted anew, all of A is copied"
    assert pair.open().flow.refused == {}
