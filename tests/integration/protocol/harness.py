"""One flow of one topic between two real clusters, carried by slots in threads: each an attempt that can be killed.

Knows planner, ledger and slot; must not know Spark. A killed attempt ends as a killed process does: its loop stops where it is,
its sockets close, nothing is written to the ledger any more.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

from heliograph.config.load import load
from heliograph.control.opening import OpenedFlow, open_lanes
from heliograph.control.planner import FlowPlan, FlowPlanner, flow_rules
from heliograph.embedded.cluster import EmbeddedCluster
from heliograph.kafka.client import ClusterClient, ProducerState
from heliograph.kafka.connections import CLIENT_ID
from heliograph.kafka.ledger import Ledger
from heliograph.kafka.life import now_ms
from heliograph.kafka.slot import Slot, SlotPlan, SlotSettings, Warm
from heliograph.kafka.topic_writer import PRODUCE_API
from heliograph.model.clusters import Cluster
from heliograph.model.events import Event
from heliograph.model.lanes import Identity, LaneState, LedgerEntry
from heliograph.operations.compare import compare_topics
from heliograph.replication.generations import LedgerBook, encode_entry
from heliograph.replication.ledger_keys import EntryKey
from heliograph.wire.plain_batch import plain_batch
from heliograph.wire.produce_codec import ProducedPartition, ProduceTopic, decode_produce, encode_produce
from heliograph.wire.record_batch import read_header, restamp
from tests.support.doors import address_lines
from tests.support.topics import create_topic
from tests.support.waiting import wait_until

NEVER_MS = 3_600_000
_ANOTHER_LEADS = (5, 6)
"""LEADER_NOT_AVAILABLE, NOT_LEADER_OR_FOLLOWER: a leader that was chosen a moment ago does not know it yet."""
QUICK = SlotSettings(retry_ms=100, retry_max_ms=500, takeover_wait_s=0.5, ledger_interval_ms=100)
"""No test waits long for what must be waited for."""
SILENT = replace(QUICK, ledger_interval_ms=NEVER_MS)
"""The ledger stays where it was: an attempt that is killed leaves nothing but its records."""
BATCH_BY_BATCH = replace(SILENT, merge_below=0)
"""No merging: many small steps, so that a kill falls between two of them."""
WAIT_SECONDS = 60.0
"""For a machine whose cores are shared by ten processes that want them."""
UNCLEAN = {
    "unclean.leader.election.enable": "true",
    "min.insync.replicas": "1",
    "replica.lag.time.max.ms": "1500",
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
}
"""Brokers that elect whoever is left, and notice soon that one is gone."""

T = TypeVar("T")


def elect_uncleanly(cluster: EmbeddedCluster, as_it_was: Callable[[], bool]) -> None:
    """Of two replicas the one on broker 2, which was killed before, is all that is left, and leads; then the other is back
    and cuts its log to its own. The ledger is never elected like this: its leader must come back.
    """
    cluster.kill(1)
    cluster.restart(2)
    wait_until(as_it_was, "the follower that was away leads", every=0.5)
    cluster.restart(1)
    wait_until(as_it_was, "it still leads", every=0.5)


@dataclass(frozen=True)
class Opened:
    """A plan with its lanes opened in the ledger."""

    plan: FlowPlan
    flow: OpenedFlow

    @property
    def entries(self) -> list[LedgerEntry]:
        return [self.flow.entries[lane.id.key] for lane in self.plan.lanes]


class Mirror:
    """A flow from `source` to `target` that carries the topic `name`; other tests' flows have other names."""

    def __init__(self, source: str, target: str, name: str) -> None:
        self.source, self.target, self.topic = source, target, name
        self.flow = f"{name}s->{name}t"
        self.remote = f"{name}s.{name}"
        self.lane_key = f"{self.flow}/{name}/0"
        self.target_cluster = Cluster(f"{name}t", tuple(target.split(",")))
        self.policies: Mapping[str, str] = {}
        """Lines of the flow in the file that `open` reads."""
        self.options: Mapping[str, str] = {}
        """Lines of the whole file."""

    def make_topic(self, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        create_topic(self.source, self.topic, partitions, config=config)

    def lines(self) -> str:
        """Its file: both clusters and the flow."""
        addresses = address_lines(f"{self.topic}s", self.source) | address_lines(f"{self.topic}t", self.target)
        return "".join(
            (
                f"clusters = {self.topic}s, {self.topic}t\n",
                *(f"{name} = {value}\n" for name, value in addresses.items()),
                f"{self.flow}.enabled = true\n",
            )
        )

    def planner(self, isolation: str = "read_committed") -> FlowPlanner:
        of_flow = {"topics": self.topic, **self.policies}
        text = self.lines() + "\n".join(
            (
                f"{self.topic}t->{self.topic}s.enabled = false",
                "replication.factor = 1",
                "heartbeats.replication.enabled = false",  # `entries[0]` is the lane of this topic
                f"{self.flow}.consumer.isolation.level = {isolation}",
                *(f"{self.flow}.{name} = {value}" for name, value in of_flow.items()),
                *(f"{name} = {value}" for name, value in self.options.items()),
            )
        )
        settings = load(text, "protocol.properties")
        return FlowPlanner(settings.flows[0], settings.engine)

    def open(self, isolation: str = "read_committed") -> Opened:
        """What a driver does before its first epoch."""
        planner = self.planner(isolation)
        try:
            plan = planner.apply(planner.discover())
            return Opened(plan, with_warm(lambda warm: open_lanes(plan, planner, warm)))
        finally:
            planner.close()

    # -- the ledger -------------------------------------------------------------------------------------------------

    def with_ledger(self, use: Callable[[Ledger], Awaitable[T]]) -> T:
        return with_warm(lambda warm: use(warm.ledger(self.target_cluster)))

    def book(self) -> LedgerBook:
        return self.with_ledger(lambda ledger: ledger.refresh())

    def write_entry(self, entry: LedgerEntry) -> None:
        """As a task does, or a zombie, or somebody who tampers."""
        record = (EntryKey(entry.lane, entry.generation), encode_entry(entry))
        self.with_ledger(lambda ledger: ledger.write([record], now_ms()))

    def erase(self, opened: Opened) -> None:
        """The ledger is lost, as far as this flow is concerned."""
        keys = [(EntryKey(entry.lane, entry.generation), None) for entry in opened.entries]
        self.with_ledger(lambda ledger: ledger.write(keys, now_ms()))

    # -- both ends --------------------------------------------------------------------------------------------------

    def assert_identical(self, records: int, isolation: str = "read_committed") -> None:
        comparison = compare_topics(self.source, self.target, {self.topic: self.remote}, isolation=isolation)
        differences = [str(difference) for difference in comparison.differences]
        assert differences == [], f"{len(differences)} differences, the first: {differences[0]}"
        assert comparison.records == records

    def producers(self, partition: int = 0) -> Mapping[int, ProducerState]:
        """What the leader of the remote partition remembers."""
        seen: dict[int, ProducerState] = {}

        async def ask(client: ClusterClient) -> bool:
            leader = (await client.metadata([self.remote]))[self.remote].leaders.get(partition)
            if leader is None:
                return False  # its broker was started a moment ago
            found = (await client.producers(leader.node, [(self.remote, partition)]))[(self.remote, partition)]
            assert not isinstance(found, int) or found in _ANOTHER_LEADS, f"DescribeProducers: error {found}"
            seen.update({} if isinstance(found, int) else found)
            return not isinstance(found, int)

        wait_until(lambda: with_client(self.target, ask), f"the leader of {self.remote}-{partition} answers", every=0.2)
        return seen

    def write_as(
        self, identity: Identity, sequence: int, values: list[bytes], timestamp_ms: int = 0
    ) -> ProducedPartition:
        """Append one batch to the remote partition 0 under any identity and number; the broker's answer."""
        rows = [(b"by hand", value) for value in values]
        batch = bytearray(plain_batch(rows, timestamp_ms or now_ms()))
        header = read_header(batch, 0)
        restamp(batch, 0, header, identity.producer_id, identity.producer_epoch, sequence)
        return with_client(self.target, lambda client: _produce(client, self.remote, bytes(batch)))


async def _produce(client: ClusterClient, topic: str, batch: bytes) -> ProducedPartition:
    view = (await client.metadata([topic]))[topic]
    connection = await client.connection(view.leaders[0].node, "by hand")
    version = connection.version(PRODUCE_API, 9)
    wanted = ProduceTopic(topic, uuid.UUID(view.topic_id).bytes, [(0, batch)])
    answer = await connection.exchange(lambda number: encode_produce(version, number, CLIENT_ID, 10_000, [wanted]))
    return decode_produce(version, answer).partitions[0]


class Attempt:
    """One slot over all lanes of a plan, in a thread with a loop of its own."""

    def __init__(
        self,
        opened: Opened,
        settings: SlotSettings = QUICK,
        *,
        alone: bool = True,
        until: Mapping[str, int] | None = None,
        handed: Mapping[str, LedgerEntry] | None = None,
    ) -> None:
        plan = opened.plan
        lanes = tuple(lane for lane in plan.lanes if lane.id.key in opened.flow.entries)
        aliases = {plan.settings.flow.source: plan.settings.source, plan.settings.flow.target: plan.settings.target}
        self._plan = SlotPlan(lanes, dict(until or {}), aliases, {plan.name: flow_rules(plan)}, settings)
        self._alone = alone
        self._handed = dict(handed or {})
        self.name = uuid.uuid4().hex
        self.slot: Slot | None = None
        self.error: BaseException | None = None
        self._events: list[Event] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._main: asyncio.Task[Any] | None = None
        self._is_ending = False
        """It closes its sockets, and must not be kept from that."""
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            asyncio.run(self._live())

    async def _live(self) -> None:
        self._loop, self._main = asyncio.get_running_loop(), asyncio.current_task()
        warm = Warm()
        slot = Slot(self._plan, warm, self.name)
        slot.go(list(slot.lives), self._alone, self._handed)
        self.slot = slot
        try:
            await slot.run()
        except Exception as error:  # noqa: BLE001  shown by the test that joins
            self.error = error
        finally:
            self._is_ending = True
            # A process that dies closes its sockets; a cancelled slot does not.
            for part in (*slot._readers.values(), *slot._writers.values()):
                await part.close()
            warm.close()

    def __enter__(self) -> Self:
        self._thread.start()
        wait_until(lambda: self.slot is not None or not self._thread.is_alive(), "the slot began")
        return self

    def __exit__(self, *about: object) -> None:
        self.kill()

    # -- what is done to it -----------------------------------------------------------------------------------------

    def kill(self) -> None:
        self._call(lambda: self._main and not self._is_ending and self._main.cancel())
        self._thread.join(WAIT_SECONDS)
        assert not self._thread.is_alive(), "the attempt did not die"

    def stop(self) -> None:
        """Drain, write the ledger, end."""
        self._call(lambda: self.slot and self.slot.stop())
        self.join()

    def tell_alone(self) -> None:
        self._call(lambda: self.slot and self.slot.go(list(self.slot.lives), True, {}))

    def tell_revoked(self) -> None:
        self._call(lambda: self.slot and self.slot.revoke(list(self.slot.lives)))

    def _call(self, what: Callable[[], object]) -> None:
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(what)

    def join(self) -> None:
        self._thread.join(WAIT_SECONDS)
        if self._thread.is_alive():
            raise AssertionError(f"still running after {WAIT_SECONDS:.0f} s: {self.says()}; {self._tasks()}")
        assert self.error is None, repr(self.error)

    def _tasks(self) -> list[str]:
        assert self._loop is not None
        return [f"{task.cancelling()}*{_chain(task.get_coro())}" for task in asyncio.all_tasks(self._loop)]

    # -- what is seen of it -----------------------------------------------------------------------------------------

    @property
    def lives(self) -> list[Any]:
        assert self.slot is not None
        return list(self.slot.lives.values())

    @property
    def life(self) -> Any:
        return self.lives[0]

    def position(self) -> int:
        """As the slot itself would write it down: between two awaits of its loop, where read and queued agree."""
        if self._loop is None or not self._loop.is_running():
            return int(self.life.run.position())
        asked = asyncio.run_coroutine_threadsafe(_ask(self.life.run.position), self._loop)
        return asked.result(WAIT_SECONDS)

    @property
    def records(self) -> int:
        return sum(life.run.counts.records for life in self.lives)

    @property
    def events(self) -> list[Event]:
        """What the lanes told; nothing takes them away from the attempt."""
        for life in self.lives:
            self._events += life.take_events()
        return self._events

    @property
    def notes(self) -> str:
        return "\n".join(map(str, self.events))

    def says(self) -> str:
        return "; ".join(f"{life.run.lane.id.key}: {life.run.state} {life.run.reason}" for life in self.lives[:3])

    def wait_for(self, condition: Callable[[], bool], what: str) -> None:
        def holds() -> bool:
            assert self.error is None, repr(self.error)
            return condition()

        try:
            wait_until(holds, what, WAIT_SECONDS, every=0.002)
        except AssertionError as error:
            raise AssertionError(f"{error} ({self.says()}; notes: {self.notes})") from error

    def wait_for_records(self, count: int) -> None:
        self.wait_for(lambda: self.records >= count, f"{count} records are acknowledged")

    def wait_for_position(self, offset: int) -> None:
        self.wait_for(lambda: self.position() >= offset, f"everything before {offset} is copied")

    def wait_parked(self, text: str) -> str:
        """Until it is parked with a reason that has `text`; the whole reason, which is gone when the lane tries again."""
        return self._wait_state(LaneState.PARKED, text, f"the lane is parked with '{text}'")

    def wait_waiting(self, text: str) -> str:
        return self._wait_state(LaneState.WAITING, text, f"the lane waits with '{text}'")

    def _wait_state(self, state: LaneState, text: str, what: str) -> str:
        seen = [""]

        def is_so() -> bool:
            run = self.life.run
            seen[0] = run.reason
            return run.state is state and text in seen[0] and run.reason == seen[0]

        self.wait_for(is_so, what)
        return seen[0]

    def wait_reason(self, text: str) -> None:
        self.wait_for(lambda: text in self.life.run.reason, f"the lane says '{text}'")


def carry(opened: Opened, until: Mapping[str, int] | None = None, settings: SlotSettings = QUICK) -> Attempt:
    """Copy up to the ends (those of the plan if none are given), drain and end."""
    ends = until or {lane.id.key: opened.plan.ends[(lane.id.topic, lane.id.partition)] for lane in opened.plan.lanes}
    with Attempt(opened, settings, until=ends) as attempt:
        attempt.join()
        return attempt


async def _ask(question: Callable[[], int]) -> int:
    return question()


def _chain(coroutine: Any) -> str:
    """What a task waits for, from the outside in."""
    names = []
    while coroutine is not None and hasattr(coroutine, "cr_frame"):
        line = coroutine.cr_frame.f_lineno if coroutine.cr_frame else 0
        names.append(f"{coroutine.__qualname__}:{line}")
        coroutine = coroutine.cr_await
    return " > ".join([*names, repr(coroutine)])


def with_warm(use: Callable[[Warm], Coroutine[Any, Any, T] | Awaitable[T]]) -> T:
    async def run() -> T:
        warm = Warm()
        try:
            return await use(warm)
        finally:
            warm.close()

    return asyncio.run(run())


def with_client(bootstrap: str, use: Callable[[ClusterClient], Awaitable[T]]) -> T:
    async def run() -> T:
        client = ClusterClient(Cluster("by-hand", tuple(bootstrap.split(","))))
        try:
            return await use(client)
        finally:
            client.close()

    return asyncio.run(run())


def transactional_name(mirror: Mirror) -> str:
    return f"heliograph.{mirror.flow}"
