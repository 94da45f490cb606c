"""Which jobs a flow has, by its options: made without a broker, as none is asked before its first turn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from heliograph.config.load import load
from heliograph.control.canary import CanaryJob
from heliograph.control.clock import Clock
from heliograph.control.flow_jobs import Ground, closing_jobs, lasting_jobs, repeated_jobs
from heliograph.control.jobs import Job
from heliograph.control.planner import FlowPlanner
from heliograph.kafka.slot import Warm

FLOW = "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\n"
HEARTBEATS = {"heartbeats on A", "heartbeats on B"}
ALL = HEARTBEATS | {"topic configs", "ACLs", "offset syncs on A", "checkpoints", "source group"}


@pytest.fixture
def warm() -> Iterator[Warm]:
    made = Warm()
    yield made
    made.close()


def names(warm: Warm, lines: str = "", trial: str = "", at_end: bool = False) -> set[str]:
    loaded = load(FLOW + lines, "mm2.properties")
    settings = replace(loaded.flows[0], flow=replace(loaded.flows[0].flow, trial=trial))
    planner = FlowPlanner(settings, loaded.engine)
    ground = Ground(settings, lambda: None, planner, warm, Clock(), lambda: None, lambda _: None, lambda _: None)
    try:
        jobs = closing_jobs(ground) if at_end else [*repeated_jobs(ground), *lasting_jobs(ground)]
        return {job.name for job in jobs}
    finally:
        planner.close()


def test_by_default_a_flow_has_the_jobs_of_mirrormaker_2_and_commits_its_positions(warm: Warm) -> None:
    assert names(warm) == ALL


@pytest.mark.parametrize(
    ("line", "gone", "new"),
    [
        ("emit.heartbeats.enabled = false", HEARTBEATS, set()),
        ("B->A.emit.heartbeats.enabled = false", {"heartbeats on A"}, set()),
        ("emit.checkpoints.enabled = false", {"checkpoints"}, set()),
        ("sync.group.offsets.enabled = true", set(), {"group offsets"}),
        ("emit.offset-syncs.enabled = false", {"offset syncs on A"}, set()),
        ("offset-syncs.topic.location = target", {"offset syncs on A"}, {"offset syncs on B"}),
        ("source.readonly = true", {"heartbeats on A", "offset syncs on A"}, {"offset syncs on B"}),
        ("sync.topic.configs.enabled = false", {"topic configs"}, set()),
        ("sync.topic.acls.enabled = false", {"ACLs"}, set()),
        ("sync.topic.deletes.enabled = true", set(), {"topic deletes"}),
        ("commit.source.group = false", {"source group"}, set()),
        ("lag.limit.seconds = 60", set(), {"lag limit"}),
        ("canary.enabled = true", set(), {"canary"}),
    ],
)
def test_each_option_takes_its_job_away_or_adds_it(warm: Warm, line: str, gone: set[str], new: set[str]) -> None:
    assert names(warm, line) == (ALL - gone) | new


def test_a_trial_runs_beside_a_mirror_that_does_all_but_topic_configs(warm: Warm) -> None:
    assert names(warm, "sync.group.offsets.enabled = true", "__trial.") == {"topic configs"}


def test_what_tells_how_far_records_are_copied_is_done_at_the_end_of_a_run(warm: Warm) -> None:
    lines = "sync.group.offsets.enabled = true\nsync.topic.deletes.enabled = true\n"
    assert names(warm, lines, at_end=True) == {"offset syncs on A", "checkpoints", "group offsets"}
    assert names(warm, lines, trial="__trial.", at_end=True) == set()


def test_a_canary_counts_on_when_settings_change(warm: Warm) -> None:
    loaded = load(f"{FLOW}canary.enabled = true\n", "mm2.properties")
    planner = FlowPlanner(loaded.flows[0], loaded.engine)

    def canary(before: Mapping[str, Job[Any]]) -> CanaryJob:
        ground = Ground(
            loaded.flows[0],
            lambda: None,
            planner,
            warm,
            Clock(),
            lambda: None,
            lambda _: None,
            lambda _: None,
            before=before.get,
        )
        (found,) = [job for job in lasting_jobs(ground) if isinstance(job, CanaryJob)]
        return found

    try:
        first = canary({})
        key, _ = first._canary.send(0)
        second = canary({"canary": first})
        second._canary.see(key)  # what was under way arrives
        third = canary({"canary": second})
        assert (third._canary.sent, third._canary.arrived, third._canary.waiting_ms) == (1, 1, 0.0)
    finally:
        planner.close()
