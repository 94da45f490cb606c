"""What a flow's ledger tells a translator, and that a home ledger which the flow did not begin with is not believed."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from heliograph.control.home_ledger import lineage_of, noted_ledger
from heliograph.kafka import batch_at
from heliograph.kafka import translator as module
from heliograph.kafka.ledger import LEDGER_TOPIC, Ledger
from heliograph.kafka.translator import Translator
from heliograph.model.lanes import Rule
from heliograph.replication.generations import LedgerBook
from heliograph.replication.ledger_keys import PRODUCER_NOTE, NoteKey
from heliograph.replication.translation import Answer, Exact, NotKnown
from tests.unit.kafka.memory_logs import History, fetch_batches, read_range

FLOW, BACK = "A->B", "B->A"
NOT_THE_ONE = (
    f"it cannot be told which records {BACK} wrote: topic {LEDGER_TOPIC} on A is not the one that this flow began with"
)


class SourceClient:
    """Of a cluster whose ledger is the topic `there`."""

    def __init__(self, there: str) -> None:
        self.cluster = SimpleNamespace(alias="A")
        self.there = there

    async def metadata(self, _: list[str]) -> dict[str, Any]:
        return {LEDGER_TOPIC: SimpleNamespace(topic_id=self.there)}


class HomeLedger(Ledger):
    """It can be read, and has nothing in it."""

    def __init__(self, there: str) -> None:
        super().__init__(SourceClient(there))  # type: ignore[arg-type]  # stands in
        self._read_id = there

    async def refresh(self) -> LedgerBook:
        return self.book


def book(noted: str) -> LedgerBook:
    made = LedgerBook()
    made.apply(str(NoteKey(FLOW, PRODUCER_NOTE, "7")), b"{}", 0)
    made.apply(str(NoteKey(FLOW, "home", BACK)), noted.encode(), 1)
    return made


def test_a_translator_is_told_every_producer_and_the_home_ledger_that_the_flow_noted() -> None:
    told = lineage_of(book("one"), FLOW, BACK)
    assert (told.producers, told.home_ledger) == ({7}, "one")
    assert lineage_of(book("one"), FLOW, "").home_ledger == "", "such a flow needs none"
    assert noted_ledger(book("one"), "C->B", BACK) == ""


@pytest.mark.parametrize(("there", "is_believed"), [("one", True), ("another", False)])
def test_translation_goes_by_no_home_ledger_but_the_one_that_the_flow_began_with(
    there: str, is_believed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """M5: what is in another one does not tell what came home, so nothing can be counted."""
    monkeypatch.setattr(module, "read_range", read_range)
    monkeypatch.setattr(batch_at, "fetch_batches", fetch_batches)
    monkeypatch.setattr(module, "Ledger", lambda _: HomeLedger(there))
    made = History(random.Random(1))
    for step in ("copy", "home", "copy", "home"):
        getattr(made, step)()
    entry = replace(made.entry(), rule=Rule(without=BACK), anchors=())  # so it must be counted
    lane = Translator(entry, made.source.as_end(), made.target.as_end(), lineage_of(book("one"), FLOW, BACK))
    copied, copy = max(made.truth.items())

    async def answers() -> list[Answer]:
        behind_the_end = await lane.translate(made.source.end)
        return [await lane.translate(copied), await lane.translate(copy, reverse=True), behind_the_end]

    known = [Exact(copy), Exact(copied), Exact(made.target.end, is_record=False)]
    assert asyncio.run(answers()) == (known if is_believed else [NotKnown(NOT_THE_ONE)] * 3)
