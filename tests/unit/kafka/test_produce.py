"""Writers: which lanes share the next request. What happens with a broker is in tests/integration/protocol."""

from __future__ import annotations

import asyncio
import struct
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import cast

import pytest

from heliograph.kafka.client import ClusterClient
from heliograph.kafka.connections import Connection
from heliograph.kafka.lane import Failure, LaneRun
from heliograph.kafka.produce import TargetWriter
from heliograph.kafka.sockets import Buffers
from heliograph.model.lanes import LaneId
from tests.unit.kafka.lanes import NOW, OLD, Pool, answer, following, lane, push
from tests.unit.kafka.test_connections import frame, next_request, serving, versions_answer


class Writer(TargetWriter):
    """Dials nobody."""

    def warm(self) -> None:
        pass


def lanes(count: int) -> list[LaneRun]:
    return [
        following(
            on=lane(
                id=LaneId("A->B", f"topic-{number}", 0),
                remote_topic=f"A.topic-{number}",
                target_topic_id=str(uuid.UUID(int=number + 1)),
            )
        )
        for number in range(count)
    ]


def told(story: Callable[[Writer], None]) -> None:
    async def tell() -> None:
        story(Writer(cast(ClusterClient, None), 1, lambda: NOW, 1000, lambda: None))

    asyncio.run(tell())


def chosen(writer: Writer) -> list[LaneRun]:
    runs, topics = writer._form()
    assert [run.lane.remote_topic for run in runs] == [topic.name for topic in topics]
    return runs


def test_a_request_has_a_batch_of_each_lane_with_something_queued_and_looks_at_no_others() -> None:
    runs = lanes(500)
    looked: list[LaneRun] = []

    def story(writer: Writer) -> None:
        for run in runs:
            writer.add(run)
            _notice(run, looked)
        push(runs[7])
        push(runs[7])
        push(runs[3])
        assert chosen(writer) == [runs[7], runs[3]]
        assert chosen(writer) == []  # one on the way until the first answer
        runs[7].answered(answer(40), "", NOW)
        assert chosen(writer) == [runs[7]]
        assert set(looked) == {runs[7], runs[3]}

    told(story)


def _notice(run: LaneRun, looked: list[LaneRun]) -> None:
    can_send = run.can_send

    def noticed(now_ms: int) -> bool:
        looked.append(run)
        return can_send(now_ms)

    run.can_send = noticed  # type: ignore[method-assign]


def test_lanes_that_found_no_room_in_a_request_are_first_in_the_next() -> None:
    def story(writer: Writer) -> None:
        runs = lanes(250)
        for run in runs:
            writer.add(run)
            push(run)
            push(run)
        assert chosen(writer) == runs[:200]
        for run in runs[:200]:
            run.answered(answer(40), "", NOW)
        assert chosen(writer) == [*runs[200:], *runs[:150]]

    told(story)


def test_a_lane_that_failed_or_left_is_not_sent_and_one_that_comes_with_batches_is() -> None:
    def story(writer: Writer) -> None:
        failed, left, late = lanes(3)
        writer.add(failed)
        writer.add(left)
        push(failed)
        push(left)
        push(late)
        failed.fail(Failure(None, "gone"))
        writer.remove(left)
        writer.add(late)
        assert chosen(writer) == [late]
        push(left)
        assert chosen(writer) == []

    told(story)


_BATCH = 3 << 20


class Dialler:
    """Of a cluster client, what a writer uses."""

    def __init__(self, port: int) -> None:
        self._port = port

    def doubt(self, *_: object) -> None:
        pass

    async def dial(self, _: int, buffers: Buffers) -> Connection:
        return await Connection.open("127.0.0.1", self._port, 5, buffers=replace(buffers, send=1 << 16))


def test_nothing_comes_between_two_parts_of_a_request_however_often_the_writer_is_woken() -> None:
    """Requests are larger than the socket's buffer, and the broker reads them slowly."""
    found: list[bytes] = []

    async def broker(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(versions_answer(await next_request(reader)))
        while len(found) < 2:
            await asyncio.sleep(0.05)
            found.append(await next_request(reader))

    async def story() -> None:
        async with serving(broker) as port:
            writer = TargetWriter(cast(ClusterClient, Dialler(port)), 1, lambda: NOW, 1000, lambda: None)
            writer._pace.size = 64 << 20
            for number, run in enumerate(lanes(4)):
                writer.add(run)
                push(run, data=bytes([number]) * _BATCH, size=_BATCH)
            async with asyncio.timeout(20):
                while len(found) < 2:
                    writer.wake()
                    await asyncio.sleep(0)
            await writer.close()

    asyncio.run(story())
    assert [struct.unpack_from(">h", request)[0] for request in found] == [0, 0]
    for request, numbers in zip(found, ((0, 1), (2, 3)), strict=True):
        assert all(bytes([number]) * _BATCH in request for number in numbers)
        assert len(request) < 2 * _BATCH + 200


def produced(request: bytes, lane_run: LaneRun, throttle_ms: int) -> bytes:
    """Produce 11: the lane's batch was appended."""
    name = lane_run.lane.remote_topic.encode()
    part = struct.pack(">ihqqq", lane_run.lane.id.partition, 0, 40, -1, 0) + b"\x01\x00\x00"
    topics = b"\x02" + bytes([len(name) + 1]) + name + b"\x02" + part + b"\x00"
    return frame(request[4:8] + b"\x00" + topics + struct.pack(">i", throttle_ms) + b"\x00")


def test_a_broker_that_holds_us_back_gets_no_request_before_the_time_it_named() -> None:
    """KIP-219: it answers at once, and reads nothing more meanwhile."""
    times: list[float] = []
    run = lanes(1)[0]

    async def broker(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(versions_answer(await next_request(reader)))
        request = await next_request(reader)
        times.append(asyncio.get_running_loop().time())
        writer.write(produced(request, run, 400))
        await next_request(reader)
        times.append(asyncio.get_running_loop().time())
        await reader.read()

    async def story() -> None:
        pool = Pool()
        async with serving(broker) as port:
            writer = TargetWriter(cast(ClusterClient, Dialler(port)), 1, lambda: NOW, 1000, lambda: None)
            writer.add(run)
            push(run, chunk=(first := pool.chunk()))
            first.release()
            push(run)
            async with asyncio.timeout(20):
                while len(times) < 2:
                    writer.wake()
                    await asyncio.sleep(0.01)
            assert pool.out == 0, "a batch's buffer is free once the socket has it"
            await writer.close()

    asyncio.run(story())
    assert times[1] - times[0] >= 0.35


@pytest.mark.parametrize(("stamp", "alone", "is_cut"), [(OLD, False, True), (OLD, True, False), (NOW, False, False)])
def test_what_the_target_does_not_guard_is_cut_off_once_another_attempt_may_carry_the_lane(
    stamp: int, alone: bool, is_cut: bool
) -> None:
    """M10: however slowly a request leaves, none of it does after the take-over wait, during which the lane was let go of."""
    run = lanes(1)[0]
    run.begin(replace(run.start, last_timestamp=NOW), NOW)  # type: ignore[type-var]  # it follows
    arrived, ended = asyncio.Event(), asyncio.Event()

    async def broker(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(versions_answer(await next_request(reader)))
        await next_request(reader)
        arrived.set()
        try:
            await reader.read()
        except ConnectionResetError:
            ended.set()  # and not by a word of goodbye, which would send what is left first

    async def story() -> bool:
        async with serving(broker) as port:
            writer = TargetWriter(cast(ClusterClient, Dialler(port)), 1, lambda: NOW, 60_000, lambda: None)
            writer.add(run)
            push(run, max_timestamp=stamp)
            async with asyncio.timeout(20):
                while not arrived.is_set():
                    writer.wake()
                    await asyncio.sleep(0.01)
            run.is_alone = lambda: alone
            try:
                async with asyncio.timeout(20 if is_cut else 2.5):
                    await ended.wait()
            except TimeoutError:
                pass
            cut = ended.is_set()
            await writer.close()
            return cut

    assert asyncio.run(story()) == is_cut
    assert run.lost_unguarded == is_cut
