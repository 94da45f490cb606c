"""The ledger on a real broker: of any size, whatever the broker takes at a time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from heliograph.control.clock import Clock
from heliograph.control.ledger_watch import LedgerWatch
from heliograph.control.tenure import Tenure
from heliograph.kafka.admin import ClusterAdmin
from heliograph.kafka.claims import open_generations
from heliograph.kafka.ledger import LEDGER_TOPIC, Ledger
from heliograph.kafka.topic_writer import TopicWriter
from heliograph.model.clusters import Cluster
from heliograph.model.events import Event
from heliograph.model.lanes import Identity, LaneId, LaneState, LedgerEntry
from heliograph.replication.generations import Holder, encode_entry
from heliograph.replication.ledger_keys import EntryKey, ledger_partition
from tests.integration.protocol.harness import QUICK, Attempt, Mirror, carry, with_warm
from tests.support.clusters import ClusterFactory, TwoClusters
from tests.support.entries import FRESH
from tests.support.topics import set_configs
from tests.support.writers import Sample, write

T = TypeVar("T")
LANES = 25_000
NOW = 1_700_000_000_000
ANCHORS = tuple((10_000_000_000 + number, 20_000_000_000 + number) for number in range(32))


def entry(number: int) -> LedgerEntry:
    """With ids as long as real ones: what a batch holds of them is what is tried."""
    return replace(
        FRESH,
        lane=LaneId("A->B", f"orders-{number // 100}", number % 100),
        identity=Identity(4711, 0),
        target_cluster_id="MkU3OEVBNTcwNTJENDM2Qg",
        source_topic_id="11111111-1111-1111-1111-111111111111",
        target_topic_id="22222222-2222-2222-2222-222222222222",
        source_epoch=-1,
        time_ms=NOW,
    )


def test_25_000_lanes_are_opened_and_their_positions_written_in_batches_that_the_broker_takes(
    new_cluster: ClusterFactory,
) -> None:
    cluster = Cluster("B", (new_cluster("B").bootstrap,))
    with ClusterAdmin(cluster) as admin:
        admin.ensure_internal_topics(1)
        assert int(admin.topics([LEDGER_TOPIC], with_configs=True)[LEDGER_TOPIC].config("max.message.bytes")) >= 1 << 20
    wanted = [entry(number) for number in range(LANES)]
    won = with_ledger(cluster, lambda ledger: open_generations(ledger, wanted, NOW))
    assert won == {one.lane: one for one in wanted}
    # One slot's positions, of transactional sources: 1.6 KB each. Then a topic that takes less than one of our batches.
    moved = [replace(one, source_next=7, target_next=7, sequence_next=7, anchors=ANCHORS) for one in wanted[:20_000]]
    write_down(cluster, moved)
    set_configs(cluster.bootstrap[0], LEDGER_TOPIC, {"max.message.bytes": "30000"})
    more = [replace(one, source_next=8, target_next=8, sequence_next=8) for one in moved[:3_000]]
    write_down(cluster, more)
    book = with_ledger(cluster, lambda ledger: ledger.refresh())
    assert book.lanes() == tuple(sorted(one.lane for one in wanted))
    assert [book.latest(one.lane) for one in wanted] == [*more, *moved[3_000:], *wanted[20_000:]]
    assert not any(book.claims(one.lane, 0) for one in wanted), "every claim was taken back"


def test_records_that_cannot_be_read_cost_one_lane_and_are_named_once_while_all_others_continue(
    two_clusters: TwoClusters, new_cluster: ClusterFactory, unique: str
) -> None:
    mirror = Mirror(two_clusters.a.bootstrap, new_cluster("B").bootstrap, unique)  # others read the shared one's ledger
    mirror.make_topic(4)
    write(mirror.source, mirror.topic, [Sample(b"first", partition=number) for number in range(4)])
    opened = mirror.open()
    cut, later, *good = (one.lane for one in opened.entries)
    faults = {
        cut: encode_entry(opened.entries[0])[:-30],
        later: encode_entry(opened.entries[1]).replace(b'"version":1,', b'"version":2,', 1),
    }
    claim = f"{mirror.flow}/ghost/0/0#claim"
    strange = {b"\xff\xfe": b"x", b"foreign": b"x", f"holder/{mirror.flow}#later-release".encode(): b'{"version":2}'}
    strange |= {claim.encode(): encode_entry(opened.entries[0])}
    rows: dict[int, list[tuple[bytes, bytes]]] = {ledger_partition(EntryKey(cut, 0), 16): [*strange.items()]}
    for lane, value in faults.items():
        key = EntryKey(lane, 0)
        rows.setdefault(ledger_partition(key, 16), []).append((str(key).encode(), value))
    mirror.with_ledger(lambda ledger: TopicWriter(ledger.client, LEDGER_TOPIC).append(rows, NOW))

    reopened = mirror.open()
    assert list(reopened.flow.refused) == [cut.key, later.key]
    assert list(reopened.flow.entries) == [lane.key for lane in good]
    words = {cut: "an entry that cannot be read", later: "an entry of version 2, this Heliograph reads version 1"}
    for event, (lane, fault) in zip(reopened.flow.events, words.items(), strict=True):
        assert (event.kind, event.subject) == ("parked", f"{mirror.topic}-{lane.partition}")
        assert f"'{EntryKey(lane, 0)}'" in event.reason and fault in event.reason
    events = with_ledger(mirror.target_cluster, lambda ledger: _hold_and_tell(ledger, [*faults, *good]))
    told = ["\\xff\\xfe", "foreign", f"holder/{mirror.flow}#later-release", claim]
    assert [event.subject for event in events] == told and all(event.kind == "ledger" for event in events)
    assert all(f"'{event.subject}'" in event.reason for event in events)
    with Attempt(opened, QUICK) as attempt:  # a task whose order is older than the records
        attempt.wait_for_records(len(good))
        for lane, fault in words.items():
            attempt.wait_for(lambda: _is_parked(attempt, lane, fault), f"{lane.key} is parked")  # noqa: B023  ends here
        attempt.stop()

    mirror.with_ledger(lambda ledger: ledger.write([(EntryKey(lane, 0), None) for lane in faults], NOW))
    for one in opened.entries[: len(faults)]:
        mirror.write_entry(one)
    healed = mirror.open()
    assert not healed.flow.refused
    carry(healed)
    mirror.assert_identical(4)


def _is_parked(attempt: Attempt, lane: LaneId, fault: str) -> bool:
    run = next(life.run for life in attempt.lives if life.run.lane.id == lane)
    return run.state is LaneState.PARKED and fault in run.reason


async def _hold_and_tell(ledger: Ledger, lanes: Sequence[LaneId]) -> list[Event]:
    """What the driver does with it: holds of flows are renewed, and each record is named once."""
    events: list[Event] = []
    flow = lanes[0].flow
    holder = Holder(flow, "host", 1, "run", NOW, NOW, released=False)
    tenure = Tenure(ledger, holder, 90.0, Clock())
    watch = LedgerWatch(flow, lambda: ledger, events.append, lambda: NOW)
    for _ in range(3):
        await tenure.renew()
        assert tenure.is_mine
        watch.look(lanes)
        watch.look_at_claims(lanes)
    return events


def with_ledger(cluster: Cluster, use: Callable[[Ledger], Awaitable[T]]) -> T:
    return with_warm(lambda warm: use(warm.ledger(cluster)))


def write_down(cluster: Cluster, entries: Sequence[LedgerEntry]) -> None:
    rows = [(EntryKey(one.lane, one.generation), encode_entry(one)) for one in entries]
    with_ledger(cluster, lambda ledger: ledger.write(rows, NOW))
