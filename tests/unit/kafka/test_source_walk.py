"""Walking a source to where its copy ends: by count over gaps and old formats, by content where retention took what to count."""

from __future__ import annotations

import asyncio
import struct
import zlib
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from kafka.record.legacy_records import LegacyRecordBatchBuilder

from heliograph.errors import BrokerRefused, LaneParked
from heliograph.kafka import source_walk
from heliograph.kafka.attach_findings import PositionLost
from heliograph.kafka.ranges import Diverged
from heliograph.kafka.sides import Side
from heliograph.kafka.source_walk import Parting, SourceWalk, Wanted
from heliograph.kafka.walked import Content, Copy, Position
from tests.unit.kafka.fetched_log import FetchedLog, fetches
from tests.unit.wire.batches import NOW, Rec, Shape, write_batch

__all__ = ["fetches"]

pytestmark = pytest.mark.usefixtures("fetches")


def begin(offset: int = 0) -> Position:
    return Position(offset, -1, committed=False, target=offset)


def counted(log: FetchedLog, records: int, at: Position | None = None, later: list[int] | None = None) -> Position:
    """`later`: batches of so many records that come before the source is asked for its end once more."""

    async def look_again() -> Side:
        for count in later or ():
            log.add(count)
        if later:
            later.clear()
        return log.side()

    walk = SourceWalk(log)  # type: ignore[arg-type]  # stands in
    return asyncio.run(walk.by_count(log.side(), at or begin(), records, look_again))


def content(value: bytes, timestamp: int) -> Content:
    return timestamp, b"k", value, ()


def found(log: FetchedLog, position: int, run: list[bytes], records: int, append_time: bool = False) -> Position:
    """By the content of the last records that were copied; `run` is what they hold, the last one at `records`."""
    first = position + records - len(run)
    wanted = [(content(value, NOW + first + n), append_time) for n, value in enumerate(run)]
    walk = SourceWalk(log)  # type: ignore[arg-type]  # stands in
    return asyncio.run(walk.by_content(log.side(), begin(position), Wanted(wanted, records)))


# -- by count -------------------------------------------------------------------------------------------------------------


def test_a_dense_source_is_counted() -> None:
    log = FetchedLog()
    log.add(10)
    log.add(10, leader_epoch=6)
    place = counted(log, 14)
    assert (place.offset, place.epoch, place.target, place.gap_at, place.cleaned) == (14, 6, 14, -1, False)
    assert place.before() == 13
    assert counted(log, 6, begin(8)).offset == 14


def test_a_source_that_was_compacted_once_is_counted_over_its_gaps() -> None:
    """M8: records 0, 3, 4, 9 are left of ten; the next batch lacks its first two."""
    log = FetchedLog()
    log.add_batch(write_batch([Rec(n) for n in (0, 3, 4, 9)]))
    log.add_batch(write_batch([Rec(n) for n in (12, 13)], Shape(base_offset=10, last_offset=19)))
    assert [counted(log, n).offset for n in (1, 2, 3, 4, 5, 6)] == [1, 4, 5, 10, 13, 20]
    place = counted(log, 3)
    assert (place.before(), place.target, place.gap_at, place.cleaned) == (4, 3, 3, True)
    assert counted(log, 6).before() == 13


def test_an_empty_batch_holds_nothing_to_count() -> None:
    log = FetchedLog()
    log.add_batch(write_batch([], Shape(base_offset=0, last_offset=9)))
    log.add(5)
    assert counted(log, 5).offset == 15


def test_messages_of_an_old_format_are_counted() -> None:
    """M8: magic 1, one by one: their headers do not tell how many records they hold."""
    log = FetchedLog()
    for offset in range(5):
        body = struct.pack(">bbq", 1, 0, NOW) + struct.pack(">i", 1) + b"k" + struct.pack(">i", 2) + b"v%d" % offset
        message = struct.pack(">I", zlib.crc32(body)) + body
        log.add_batch(struct.pack(">qi", offset, len(message)) + message)
    place = counted(log, 3)
    assert (place.offset, place.before(), place.cleaned) == (3, 2, False)


def test_a_compressed_message_of_an_old_format_is_counted_inside() -> None:
    """M8: it has the offset of its last record."""
    builder = LegacyRecordBatchBuilder(magic=1, compression_type=1, batch_size=1 << 20)
    for offset in range(4):
        builder.append(offset, NOW, b"k", b"v%d" % offset)
    raw = bytearray(builder.build())
    struct.pack_into(">q", raw, 0, 3)
    log = FetchedLog()
    log.add_batch(raw)
    place = counted(log, 3)
    assert (place.offset, place.before(), place.cleaned) == (3, 2, False)
    assert counted(log, 4).offset == 4


def test_a_source_that_has_grown_since_is_asked_again() -> None:
    """Another attempt copied what came after the source was asked for its end."""
    log = FetchedLog()
    log.add(10)
    assert counted(log, 14, later=[3, 7]).offset == 14


def test_a_target_with_more_than_the_source_parks_and_says_so() -> None:
    log = FetchedLog()
    log.add(10)
    with pytest.raises(LaneParked, match="the target has 2 records more than the source below 12$"):
        counted(log, 14, later=[2])


def test_a_source_that_was_cleaned_after_it_was_copied_says_how_to_continue() -> None:
    log = FetchedLog()
    log.add_batch(write_batch([Rec(n) for n in (0, 3, 4, 9)]))
    with pytest.raises(LaneParked, match=r"6 records more .* it was cleaned after this was copied\. Let its cleanup"):
        counted(log, 10)


def test_a_source_that_begins_after_the_position_is_not_counted() -> None:
    log = FetchedLog(20)
    log.add(10)
    with pytest.raises(PositionLost, match="begins at 20, after the position 0 to count from"):
        counted(log, 5)


# -- by content -----------------------------------------------------------------------------------------------------------


def test_the_last_record_is_found_by_what_it_holds() -> None:
    log = FetchedLog(10)
    log.add(10)
    place = found(log, 4, [b"13", b"14", b"15"], 12)
    assert (place.offset, place.before()) == (16, 15)


def test_of_equal_records_the_one_counts_that_the_run_before_it_tells() -> None:
    """L4: the first equal record would repeat four."""
    log = FetchedLog(10)
    log.add(values=[b"ping", b"a", b"ping", b"b", b"ping", b"c"])
    assert found(log, 8, [b"b", b"ping"], 7, append_time=True).offset == 15


def test_a_record_that_is_too_far_on_was_not_copied() -> None:
    """L4: so many records were copied at most, and at least as many as the offsets that are gone leave over."""
    log = FetchedLog(10)
    log.add(values=[b"a", b"ping", b"b", b"c", b"ping", b"ping", b"ping"])
    assert found(log, 9, [b"ping"], 3, append_time=True).offset == 12
    assert found(log, 9, [b"ping"], 5, append_time=True).offset == 15
    assert log.fetched, "the source was asked"


def test_records_that_are_all_alike_park_instead_of_guessing() -> None:
    log = FetchedLog(10)
    log.add(values=[b"ping"] * 8)
    with pytest.raises(LaneParked, match="5 of its records from 10 on look like the last that was copied") as caught:
        found(log, 5, [b"ping"] * 5, 5, append_time=True)
    assert not isinstance(caught.value, PositionLost)


def test_one_record_without_a_timestamp_may_be_like_one_that_is_gone() -> None:
    log = FetchedLog(10)
    log.add(values=[b"ping", b"a"])
    with pytest.raises(LaneParked, match="1 of its records from 10 on look"):
        found(log, 5, [b"b", b"ping"], 5, append_time=True)


def test_a_record_that_is_gone_is_lost() -> None:
    log = FetchedLog(10)
    log.add(10)
    with pytest.raises(PositionLost, match="the source begins at 10, after the ledger's position 4"):
        found(log, 4, [b"7", b"8"], 5)
    with pytest.raises(PositionLost):
        found(log, 4, [], 5)


# -- before ---------------------------------------------------------------------------------------------------------------


def test_the_batch_before_a_position_is_one_with_a_record_before_it() -> None:
    log = FetchedLog()
    log.add(10)
    log.add_batch(write_batch([], Shape(base_offset=10, last_offset=14)))
    walk = SourceWalk(log)  # type: ignore[arg-type]  # stands in
    assert asyncio.run(walk.before(log.side(), begin(6))).before() == 5
    assert asyncio.run(walk.before(log.side(), begin(15))).last is None
    assert asyncio.run(walk.before(log.side(), begin(0))).last is None


# -- a source that was cut back -------------------------------------------------------------------------------------------


def parting(log: FetchedLog, copied: list[bytes], begins: int = 0, epoch: int = 4, leader: int = 9) -> Parting | None:
    async def copies() -> AsyncIterator[Copy]:
        for at, value in enumerate(copied):
            yield content(value, NOW + begins + at), False

    side = log.side()
    walk = SourceWalk(log)  # type: ignore[arg-type]  # stands in
    at = Position(begins, epoch, committed=False)
    return asyncio.run(walk.parts_at(replace(side, log=replace(side.log, leader_epoch=leader)), at, copies()))


def test_a_source_that_grew_again_parts_from_its_copy_where_the_later_leader_began() -> None:
    log = FetchedLog()
    log.add(values=[b"a", b"b", b"c"])
    log.add(values=[b"x", b"y"], leader_epoch=5)
    assert parting(log, [b"a", b"b", b"c", b"d", b"e"]) == Parting(3, 4)
    assert parting(log, [b"b", b"c", b"d"], begins=1) == Parting(3, 4)


def test_a_source_that_ends_before_its_copy_was_cut_if_another_leads_it() -> None:
    log = FetchedLog()
    log.add(values=[b"a", b"b"])
    assert parting(log, [b"a", b"b", b"c"]) == Parting(2, 4)
    assert parting(log, [b"a", b"b", b"c"], leader=4) is None
    assert parting(log, [b"a", b"b"]) is None


def test_a_difference_under_the_same_leader_is_no_cut() -> None:
    log = FetchedLog()
    log.add(values=[b"a", b"b"])
    assert parting(log, [b"a", b"x"]) is None
    assert parting(log, [b"x"], epoch=-1) is None, "who led before is not known"


def test_a_source_is_asked_whether_it_is_still_the_same() -> None:
    log = FetchedLog()
    log.add(10)
    log.add(5, leader_epoch=6)
    walk = SourceWalk(log)  # type: ignore[arg-type]  # stands in
    for offset, epoch in ((10, 4), (15, 6), (7, -1)):
        asyncio.run(walk.check(log.side(), offset, epoch))
    with pytest.raises(Diverged) as caught:
        asyncio.run(walk.check(log.side(), 15, 4))
    assert (caught.value.ends_at, caught.value.epoch) == (10, 4)


@pytest.mark.parametrize("code", [1, 6])
def test_a_leader_that_cannot_tell_shows_nothing(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    async def refuse(*_: object, **__: object) -> None:
        raise BrokerRefused(code, "reading")

    monkeypatch.setattr(source_walk, "fetch_once", refuse)
    checked = SourceWalk(FetchedLog()).check(FetchedLog().side(), 3, 4)  # type: ignore[arg-type]  # stands in
    if code == 1:
        asyncio.run(checked)
    else:
        with pytest.raises(BrokerRefused):
            asyncio.run(checked)
