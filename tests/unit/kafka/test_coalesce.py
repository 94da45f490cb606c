"""Many askers, one question."""

from __future__ import annotations

import asyncio

import pytest

from heliograph.errors import ConnectionLost
from heliograph.kafka.coalesce import Coalescer


def test_askers_of_the_same_moment_share_one_question() -> None:
    asked: list[list[str]] = []

    async def ask(keys: list[str]) -> dict[str, int]:
        asked.append(keys)
        return {key: len(key) for key in keys}

    async def story() -> list[int | None]:
        together: Coalescer[str, int] = Coalescer(ask)
        return await asyncio.gather(*(together.get(key) for key in ("a", "bb", "a", "ccc")))

    assert asyncio.run(story()) == [1, 2, 1, 3]
    assert asked == [["a", "bb", "ccc"]]


def test_a_later_asker_is_never_given_an_earlier_answer() -> None:
    counter = iter(range(10))

    async def ask(keys: list[str]) -> dict[str, int]:
        number = next(counter)
        return dict.fromkeys(keys, number)

    async def story() -> list[int | None]:
        together: Coalescer[str, int] = Coalescer(ask)
        return [await together.get("a"), await together.get("a")]

    assert asyncio.run(story()) == [0, 1]


def test_who_asks_while_a_question_is_on_its_way_gets_the_next_one() -> None:
    asked: list[list[str]] = []
    gate: asyncio.Event

    async def ask(keys: list[str]) -> dict[str, int]:
        asked.append(keys)
        if len(asked) == 1:
            await gate.wait()
        return dict.fromkeys(keys, len(asked))

    async def story() -> None:
        nonlocal gate
        gate = asyncio.Event()
        together: Coalescer[str, int] = Coalescer(ask)
        first = asyncio.create_task(together.get("a"))
        while not asked:
            await asyncio.sleep(0)
        assert await together.get("a") == 2
        gate.set()
        assert await first == 2

    asyncio.run(story())
    assert asked == [["a"], ["a"]]


def test_a_key_that_the_answer_leaves_out_is_none() -> None:
    async def ask(_: list[str]) -> dict[str, int]:
        return {}

    async def story() -> int | None:
        together: Coalescer[str, int] = Coalescer(ask)
        return await together.get("a")

    assert asyncio.run(story()) is None


def test_a_failed_question_fails_everybody_who_asked_and_nobody_after() -> None:
    fails = True

    async def ask(keys: list[str]) -> dict[str, int]:
        if fails:
            raise ConnectionLost("b:1: closed")
        return dict.fromkeys(keys, 7)

    async def story() -> None:
        nonlocal fails
        together: Coalescer[str, int] = Coalescer(ask)
        found = await asyncio.gather(together.get("a"), together.get("b"), return_exceptions=True)
        assert [str(error) for error in found] == ["b:1: closed", "b:1: closed"]
        fails = False
        assert await together.get("a") == 7

    asyncio.run(story())


def test_one_asker_that_gives_up_does_not_take_the_answer_from_the_others() -> None:
    async def ask(keys: list[str]) -> dict[str, int]:
        return dict.fromkeys(keys, 1)

    async def story() -> None:
        together: Coalescer[str, int] = Coalescer(ask)
        impatient = asyncio.create_task(together.get("a"))
        patient = asyncio.create_task(together.get("a"))
        await asyncio.sleep(0)
        impatient.cancel()
        with pytest.raises(asyncio.CancelledError):
            await impatient
        assert await patient == 1

    asyncio.run(story())


def test_answers_can_be_awaited_together_without_a_task_for_each() -> None:
    async def ask(keys: list[str]) -> dict[str, int]:
        return {key: len(key) for key in keys}

    async def story() -> tuple[list[int | None], int]:
        one: Coalescer[str, int] = Coalescer(ask)
        other: Coalescer[str, int] = Coalescer(ask)
        asked = [together.soon(key) for key in ("a", "bb", "ccc") for together in (one, other)]
        return await asyncio.gather(*asked), len(asyncio.all_tasks())

    answers, tasks = asyncio.run(story())
    assert answers == [1, 1, 2, 2, 3, 3]
    assert tasks == 1, "nobody else is left"
