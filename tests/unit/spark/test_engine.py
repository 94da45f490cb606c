"""A session that is lost is started again, however often that fails; the first start fails with its reason; an epoch need not wait for
workers that it does not need."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from heliograph.errors import SetupError
from heliograph.spark.engine import Engine
from heliograph.spark.epoch import EpochOutcome, EpochRunner

PATIENCE_SECONDS = 30.0


@pytest.fixture(autouse=True)
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_NO_EPOCH_SECONDS", "_SETTLED_SECONDS"):
        monkeypatch.setattr(f"heliograph.spark.engine.{name}", 0.01)


class Sparks:
    """Starts sessions; `failing` of them fail. A session warms its workers up by `warm_up`."""

    def __init__(self, failing: int = 0, warm_up: Callable[[], None] = lambda: None) -> None:
        self.failing = failing
        self.tries = 0
        self._warm_up = warm_up

    def start(self, master: str, settings: Mapping[str, str], log: Path) -> Any:
        del settings, log
        self.tries += 1
        if self.tries <= self.failing:
            raise SetupError(f"Spark did not start on {master}")
        return SimpleNamespace(setJobGroup=lambda *_: None, parallelize=self._parallelize, stop=lambda: None)

    def _parallelize(self, rows: Any, *_: Any) -> Any:
        def collect() -> list[Any]:
            if isinstance(rows, range):
                self._warm_up()
            return []

        return SimpleNamespace(mapPartitions=lambda work: SimpleNamespace(collect=collect))


def engine(sparks: Sparks) -> Engine:
    return Engine("local[2]", 1, {}, Path("spark.log"), sparks.start)


def test_the_first_start_fails_with_its_reason() -> None:
    sparks = Sparks(failing=1)
    with pytest.raises(SetupError, match="did not start on local"):
        asyncio.run(engine(sparks).start())
    assert sparks.tries == 1


def test_a_later_start_is_tried_until_it_succeeds() -> None:
    sparks = Sparks(failing=2)
    spark = engine(sparks)
    spark.sessions = 1  # it was up before its JVM was killed
    asyncio.run(spark.start())
    assert (sparks.tries, spark.sessions) == (3, 2)


def test_a_session_that_is_there_is_not_started_again() -> None:
    sparks = Sparks()
    spark = engine(sparks)

    async def twice() -> None:
        await spark.start()
        await spark.start()

    asyncio.run(twice())
    assert (sparks.tries, spark.sessions) == (1, 1)


def test_an_epoch_does_not_wait_for_workers_that_it_does_not_need() -> None:
    ended = threading.Event()
    spark = engine(Sparks(warm_up=lambda: _wait_for(ended)))

    async def play() -> EpochOutcome:
        starting = asyncio.create_task(spark.start())
        outcome = await spark.run(1, [])
        assert not starting.done(), "who wants warm workers still waits for them"
        assert spark.sessions == 0, "no task was heard: it cannot be stuck yet"
        ended.set()
        await starting
        return outcome

    assert asyncio.run(play()) == EpochOutcome(1)
    assert spark.sessions == 1


def test_workers_of_the_next_epoch_do_not_start_while_the_first_one_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_NO_EPOCH_SECONDS", "_SETTLED_SECONDS"):
        monkeypatch.setattr(f"heliograph.spark.engine.{name}", 3600)
    warmed: list[bool] = []
    spark = engine(Sparks(warm_up=lambda: warmed.append(True)))

    async def play() -> None:
        await spark.run(1, [])
        starting = asyncio.create_task(spark.start())
        await asyncio.sleep(0.05)
        assert not starting.done()
        starting.cancel()

    asyncio.run(play())
    assert warmed == []


def test_a_session_that_is_over_before_its_workers_are_due_warms_none_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heliograph.spark.engine.stop_session", lambda context: None)
    warmed: list[bool] = []
    spark = engine(Sparks(warm_up=lambda: warmed.append(True)))

    async def play() -> None:
        await spark.run(1, [])
        await spark.stop()
        assert spark._warming is not None
        await spark._warming

    asyncio.run(play())
    assert warmed == []


def test_a_session_whose_task_was_heard_counts_before_all_its_workers_are_warm() -> None:
    ended = threading.Event()
    spark = engine(Sparks(warm_up=lambda: _wait_for(ended)))

    async def play() -> None:
        await spark.run(1, [])
        spark.works()
        spark.works()
        assert spark.sessions == 1
        ended.set()
        await spark.start()

    asyncio.run(play())
    assert spark.sessions == 1


def test_a_first_session_whose_workers_do_not_start_is_no_start() -> None:
    spark = engine(Sparks(warm_up=_fail))
    with pytest.raises(SetupError, match="no worker"):
        asyncio.run(spark.start())


def test_a_later_session_whose_workers_do_not_start_does_not_end_the_run(caplog: pytest.LogCaptureFixture) -> None:
    spark = engine(Sparks(warm_up=_fail))
    spark.sessions = 1
    asyncio.run(spark.start())
    assert "workers were not warmed up: no worker" in caplog.text
    assert spark.sessions == 1


def test_what_warms_up_a_session_that_is_over_says_nothing_of_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heliograph.spark.engine.stop_session", lambda context: None)
    ended, warmed = threading.Event(), threading.Event()

    def warm_up(self: EpochRunner, slots: int) -> None:
        del self, slots
        if not warmed.is_set():
            warmed.set()
            _wait_for(ended)

    monkeypatch.setattr(EpochRunner, "warm_up", warm_up)
    spark = engine(Sparks())

    async def play() -> None:
        first = asyncio.create_task(spark.start())
        await asyncio.to_thread(_wait_for, warmed)
        spark.works()
        await spark.restart("its JVM is gone")
        assert spark.sessions == 2
        ended.set()
        await first

    asyncio.run(play())
    assert spark.sessions == 2


def _wait_for(event: threading.Event) -> None:
    assert event.wait(PATIENCE_SECONDS)


def _fail() -> None:
    raise SetupError("no worker")
