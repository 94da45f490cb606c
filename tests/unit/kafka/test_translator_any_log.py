"""Any history, any retention, any cleaning: an answer that is given is true, and the account closes. Logs are in memory."""

from __future__ import annotations

import asyncio
import random

import pytest

from heliograph.kafka import batch_at
from heliograph.kafka import translator as module
from heliograph.kafka.auditor import Auditor
from heliograph.kafka.translator import Lineage, Translator
from heliograph.replication.translation import Exact, Gone, NeverCopied, NotKnown, NotYetCopied, points
from tests.unit.kafka.memory_logs import History, fetch_batches, read_range

COMMON = ["copy"] * 5 + ["marker", "abort", "home", "foreign", "second", "skip", "rotate"]
SEEDS = range(40)


@pytest.fixture(autouse=True)
def in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "read_range", read_range)
    monkeypatch.setattr(batch_at, "fetch_batches", fetch_batches)


def history(seed: int, what: list[str], largest: int = 4) -> History:
    """Few values make equal records, which a crash may put in each other's place: not both in one history."""
    chance = random.Random(seed)
    made = History(chance, largest, values=chance.choice([1_000_000] if "crash" in what else [2, 1_000_000]))
    made.live(chance.randrange(60), what)
    return made


def translator(made: History) -> Translator:
    lineage = Lineage(frozenset(made.producers))
    return Translator(made.entry(), made.source.as_end(), made.target.as_end(), lineage)


@pytest.mark.parametrize("seed", SEEDS)
def test_whole_logs_are_translated_and_accounted_for_without_exception(seed: int) -> None:
    made = history(seed, COMMON)

    async def check() -> None:
        lane = translator(made)
        first = points(lane.entry)[0].source
        for offset in range(made.source.end + 1):
            answer = await lane.translate(offset)
            if offset in made.truth:
                assert answer == Exact(made.truth[offset])
            elif offset < first:
                assert isinstance(answer, NeverCopied | NotKnown), "nothing is kept from before the first record"
            elif offset < lane.entry.source_next:
                assert isinstance(answer, NeverCopied)
                after = next((copy for source, copy in sorted(made.truth.items()) if source >= offset), None)
                ours = (copy for copy in sorted(made.truth.values()) if copy >= (answer.resume or 0))
                assert next(ours, None) == after
            else:
                assert isinstance(answer, Exact | NotYetCopied)
        back = {copy: source for source, copy in made.truth.items()}
        for offset in range(lane.entry.target_next):
            answer = await lane.translate(offset, reverse=True)
            assert answer == Exact(back[offset]) if offset in back else isinstance(answer, NeverCopied)
        account = await Auditor(lane).account()
        assert account.closes
        assert (account.copied, account.offsets) == (len(made.truth), made.source.end - first)
        assert account.skipped == made.skipped or first > 0
        waiting = made.source.end - lane.entry.source_next
        assert account.came_home <= made.came_home <= account.came_home + first + waiting

    asyncio.run(check())


@pytest.mark.parametrize("how", ["cut", "clean"])
@pytest.mark.parametrize("seed", SEEDS)
def test_what_logs_lost_since_makes_no_answer_wrong(seed: int, how: str) -> None:
    crashes = ["crash"] if how == "clean" and seed % 2 else []
    made = history(seed, [*COMMON, *crashes], largest=1 if how == "clean" else 4)
    for log in (made.source, made.target):
        if made.chance.random() < 0.7:
            getattr(log, how)(made.chance.randrange(log.end + 1))

    async def check() -> None:
        lane = translator(made)
        source, target = made.source.records(), made.target.records()
        for offset, copy in made.truth.items():
            answer = await lane.translate(offset)
            if offset in source and copy in target:
                assert answer == Exact(copy) or isinstance(answer, NotKnown), (offset, copy)
                assert how == "clean" or not isinstance(answer, NotKnown)
            elif isinstance(answer, Exact):
                assert answer.offset == copy
            elif isinstance(answer, Gone):
                assert copy not in target if answer.side == "target" else offset not in source
            back = await lane.translate(copy, reverse=True)
            if offset in source and copy in target:
                assert back == Exact(offset) or isinstance(back, NotKnown)
        assert how == "clean" or (await Auditor(lane).account()).closes

    asyncio.run(check())


def test_a_new_producer_id_moves_no_group_past_what_the_target_has() -> None:
    """M5: the source deleted the beginning of an old window; by today's id alone nothing of it would be ours."""
    made = History(random.Random(1))
    for step in ("copy", "copy", "copy", "rotate", "copy"):
        made._now += 60_000
        getattr(made, step)()
    made.source.cut(2)
    offset = 3

    async def answers() -> list[object]:
        lanes = (Translator(made.entry(), made.source.as_end(), made.target.as_end()), translator(made))
        return [await lane.translate(offset) for lane in lanes]

    alone, known = asyncio.run(answers())
    assert isinstance(alone, NotKnown), "what is not counted is not gone"
    assert known == Exact(made.truth[offset])
