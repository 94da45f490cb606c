"""A file that is saved while it runs: topics and flows come and go, lanes that did not change notice nothing."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from heliograph.operations.compare import compare_topics
from tests.support.arrivals import Arrivals, SteadyWriter
from tests.support.clusters import TwoClusters
from tests.support.heliograph_run import HeliographRun
from tests.support.mirror import command, flow_file, lanes_of, status, word
from tests.support.topics import create_topic, ends
from tests.support.waiting import wait_until
from tests.support.writers import samples, write

GAP_SECONDS = 0.25
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
    made = Stage(two_clusters, here, there, word(), file, HeliographRun(file))
    for kind in ("steady", "taken-out"):
        made.topic(kind, 10)
    made.save({made.flow: "steady taken-out"}, reload_interval_seconds="1")
    with made.run:
        wait_until(lambda: made.copied("steady") + made.copied("taken-out") == 20, "the mirror runs", every=0.2)
        yield made


def test_topics_flows_and_intervals_change_while_it_runs_and_other_lanes_notice_nothing(stage: Stage) -> None:
    stage.topic("added", 50)
    before = stage.lanes("steady")
    assert _gap_while_topics_change(stage) <= GAP_SECONDS
    stage.write("taken-out", 5)
    _refuse_a_wrong_file(stage)
    _begin_a_flow_back(stage)
    assert stage.copied("taken-out") == 10, "nothing was copied since it was taken out"
    after = stage.lanes("steady")
    assert [[lane[name] for name in SAME] for lane in after] == [[lane[name] for name in SAME] for lane in before]
    stage.assert_identical("steady", "added")
    _ask_by_signal(stage)
    stage.assert_identical("steady", "added", "taken-out")
    assert stage.run.terminate() == 0, stage.run.output


def _gap_while_topics_change(stage: Stage) -> float:
    """The longest gap of a lane that did not change, less what the machine itself delays, as the source shows it."""
    source, remote = f"{stage.w}-steady", f"{stage.here}.{stage.w}-steady"
    writer = SteadyWriter(stage.clusters.a.bootstrap, source, every_s=0.005)
    at_source = Arrivals(stage.clusters.a.bootstrap, source)
    at_target = Arrivals(stage.clusters.b.bootstrap, remote)
    try:
        wait_until(lambda: len(at_target.times) > 200, "records flow")
        began = time.monotonic()
        stage.save({stage.flow: "steady added"}, reload_interval_seconds="1")
        wait_until(lambda: stage.copied("added") == 50, "the added topic is copied", every=0.1)
        wait_until(lambda: not stage.lanes("taken-out"), "what was taken out is no longer a lane", every=0.5)
        until = time.monotonic()
        return at_target.longest_gap(began, until) - max(0.0, at_source.longest_gap(began, until) - 0.05)
    finally:
        writer.stop()
        at_source.stop()
        at_target.stop()


def _refuse_a_wrong_file(stage: Stage) -> None:
    """All its faults are told, and everything goes on."""
    stage.file.write_text(stage.file.read_text() + "tasks.max = none\nreplication.factor = many\n")
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
