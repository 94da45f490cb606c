"""Filling a new lane's remote partition up to where its source begins, and cutting the filler off: `offsets.align`.

What is to be done next is decided in replication/alignment.py, from what the target shows at this moment: after every refusal or
lost connection the caller begins with a new look, so an interrupted fill goes on.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace

from heliograph.errors import BrokerRefused, ConnectionLost, LaneParked
from heliograph.kafka.attach import Attacher, NewerGeneration
from heliograph.kafka.client import ClusterClient
from heliograph.kafka.connections import CLIENT_ID
from heliograph.kafka.own_topics import cut_off
from heliograph.kafka.refusals import topic_refused
from heliograph.kafka.sides import Side
from heliograph.kafka.topic_writer import PRODUCE_API
from heliograph.model.lanes import SEQUENCE_MASK, Lane, LedgerEntry, next_sequence
from heliograph.replication.alignment import Aligned, CutOff, Disturbed, Fill, next_step, shows_filler
from heliograph.replication.attach import Remembered
from heliograph.wire.error_codes import describe
from heliograph.wire.filler import MOST, RECORD_BYTES, filler_batch
from heliograph.wire.produce_codec import ProducedPartition, ProduceTopic, decode_produce, encode_produce

_TIMEOUT_MS = 10_000
_FENCED = 47
_REFUSED = {10, 17, 29, 31, 87}
"""Asking again does not help; with any other code a new look does."""


class NotAligned(LaneParked):
    """The lane cannot begin where `offsets.align` wants it to."""

    def __init__(self, reason: str, what_to_do: str) -> None:
        super().__init__(reason)
        self.what_to_do = what_to_do


class Aligner:
    """Of one lane. `now_ms` is the wall clock: a broker forgets a producer by its records' timestamps."""

    def __init__(self, lane: Lane, attacher: Attacher, target: ClusterClient, now_ms: Callable[[], int]) -> None:
        self._lane = lane
        self._attacher = attacher
        self._target = target
        self._now_ms = now_ms

    async def align(
        self, entry: LedgerEntry, says: Callable[[str], None], must_stop: Callable[[], bool]
    ) -> LedgerEntry | None:
        """The entry of the aligned lane, which may begin; None when it must stop. `says` is told how far it is."""
        while not must_stop():
            side = await self._side()
            match next_step(entry, side.log_start, side.end, await self._next(side, entry)):
                case Aligned():
                    return replace(entry, filling=False)
                case Disturbed(reason, what_to_do):
                    raise NotAligned(reason, what_to_do)
                case CutOff(before):
                    await self._cut_off(before)
                case Fill(first, after):
                    says(f"offsets.align: filled up to {first} of {after}")
                    await self._fill(side, entry, first, after, must_stop)
        return None

    async def cut_again(self, entry: LedgerEntry) -> None:
        """Of a lane that was aligned before: filler must not be seen, also after a broker forgot that it was cut off."""
        side = await self._side()
        if shows_filler(entry, side.log_start, side.end):
            await self._cut_off(entry.filler_to)

    async def _cut_off(self, before: int) -> None:
        topic, alias = self._lane.remote_topic, self._target.cluster.alias
        try:
            await cut_off(self._target, topic, self._lane.id.partition, before)
        except BrokerRefused as error:
            what = f"cluster {alias}: cutting the filler of offsets.align off topic {topic}"
            raise topic_refused(error.code, what, "DELETE", topic, alias) from error

    async def _side(self) -> Side:
        return await self._attacher.side(self._lane)

    async def _next(self, side: Side, entry: LedgerEntry) -> int:
        """The number of the next record, by the leader's memory, else by the log."""
        known = await self._attacher.remembered(side.log, entry)
        if isinstance(known, Remembered) and known.epoch > entry.identity.producer_epoch:
            raise NewerGeneration(f"the target knows epoch {known.epoch}, this attempt has an older one")
        if isinstance(known, Remembered) and known.epoch == entry.identity.producer_epoch and known.last_sequence >= 0:
            return next_sequence(known.last_sequence, 1)
        last = await self._attacher.last_of_ours(side, replace(entry, target_next=0))
        return 0 if last is None else next_sequence(last.header.base_sequence, last.header.last_offset_delta + 1)

    async def _fill(
        self, side: Side, entry: LedgerEntry, first: int, after: int, must_stop: Callable[[], bool]
    ) -> None:
        """Until all is filled, something is in the way, or a second has passed for the caller to show it."""
        most = max(1, min(MOST, self._lane.max_batch_bytes // RECORD_BYTES))
        identity = (entry.identity.producer_id, entry.identity.producer_epoch)
        began = self._now_ms()
        while first < after and not must_stop() and self._now_ms() - began < 1_000:
            count = min(most, after - first)
            batch = filler_batch(count, identity, first & SEQUENCE_MASK, self._now_ms())
            if not self._took(await self._produce(side, batch), first):
                return
            first += count

    def _took(self, answer: ProducedPartition, expected: int) -> bool:
        """False: a new look must tell."""
        where = f"cluster {self._target.cluster.alias}, {self._lane.remote_topic}-{self._lane.id.partition}: filling"
        if answer.error_code == _FENCED:
            raise NewerGeneration(f"{where}: {describe(answer.error_code)}")
        if answer.error_code in _REFUSED:
            raise topic_refused(answer.error_code, where, "WRITE", self._lane.remote_topic, self._target.cluster.alias)
        if answer.error_code:
            raise BrokerRefused(answer.error_code, where)
        return answer.base_offset == expected

    async def _produce(self, side: Side, batch: bytes) -> ProducedPartition:
        log = side.log
        connection = await self._target.connection(log.node, "alignment")
        version = connection.version(PRODUCE_API, 13)
        topic = ProduceTopic(log.topic, uuid.UUID(log.topic_id).bytes, [(log.partition, batch)])
        answer = await connection.exchange(
            lambda number: encode_produce(version, number, CLIENT_ID, _TIMEOUT_MS, [topic]),
            timeout_s=_TIMEOUT_MS / 1000 + 5,
        )
        found = decode_produce(version, answer).partitions
        if not found:
            raise ConnectionLost(f"{log.topic}-{log.partition}: the broker did not answer for it")
        return found[0]
