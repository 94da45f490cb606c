"""Writers: which lanes share the next request. What happens with a broker is in tests/integration/protocol."""

from __future__ import annotations

import asyncio
import struct
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import cast

from heliograph.kafka.client import ClusterClient
from heliograph.kafka.connections import Buffers, Connection
from heliograph.kafka.lane import Failure, LaneRun
from heliograph.kafka.produce import TargetWriter
from heliograph.model.lanes import LaneId
from tests.unit.kafka.lanes import NOW, answer, following, lane, push
from tests.unit.kafka.test_connections import next_request, serving, versions_answer


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
