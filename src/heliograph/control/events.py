"""Telling events: into the log at once, into the events topic of the flow's target as soon as that takes them.

The driver alone writes. What a target does not take waits in a queue of bounded length; what does not fit any more is counted,
and the count itself becomes an event. Nothing here ever waits in the way of a lane. Readers: `EventReader`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping

from heliograph.errors import BrokerRefused, HeliographError
from heliograph.kafka.client import EARLIEST, LATEST, ClusterClient
from heliograph.kafka.ledger import EVENTS_TOPIC
from heliograph.kafka.ranges import Log, read_range
from heliograph.kafka.slot import Warm
from heliograph.kafka.topic_writer import TopicWriter
from heliograph.model.clusters import Cluster
from heliograph.model.events import Event, EventKind, decode_event, encode_event
from heliograph.wire.records import read_records

_log = logging.getLogger(__name__)
QUEUE_EVENTS = 1_000
_BATCH_EVENTS = 100
_SAME_AGAIN_MS = 3_600_000
_RECENT_KEPT = 1000
_TOLD_KEPT = 4_096
_RETRY_SECONDS = 2.0
_MISSING = {3, 5, 100}


class EventQueue:
    """Events on their way to one target, oldest first."""

    def __init__(self, limit: int = QUEUE_EVENTS) -> None:
        self._waiting: deque[Event] = deque()
        self._limit = limit
        self.dropped = 0
        """How many did not fit and are not told of yet: they are with the next ones that are written."""
        self.lost = 0
        """How many did not fit, ever."""
        self._first_dropped = ""

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, event: Event) -> None:
        self._waiting.append(event)
        if len(self._waiting) > self._limit:
            # The oldest goes: the newest says more about how things stand.
            self._first_dropped = self._first_dropped or self._waiting[0].flow
            self._waiting.popleft()
            self.dropped += 1
            self.lost += 1

    def next_batch(self, now_ms: int) -> list[Event]:
        """What to write now; it stays in the queue until `written`."""
        batch = [self._waiting[place] for place in range(min(len(self._waiting), _BATCH_EVENTS))]
        if self.dropped and batch:
            reason = f"{self.dropped} events were not written: the target did not take them for too long"
            flow = self._first_dropped
            batch.insert(0, Event(now_ms, flow, flow, EventKind.EVENTS_DROPPED, reason, "the run's log has them all"))
        return batch

    def written(self, batch: list[Event], dropped: int) -> None:
        """`batch` is in the topic, and with it the news of `dropped` lost ones."""
        done = set(map(id, batch))
        while self._waiting and id(self._waiting[0]) in done:
            self._waiting.popleft()
        self.dropped -= dropped
        self._first_dropped = self._first_dropped if self.dropped else ""


class EventLog:
    """`tell` returns at once. `targets` says by flow where its events are kept."""

    def __init__(self, warm: Warm, targets: Mapping[str, Cluster], now_ms: Callable[[], int]) -> None:
        self._warm = warm
        self._targets = dict(targets)
        self._now_ms = now_ms
        self._queues = {cluster: EventQueue() for cluster in self._targets.values()}
        self._writers: dict[Cluster, TopicWriter] = {}
        self.counts: Counter[tuple[str, str]] = Counter()
        """By flow and kind: what was told in this run."""
        self._told: dict[tuple[str, str, str, str], int] = {}
        self.recent: deque[tuple[int, Event]] = deque(maxlen=_RECENT_KEPT)
        """The newest, numbered: what a page shows without reading the topic."""
        self._number = 0
        self._news = asyncio.Event()
        self._more = asyncio.Event()

    def carry(self, flow: str, target: Cluster) -> None:
        """Events of one more flow."""
        self._targets[flow] = target
        self._queues.setdefault(target, EventQueue())
        self._more.set()

    @property
    def dropped(self) -> int:
        """Events that are in no topic and will not be, since the run began."""
        return sum(queue.lost for queue in self._queues.values())

    def tell(self, event: Event) -> None:
        """Log and queue an event, unless the same was told within the hour: a lane that is tried again meets the same."""
        if event.kind == EventKind.RECOVERED:  # the same trouble, should it come back, is news again
            self._told = {told: when for told, when in self._told.items() if told[:2] != event.told[:2]}
        told = self._told.get(event.told)
        by_hand = event.kind == EventKind.CHANGED  # whoever does the same twice has done it twice
        if told is not None and event.time_ms - told < _SAME_AGAIN_MS and not by_hand:
            return
        self._told[event.told] = event.time_ms
        while len(self._told) > _TOLD_KEPT:
            del self._told[next(iter(self._told))]
        self.counts[event.flow, str(event.kind)] += 1
        _log.log(logging.INFO if by_hand else logging.WARNING, "%s", event)
        self._number += 1
        self.recent.append((self._number, event))
        target = self._targets.get(event.flow)
        if target is not None:
            self._queues[target].put(event)
            self._news.set()

    async def write_forever(self) -> None:
        """For ever, each target on its own: one that does not answer holds up no other."""
        writing: set[Cluster] = set()
        async with asyncio.TaskGroup() as group:
            while True:
                self._more.clear()
                for target in self._queues.keys() - writing:
                    group.create_task(self._write_to(target))
                    writing.add(target)
                await self._more.wait()

    async def flush(self, seconds: float) -> None:
        """What is still waiting, if the targets take it in time."""
        with contextlib.suppress(TimeoutError, HeliographError):
            async with asyncio.timeout(seconds):
                await asyncio.gather(*(self._drain(target) for target in self._queues), return_exceptions=True)

    async def _write_to(self, target: Cluster) -> None:
        while True:
            try:
                await self._drain(target)
                self._news.clear()
                await self._news.wait()
            except (HeliographError, TimeoutError) as error:
                _log.debug("cluster %s: events are not written: %s", target.alias, error)
                await asyncio.sleep(_RETRY_SECONDS)

    async def _drain(self, target: Cluster) -> None:
        queue = self._queues[target]
        if target not in self._writers:
            self._writers[target] = TopicWriter(self._warm.client(target), EVENTS_TOPIC)
        while queue:
            dropped, batch = queue.dropped, queue.next_batch(self._now_ms())
            rows = [(event.flow.encode(), encode_event(event)) for event in batch]
            await self._writers[target].append({0: rows}, self._now_ms())
            queue.written(batch, dropped)


class EventReader:
    """Reads the events topic of one cluster, on from where it was."""

    def __init__(self, client: ClusterClient, flows: Iterable[str]) -> None:
        self._client = client
        self._flows = {flow.encode() for flow in flows}
        self._position = 0
        self._last: Event | None = None

    async def read(self, newest: int | None = None) -> list[Event]:
        """The events since the last call; with `newest`, only those among the topic's last so many records."""
        view = (await self._client.metadata([EVENTS_TOPIC]))[EVENTS_TOPIC]
        if view.error in _MISSING or 0 not in view.leaders:
            return []  # nothing was ever copied to this cluster
        if view.error:
            raise BrokerRefused(view.error, f"cluster {self._client.cluster.alias}: topic {EVENTS_TOPIC}")
        node, name = view.leaders[0].node, (EVENTS_TOPIC, 0)
        start = (await self._client.offsets(node, [name], EARLIEST)).get(name, 0)
        end = (await self._client.offsets(node, [name], LATEST)).get(name, 0)
        begin = max(start, self._position, end - newest if newest is not None else 0)
        found: list[Event] = []
        async for seen in read_range(
            self._client, Log(EVENTS_TOPIC, view.topic_id, 0, node), begin, end, committed=False
        ):
            for record in read_records(seen.data, seen.header):
                if record.offset >= begin and record.key in self._flows:
                    self._add(found, decode_event(record.value))
        self._position = max(end, self._position)
        return found

    def _add(self, found: list[Event], event: Event | None) -> None:
        """They are written at least once: of equal neighbours one is enough."""
        if event is not None and event != self._last:
            found.append(event)
            self._last = event
