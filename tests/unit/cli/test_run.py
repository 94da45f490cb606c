"""`heliograph run`: what is said first and last, and which command lines are refused."""

from __future__ import annotations

import argparse
import logging
import os
from pathlib import Path
from tempfile import gettempdir
from types import SimpleNamespace
from typing import Any, cast

import pytest

from heliograph.cli import main, run
from heliograph.control.board import Board
from heliograph.control.outcome import Summary
from heliograph.control.planner import FlowPlan
from heliograph.control.replicate import Replicator, RunOptions
from heliograph.errors import ClusterUnreachable, ConfigError
from heliograph.replication.mm2_progress import Progress, Stored, latest_progress
from heliograph.replication.topic_plan import AddPartitions, CreateTopic, Unnameable
from tests.unit.control.fakes import FakeClock, report_row

DONE = Summary(seconds=12.34, records=1_234_567, bytes=98_765_432, lanes=1, topics=1, unfinished=())


def replicator(*troubles: str, board: Board | None = None) -> Replicator:
    fake = SimpleNamespace(
        watches=[SimpleNamespace(name="C->B", trouble=trouble) for trouble in troubles],
        engine=SimpleNamespace(master="local[4,4]"),
        settings=SimpleNamespace(engine=SimpleNamespace(slots=2)),
        board=board,
        clock=FakeClock(),
        options=RunOptions(),
    )
    return cast(Replicator, fake)


def plan(**changes: Any) -> FlowPlan:
    fields = {
        "name": "A->B",
        "topics": ("orders", "payments"),
        "ends": {("orders", 0): 150, ("orders", 1): 20, ("payments", 0): 5},
        "starts": {("orders", 0): 50, ("orders", 1): 20},
        "bytes_by_topic": {"orders": 1_500_000, "payments": 500},
        "actions": (),
        "progress": Progress(),
        "settings": SimpleNamespace(start_from=None, start="earliest"),
    }
    return cast(FlowPlan, SimpleNamespace(**{**fields, **changes}))


def announced(capsys: pytest.CaptureFixture[str], *plans: FlowPlan, troubles: tuple[str, ...] = ()) -> list[str]:
    run._announce(list(plans), replicator(*troubles))
    return capsys.readouterr().out.splitlines()


def test_the_first_lines_say_flows_topics_records_bytes_and_master(capsys: pytest.CaptureFixture[str]) -> None:
    assert announced(capsys, plan()) == [
        "flow A->B: 2 topics, 3 partitions, 105 records, 1.5 MB on the source",
        "master local[4,4], 2 slots",
    ]


def test_the_first_lines_say_what_will_be_created(capsys: pytest.CaptureFixture[str]) -> None:
    actions = (
        CreateTopic("A.orders", 1, 2, {}, "source topic 'orders' has no remote topic"),
        AddPartitions("A.payments", 3, 5, "it grew"),
        Unnameable("x" * 3, "A.xxx", "the remote name is too long"),
    )
    assert announced(capsys, plan(actions=actions))[1:4] == [
        "  create A.orders: 1 partition (source topic 'orders' has no remote topic)",
        "  grow A.payments from 3 to 5 partitions (it grew)",
        "  leave out xxx: the remote name is too long",
    ]


def test_the_first_lines_say_what_is_taken_over(capsys: pytest.CaptureFixture[str]) -> None:
    stored = [Stored("MirrorSourceConnector", ("orders", number), 5, 1, "mm2-offsets.A.internal") for number in (0, 1)]
    assert announced(capsys, plan(progress=latest_progress(stored)))[1:2] == [
        "  MirrorMaker 2 stored progress of 2 partitions (MirrorSourceConnector in mm2-offsets.A.internal): taken over"
    ]


def test_the_first_lines_say_that_lanes_begin_anew() -> None:
    assert run._beginnings(plan(), RunOptions(reset=True)) == ["  every lane begins anew (--reset) at earliest"]


@pytest.mark.parametrize("prefix", ["a b", "x/y", "é"])
def test_a_trial_needs_a_prefix_that_a_topic_may_have(prefix: str) -> None:
    with pytest.raises(ConfigError, match="--trial .*: expected letters"):
        run._check_trial(prefix)
    run._check_trial("__trial.")


def test_a_cluster_out_of_reach_is_named_in_the_first_lines(capsys: pytest.CaptureFixture[str]) -> None:
    lines = announced(capsys, plan(), troubles=("", "cluster C: no broker answers"))
    assert lines[1:] == ["flow C->B: waiting: cluster C: no broker answers", "master local[4,4], 2 slots"]


def test_a_copy_of_what_is_there_needs_every_cluster() -> None:
    run._refuse_unreachable(replicator("", ""))
    with pytest.raises(ClusterUnreachable, match="C is away; D is away"):
        run._refuse_unreachable(replicator("C is away", "", "D is away"))


@pytest.mark.parametrize("until_caught_up", [True, False])
def test_the_last_line_says_what_was_copied(until_caught_up: bool, capsys: pytest.CaptureFixture[str]) -> None:
    assert run._conclude(DONE, until_caught_up) == 0
    assert capsys.readouterr().out == "copied 1,234,567 records, 98.8 MB, 1 lane, in 12.3 s\n"


def test_a_lane_that_did_not_get_to_its_end_is_named_and_is_exit_code_one(capsys: pytest.CaptureFixture[str]) -> None:
    unfinished = Summary(1.0, 1, 1, 2, 1, (("A->B/orders/0", "too large"),))
    assert run._conclude(unfinished, True) == 1
    assert capsys.readouterr().out.splitlines()[1:] == ["  not finished: A->B/orders/0: too large"]
    assert run._conclude(unfinished, False) == 0


@pytest.mark.parametrize(
    ("aliases", "fault"),
    [
        (["X"], "--clusters X: no such alias; the file has A, B"),
        (["A"], "--clusters A: no enabled flow goes there; flows go to B"),
    ],
)
def test_clusters_that_no_flow_goes_to_are_refused(
    aliases: list[str], fault: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mm2.properties"
    path.write_text("clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\n")
    assert main.main(["run", str(path), "--clusters", *aliases]) == 2
    assert capsys.readouterr().err == f"heliograph: {fault}\n"


@pytest.mark.parametrize("other", ["--until-caught-up", "--reset", "--dry-run"])
def test_a_standby_that_is_to_do_something_else_is_refused_before_anything_is_asked(
    other: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mm2.properties"
    path.write_text("clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\n")
    assert main.main(["run", str(path), "--standby", other]) == 2
    fault = f"--standby waits for another run to be gone; it cannot be given with {other}"
    assert capsys.readouterr().err == f"heliograph: {fault}\n"


def test_progress_is_one_line_every_ten_seconds(caplog: pytest.LogCaptureFixture) -> None:
    board = Board()
    rows = [
        report_row("A->B/orders/0", source_end=150, position=100),
        report_row("A->B/orders/1", state="parked", reason="too large"),
    ]
    board.take("one", rows, {})
    progress = run._Progress(replicator(board=board))
    with caplog.at_level(logging.INFO, "heliograph.run"):
        for _ in range(25):
            progress.tick()
    assert len(caplog.messages) == 2
    assert caplog.messages[0] == (
        "2 lanes: 0 records/s, 0 B/s, 50 records behind; 1 lane not following, first: too large"
    )


def test_progress_says_that_spark_is_starting_while_no_lane_can_be_carried(caplog: pytest.LogCaptureFixture) -> None:
    made = replicator(board=Board())
    progress = run._Progress(made)
    with caplog.at_level(logging.INFO, "heliograph.run"):
        for sessions in (0, 1):
            made.engine.sessions = sessions
            for _ in range(10):
                progress.tick()
    assert caplog.messages == [
        f"Spark is starting at {made.engine.master}, for 10 s now",
        "0 lanes: 0 records/s, 0 B/s, 0 records behind",
    ]


def test_every_process_has_a_spark_log_of_its_own_unless_one_is_named() -> None:
    parser = argparse.ArgumentParser()
    run.add_parser(parser.add_subparsers())
    mine = f"heliograph-{os.getuid()}-{os.getpid()}-spark.log"
    assert parser.parse_args(["run", "file"]).spark_log == Path(gettempdir()) / mine
    assert parser.parse_args(["run", "file", "--spark-log", "here.log"]).spark_log == Path("here.log")
