"""The real MirrorMaker 2 hands over and takes back, killed with -9 at random moments, under load: no record twice, none lost."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest

from heliograph.errors import SetupError
from tests.integration.protocol.harness import QUICK, Attempt
from tests.support.clusters import ClusterFactory
from tests.support.flows import InProcessFlow
from tests.support.heliograph_run import HeliographRun, write_properties
from tests.support.mirror import command
from tests.support.mirrormaker import QUICK_GROUPS, Worker, mirrormaker_lines, wait_until_forgotten
from tests.support.topics import create_topic
from tests.support.waiting import wait_until
from tests.support.writers import producer, samples, send

ROUNDS = 10
FROM_THE_SHELL = 4
PARTITIONS = 3


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
    lines = {"A->B.topics": "t", **mirrormaker_lines("A", "B")}
    with Load(here, "t"):
        yield InProcessFlow("A", "B", here, there, lines)


def mirrormaker_leg(flow: InProcessFlow, directory: Path, chance: random.Random, first: bool) -> None:
    """It goes on exactly where the last leg stopped, and dies at some moment."""
    before = flow.copied("t")
    with Worker(directory, flow.file()) as worker:
        wait_until(lambda: flow.copied("t") > before, f"MirrorMaker 2 copies ({worker.log})", every=0.05)
        if first:
            with pytest.raises(SetupError, match="flow A->B: a MirrorMaker 2 on .* stop it first"):
                flow.open()
        time.sleep(chance.uniform(0, 1.0))
        worker.kill()
    wait_until_forgotten(flow.target, "A-mm2")


def heliograph_leg(flow: InProcessFlow, chance: random.Random) -> None:
    """It takes over, copies, and ends: drained, or killed so that the ledger is behind."""
    before = flow.copied("t")
    opened = flow.open()
    assert opened.flow.refused == {}
    # Its stored progress is behind what it copied, or the test would show nothing.
    assert any(entry.source_start > entry.mm2_offset + 1 for entry in opened.entries)
    with Attempt(opened, QUICK) as attempt:
        attempt.wait_for(lambda: flow.copied("t") > before, "Heliograph copies")
        time.sleep(chance.uniform(0, 0.5))
        if chance.random() < 0.5:
            attempt.stop()
        else:
            attempt.kill()


def leg_from_the_shell(flow: InProcessFlow, directory: Path) -> None:
    """The same with the commands that a person types, on Spark."""
    before = flow.copied("t")
    properties = write_properties(directory / "shell.properties", flow.file())
    with HeliographRun(properties) as run:
        wait_until(lambda: flow.copied("t") > before, "heliograph run copies")
        assert run.terminate() == 0, run.output
    assert "MirrorMaker 2 stored progress of 3 partitions" in run.output
    assert "generation" in run.output and "taken over" in run.output
    said = command("hand-back", str(properties), "--yes")
    assert said.code == 0, said.err


@pytest.mark.timeout(900)
def test_ten_times_there_and_back_with_kills_repeat_and_lose_nothing(flow: InProcessFlow, tmp_path: Path) -> None:
    chance = random.Random()
    total = 0
    for number in range(ROUNDS):
        mirrormaker_leg(flow, tmp_path, chance, first=number == 0)
        copied = flow.assert_exact("t", f"round {number}: MirrorMaker 2")
        if number == FROM_THE_SHELL:
            leg_from_the_shell(flow, tmp_path)
        else:
            heliograph_leg(flow, chance)
            flow.hand_back()
        total = flow.assert_exact("t", f"round {number}: Heliograph")
        assert total > copied
    assert total > 1_000
