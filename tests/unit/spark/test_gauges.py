"""A loop that knows how long it slept, and what a slot tells of itself."""

from __future__ import annotations

import asyncio
from typing import Any

from heliograph.kafka.slot import FlowRules, Slot, SlotPlan, SlotSettings, Warm
from heliograph.spark.carry import run_orders
from heliograph.spark.gauges import PatientSelector, SlotGauges

RULES = FlowRules("A->B", "A", "B", True, 86_400_000)


def test_a_loop_knows_how_long_it_slept_and_looks_are_no_sleep() -> None:
    selector = PatientSelector()
    loop = asyncio.SelectorEventLoop(selector)
    try:
        before = selector.slept
        selector.select(0)
        assert selector.slept == before
        loop.run_until_complete(asyncio.sleep(0.05))
        assert selector.slept - before > 0.03
    finally:
        loop.close()
    assert list(run_orders([])) == []


def test_a_slot_tells_of_its_flows_its_targets_and_its_time() -> None:
    async def told() -> dict[str, Any]:
        slot = Slot(SlotPlan((), {}, {}, {RULES.flow: RULES}, SlotSettings()), Warm(), "one")
        gauges = SlotGauges(lambda: 0.0)
        slot.meters[RULES.flow].fetched(10, 12, 0)
        slot.writer_meters[RULES.target].answered(0.1, 0)
        return gauges.read(slot)

    found = asyncio.run(told())
    assert found["flows"][RULES.flow]["fetches"] == 1
    assert found["targets"][RULES.target]["requests"] == 1
    assert found["seconds"] > 0
    assert found["io_seconds"] >= 0
    assert found["time"]["source"] == 0
    assert found["time"]["busy"] > 0
