"""Reading a source broker for many lanes at once: one long poll, its batches cut, judged and restamped for their lanes.

A reader serves the lanes of one source broker and isolation level. It asks for all lanes that want data, hands every batch to
its lane, and asks again before the writers begin, so that the broker works while they do.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections.abc import Callable, Mapping

from heliograph.errors import ConnectionLost, HeliographError
from heliograph.kafka.client import ClusterClient
from heliograph.kafka.connections import CLIENT_ID, Connection
from heliograph.kafka.cutting import Cutter
from heliograph.kafka.lane import Failure, LaneRun
from heliograph.kafka.memory import Fairness, Memory, ReadLimits
from heliograph.kafka.outgoing import Chunk
from heliograph.kafka.pace import Pace
from heliograph.kafka.ranges import FETCH_API
from heliograph.kafka.source_faults import MOVED, Unreadable, source_failure
from heliograph.kafka.wishes import Wishes
from heliograph.metrics.meters import BUSY, SOURCE, TARGET, THROTTLED, FlowMeter, Stopwatch
from heliograph.replication.throttle import Throttle
from heliograph.wire.error_codes import describe
from heliograph.wire.fetch_codec import (
    FetchedPartition,
    FetchSettings,
    decode_fetch,
    encode_fetch,
)
from heliograph.wire.fetch_session import FORGOTTEN, SessionStep

_SHORT_WAIT_MS = 5
_OVERFULL_SECONDS = 0.05
_JOIN_SECONDS = 0.003
_JOINING_SECONDS = 0.2
_JOINING_WAIT_MS = 20
_ANY = 1 << 62
_SILENT_SECONDS = 3.0
LOOK_ELSEWHERE_SECONDS = 20.0
"""So often another broker is asked who leads: one that lost its controller answers as if it still led. Within the time for
which a newer leader is remembered (leaders.py), so that the one of the past is not believed when its turn comes."""


class SourceReader:
    """Follows the lanes of one source broker until it is closed."""

    def __init__(
        self,
        client: ClusterClient,
        node: int,
        cutter: Cutter,
        memory: Memory,
        limits: ReadLimits,
        on_data: Callable[[], None],
    ) -> None:
        self._client = client
        self._node = node
        self._cutter = cutter
        self._memory = memory
        self._limits = limits
        self._on_data = on_data
        self._lanes: dict[tuple[str, int], LaneRun] = {}
        self._by_id: dict[tuple[bytes, int], LaneRun] = {}
        self._wishes = Wishes(limits.lane_bytes, limits.partition_bytes)
        self._changed = asyncio.Event()
        self._connection: Connection | None = None
        self._dialling = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._polled: dict[LaneRun, int] = {}
        """The lanes of the request on its way, and from which offset each was asked for."""
        self._interrupted = False
        self._interrupting: asyncio.TimerHandle | None = None
        self._joined = 0.0
        self.throttle = Throttle(time.monotonic)
        """The slot's; by itself a reader has no limit."""
        self.meter = FlowMeter()
        """The slot's for this flow."""
        self.fairness = Fairness(memory, list)
        """The slot's."""
        self.watch = Stopwatch(time.monotonic)
        self._asked_ms = 0
        self._pace = Pace()
        self._share = 0
        """What memory keeps for the answer."""
        self._held_until = 0.0
        self._unreadable = Unreadable()
        self._looked_elsewhere = time.monotonic()

    async def warm(self) -> None:
        """Dial ahead of the first lane."""
        async with self._dialling:
            if self._connection is None or self._connection.closed:
                self._connection = await self._client.dial(self._node, self._limits.buffers)

    def add(self, run: LaneRun) -> None:
        self._lanes[(run.lane.id.topic, run.lane.id.partition)] = run
        self._by_id[_id_of(run)] = run
        self._wishes.add(run)
        self.wake()
        self._joined = time.monotonic()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._follow())
        elif self._interrupting is None:
            self._interrupting = asyncio.get_running_loop().call_later(_JOIN_SECONDS, self._interrupt)

    def _interrupt(self) -> None:
        """A lane joined while a long poll sleeps that is not for it, or not for where it is now: end that poll, or the lane
        would wait for its end. Polls are short for a while then, because lanes join in swarms."""
        self._interrupting = None
        connection = self._connection
        asleep = connection is not None and not connection.closed and not connection.is_receiving and self._polled
        answered = all(self._polled.get(run) == run.fetch_offset for run in self._lanes.values())
        if asleep and connection is not None and not answered:
            self._interrupted = True
            connection.close()

    def remove(self, run: LaneRun) -> None:
        if self._lanes.get((run.lane.id.topic, run.lane.id.partition)) is run:
            del self._lanes[(run.lane.id.topic, run.lane.id.partition)]
            del self._by_id[_id_of(run)]
            self._wishes.remove(run)
            self._unreadable.forget(run)

    def wake(self) -> None:
        """A lane may want data again."""
        self._changed.set()

    @property
    def sockets(self) -> tuple[int, int] | None:
        """Bytes of the receive buffer: asked for and granted; None while there is no connection."""
        connection = self._connection
        if connection is None or connection.closed:
            return None
        return self._limits.buffers.receive, connection.granted().receive

    async def close(self) -> None:
        if self._interrupting is not None:
            self._interrupting.cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._connection is not None:
            self._connection.close()

    async def _follow(self) -> None:
        try:
            await self._read_on()
        finally:
            self.watch.stop()

    async def _read_on(self) -> None:
        while self._lanes:
            try:
                await self._read_once()
            except HeliographError as error:
                if self._interrupted:
                    self._interrupted = False
                    continue
                self._lose(str(error))
                return
            except Exception as error:  # noqa: BLE001  a fault of ours: the lanes say so and begin again
                self._lose(f"reading from broker {self._node}: {error!r}")
                return

    async def _read_once(self) -> None:
        self.watch.enter(BUSY)
        if self._held_until:
            await self._sit_out()
        self._changed.clear()
        wanting = self._wishes.look()
        if not wanting:
            if self._lanes:
                self.watch.enter(TARGET)
                await self._changed.wait()
            return
        allowed, pause_s = self._allowed(wanting)
        if allowed is not None and not allowed:
            self.watch.enter(THROTTLED if self.throttle.has_limits else TARGET)
            await self._changed_within(pause_s)
            return
        most = min(self._limits.max_bytes, self._pace.size)
        if allowed:
            most = max(1, int(min(most, max(allowed.values()))))
        self.watch.enter(TARGET)
        self._share = await self._memory.room(most)
        try:
            await self._ask(await self._logged_in(), allowed, pause_s, self._share)
        finally:
            self._give_up_share()
        await asyncio.sleep(0)

    def _give_up_share(self) -> None:
        share, self._share = self._share, 0
        if share:
            self._memory.answered(share)

    async def _sit_out(self) -> None:
        """A broker that holds us back for a quota does not read its next request before (KIP-219)."""
        self.watch.enter(THROTTLED)
        await asyncio.sleep(self._held_until - time.monotonic())
        self._held_until = 0.0
        self.watch.enter(BUSY)

    def _allowed(self, wanting: Mapping[LaneRun, int]) -> tuple[dict[LaneRun, float] | None, float]:
        """The lanes that may be read now with the bytes that their limits leave, and how long the others wait; None: all may."""
        alone = self._unreadable.next_alone()
        if alone is not None and alone[0] in wanting:
            return {alone[0]: float(alone[1])}, 0.0
        overfull = self.fairness.overfull()
        if not self.throttle.has_limits and not overfull:
            return None, 0.0
        fair = [run for run in wanting if id(run.outbox) not in overfull] if overfull else wanting
        allowed = {run: most for run in fair if (most := self.throttle.allowance(run.lane.id)) > 0}
        pause_s = self.throttle.wait(run.lane.id for run in fair if run not in allowed)
        return allowed, pause_s or (_OVERFULL_SECONDS if overfull else 0.0)

    async def _ask(
        self, connection: Connection, allowed: dict[LaneRun, float] | None, pause_s: float, max_bytes: int
    ) -> None:
        wanting = self._wishes.look()  # lanes may have come, gone and failed since there was room
        alone = 0
        if allowed is not None:
            allowed = {run: most for run, most in allowed.items() if run in wanting}
            alone = self._unreadable.bytes_alone(allowed)
        polled, asked = dict(wanting), len(wanting if allowed is None else allowed)
        if not asked:
            return
        # With a lane left out for its backlog a long poll could sleep over the moment when it wants data again.
        wait_ms = self._limits.max_wait_ms if len(polled) == len(self._lanes) else _SHORT_WAIT_MS
        if time.monotonic() - self._joined < _JOINING_SECONDS:
            wait_ms = min(wait_ms, _JOINING_WAIT_MS)
        if asked < len(polled):
            wait_ms = min(wait_ms, max(_SHORT_WAIT_MS, int(pause_s * 1000)))
        step = self._wishes.step(allowed, alone)
        moved = await self._poll(connection, polled, step, (wait_ms, max(max_bytes, alone)))
        if not moved and asked < len(self._lanes):
            # Nothing was there of those lanes that may be read: it is the others that hold it up.
            self.watch.blame(THROTTLED if asked < len(polled) and self.throttle.has_limits else TARGET)

    async def _poll(
        self, connection: Connection, polled: dict[LaneRun, int], step: SessionStep, most: tuple[int, int]
    ) -> bool:
        """One request and its answer, handed out: at most so many ms and bytes. Whether anything came of it."""
        self._polled = polled
        try:
            return await self._exchange(connection, step, *most)
        except BaseException:
            self._wishes.session.lost()  # whether the broker took it is not known
            raise
        finally:
            self._polled = {}

    async def _exchange(self, connection: Connection, step: SessionStep, wait_ms: int, most: int) -> bool:
        version = connection.version(FETCH_API, 13)
        settings = FetchSettings(
            wait_ms,
            self._limits.min_bytes,
            most,
            self._cutter.read_committed,
            session=(step.session_id, step.epoch),
            forgotten=step.forgotten,
        )
        request = encode_fetch(version, connection.next_correlation(), CLIENT_ID, settings, step.topics)
        chunk: list[Chunk] = []

        def buffer_for(size: int) -> bytearray:
            self._give_up_share()
            chunk.append(self._memory.take(size))
            return chunk[0].buffer

        self.watch.enter(SOURCE)
        self._asked_ms = _now_ms()
        silence_s = self._client.timeout_s + wait_ms / 1000
        try:
            await connection.send([request], silence_s)
            await connection.receive_into(buffer_for, silence_s)
            self._pace.took(chunk[0].size, time.monotonic() - connection.began_at)
            self._pace.rest(chunk[0].size)
            self.watch.enter(BUSY)
            moved = await self._hand_out(version, chunk[0])
            if moved:
                self._on_data()
            return moved
        finally:
            if chunk:
                chunk[0].release()

    async def _logged_in(self) -> Connection:
        await self.warm()
        connection = self._connection
        assert connection is not None  # noqa: S101  warm() dialled
        await connection.renew_login()
        return connection

    async def _changed_within(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()

    async def _hand_out(self, version: int, chunk: Chunk) -> bool:
        """Whether a lane got records, or failed."""
        result = decode_fetch(version, memoryview(chunk.buffer)[: chunk.size])
        if result.error_code in FORGOTTEN:
            self._wishes.session.lost()  # a broker that was started again, or has many readers
            return True
        self._wishes.session.answered(result.session_id)
        if result.error_code:
            raise ConnectionLost(f"broker {self._node} refused a fetch: {describe(result.error_code)}")
        self.meter.fetched(sum(part.end - part.start for part in result.partitions), chunk.size, result.throttle_ms)
        if result.throttle_ms > 0:
            self._held_until = time.monotonic() + result.throttle_ms / 1000
        await self._cutter.learn(result.partitions, chunk)
        for part in result.partitions:
            run = (
                self._by_id.get((part.topic, part.partition))
                if isinstance(part.topic, bytes)
                else self._lanes.get((part.topic, part.partition))
            )
            # A lane that attached again meanwhile may have gone back: what was asked for is not what it reads next, and
            # taking it would pass over the records between.
            if run is not None and run.wants_data(_ANY) and self._polled.get(run) == run.fetch_offset:
                self._take(run, part, chunk)
        return any(part.error_code or part.end > part.start or part.diverging_epoch >= 0 for part in result.partitions)

    def _take(self, run: LaneRun, part: FetchedPartition, chunk: Chunk) -> None:
        run.stir()
        if part.error_code or part.diverging_epoch >= 0 or part.preferred_replica >= 0:
            if part.error_code in MOVED:
                self._client.doubt((run.lane.source_topic_id, run.lane.id.partition), part.leader_id, part.leader_epoch)
            run.fail(source_failure(run, part))
            return
        if 0 <= run.source_end <= run.fetch_offset:
            run.times.at_end_ms = self._asked_ms  # then it had nothing new: what comes now is younger
        run.source_end = part.last_stable_offset if self._cutter.read_committed else part.high_watermark
        run.high_watermark = part.high_watermark
        run.log_start = part.log_start_offset
        if part.end > part.start:
            self.throttle.spend(run.lane.id, part.end - part.start)
            before, offset = len(run.queue), run.fetch_offset
            self._cutter.cut(run, part, chunk)
            if run.fetch_offset == offset and run.failure is None:
                self._unreadable.nothing_whole(run, part, chunk.buffer)
            elif self._unreadable:
                self._unreadable.forget(run)
            if len(run.queue) > before:
                now_ms = _now_ms()
                for place in {before, len(run.queue) - 1}:
                    run.times.read(run.queue[place].max_timestamp, now_ms)

    @property
    def must_look_elsewhere(self) -> bool:
        """Its broker may not lead any more, and not say so."""
        is_due = time.monotonic() - self._looked_elsewhere >= LOOK_ELSEWHERE_SECONDS
        return bool(self._lanes) and (is_due or self._is_silent())

    def _is_silent(self) -> bool:
        """Its broker owes an answer for a while."""
        connection = self._connection
        waiting = connection is not None and not connection.closed and bool(self._polled)
        patience_s = _SILENT_SECONDS + self._limits.max_wait_ms / 1000
        return waiting and connection is not None and time.monotonic() - connection.moved_at > patience_s

    async def look_elsewhere(self) -> None:
        """Where others lead partitions of this broker by now, its lanes do not wait for its answer."""
        self._looked_elsewhere = time.monotonic()
        self._client.doubt()
        views = await self._client.metadata(run.lane.id.topic for run in self._lanes.values())
        for run in list(self._lanes.values()):
            view, start = views.get(run.lane.id.topic), run.start
            leader = view.leaders.get(run.lane.id.partition) if view is not None else None
            if leader is not None and start is not None and leader.epoch > start.source_leader_epoch >= 0:
                if self._connection is not None:  # whoever reads from it tells all its lanes
                    self._connection.close(f"broker {leader.node} leads {run.lane.id.topic} now")
                return

    def _lose(self, message: str) -> None:
        self._client.doubt()
        if self._connection is not None:
            self._connection.close()
        for run in list(self._lanes.values()):
            run.fail(Failure(None, message, finding="source"))


def _id_of(run: LaneRun) -> tuple[bytes, int]:
    return uuid.UUID(run.lane.source_topic_id).bytes, run.lane.id.partition


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
