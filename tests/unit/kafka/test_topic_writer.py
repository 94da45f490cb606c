"""Appends to topics of our own: cut to what brokers take, shared by those who write at once, given up after silence only."""

from __future__ import annotations

import asyncio
import selectors
import uuid
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, cast

import pytest
from kafka.protocol.producer import ProduceRequest

from heliograph.errors import AccessRefused, BrokerRefused, ConnectionLost
from heliograph.kafka.client import ClusterClient, Leader, TopicView
from heliograph.kafka.connections import Buffer
from heliograph.kafka.topic_writer import BATCH_BYTES, TopicWriter
from heliograph.model.clusters import Cluster
from heliograph.wire.record_batch import walk
from heliograph.wire.records import read_records
from tests.unit.wire.test_produce_codec import Topic, partition, response

TOPIC, ID = "own", str(uuid.UUID(int=1))
TOO_LARGE, NOT_LEADER, NOT_ALLOWED, RECORD_LIST_TOO_LARGE = 10, 6, 29, 18
Judge = Callable[[int, int], int]


class Brokers:
    """A cluster with one topic. `judge` says of a partition and a batch of so many bytes which error code it gets."""

    def __init__(self, leaders: Sequence[int] = (1,), judge: Judge = lambda *_: 0) -> None:
        self.cluster = Cluster("B", ("b:1",))
        self.leaders = list(leaders)
        self.judge = judge
        self.log: dict[int, list[tuple[bytes | None, bytes | None]]] = {}
        self.requests: list[int] = []
        """The brokers that were asked."""
        self.time_ms = -1
        """What answers say of the broker's clock."""
        self.down: dict[int, Exception] = {}
        self.slow: dict[int, Callable[[], Awaitable[None]]] = {}

    async def metadata(self, topics: Iterable[str]) -> dict[str, TopicView]:
        view = TopicView(ID, {number: Leader(node, 0) for number, node in enumerate(self.leaders)})
        return dict.fromkeys(topics, view)

    async def connection(self, node: int, purpose: str) -> Line:
        assert purpose == "ledger"
        if node in self.down:
            raise self.down[node]
        return Line(self, node)

    def values(self, number: int = 0) -> list[bytes | None]:
        return [value for _, value in self.log.get(number, [])]


class Line:
    """A connection to one of them."""

    def __init__(self, brokers: Brokers, node: int) -> None:
        self._brokers = brokers
        self._node = node

    def version(self, _: int, wanted: int) -> int:
        return wanted

    async def exchange(self, encode: Callable[[int], Sequence[Buffer]], timeout_s: float) -> bytes:
        assert timeout_s > 0
        brokers = self._brokers
        brokers.requests.append(self._node)
        asked = ProduceRequest.decode(b"".join(encode(77))[4:], version=9, header=True)
        if self._node in brokers.slow:
            await brokers.slow[self._node]()
        await asyncio.sleep(0)
        parts = asked.topic_data[0].partition_data
        time_ms = brokers.time_ms
        codes = {part.index: self._take(part.index, part.records) for part in parts}
        rows = [partition(number, error_code=code, log_append_time_ms=time_ms) for number, code in codes.items()]
        return response(9, [Topic(name=TOPIC, partition_responses=rows)])

    def _take(self, number: int, batch: bytes) -> int:
        if self._brokers.leaders[number] != self._node:
            return NOT_LEADER
        code = self._brokers.judge(number, len(batch))
        if not code:
            log = self._brokers.log.setdefault(number, [])
            for at, header in walk(batch, 0, len(batch)):
                view = memoryview(batch)[at : at + header.size]
                log += [(record.key, record.value) for record in read_records(view, header)]
        return code


class Passing(selectors.SelectSelector):
    """Nobody waits: the loop's time passes by as much as it would sleep."""

    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        self.now += timeout or 0.0
        return super().select(0)


def passing_loop() -> asyncio.AbstractEventLoop:
    selector = Passing()
    loop = asyncio.SelectorEventLoop(selector)
    loop.time = lambda: selector.now  # type: ignore[method-assign]  a clock of the test's own
    return loop


def writing(brokers: Brokers, story: Callable[[TopicWriter], Awaitable[Any]]) -> None:
    async def tell() -> None:
        await story(TopicWriter(cast(ClusterClient, brokers), TOPIC))

    with asyncio.Runner(loop_factory=passing_loop) as runner:
        runner.run(tell())


def rows(count: int, size: int = 10) -> list[tuple[bytes, bytes | None]]:
    return [(b"k%d" % number, b"%d:" % number + b"v" * size) for number in range(count)]


@pytest.mark.parametrize("limit", [1 << 20, 100_000])
@pytest.mark.parametrize("code", [TOO_LARGE, RECORD_LIST_TOO_LARGE])
def test_what_is_larger_than_a_batch_may_be_goes_in_several_in_order_and_none_twice(limit: int, code: int) -> None:
    brokers = Brokers(judge=lambda _, size: code if size > limit else 0)
    wanted = rows(1_500, 1_000)
    writing(brokers, lambda writer: writer.append({0: wanted}, 1))
    assert brokers.log[0] == wanted and len(brokers.requests) > 1_500_000 // min(limit, BATCH_BYTES)


def test_many_small_records_are_cut_by_count_too() -> None:
    brokers = Brokers()
    writing(brokers, lambda writer: writer.append({0: [(b"", None)] * 12_000}, 1))
    assert len(brokers.log[0]) == 12_000 and len(brokers.requests) == 3


def test_one_request_is_no_larger_than_a_slow_line_takes_in_time() -> None:
    sizes: list[int] = []
    brokers = Brokers([1] * 16, judge=lambda _, size: sizes.append(size) or 0)
    wanted = {number: rows(400, 1_000) for number in range(16)}
    writing(brokers, lambda writer: writer.append(wanted, 1))
    assert brokers.log == wanted and len(brokers.requests) == 8 and sum(sizes) > 16 * 400_000


def test_who_writes_while_a_request_is_under_way_shares_the_next() -> None:
    brokers = Brokers([1, 2] * 8)
    wanted = [(number % 16, (b"k", b"%d" % number)) for number in range(1_000)]

    async def story(writer: TopicWriter) -> None:
        await asyncio.gather(*(writer.append({number: [row]}, 1) for number, row in wanted))

    writing(brokers, story)
    assert sorted(value or b"" for number in range(16) for value in brokers.values(number)) == sorted(
        row[1] or b"" for _, row in wanted
    )
    assert len(brokers.requests) <= 6


def test_a_record_that_is_too_large_alone_fails_its_own_append_only() -> None:
    brokers = Brokers(judge=lambda _, size: TOO_LARGE if size > 1_000 else 0)

    async def story(writer: TopicWriter) -> None:
        parts = [rows(3), [(b"large", b"x" * 2_000)], rows(2)]
        found = await asyncio.gather(*(writer.append({0: part}, 1) for part in parts), return_exceptions=True)
        assert [type(one) for one in found] == [type(None), BrokerRefused, type(None)]
        assert str(found[1]) == f"cluster B: writing {TOPIC}-0: error {TOO_LARGE}"
        assert brokers.values() == [value for _, value in (*rows(3), *rows(2))]

    writing(brokers, story)


def test_a_refusal_of_one_partition_leaves_the_others_alone() -> None:
    brokers = Brokers([1, 1], judge=lambda number, _: NOT_ALLOWED if number == 0 else 0)

    async def story(writer: TopicWriter) -> None:
        both = await asyncio.gather(*(writer.append({n: rows(2)}, 1) for n in (0, 1)), return_exceptions=True)
        assert isinstance(both[0], BrokerRefused) and "WRITE" in both[0].what and both[1] is None

    writing(brokers, story)


def test_a_leader_that_moved_is_found_and_the_rest_goes_there() -> None:
    brokers = Brokers([1, 2])

    async def story(writer: TopicWriter) -> None:
        await writer.append({0: rows(1), 1: rows(1)}, 1)
        brokers.leaders = [2, 2]
        await writer.append({0: rows(2)}, 1)
        assert writer.trouble.startswith("6 ") or "LEADER" in writer.trouble

    writing(brokers, story)
    assert brokers.values() == [value for _, value in (*rows(1), *rows(2))]


def test_a_broker_that_hangs_holds_up_no_other() -> None:
    brokers = Brokers([1, 2])

    async def story(writer: TopicWriter) -> None:
        wake = asyncio.Event()
        brokers.slow[1] = wake.wait  # type: ignore[assignment]  what it returns does not matter
        stuck = asyncio.create_task(writer.append({0: rows(1)}, 1))
        await asyncio.sleep(0)
        for _ in range(5):
            await writer.append({1: rows(1)}, 1)
        assert not stuck.done()
        wake.set()
        await stuck

    writing(brokers, story)


def test_records_of_who_left_meanwhile_are_not_sent_afterwards() -> None:
    brokers = Brokers()

    async def story(writer: TopicWriter) -> None:
        wake = asyncio.Event()
        brokers.slow[1] = wake.wait  # type: ignore[assignment]  what it returns does not matter
        first = asyncio.create_task(writer.append({0: [(b"first", b"")]}, 1))
        await asyncio.sleep(0)
        left = asyncio.create_task(writer.append({0: [(b"left", b"")]}, 1))
        await asyncio.sleep(0)
        left.cancel()
        last = asyncio.create_task(writer.append({0: [(b"last", b"")]}, 1))
        await asyncio.sleep(0)
        wake.set()
        await asyncio.gather(first, last)

    writing(brokers, story)
    assert brokers.log[0] == [(b"first", b""), (b"last", b"")]


def test_an_append_ends_when_nothing_moves_and_not_before() -> None:
    brokers = Brokers()

    async def story(writer: TopicWriter) -> None:
        async def slowly() -> None:
            await asyncio.sleep(14)

        brokers.slow[1] = slowly
        clock = asyncio.get_running_loop().time
        await writer.append({0: [(b"", None)] * 25_000}, 1)
        assert clock() >= 70, "five requests, each answered in time: the whole of it may take longer"
        brokers.down[1] = ConnectionLost("b:1: closed by the broker")
        began = clock()
        with pytest.raises(TimeoutError, match=f"cluster B: {TOPIC} took nothing for 30 s: b:1: closed by the broker"):
            await writer.append({0: rows(1)}, 1)
        assert 30 <= clock() - began < 31
        brokers.down[1] = AccessRefused("b:1: login refused")
        with pytest.raises(AccessRefused):
            await writer.append({0: rows(1)}, 1)
        del brokers.down[1]
        await writer.append({0: rows(1)}, 1)

    writing(brokers, story)
    assert len(brokers.log[0]) == 25_001


@pytest.mark.parametrize(("time_ms", "behind_ms"), [(-1, 0), (900, 0), (1_000, 0), (7_201_000, 7_200_000)])
def test_answers_that_tell_the_brokers_time_show_how_far_ours_is_behind(time_ms: int, behind_ms: int) -> None:
    brokers = Brokers()
    brokers.time_ms = time_ms

    async def story() -> None:
        writer = TopicWriter(cast(ClusterClient, brokers), TOPIC, lambda: 1_000)
        await writer.append({0: rows(1)}, 1)
        assert writer.behind_ms == behind_ms

    asyncio.run(story())


def test_an_append_of_nothing_asks_nobody() -> None:
    brokers = Brokers()
    writing(brokers, lambda writer: writer.append({0: []}, 1))
    assert brokers.requests == []
