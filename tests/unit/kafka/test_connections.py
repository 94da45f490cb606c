"""One connection, against a server on loopback that answers as it is told."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse

from heliograph.errors import ConnectionLost
from heliograph.kafka.connections import Connection
from heliograph.kafka.sockets import Buffers, unsent_bytes

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Use = Callable[[Connection], Awaitable[None]]


async def next_request(reader: asyncio.StreamReader) -> bytes:
    (size,) = struct.unpack(">i", await reader.readexactly(4))
    return await reader.readexactly(size)


def frame(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def versions_answer(request: bytes, throttle_ms: int = 0) -> bytes:
    """ApiVersions 3: Produce 3 to 11, Fetch 4 to 13."""
    correlation = request[4:8]
    keys = b"".join(struct.pack(">hhh", *api) + b"\0" for api in ((0, 3, 11), (1, 4, 13)))
    return frame(correlation + struct.pack(">h", 0) + b"\x03" + keys + struct.pack(">i", throttle_ms) + b"\0")


@contextlib.asynccontextmanager
async def serving(serve: Serve) -> AsyncIterator[int]:
    """A server on a free port; at the end every connection to it is known to be closed."""

    async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, OSError):
            await serve(reader, writer)
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    server = await asyncio.start_server(accepted, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        handlers = asyncio.all_tasks() - {asyncio.current_task()}
        if handlers:
            await asyncio.wait(handlers, timeout=5)


def with_broker(serve: Serve, use: Use) -> None:
    """A broker that says its versions and then does what `serve` does."""

    async def broker(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(versions_answer(await next_request(reader)))
        await serve(reader, writer)

    async def story() -> None:
        async with serving(broker) as port:
            connection = await Connection.open("127.0.0.1", port, 5)
            try:
                await use(connection)
            finally:
                connection.close()

    asyncio.run(story())


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(frame(await next_request(reader)))


async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    await reader.read()


def numbered(correlation: int) -> list[bytes]:
    return [frame(struct.pack(">i", correlation) + b"payload")]


def test_opening_learns_what_the_broker_speaks() -> None:
    async def use(connection: Connection) -> None:
        assert connection.versions == {0: (3, 11), 1: (4, 13)}
        assert connection.version(1, 13) == 13
        assert connection.version(1, 17) == 13
        assert connection.version(0, 9) == 9
        with pytest.raises(ConnectionLost, match="message 1 is not offered in any version up to 3"):
            connection.version(1, 3)
        with pytest.raises(ConnectionLost, match="message 61"):
            connection.version(61, 0)

    with_broker(silent, use)


def open_against(answer: Callable[[bytes], bytes], match: str) -> None:
    """Dial a server that gives this answer to the first request; opening must fail, and leave no socket behind."""
    hung_up: list[bytes] = []

    async def broker(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(await next_request(reader)))
        async with asyncio.timeout(1):
            hung_up.append(await reader.read())

    async def story() -> None:
        async with serving(broker) as port:
            with pytest.raises(ConnectionLost, match=match):
                await Connection.open("127.0.0.1", port, 5)

    asyncio.run(story())
    assert hung_up == [b""], "the connection must be closed by whoever opened it"


def test_a_broker_that_refuses_api_versions_is_no_connection() -> None:
    open_against(lambda request: frame(request[4:8] + struct.pack(">hi", 42, 0)), "refused ApiVersions with error 42")


def test_a_broker_that_does_not_know_our_api_versions_is_asked_again_in_its_own_words() -> None:
    """Brokers before 2.4 answer version 3 in the form of version 0, with error 35: what they lack must be told by name."""

    async def old_broker(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = await next_request(reader)
        writer.write(frame(first[4:8] + struct.pack(">hi", 35, 0)))
        second = await next_request(reader)
        assert second[2:4] == struct.pack(">h", 0)
        writer.write(frame(second[4:8] + struct.pack(">hihhh", 0, 1, 1, 0, 11)))
        await reader.read()

    async def story() -> None:
        async with serving(old_broker) as port:
            connection = await Connection.open("127.0.0.1", port, 5)
            connection.close()
            assert connection.versions == {1: (0, 11)}

    asyncio.run(story())


def test_an_answer_that_cannot_be_read_is_a_lost_connection() -> None:
    open_against(lambda request: frame(request[4:8] + b"HTTP"), "127.0.0.1")


def test_ask_sends_and_reads_the_librarys_messages() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(versions_answer(await next_request(reader), throttle_ms=7))
        await reader.read()

    async def use(connection: Connection) -> None:
        request = ApiVersionsRequest(client_software_name="test", client_software_version="0")
        answer = await connection.ask(request, ApiVersionsResponse, 3)
        assert answer.throttle_time_ms == 7

    with_broker(serve, use)


def test_exchanges_queue_and_each_gets_its_own_answer() -> None:
    async def use(connection: Connection) -> None:
        first = connection.next_correlation()
        answers = await asyncio.gather(*(connection.exchange(numbered) for _ in range(20)))
        assert [struct.unpack_from(">i", answer)[0] for answer in answers] == list(range(first + 1, first + 21))
        assert all(bytes(answer[4:]) == b"payload" for answer in answers)

    with_broker(echo, use)


def test_a_large_message_in_many_buffers_arrives_whole() -> None:
    parts = [bytes([number % 256]) * 9_000 for number in range(1500)]
    size = sum(map(len, parts))

    async def use(connection: Connection) -> None:
        answer = await connection.exchange(lambda _: [struct.pack(">i", size), *parts])
        assert bytes(answer) == b"".join(parts)

    with_broker(echo, use)


def test_receive_into_fills_the_buffer_it_is_given() -> None:
    async def use(connection: Connection) -> None:
        buffer = bytearray(100)
        await connection.send(numbered(9))
        received, size = await connection.receive_into(lambda size: buffer)
        assert received is buffer
        assert size == 11
        assert bytes(buffer[4:11]) == b"payload"

    with_broker(echo, use)


def test_frames_come_whole_however_they_are_cut() -> None:
    """A byte at a time, two in one piece, and one of megabytes in pieces as small as a broker's socket buffer."""
    large = bytes(range(256)) * 20_000

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await next_request(reader)
        for byte in frame(b"first"):
            writer.write(bytes([byte]))
            await asyncio.sleep(0.001)
        writer.write(frame(b"second") + frame(b"third"))
        whole = frame(large)
        for at in range(0, len(whole), 100_000):
            writer.write(whole[at : at + 100_000])
            await writer.drain()
        writer.write(frame(b"last"))
        await reader.read()

    async def use(connection: Connection) -> None:
        await connection.send(numbered(1))
        for body in (b"first", b"second", b"third", large, b"last"):
            buffer, size = await connection.receive_into(bytearray)
            assert bytes(buffer[:size]) == body
            assert not connection.is_receiving

    with_broker(serve, use)


def test_a_large_frame_that_stops_short_is_told_as_a_lost_connection() -> None:
    """Less than what it waits for in one go has come when the broker ends."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await next_request(reader)
        writer.write(struct.pack(">i", 8 << 20) + bytes(300_000))
        await writer.drain()

    async def use(connection: Connection) -> None:
        await connection.send(numbered(1))
        with pytest.raises(ConnectionLost, match="closed by the broker"):
            await connection.receive_into(bytearray)

    with_broker(serve, use)


def test_whoever_waits_for_a_frame_is_told_what_ended_the_connection() -> None:
    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await asyncio.sleep(0.01)

    async def use(connection: Connection) -> None:
        with pytest.raises(ConnectionLost, match="reset by peer") as lost:
            await connection.receive_into(bytearray)
        assert isinstance(lost.value.__cause__, ConnectionResetError)

    with_broker(serve, use)


def test_whoever_waits_for_a_frame_meets_what_its_buffer_fails_with() -> None:
    def no_room(size: int) -> bytearray:
        raise MemoryError(size)

    async def use(connection: Connection) -> None:
        receiving = asyncio.create_task(connection.receive_into(no_room))
        await asyncio.sleep(0.01)
        await connection.send(numbered(1))
        with pytest.raises(MemoryError):
            await receiving

    with_broker(echo, use)


def test_a_connection_that_is_closed_meanwhile_is_lost_to_whoever_reads() -> None:
    async def use(connection: Connection) -> None:
        receiving = asyncio.create_task(connection.receive_into(bytearray))
        await asyncio.sleep(0.01)
        connection.close()
        with pytest.raises(ConnectionLost, match="closed"):
            await receiving

    with_broker(silent, use)


def test_no_answer_in_time_is_a_lost_connection() -> None:
    async def use(connection: Connection) -> None:
        with pytest.raises(ConnectionLost, match=r"no answer within 0\.05 s"):
            await connection.exchange(numbered, timeout_s=0.05)
        assert connection.closed
        with pytest.raises(ConnectionLost):
            await connection.exchange(numbered, timeout_s=0.05)

    with_broker(silent, use)


def test_a_cancelled_exchange_closes_because_its_answer_would_be_taken_for_the_next() -> None:
    async def use(connection: Connection) -> None:
        asking = asyncio.create_task(connection.exchange(numbered))
        await asyncio.sleep(0.01)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert connection.closed

    with_broker(silent, use)


@pytest.mark.parametrize("beginning", [b"", b"\0\0", struct.pack(">i", 100), struct.pack(">i", 100) + b"half"])
def test_a_connection_that_ends_inside_a_frame_is_lost(beginning: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await next_request(reader)
        writer.write(beginning)
        await writer.drain()

    async def use(connection: Connection) -> None:
        with pytest.raises(ConnectionLost, match="closed by the broker"):
            await connection.exchange(numbered)
        assert connection.closed

    with_broker(serve, use)


@pytest.mark.parametrize("size", [-1, 0, 3, (1 << 30) + 1, 2**31 - 1, 0x48545450])
def test_a_frame_of_impossible_size_is_refused_before_memory_is_taken(size: int) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await next_request(reader)
        writer.write(struct.pack(">i", size))
        await reader.read()

    async def use(connection: Connection) -> None:
        asked: list[int] = []

        def buffer_for(size: int) -> bytearray:
            asked.append(size)
            return bytearray(8)

        await connection.send(numbered(1))
        with pytest.raises(ConnectionLost, match="not a Kafka broker"):
            await connection.receive_into(buffer_for)
        assert asked == []
        assert connection.closed

    with_broker(serve, use)


def test_nobody_listening_is_a_lost_connection() -> None:
    async def story() -> None:
        server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        server.close()
        await server.wait_closed()
        with pytest.raises(ConnectionLost, match=f"127.0.0.1:{port}"):
            await Connection.open("127.0.0.1", port, 5)

    asyncio.run(story())


def test_a_server_that_says_nothing_is_no_broker() -> None:
    async def story() -> None:
        async with serving(silent) as port:
            with pytest.raises(ConnectionLost, match="no answer"):
                await Connection.open("127.0.0.1", port, 0.05)

    asyncio.run(story())


def test_close_wakes_who_waits_for_an_answer() -> None:
    async def use(connection: Connection) -> None:
        waiting = asyncio.create_task(connection.receive_into(bytearray))
        await asyncio.sleep(0)
        connection.close()
        with pytest.raises(ConnectionLost):
            await asyncio.wait_for(waiting, 1)

    with_broker(silent, use)


def test_a_closed_connection_sends_nothing_and_may_be_closed_twice() -> None:
    async def use(connection: Connection) -> None:
        connection.close()
        connection.close()
        with pytest.raises(ConnectionLost):
            await connection.send(numbered(1))

    with_broker(silent, use)


def test_socket_buffers_are_asked_for_and_what_was_granted_is_known() -> None:
    async def story() -> None:
        async def broker(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(versions_answer(await next_request(reader)))
            await reader.read()

        async with serving(broker) as port:
            asked = await Connection.open("127.0.0.1", port, 5, buffers=Buffers(receive=20_000, send=30_000))
            left = await Connection.open("127.0.0.1", port, 5, buffers=Buffers(receive=-1, send=-1))
            greedy = await Connection.open("127.0.0.1", port, 5, buffers=Buffers(receive=1 << 30, send=1 << 30))
            try:
                assert asked.granted() == Buffers(20_000, 30_000)
                assert left.granted() != asked.granted()
                assert greedy.granted().receive > 20_000
            finally:
                asked.close()
                left.close()
                greedy.close()

    asyncio.run(story())


def test_a_connection_is_idle_when_nothing_was_asked_for_long_and_nothing_is_on_the_way() -> None:
    async def use(connection: Connection) -> None:
        assert connection.is_idle(0)
        assert not connection.is_idle(3600)
        asking = asyncio.create_task(connection.exchange(lambda number: [frame(struct.pack(">i", number))]))
        await asyncio.sleep(0)
        assert not connection.is_idle(0)
        await asking
        assert connection.is_idle(0)

    with_broker(echo, use)


# -- silence ------------------------------------------------------------------------------------------------------------


def test_an_answer_may_take_any_time_as_long_as_bytes_come() -> None:
    async def trickle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answer = frame(await next_request(reader) + bytes(300_000))
        for at in range(0, len(answer), 30_000):
            writer.write(answer[at : at + 30_000])  # less than what the loop is woken for
            await asyncio.sleep(0.2)

    async def use(connection: Connection) -> None:
        assert len(await connection.exchange(numbered, timeout_s=1.0)) > 300_000
        assert time.monotonic() - connection.began_at >= 1.5

    with_broker(trickle, use)


def test_an_answer_that_stops_coming_is_lost() -> None:
    async def stop(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(frame(await next_request(reader) + bytes(300_000))[:100_000])
        await reader.read()

    async def use(connection: Connection) -> None:
        with pytest.raises(ConnectionLost, match=r"no answer within 0\.2 s"):
            await connection.exchange(numbered, timeout_s=0.2)
        assert connection.closed

    with_broker(stop, use)


def test_a_request_may_take_any_time_as_long_as_bytes_leave() -> None:
    """What the system still holds of it counts as on its way: the broker takes it in small steps."""
    size = 12 << 20

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        left = size + 4
        while left > 0:
            left -= len(await reader.readexactly(min(left, 1 << 19)))
            await asyncio.sleep(0.05)
        writer.write(frame(b"\0\0\0\1done"))
        await reader.read()

    async def use(connection: Connection) -> None:
        answer = await connection.exchange(lambda _: [frame(bytes(size))], timeout_s=0.6)
        assert answer.endswith(b"done")

    with_broker(slow, use)


def test_a_request_that_nobody_takes_is_lost() -> None:
    lost = asyncio.Event()

    async def use(connection: Connection) -> None:
        with pytest.raises(ConnectionLost, match=r"no answer within 0\.3 s"):
            await connection.exchange(lambda _: [frame(bytes(64 << 20))], timeout_s=0.3)
        lost.set()

    async def deaf(_: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
        await lost.wait()

    with_broker(deaf, use)


def test_who_waits_on_a_connection_that_is_closed_meets_the_reason() -> None:
    async def use(connection: Connection) -> None:
        waiting = asyncio.create_task(connection.exchange(numbered))
        await asyncio.sleep(0.05)
        connection.close("somebody else leads")
        with pytest.raises(ConnectionLost, match="somebody else leads"):
            await waiting

    with_broker(silent, use)


def test_what_a_socket_still_holds_can_be_kept_from_arriving_late() -> None:
    """A slow line would go on for minutes after a worker is gone, and the target would append what another has copied."""
    size, heard = 32 << 20, []
    closed = asyncio.Event()

    async def late(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await closed.wait()
        with contextlib.suppress(OSError):
            while piece := await reader.read(1 << 16):
                heard.append(len(piece))

    async def use(connection: Connection) -> None:
        connection.send_nothing_late()
        left = connection.send_now([frame(bytes(size))])
        await asyncio.sleep(0.2)
        assert unsent_bytes(connection._sock) > 0, "the system holds what the broker does not take"
        connection.close()
        closed.set()
        await asyncio.sleep(0.2)
        assert sum(heard) < size - sum(map(len, left))

    with_broker(late, use)
