"""One slot: all lanes of one assignment in one event loop, from attach to the last acknowledgement.

A slot owns its readers, writers and memory for one epoch; clusters and ledgers are kept by the process over many epochs
(`Warm`). It knows nothing of Spark or of the driver's line: spark/carry.py tells it `go`, `release` and `stop`, and asks it for
reports.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from heliograph.errors import HeliographError
from heliograph.kafka.attach import Attacher
from heliograph.kafka.bookkeeping import Bookkeeper
from heliograph.kafka.claims import Openings, transactional_id
from heliograph.kafka.client import ClusterClient
from heliograph.kafka.cutting import Cutter
from heliograph.kafka.fetch import SourceReader
from heliograph.kafka.homecoming import Home
from heliograph.kafka.lane import LaneRun
from heliograph.kafka.leaders import nodes_of
from heliograph.kafka.ledger import Ledger
from heliograph.kafka.life import LaneLife, now_ms
from heliograph.kafka.memory import Fairness, Memory, ReadLimits
from heliograph.kafka.mishaps import live_through
from heliograph.kafka.produce import TargetWriter
from heliograph.kafka.sockets import DEFAULT_BUFFERS, Buffers
from heliograph.metrics.meters import FlowMeter, WriterMeter
from heliograph.model.clusters import Cluster
from heliograph.model.lanes import Identity, Lane, LaneState, LedgerEntry
from heliograph.model.policies import Policies
from heliograph.replication.throttle import Throttle

_log = logging.getLogger(__name__)
_HOUSEKEEPING_SECONDS = 0.1
_HELD_BACK_SECONDS = 2.0


@dataclass(frozen=True)
class FlowRules:
    """What a task must know of a flow."""

    flow: str
    source: str
    target: str
    read_committed: bool
    expiration_ms: int
    """The target's producer.id.expiration.ms."""
    limits: ReadLimits = field(default_factory=ReadLimits)
    policies: Policies = field(default_factory=Policies)
    align: bool = False
    """New lanes get the offsets of their source."""
    send_buffer_bytes: int = DEFAULT_BUFFERS.send
    codec: int | None = None
    """Copies get this codec; None: batches keep theirs."""
    throttle: tuple[tuple[str, float], ...] = ()
    """Bytes per second that a slot begins with, by limit; the driver's word changes them."""
    home: str = ""
    """The flow in the other direction, where both keep names: what it wrote is not copied back. Empty: none."""
    home_ledger: str = ""
    """The topic id of the ledger that tells what that flow wrote."""


@dataclass(frozen=True)
class SlotSettings:
    """What a task must know of the engine."""

    window: int = 5
    memory_bytes: int = 64 << 20
    request_timeout_ms: int = 30_000
    ledger_interval_ms: int = 1_000
    retry_ms: int = 1_000
    retry_max_ms: int = 60_000
    takeover_wait_s: float = 90.0
    """After this long without a sign a lost attempt is known dead."""
    merge_below: int = 4096
    merge_target: int = 1 << 20


@dataclass(frozen=True)
class SlotPlan:
    """Everything an assignment needs, as values that travel to an executor."""

    lanes: tuple[Lane, ...]
    until: Mapping[str, int]
    """By lane key, the source offset at which the lane is done; lanes that are not in it follow for ever."""
    clusters: Mapping[str, Cluster]
    flows: Mapping[str, FlowRules]
    settings: SlotSettings


class Warm:
    """What a worker process keeps from epoch to epoch: a client per cluster, a ledger view per target."""

    def __init__(self) -> None:
        self._clients: dict[Cluster, ClusterClient] = {}
        self._ledgers: dict[Cluster, Ledger] = {}
        self._homes: dict[tuple[Cluster, str, str], Home] = {}

    def client(self, cluster: Cluster) -> ClusterClient:
        if cluster not in self._clients:
            self._clients[cluster] = ClusterClient(cluster)
        return self._clients[cluster]

    def ledger(self, cluster: Cluster) -> Ledger:
        if cluster not in self._ledgers:
            self._ledgers[cluster] = Ledger(self.client(cluster))
        return self._ledgers[cluster]

    def home(self, cluster: Cluster, flow: str, trusted: str) -> Home:
        """Which producers on a cluster are a flow's that writes there, by the ledger of this topic id."""
        key = (cluster, flow, trusted)
        if key not in self._homes:
            self._homes[key] = Home(self.ledger(cluster), flow, trusted)
        return self._homes[key]

    def replace(self, clusters: Iterable[Cluster]) -> None:
        """These are used from now on: clients of the same clusters with other credentials or addresses are closed."""
        wanted = {cluster.alias: cluster for cluster in clusters}
        for known in [one for one in self._clients if wanted.get(one.alias, one) != one]:
            self._clients.pop(known).close()
            self._ledgers.pop(known, None)
            self._homes = {key: home for key, home in self._homes.items() if key[0] != known}

    def close(self) -> None:
        for client in self._clients.values():
            client.close()
        self._clients.clear()
        self._ledgers.clear()
        self._homes.clear()


class Slot:
    """Carries one assignment. `run` returns when every lane is done, released or stopped."""

    def __init__(self, plan: SlotPlan, warm: Warm, attempt: str) -> None:
        self.plan = plan
        self.warm = warm
        self.attempt = attempt
        self.memory = Memory(plan.settings.memory_bytes)
        self.memory.make_room = lambda: self.memory.squeeze(life.run for life in self.lives.values())
        self._fairness = Fairness(self.memory, lambda: [writer.queued for writer in self._writers.values()])
        self.throttle = Throttle(time.monotonic, dict(rate for rules in plan.flows.values() for rate in rules.throttle))
        self.lives: dict[str, LaneLife] = {}
        self.ended: list[str] = []
        """Lanes that ended, until the task has told the driver."""
        self.ending = asyncio.Event()
        self.news: set[LaneRun] = set()
        """Lanes of which there may be something to report."""
        self.unwritten: set[LaneRun] = set()
        """Lanes whose position the ledger may not have."""
        self.books = Bookkeeper(self)
        self.in_touch: Callable[[], bool] = lambda: True
        """Whether the driver was heard lately: what it said of other attempts may be over otherwise."""
        self.began: list[str] = []
        """Lanes that are read now, likewise."""
        self.meters = {flow: FlowMeter() for flow in plan.flows}
        self.writer_meters = {rules.target: WriterMeter() for rules in plan.flows.values()}
        """By target."""
        self._readers: dict[tuple[str, int], SourceReader] = {}
        self._writers: dict[tuple[str, int], TargetWriter] = {}
        self._attachers: dict[str, Attacher] = {}
        self.openings: dict[str, Openings] = {}
        """By target."""
        self._identities: dict[str, Identity] = {}
        self._identity_lock = asyncio.Lock()
        for lane in plan.lanes:
            rules = plan.flows[lane.id.flow]
            run = LaneRun(lane, plan.settings.window, self._expiration_ms(rules), plan.until.get(lane.id.key))
            run.told = (self.news, self.unwritten)
            run.meter = self.meters[lane.id.flow]
            self.lives[lane.id.key] = LaneLife(self, run, rules)

    # -- what the task tells it -------------------------------------------------------------------------------------

    def go(
        self, keys: Iterable[str], alone: bool, entries: Mapping[str, LedgerEntry], held: bool | None = None
    ) -> None:
        """These lanes have no other carrier that is known to live.

        `held`: no other run holds their flow. `alone`: besides, the last attempt is known dead.
        """
        for key in keys:
            if key in self.lives:
                self.lives[key].allow(alone if held is None else held, alone, entries.get(key))

    def revoke(self, keys: Iterable[str]) -> None:
        """Another run may hold the flow of these lanes: those that the target does not guard stop until they may `go` again."""
        for key in keys:
            if key in self.lives:
                self.lives[key].revoke()

    def release(self, keys: Iterable[str]) -> None:
        """Drain these lanes; each reports itself released when its position is in the ledger."""
        for key in keys:
            if key in self.lives:
                self.lives[key].leave()

    def stop(self) -> None:
        self.release(list(self.lives))

    def end(self, key: str) -> None:
        """A lane's last word: its position is exact from now on."""
        self.ended.append(key)
        self.ending.set()

    # -- running ----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        try:
            await self._carry()
        finally:
            for openings in self.openings.values():
                openings.close()
            for reader in self._readers.values():
                await reader.close()
            for writer in self._writers.values():
                await writer.close()

    async def _carry(self) -> None:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(live_through(self, key)) for key in self.lives]
            keepers = [
                group.create_task(work) for work in (self.books.keep(), self._finish_lanes(), self._watch_held_back())
            ]
            await asyncio.gather(*tasks)
            for keeper in keepers:
                keeper.cancel()
        await self.books.close()

    async def take_out(self, run: LaneRun) -> None:
        """A lane that stopped is no longer read, nor written once its answers have come."""
        for reader in self._readers.values():
            reader.remove(run)
        await run.idle.wait()
        for writer in self._writers.values():
            writer.remove(run)

    async def prepare(self) -> None:
        """Open what the lanes will need, so that a hand-over costs a few round trips and no connection."""
        for rules in self.plan.flows.values():
            source = self.warm.client(self.plan.clusters[rules.source])
            target = self.warm.client(self.plan.clusters[rules.target])
            lanes = [lane for lane in self.plan.lanes if lane.id.flow == rules.flow]
            read, written, _ = await asyncio.gather(
                source.metadata(lane.id.topic for lane in lanes),
                target.metadata(lane.remote_topic for lane in lanes),
                self.warm.ledger(self.plan.clusters[rules.target]).refresh(),
            )
            for node in nodes_of(read, [(lane.id.topic, lane.id.partition) for lane in lanes]):
                await self.reader(rules, node).warm()
                await source.connection(node)
            for node in nodes_of(written, [(lane.remote_topic, lane.id.partition) for lane in lanes]):
                self.writer(rules, node).warm()
                await target.connection(node)

    async def _finish_lanes(self) -> None:
        while self.plan.until:
            await asyncio.sleep(_HOUSEKEEPING_SECONDS)
            for life in self.lives.values():
                if life.run.state is LaneState.FOLLOWING and life.run.is_finished():
                    life.finish()

    async def _watch_held_back(self) -> None:
        while True:
            await asyncio.sleep(_HELD_BACK_SECONDS)
            try:
                await name_open_transactions(self)
                for reader in [one for one in self._readers.values() if one.must_look_elsewhere]:
                    with contextlib.suppress(HeliographError):
                        await reader.look_elsewhere()
            except Exception:  # noqa: BLE001  an outermost loop: what only looks must not end the lanes
                _log.exception("looking for open transactions and silent brokers")

    async def identity(self, rules: FlowRules, newer_than: Identity) -> Identity:
        """P8.2: an identity of this attempt that shuts out `newer_than`. A thousand lanes that ask at once share one."""
        async with self._identity_lock:
            known = self._identities.get(rules.flow)
            if known is None or not known.shuts_out(newer_than):
                client = self.warm.client(self.plan.clusters[rules.target])
                known = self._identities[rules.flow] = await client.new_identity(transactional_id(rules.flow))
            return known

    # -- parts, made when the first lane needs them -----------------------------------------------------------------

    def _expiration_ms(self, rules: FlowRules) -> int:
        """How long the target remembers, by the clock here: behind that of the brokers, it forgets sooner."""
        return rules.expiration_ms - self.warm.ledger(self.plan.clusters[rules.target]).behind_ms

    def attacher(self, rules: FlowRules) -> Attacher:
        if rules.flow not in self._attachers:
            source = self.warm.client(self.plan.clusters[rules.source])
            at = self.plan.clusters[rules.target]
            target, ledger = self.warm.client(at), self.warm.ledger(at)
            self._attachers[rules.flow] = Attacher(
                source, target, self._expiration_ms(rules), rules.home_ledger, ledger
            )
        return self._attachers[rules.flow]

    def reader(self, rules: FlowRules, node: int) -> SourceReader:
        # By flow, not by source: the same partition may go to two targets, each with its own place and limits.
        key = (rules.flow, node)
        if key not in self._readers:
            settings = self.plan.settings
            source = self.plan.clusters[rules.source]
            home = self.warm.home(source, rules.home, rules.home_ledger) if rules.home else None
            cutter = Cutter(rules.read_committed, settings.merge_below, settings.merge_target, rules.codec, home)
            client = self.warm.client(source)
            self._readers[key] = SourceReader(client, node, cutter, self.memory, rules.limits, self._wake_writers)
            self._readers[key].throttle = self.throttle
            self._readers[key].meter = self.meters[rules.flow]
            self._readers[key].fairness = self._fairness
        return self._readers[key]

    def writer(self, rules: FlowRules, node: int) -> TargetWriter:
        key = (rules.target, node)
        if key not in self._writers:
            client = self.warm.client(self.plan.clusters[rules.target])
            self._writers[key] = TargetWriter(
                client, node, now_ms, self.plan.settings.request_timeout_ms, self._wake_readers
            )
            self._writers[key].buffers = Buffers(send=rules.send_buffer_bytes)
            self._writers[key].meter = self.writer_meters[rules.target]
        return self._writers[key]

    def limit(self, rates: Mapping[str, float]) -> None:
        """The driver's word on how many bytes per second may be read, by limit."""
        self.throttle.change(rates)
        self._wake_readers()

    def sockets(self) -> dict[str, tuple[int, int]]:
        """Buffers asked for and granted, by what the connection is for."""
        readers = {f"reading for {flow}": reader.sockets for (flow, _), reader in self._readers.items()}
        writers = {f"writing to {target}": writer.sockets for (target, _), writer in self._writers.items()}
        return {name: found for name, found in (readers | writers).items() if found is not None}

    def waits(self) -> dict[str, dict[str, float]]:
        """Seconds that the readers of each flow waited, by what they waited for."""
        found: dict[str, dict[str, float]] = {}
        for (flow, _), reader in self._readers.items():
            sums = found.setdefault(flow, {})
            for kind, seconds in reader.watch.waits().items():
                sums[kind] = sums.get(kind, 0.0) + seconds
        return found

    def _wake_writers(self) -> None:
        for writer in self._writers.values():
            writer.wake()

    def _wake_readers(self) -> None:
        for reader in self._readers.values():
            reader.wake()


async def name_open_transactions(slot: Slot) -> None:
    """Say of each lane that a transaction on the source holds back which producer has it open, and since when."""
    held: dict[tuple[str, int], list[LaneRun]] = {}
    for life in slot.lives.values():
        run = life.run
        at_rest = run.high_watermark <= run.source_end and not run.reason
        if at_rest or run.state is not LaneState.FOLLOWING or run.start is None:
            continue
        if run.high_watermark > run.source_end >= 0 and run.position() >= run.source_end:
            held.setdefault((slot.plan.flows[run.lane.id.flow].source, run.start.source_node), []).append(run)
        elif run.reason:
            run.become(LaneState.FOLLOWING, "", now_ms())
    for (alias, node), runs in held.items():
        client = slot.warm.client(slot.plan.clusters[alias])
        names = [(run.lane.id.topic, run.lane.id.partition) for run in runs]
        try:
            found = await client.producers(node, names)
        except HeliographError:
            continue
        for run, name in zip(runs, names, strict=True):
            run.become(LaneState.FOLLOWING, _held_back(found.get(name)), now_ms())


def _held_back(producers: object) -> str:
    open_ones = [
        (state.transaction_start, state.last_timestamp, number)
        for number, state in (producers.items() if isinstance(producers, dict) else ())
        if state.transaction_start >= 0
    ]
    if not open_ones:
        return ""
    offset, time_ms, number = min(open_ones)
    moment = datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="seconds")
    return f"held back by producer {number} since {moment}: its transaction is open at offset {offset}"
