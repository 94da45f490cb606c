"""A file that is saved while it runs: topics and flows come and go, lanes that did not change are carried throughout."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from heliograph.operations.compare import compare_topics
from tests.support.arrivals import SteadyWriter
from tests.support.clusters import TwoClusters
from tests.support.frozen import SteadyLane, is_carried_through
from tests.support.heliograph_run import HeliographRun
from tests.support.mirror import command, flow_file, lanes_of, status, status_when_following, word
from tests.support.topics import create_topic, ends, partition_count
from tests.support.waiting import wait_until
from tests.support.writers import samples, write

CHANGES = 3
SAME = ("producer_id", "producer_epoch", "generation", "delta")


@dataclass
class Stage:
    """A run, its file, and what the file says beside its flows."""

    clusters: TwoClusters
    here: str
    there: str
    w: str
    file: Path
    run: HeliographRun

    @property
    def flow(self) -> str:
        return f"{self.here}->{self.there}"

    @property
    def back(self) -> str:
        return f"{self.there}->{self.here}"

    def save(self, flows: dict[str, str], **more: str) -> None:
        """`more` has `_` for `.`."""
        addresses = {self.here: self.clusters.a.bootstrap, self.there: self.clusters.b.bootstrap}
        named = {flow: ", ".join(f"{self.w}-{kind}" for kind in kinds.split()) for flow, kinds in flows.items()}
        flow_file(self.file, addresses, named, {name.replace("_", "."): value for name, value in more.items()})

    def topic(self, kind: str, records: int = 0) -> None:
        create_topic(self.clusters.a.bootstrap, f"{self.w}-{kind}")
        self.write(kind, records)

    def write(self, kind: str, records: int) -> None:
        write(self.clusters.a.bootstrap, f"{self.w}-{kind}", samples(records))

    def copied(self, kind: str) -> int:
        return sum(ends(self.clusters.b.bootstrap, f"{self.here}.{self.w}-{kind}").values())

    def lanes(self, kind: str, flow: str = "") -> list[dict[str, Any]]:
        return lanes_of(status(self.file)[flow or self.flow], f"{self.w}-{kind}")

    def assert_identical(self, *kinds: str) -> None:
        here, there = self.clusters.a.bootstrap, self.clusters.b.bootstrap
        pairs = {f"{self.w}-{kind}": f"{self.here}.{self.w}-{kind}" for kind in kinds}
        assert compare_topics(here, there, pairs).differences == []


@pytest.fixture
def stage(two_clusters: TwoClusters, tmp_path: Path) -> Iterator[Stage]:
    here, there, file = word(), word(), tmp_path / "mm2.properties"
    made = Stage(two_clusters, here, there, word(), file, HeliographRun(file, "--log-level", "debug"))
    for kind in ("steady", "taken-out"):
        made.topic(kind, 10)
    made.save({made.flow: "steady taken-out"}, reload_interval_seconds="1")
    with made.run:
        wait_until(lambda: made.copied("steady") + made.copied("taken-out") == 20, "the mirror runs", every=0.2)
        yield made


def test_topics_flows_and_intervals_change_while_it_runs_and_other_lanes_are_carried_throughout(stage: Stage) -> None:
    stage.topic("added", 50)
    before = lanes_of(status_when_following(stage.file, stage.flow), f"{stage.w}-steady")
    _change_topics(stage)
    wait_until(lambda: stage.lanes("taken-out")[0]["state"] == "left out", "status says so", every=0.5)
    stage.write("taken-out", 5)
    _refuse_a_wrong_file(stage)
    _begin_a_flow_back(stage)
    assert stage.copied("taken-out") == 10, "nothing was copied since it was taken out"
    after = stage.lanes("steady")
    assert [[lane[name] for name in SAME] for lane in after] == [[lane[name] for name in SAME] for lane in before]
    remote = f"{stage.here}.{stage.w}-steady"
    wait_until(
        lambda: ends(stage.clusters.b.bootstrap, remote) == ends(stage.clusters.a.bootstrap, f"{stage.w}-steady"),
        "all arrived",
    )
    stage.assert_identical("steady", "added")
    _ask_by_signal(stage)
    stage.assert_identical("steady", "added", "taken-out")
    assert stage.run.terminate() == 0, stage.run.output


def _change_topics(stage: Stage) -> None:
    """Every change takes effect while a lane that it does not touch is carried on: by the task that has it, until the next is ready.

    The tasks of the epoch that a change begins are kept from starting, and records that are written from then on must arrive all
    the same: a mirror that lets its lanes go at a change fails at each of them, on any machine. No clock is asked; how long the
    hand-over itself takes is measured by `python -m tests.bench.joining`.
    """
    here, there = stage.clusters.a.bootstrap, stage.clusters.b.bootstrap
    lane = SteadyLane((here, f"{stage.w}-steady"), (there, f"{stage.here}.{stage.w}-steady"))
    writer = SteadyWriter(here, f"{stage.w}-steady", every_s=0.005)
    shown: list[bool] = []
    try:
        wait_until(lambda: lane.copied > 200, "records flow")
        # A task whose lanes are all taken out ends, and its worker is free for the next one: not beside the changes below.
        stage.save({stage.flow: "steady added"}, reload_interval_seconds="1")
        wait_until(lambda: stage.lanes("taken-out")[0]["state"] == "left out", "it is taken out", every=0.5)
        wait_until(lambda: stage.copied("added") == 50, "the first one is added", every=0.1)
        while shown.count(True) < CHANGES:
            assert len(shown) < 2 * CHANGES, "lanes were carried only by a Spark that was started again"
            new = f"added-{len(shown)}"
            stage.topic(new, 50)
            choose, is_copied = partial(_choose, stage, len(shown)), partial(_is_copied, stage, new)
            shown.append(is_carried_through(stage.run, lane, choose, is_copied))
            wait_until(is_copied, f"{new} is copied", every=0.1)
    finally:
        writer.stop()


def _choose(stage: Stage, number: int) -> None:
    """One more of the topics that are added one by one. Back when the run has noticed it."""
    kind, kinds = f"added-{number}", " ".join(f"added-{place}" for place in range(number + 1))
    remote = f"{stage.here}.{stage.w}-{kind}"
    stage.save({stage.flow: f"steady added {kinds}"}, reload_interval_seconds="1")
    wait_until(lambda: partition_count(stage.clusters.b.bootstrap, remote) == 1, f"{kind} is chosen")


def _is_copied(stage: Stage, kind: str) -> bool:
    return stage.copied(kind) == 50


def _refuse_a_wrong_file(stage: Stage) -> None:
    """All its faults are told, and everything goes on."""
    aside = stage.file.with_suffix(".wrong")
    aside.write_text(stage.file.read_text() + "tasks.max = none\nreplication.factor = many\n")
    aside.rename(stage.file)  # whole: half of it would be refused as well, and told
    stage.run.wait_for_text("is not used")
    assert "tasks.max" in stage.run.output and "many" in stage.run.output
    stage.write("added", 25)
    wait_until(lambda: stage.copied("added") == 75, "it goes on", every=0.1)


def _begin_a_flow_back(stage: Stage) -> None:
    """From then on the file is no longer looked at by itself."""
    home, copy = f"{stage.w}-home", f"{stage.there}.{stage.w}-home"
    create_topic(stage.clusters.b.bootstrap, home)
    write(stage.clusters.b.bootstrap, home, samples(30))
    stage.save({stage.flow: "steady added", stage.back: "home"}, reload_interval_seconds="0")
    wait_until(lambda: ends(stage.clusters.a.bootstrap, copy).get(0) == 30, "the flow back began", every=0.2)


def _ask_by_signal(stage: Stage) -> None:
    """The flow back ends, what was taken out is back, and goes on where it was."""
    more = {"refresh_topics_interval_seconds": "77", "reload_interval_seconds": "0"}
    stage.save({stage.flow: "steady added taken-out"}, **more)
    time.sleep(2)
    assert stage.copied("taken-out") == 10, "nobody asked yet"
    os.kill(stage.run.pid, signal.SIGHUP)
    wait_until(lambda: stage.copied("taken-out") == 15, "what was taken out is copied on", every=0.1)
    stage.run.wait_for_text(f"flow {stage.back} ends")
    assert f"{stage.flow}.refresh.topics.interval.seconds = 77, it was " in stage.run.output
    told = command("events", str(stage.file)).out
    assert told.count("is not used") == 1, told
