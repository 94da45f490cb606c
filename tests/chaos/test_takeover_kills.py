"""The real MirrorMaker 2 hands over and takes back, under load, and both are killed with -9: no record twice, none lost.

Every leg of Heliograph is `heliograph run FILE` on Spark, every hand-back the command that a person types. Five rounds, one for
each way in which a leg can end: ten would cost the suite two minutes more and show none that these do not.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest

from tests.support.clusters import ClusterFactory
from tests.support.flows import InProcessFlow
from tests.support.heliograph_run import HeliographRun, write_properties
from tests.support.lane_ledger import LaneLedger
from tests.support.mirror import command
from tests.support.mirrormaker import QUICK_GROUPS, Worker, mirrormaker_lines, wait_until_forgotten
from tests.support.topics import create_topic
from tests.support.waiting import wait_until
from tests.support.writers import producer, samples, send

ENDS = (
    ("drained",),
    ("driver",),
    ("worker", "drained"),
    ("worker", "everything"),
    ("jvm", "driver"),
)
"""What happens to Heliograph in each round, all of it kill -9 but the first word, which is SIGTERM. A killed driver leaves its JVM
and its workers behind, which copy on until they notice; `everything` is what a machine that is lost takes along."""
PARTITIONS = 3
QUICK_TAKEOVER = {"takeover.wait.seconds": "10", "request.timeout.ms": "5000"}


class Load:
    """Writes for ever, three hundred records in a second at most, no two alike."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._client = producer(bootstrap, linger_ms=5)
        self._topic = topic
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        number = 0
        while not self._ended.wait(0.1):
            send(self._client, self._topic, samples(30, partitions=PARTITIONS, seed=number))
            number += 1

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *about: object) -> None:
        self._ended.set()
        self._thread.join(30)


@pytest.fixture
def flow(new_cluster: ClusterFactory) -> Iterator[InProcessFlow]:
    here = new_cluster("A").bootstrap
    there = new_cluster("B", config=QUICK_GROUPS).bootstrap
    create_topic(here, "t", PARTITIONS)
    lines = {"A->B.topics": "t", **QUICK_TAKEOVER, **mirrormaker_lines("A", "B")}
    with Load(here, "t"):
        yield InProcessFlow("A", "B", here, there, lines)


def mirrormaker_leg(flow: InProcessFlow, file: Path, chance: random.Random) -> None:
    """It goes on exactly where the last leg stopped, and dies at some moment; nobody takes over while it lives."""
    before = flow.copied("t")
    with Worker(file.parent, flow.file()) as worker:
        wait_until(lambda: flow.copied("t") > before, f"MirrorMaker 2 copies ({worker.log})", every=0.05)
        if not before:
            refused = command("run", str(file), "--until-caught-up")
            assert refused.code == 1 and "flow A->B: a MirrorMaker 2 on " in refused.err, refused.err
            assert "stop it first" in refused.err
        time.sleep(chance.uniform(0, 1.0))
        worker.kill()
    wait_until_forgotten(flow.target, "A-mm2")


def heliograph_leg(flow: InProcessFlow, file: Path, ends: tuple[str, ...], chance: random.Random) -> None:
    """It takes over, copies, ends as it is told to; and hands back, whatever of it is still there."""
    copied = flow.copied("t")
    with HeliographRun(file) as run:
        for end in ends:
            wait_until(lambda before=copied: flow.copied("t") > before, "heliograph run copies")  # type: ignore[misc]
            time.sleep(chance.uniform(0, 0.5))
            finish(run, end)
            copied = flow.copied("t")
        assert "generation" in run.output and "taken over" in run.output
        said = command("hand-back", str(file), "--yes")
        assert said.code == 0, said.err


def finish(run: HeliographRun, end: str) -> None:
    match end:
        case "drained":
            assert run.terminate() == 0, run.output
        case "driver":
            run.kill()
        case "everything":
            run.kill_tree()
        case "worker" | "jvm":
            found: list[int] = []

            def carries() -> bool:
                found[:] = run.carriers()
                return bool(found)

            wait_until(carries, "a worker carries")
            os.kill(random.choice(found if end == "worker" else run.jvms()), signal.SIGKILL)


def assert_taken_over_behind(flow: InProcessFlow) -> None:
    """In every round MirrorMaker 2's stored progress was behind what it had copied, or the kills of it would show nothing."""
    ledgers = [LaneLedger(flow.target, "t", partition) for partition in range(PARTITIONS)]
    try:
        entries = [entry for ledger in ledgers for entry in ledger.look()]
    finally:
        for ledger in ledgers:
            ledger.close()
    behind = {(entry.lane, entry.generation) for entry in entries if entry.mm2_offset + 1 < entry.source_start}
    assert len(behind) >= len(ENDS), f"its progress was behind in {behind} only"


@pytest.mark.timeout(900)
def test_there_and_back_with_kills_of_both_mirrors_repeats_and_loses_nothing(
    flow: InProcessFlow, tmp_path: Path
) -> None:
    chance = random.Random()
    file = write_properties(tmp_path / "mm2.properties", flow.file())
    total = 0
    for number, ends in enumerate(ENDS):
        mirrormaker_leg(flow, file, chance)
        copied = flow.assert_exact("t", f"round {number}: MirrorMaker 2")
        heliograph_leg(flow, file, ends, chance)
        total = flow.assert_exact("t", f"round {number}: Heliograph, {ends}")
        assert total > copied
    assert_taken_over_behind(flow)
    assert total > 1_000
