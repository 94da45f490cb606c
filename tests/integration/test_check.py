"""`heliograph check` and docs/footprint.md, on brokers with the authorizer on: exactly those permissions, and each one less."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from heliograph.cli.main import main
from heliograph.config.flows import Settings
from heliograph.config.load import load_file
from heliograph.control.clock import Clock
from heliograph.control.flow_watch import FlowWatch, Runner
from heliograph.control.jobs import JobRunner
from heliograph.control.opening import OpenedFlow
from heliograph.control.source_group import SourceGroupJob
from heliograph.embedded.cluster import start_many
from heliograph.errors import HeliographError
from heliograph.kafka.lane import LaneRun
from heliograph.kafka.slot import Warm
from heliograph.model.events import Event, EventKind
from heliograph.model.lanes import LaneState
from heliograph.operations.forget import forget
from heliograph.replication.findings import Finding, Level
from heliograph.replication.permissions import NEEDS, Need, Occasion, On
from tests.integration.protocol.harness import Attempt, Opened, with_warm
from tests.support.footprint import OWN_TOPICS, PARTITIONS, RECORDS, Footprint, Pair
from tests.support.guarded import Grant, GuardedCluster
from tests.support.mirror import run_to_the_end, word
from tests.support.topics import ANSWER_SECONDS, ends
from tests.support.waiting import wait_until

COMPARISON = [Grant("group", "heliograph-comparison", "READ")]
"""Not Heliograph's need: the client that compares wants it."""
ONLY_IF_THERE = (On.MM2_OFFSETS, "DESCRIBE_CONFIGS")
"""Nobody asks how a topic is cleaned that is not there."""
NOT_SEEN = "is not granted: this only matters if a MirrorMaker 2 copied the flow before"


@pytest.fixture(scope="module")
def guarded(kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    del kafka_jars
    directory = tmp_path_factory.mktemp("guarded")
    pair = Pair(GuardedCluster("A", directory / "a"), GuardedCluster("B", directory / "b"))
    try:
        start_many([pair.a, pair.b])
        pair.a.grant(*COMPARISON)
        pair.b.grant(*COMPARISON)
        yield pair
    finally:
        pair.a.stop()
        pair.b.stop()


@pytest.fixture
def footprint(guarded: Pair, tmp_path: Path) -> Iterator[Footprint]:
    """All permissions granted, nothing of Heliograph's on either side yet."""
    for cluster in (guarded.a, guarded.b):
        admin = AdminClient(cluster.root)
        there = [name for name in OWN_TOPICS if name in admin.list_topics(timeout=ANSWER_SECONDS).topics]
        for future in admin.delete_topics(there).values() if there else ():
            future.result(ANSWER_SECONDS)
    with Footprint(guarded, tmp_path) as found:
        yield found


@pytest.fixture
def own_logs() -> Iterator[None]:
    """A command sets up logging for its process; here that is pytest's."""
    root, ours = logging.getLogger(), logging.getLogger("heliograph")
    kept = (list(root.handlers), root.level, ours.level)
    yield
    root.handlers[:], root.level, ours.level = kept


def not_passed(findings: list[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.level is not Level.PASS]


def need_of(on: On, operation: str) -> Need:
    (found,) = [need for need in NEEDS if (need.on, need.operation) == (on, operation)]
    return found


def test_exactly_the_permissions_of_the_footprint_are_enough_to_copy(footprint: Footprint) -> None:
    assert not_passed(footprint.check()) == []
    run_to_the_end(footprint.file)
    footprint.assert_copied()
    footprint.assert_books_closed()
    assert not_passed(footprint.check()) == []
    for need in NEEDS:
        if need.operation != "CREATE" and (need.on, need.operation) != ONLY_IF_THERE:
            footprint.assert_named(need, footprint.without(need, partial(footprint.check, need)))


@pytest.mark.usefixtures("own_logs")
def test_every_missing_permission_is_named_by_check_and_run_before_anything_exists(
    footprint: Footprint, capsys: pytest.CaptureFixture[str]
) -> None:
    def dry_run() -> list[Finding]:
        findings = footprint.check(need)
        code = main(["run", str(footprint.file_of(need)), "--dry-run", "--clusters", footprint.target])
        said = capsys.readouterr().err
        for finding in not_passed(findings):
            if finding.subject.endswith(f"permission {need.operation}"):
                sentence = NOT_SEEN if need.when is Occasion.TAKE_OVER else finding.sentence
                assert (sentence in said) is need.when.is_at_run, f"{finding}: {said}"
        assert code == (1 if any(finding.level is Level.FAIL for finding in findings) else 0)
        return findings

    before = footprint.topics()
    for need in NEEDS:
        if need.when is Occasion.JOBS:
            footprint.assert_named(need, footprint.without(need, partial(footprint.check, need)))
        elif (need.on, need.operation) != ONLY_IF_THERE:
            footprint.assert_named(need, footprint.without(need, dry_run))
    assert not_passed(footprint.check()) == []
    assert footprint.topics() == before


async def opened_by_a_driver(settings: Settings, warm: Warm) -> OpenedFlow:
    """Discover, make topics, take the flow, open its lanes, and let the flow go again."""
    watch = FlowWatch(
        settings.flows[0], settings.engine, warm, Runner("host", 1, word(), 0), lambda: None, lambda _: None
    )
    try:
        await watch.open(await watch.discover())
        assert watch.opened is not None
        return watch.opened
    finally:
        if watch.tenure is not None:
            await watch.tenure.release()  # or the next driver waits for this one, and writes nothing meanwhile
        watch.close()


def carried(footprint: Footprint, need: Need | None = None) -> str:
    """What keeps the flow from being carried: a driver's steps and one slot, without Spark. Empty if all was copied."""
    settings = footprint.settings(need)
    try:
        flow = with_warm(lambda warm: opened_by_a_driver(settings, warm))
    except HeliographError as error:
        return str(error)
    plan, opened = flow.plan, Opened(flow.plan, flow)
    if flow.refused:
        return "; ".join(flow.refused.values())
    if not plan.lanes:
        return "no topic is seen"
    until = {lane.id.key: plan.ends[lane.id.topic, lane.id.partition] for lane in plan.lanes}
    with Attempt(opened, until=until) as attempt:
        reason = ""

        def ended() -> bool:
            nonlocal reason
            # A lane waits, too, for a moment in which a broker has not made the log of a new topic yet.
            stopped = [
                run for run in (life.run for life in attempt.lives) if run.state is LaneState.PARKED or _lacks(run)
            ]
            reason = next((run.reason for run in stopped if run.reason), "")
            return bool(reason) or all(life.run.state is LaneState.DONE for life in attempt.lives)

        attempt.wait_for(ended, "the lanes are done or say why not")
        return reason


def _lacks(run: LaneRun) -> bool:
    return run.state is LaneState.WAITING and "this needs " in run.reason


REFUSALS = {
    (On.OWN_TOPICS, "CREATE"): "this needs CREATE on the topic",
    (On.REMOTE_TOPICS, "CREATE"): "this needs CREATE on the topic",
    (On.START_GROUP, "DESCRIBE"): "this needs DESCRIBE on group",
    (On.TRANSACTIONAL_ID, "WRITE"): "this needs WRITE on transactional id",
    (On.SOURCE_TOPICS, "READ"): "no topic is seen",
    (On.SOURCE_TOPICS, "DESCRIBE_CONFIGS"): "this needs DESCRIBE_CONFIGS on the topic",
    (On.REMOTE_TOPICS, "WRITE"): "this needs WRITE on the topic",
    (On.REMOTE_TOPICS, "READ"): "this needs READ on the topic",
    (On.REMOTE_TOPICS, "DESCRIBE_CONFIGS"): "this needs DESCRIBE_CONFIGS on the topic",
    (On.OWN_TOPICS, "WRITE"): "this needs WRITE on the topic",
    (On.OWN_TOPICS, "READ"): "this needs READ on the topic",
    (On.OWN_TOPICS, "DESCRIBE_CONFIGS"): "this needs DESCRIBE_CONFIGS on the topic",
    (On.TARGET_CLUSTER, "DESCRIBE_CONFIGS"): "this needs DESCRIBE_CONFIGS on the cluster",
    (On.HOME_LEDGER, "CREATE"): "this needs CREATE on the topic",
    (On.HOME_LEDGER, "READ"): "this needs DESCRIBE on the topic",
}
"""In this order: once topics exist nobody misses CREATE, and once lanes are open nobody the transactional id."""


def test_a_flow_that_runs_without_one_of_them_copies_nothing_and_says_what_it_needs(footprint: Footprint) -> None:
    needs = {
        (need.on, need.operation): need
        for need in NEEDS
        if need.level is Level.FAIL and need.when in (Occasion.RUN, Occasion.BOTH_WAYS)
    }
    assert set(needs) == set(REFUSALS)
    for what, said in REFUSALS.items():
        reason = footprint.without(needs[what], partial(carried, footprint, needs[what]))
        assert said in reason, f"{what}: {reason}"
    hidden_no_more = [Grant("topic", name, "DESCRIBE") for name in (footprint.name, OWN_TOPICS[0])]
    footprint.pair.a.grant(*hidden_no_more)
    footprint.pair.a.create_topic(OWN_TOPICS[0], config={"cleanup.policy": "compact"})
    footprint.pair.a.write(OWN_TOPICS[0], 1)  # an empty one is not read
    for on, name in ((On.SOURCE_TOPICS, footprint.name), (On.HOME_LEDGER, OWN_TOPICS[0])):
        need = needs[on, "READ"]
        reason = footprint.without(need, partial(carried, footprint, need))
        assert f"this needs READ on the topic {name} of cluster {footprint.source}" in reason, reason
    footprint.pair.a.revoke(*hidden_no_more)
    assert ends(footprint.pair.b.bootstrap, footprint.remote) == {0: 0, 1: 0}
    assert carried(footprint) == ""
    footprint.assert_copied()


def test_positions_are_not_committed_without_the_right_to_the_group_and_are_once_it_is_granted(
    footprint: Footprint,
) -> None:
    settings = load_file(str(footprint.file)).flows[0]
    told: list[Event] = []

    async def turn(warm: Warm) -> bool:
        runner = JobRunner(footprint.flow, lambda: True, told.append, Clock())
        positions = {(footprint.name, number): 5 + number for number in range(PARTITIONS)}
        return await runner.once(SourceGroupJob(settings, lambda: positions, warm.client(settings.source), Clock()))

    assert not footprint.without(need_of(On.SOURCE_GROUP, "READ"), lambda: with_warm(turn))
    group = f"heliograph-{footprint.source}-{footprint.target}"
    (event,) = told
    assert event.kind == EventKind.TROUBLE and event.reason.startswith("positions are not committed on the source: ")
    assert event.reason.endswith(f"(this needs READ on the group {group} of cluster {footprint.source})")
    assert with_warm(turn) and len(told) == 1
    reader = Consumer(footprint.pair.a.root | {"group.id": group})
    places = reader.committed([TopicPartition(footprint.name, number) for number in range(PARTITIONS)], ANSWER_SECONDS)
    reader.close()
    assert [place.offset for place in places] == [5, 6]


# -- MirrorMaker 2 before and after, and forgetting ---------------------------------------------------------------------

STORED, MIRRORED = 9, 20
"""Of each partition: the offset that MirrorMaker 2 stored last, and how many records it had copied when it was killed."""


def test_a_take_over_needs_what_the_footprint_says_and_begins_after_the_last_record(footprint: Footprint) -> None:
    footprint.mirror_by_hand(MIRRORED, STORED)
    assert [found for found in not_passed(footprint.check()) if "permission" in found.subject] == []
    for operation in ("READ", "DESCRIBE_CONFIGS"):
        need = need_of(On.MM2_OFFSETS, operation)
        footprint.assert_named(need, footprint.without(need, footprint.check), Level.FAIL)
        reason = footprint.without(need, lambda: carried(footprint))
        assert f"this needs {operation} on the topic" in reason and footprint.offsets_topic in reason, reason
    footprint.join_as_worker()
    assert "is starting, stopping or was lost a moment ago" in carried(footprint)
    need = need_of(On.MM2_GROUP, "DESCRIBE")
    footprint.assert_named(need, footprint.without(need, footprint.check), Level.FAIL)
    reason = footprint.without(need, lambda: carried(footprint))
    assert f"grant DESCRIBE on group {footprint.source}-mm2 to" in reason, reason
    footprint.leave_as_worker()
    assert ends(footprint.pair.b.bootstrap, footprint.remote) == dict.fromkeys(range(PARTITIONS), MIRRORED)
    assert carried(footprint) == ""
    footprint.assert_copied()


def test_progress_that_may_not_even_be_seen_keeps_a_lane_from_beginning_anew(footprint: Footprint) -> None:
    """Retention has taken the remote records, so only the stored progress tells where MirrorMaker 2 stopped."""
    footprint.mirror_by_hand(MIRRORED, MIRRORED - 1)
    footprint.empty_remote(MIRRORED)
    hidden = [need_of(On.MM2_OFFSETS, operation) for operation in ("READ", "WRITE")]

    def look() -> str:
        return footprint.without(hidden[1], lambda: carried(footprint))

    reason = footprint.without(hidden[0], look)
    assert f"it may be stored in topic {footprint.offsets_topic} of the target, which needs READ" in reason
    assert carried(footprint) == ""
    copied = sum(ends(footprint.pair.b.bootstrap, footprint.remote).values())
    assert copied == RECORDS, "what MirrorMaker 2 had copied was not copied again"


def handed_back(footprint: Footprint, capsys: pytest.CaptureFixture[str]) -> str:
    """What `heliograph hand-back` says; empty if it did it."""
    code = main(["hand-back", str(footprint.file), "--yes"])
    said = capsys.readouterr().err
    assert (code, bool(said)) in ((0, False), (1, True)), said
    return said


HAND_BACK_REFUSALS = {
    (On.SOURCE_TOPICS, "READ"): "this needs READ on topic",
    (On.SOURCE_TOPICS, "DESCRIBE_CONFIGS"): "this needs DESCRIBE_CONFIGS on the topic",
    (On.REMOTE_TOPICS, "READ"): "this needs READ on the topic",
    (On.REMOTE_TOPICS, "DESCRIBE_CONFIGS"): "this needs DESCRIBE_CONFIGS on the topic",
    (On.OWN_TOPICS, "READ"): "this needs READ on the topic",
    (On.OWN_TOPICS, "WRITE"): "this needs WRITE on the topic",
    (On.TARGET_CLUSTER, "DESCRIBE_CONFIGS"): "this needs DESCRIBE_CONFIGS on the cluster",
    (On.MM2_OFFSETS, "CREATE"): "this needs CREATE on the topic",
    (On.MM2_OFFSETS, "WRITE"): "this needs WRITE on the topic",
    (On.MM2_OFFSETS, "READ"): "this needs READ on the topic",
    (On.MM2_OFFSETS, "DESCRIBE_CONFIGS"): "this needs DESCRIBE_CONFIGS on the topic",
}
"""In this order: without WRITE the topic for MirrorMaker 2's progress is made, and from then on it is read."""


@pytest.mark.usefixtures("own_logs")
def test_a_hand_back_without_one_of_its_rights_says_what_it_needs_and_writes_nothing(
    footprint: Footprint, capsys: pytest.CaptureFixture[str]
) -> None:
    assert carried(footprint) == ""
    for (on, operation), words in HAND_BACK_REFUSALS.items():
        need = need_of(on, operation)
        if (on, operation) == (On.MM2_OFFSETS, "READ"):
            assert handed_back(footprint, capsys) == ""  # it must hold something, or nobody reads it
        said = footprint.without(need, lambda: handed_back(footprint, capsys))
        names = [grant.name for grant in footprint.grants_of(need) if grant.resource == "topic"]
        assert words in said and (not names or any(name in said for name in names)), f"{need}: {said}"
        if operation in ("CREATE", "WRITE"):
            assert sum(footprint.root_ends(footprint.offsets_topic).values()) == 0
    assert sum(footprint.root_ends(footprint.offsets_topic).values()) == PARTITIONS
    assert handed_back(footprint, capsys) == ""


def forgotten(footprint: Footprint, flow: str) -> str:
    """What keeps a flow from being forgotten; empty if it was."""
    target = load_file(str(footprint.file)).clusters[footprint.target]
    try:
        asyncio.run(forget(target, flow, Clock().now_ms(), dry_run=False, patience_s=0.0))
    except HeliographError as error:
        return str(error)
    return ""


def test_forgetting_needs_nothing_but_its_own_topics_and_says_which_right_it_lacks(footprint: Footprint) -> None:
    assert carried(footprint) == ""
    other = "x->y"
    footprint.tell([footprint.flow, other])
    own = {operation: need_of(On.OWN_TOPICS, operation) for operation in ("READ", "WRITE", "DELETE")}
    elsewhere = [need for need in NEEDS if need not in own.values()]
    for need in elsewhere:
        footprint.cluster_of(need).revoke(*footprint.grants_of(need))
    try:
        for operation, need in own.items():
            said = footprint.without(need, lambda: forgotten(footprint, footprint.flow))
            assert f"this needs {operation} on the topic" in said and "__heliograph-" in said, said
        assert forgotten(footprint, footprint.flow) == ""
        said = footprint.without(own["DELETE"], lambda: forgotten(footprint, other))
        assert "topic __heliograph-ledger (this needs DELETE on the topic)" in said
        assert set(OWN_TOPICS) <= footprint.topics()
        assert forgotten(footprint, other) == ""
        wait_until(lambda: not set(OWN_TOPICS) & footprint.topics(), "its own topics are gone from the metadata")
    finally:
        for need in elsewhere:
            footprint.cluster_of(need).grant(*footprint.grants_of(need))
    footprint.assert_copied()
