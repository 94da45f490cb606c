"""When a flow is looked at again, and how much of it."""

from __future__ import annotations

import asyncio

from heliograph.control.looks import Looks

PARKED = frozenset({"A->B/orders/0", "A->B/orders/1", "A->B/clicks/0"})


class Times:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_flow_is_looked_at_as_a_whole_after_the_pause() -> None:
    assert asyncio.run(Looks(Times()).wait(0.01)) is None


def test_lanes_that_stand_still_have_their_topics_looked_at_and_no_others() -> None:
    async def scenario() -> None:
        times = Times()
        looks = Looks(times)
        looks.at_lanes(PARKED)
        assert await looks.wait(0.01) == {"orders", "clicks"}
        looks.at_lanes(PARKED)  # it is too soon for those
        assert await looks.wait(0.01) is None
        times.now = 5
        looks.at_lanes(PARKED)
        assert await looks.wait(0.01) == {"orders", "clicks"}

    asyncio.run(scenario())


def test_such_looks_do_not_put_off_the_next_look_at_all_of_it() -> None:
    async def scenario() -> None:
        times = Times()
        looks = Looks(times)
        looks.at_lanes(PARKED)
        assert await looks.wait(0.1) is not None
        times.now = 60
        assert await looks.wait(60) is None, "due sixty seconds after the last one, which is now"

    asyncio.run(scenario())


def test_who_asks_for_all_of_it_gets_all_of_it() -> None:
    async def scenario() -> None:
        looks = Looks(Times())
        for number, ask in enumerate((looks.now, looks.soon, looks.whole)):
            looks.at_lanes(PARKED | {f"A->B/new/{number}"})
            ask()
            assert await looks.wait(0.01) is None

    asyncio.run(scenario())


def test_somebody_who_asks_for_it_now_does_not_wait() -> None:
    async def scenario() -> None:
        looks = Looks(Times())
        looks.now()
        async with asyncio.timeout(4):
            assert await looks.wait(3600) is None

    asyncio.run(scenario())
