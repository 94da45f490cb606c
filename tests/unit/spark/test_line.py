"""The line between task and driver, both ends on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from heliograph.spark import line as words
from heliograph.spark.line import Line, serve


def talk(driver: Callable[[Line], Awaitable[None]], task: Callable[[Line], Awaitable[None]]) -> None:
    async def story() -> None:
        server, port = await serve("127.0.0.1", driver)
        line = await Line.dial("127.0.0.1", port)
        try:
            await task(line)
        finally:
            await line.close()
            server.close()
            handlers = asyncio.all_tasks() - {asyncio.current_task()}
            if handlers:
                await asyncio.wait(handlers, timeout=5)

    asyncio.run(story())


def test_messages_arrive_whole_and_in_order_both_ways() -> None:
    said = [
        words.hello("t", 1, 2, "attempt", 9),
        words.ready(["A->B/ord\u00e9rs/0"]),
        words.report([{"lane": "x", "text": "two\nlines"}], {"process": 9}),
        words.released([("x", '{"version":1}', True)], {"x": 0.5}),
        words.took({"x": 0.25}),
    ]
    answers = [
        words.go(["x"], True, True, {"x": "entry"}),
        words.go(["y", "z"], True, False, {}),
        words.release(["x"]),
        words.throttle({"A->B": 12.5}),
        words.stop(),
        words.ping(),
    ]
    heard: list[object] = []

    async def driver(line: Line) -> None:
        for _ in said:
            heard.append(await line.receive())
        for answer in answers:
            line.send(answer)
        assert await line.receive() is None

    async def task(line: Line) -> None:
        for message in said:
            line.send(message)
        for answer in answers:
            assert await line.receive() == answer

    talk(driver, task)
    assert heard == said


def test_go_says_held_and_alone_apart() -> None:
    """A lane whose flow is held may be fenced anew before its last attempt is known dead."""
    message = words.go(["x"], held=True, alone=False, entries={"x": "entry"})
    assert message == {"kind": "go", "lanes": ["x"], "held": True, "alone": False, "entries": {"x": "entry"}}


def test_the_other_ends_end_is_none() -> None:
    async def driver(line: Line) -> None:
        line.send(words.ping())

    async def task(line: Line) -> None:
        assert await line.receive() == words.ping()
        assert await line.receive() is None

    talk(driver, task)


def test_half_a_message_is_no_message() -> None:
    heard: list[object] = []

    async def driver(line: Line) -> None:
        heard.append(await line.receive())

    async def task(line: Line) -> None:
        line._writer.write(b'{"kind":"he')

    talk(driver, task)
    assert heard == [None]


def test_a_report_of_many_lanes_fits_a_line() -> None:
    rows = [{"lane": f"A->B/topic/{number}", "reason": "x" * 200} for number in range(5000)]
    heard: list[words.Message | None] = []

    async def driver(line: Line) -> None:
        heard.append(await line.receive())

    async def task(line: Line) -> None:
        line.send(words.report(rows, {}))

    talk(driver, task)
    assert heard[0] is not None
    assert len(heard[0]["lanes"]) == 5000


def test_sending_on_a_closed_line_says_nothing() -> None:
    async def driver(line: Line) -> None:
        assert await line.receive() is None

    async def task(line: Line) -> None:
        await line.close()
        line.send(words.ping())

    talk(driver, task)
