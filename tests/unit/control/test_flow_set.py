"""The flows of a run: what counts once in it."""

from __future__ import annotations

import asyncio

from heliograph.config.changes import Changes
from heliograph.config.load import load
from heliograph.control.events import EventLog
from heliograph.control.flow_set import FlowSet, Manner
from heliograph.control.flow_watch import Runner
from heliograph.kafka.slot import Warm

NOWHERE = "127.0.0.1:1"
FILE = f"clusters = A, B\nA.bootstrap.servers = {NOWHERE}\nB.bootstrap.servers = {NOWHERE}\nA->B.enabled = true\n"


def test_a_flow_that_ends_and_begins_anew_in_a_run_with_reset_is_not_copied_a_third_time() -> None:
    settings = load(FILE, "mm2.properties")

    async def resets() -> list[bool]:
        warm = Warm()
        manner = Manner(settings.engine, Runner("here", 1, "run", 0), reset=True, until_caught_up=False)
        flows = FlowSet(settings.flows, manner, warm, EventLog(warm, {}, lambda: 0), lambda: None)
        found = [watch.reset for watch in flows.watches]
        await flows.change(Changes(removed=("A->B",)))
        await flows.change(Changes(added=settings.flows))
        found += [watch.reset for watch in flows.watches]
        await flows.tasks.end_all()
        for watch in flows.watches:
            watch.close()
        warm.close()
        return found

    assert asyncio.run(resets()) == [True, False]
