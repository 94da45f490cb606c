"""`heliograph status`: the headline and the table, from values."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from heliograph.cli import main, status
from heliograph.cli.status import headline
from heliograph.config.flows import FlowSettings
from heliograph.control.status import FlowStatus, LaneStatus
from heliograph.model.events import Event, EventKind
from heliograph.replication.standbys import Standby

NOW = 1_700_000_000_000
FOLLOWING = LaneStatus(
    lane="A->B/orders/0",
    topic="orders",
    partition=0,
    remote_topic="A.orders",
    source_end=1500,
    position=1400,
    remote_end=1390,
    lag=100,
    delta=-10,
    generation=2,
    producer_id=4711,
    producer_epoch=3,
    state="following",
    reason="",
    since_ms=NOW - 120_000,
    raw_batches=12,
    rebuilt_batches=3,
    dropped={"control": 4},
)
UNKNOWN = replace(
    FOLLOWING,
    partition=1,
    source_end=-1,
    position=-1,
    remote_end=-1,
    lag=-1,
    delta=0,
    state="parked",
    reason="too large",
)
RUNNING = FlowStatus("A->B", True, NOW - 3_600_000, "host-1", 42, "", 7, {}, (FOLLOWING, UNKNOWN))
STOPPED = replace(RUNNING, running=False, since_ms=NOW - 7_200_000)


def test_a_running_flow_says_since_when_where_and_how_far_behind() -> None:
    assert headline(RUNNING, NOW) == (
        "A->B: running since 2023-11-14 21:13:20 UTC on host-1, process 42; 2 lanes, 100 records behind"
    )


def test_how_old_the_numbers_of_a_running_flow_are_is_in_its_headline() -> None:
    assert headline(replace(RUNNING, reported_ms=NOW - 2_000), NOW).endswith("100 records behind, reported 2 s ago")


def test_a_flow_of_which_a_part_is_paused_says_so() -> None:
    paused = replace(FOLLOWING, topic="clicks", state="paused", reason="lag test (by ann)", since_ms=NOW - 5_000)
    flow = replace(RUNNING, lanes=(FOLLOWING, paused), bottleneck="paused")
    assert ", process 42, 1 topic paused; 2 lanes, " in headline(flow, NOW)
    assert shown(flow)[-1].endswith("paused for 5 s: lag test (by ann)"), "that it is paused is said once"


def test_a_flow_whose_target_cannot_be_read_is_not_said_to_be_stopped() -> None:
    unknown = FlowStatus("A->B", None, 0, "", 0, "cluster B: connection refused at b:1", 0, {}, ())
    assert headline(unknown, NOW) == "A->B: state unknown: cluster B: connection refused at b:1"


def test_what_holds_a_flow_up_is_in_its_headline() -> None:
    text = headline(replace(RUNNING, bottleneck="waiting for target", trouble="trouble"), NOW)
    assert text.endswith("100 records behind; waiting for target; trouble")


def test_a_flow_that_does_not_run_says_since_when_and_who_held_it() -> None:
    assert headline(STOPPED, NOW) == (
        "A->B: not running since 2023-11-14 20:13:20 UTC (2 h); last held by host-1, process 42; 100 records behind"
    )


def test_a_flow_that_never_ran_says_so_with_its_trouble() -> None:
    never = FlowStatus("A->B", False, 0, "", 0, "nothing was ever copied", 0, {}, ())
    assert headline(never, NOW) == "A->B: not running; nothing was ever copied"
    assert headline(replace(never, trouble=""), NOW) == "A->B: not running"


def test_the_trouble_of_a_running_flow_is_in_its_headline() -> None:
    assert headline(replace(RUNNING, trouble="cluster B: no broker answers"), NOW).endswith(
        "100 records behind; cluster B: no broker answers"
    )


def test_a_job_with_trouble_has_a_line_and_the_others_have_none(capsys: pytest.CaptureFixture[str]) -> None:
    well = {"name": "topic configs", "trouble": "", "trouble_since_ms": 0}
    ill = {"name": "heartbeats on A", "trouble": "this needs WRITE [on it]", "trouble_since_ms": NOW - 120_000}
    status._show(Console(width=200), replace(RUNNING, jobs=(well, ill)), NOW)
    out = capsys.readouterr().out
    assert "  heartbeats on A: trouble for 2 min: this needs WRITE [on it]\n" in out
    assert "topic configs" not in out


def test_the_newest_events_stand_below_the_lanes() -> None:
    event = Event(NOW, "A->B", "orders-0", EventKind.DATA_LOSS, "13 offsets were lost", "raise retention")
    assert shown(replace(RUNNING, events=(event,)))[-1].rstrip() == (
        "2023-11-14 22:13:20 UTC data-loss orders-0: 13 offsets were lost"
    )


def test_since_when_offsets_differ_has_a_line_where_they_are_meant_to_be_the_same() -> None:
    aligned = replace(FOLLOWING, align=True, differs_since=1234)
    line = "orders-0: the copy has other offsets since source offset 1234"
    assert shown(replace(RUNNING, lanes=(aligned,)))[-1] == line
    for lane in (replace(aligned, align=False), replace(aligned, differs_since=-1)):
        assert line not in shown(replace(RUNNING, lanes=(lane,)))


def shown(flow: FlowStatus) -> list[str]:
    text = io.StringIO()
    status._show(Console(file=text, width=400), flow, NOW)
    return [" ".join(line.split()) for line in text.getvalue().splitlines()]


def test_the_table_has_a_row_for_each_lane() -> None:
    _, head, first, second = shown(RUNNING)
    assert head == "lane source end position remote end lag delta identity batches state"
    assert first == "orders-0 1500 1400 1390 100 -10 4711/3 gen 2 12 raw, 3 rebuilt, 4 control following"
    assert second == "orders-1 ? ? ? ? 0 4711/3 gen 2 12 raw, 3 rebuilt, 4 control parked for 2 min: too large"


def test_a_reason_in_brackets_is_shown_as_it_is() -> None:
    lane = replace(FOLLOWING, state="parked", reason="topics = [red]x[/red] is refused", since_ms=0)
    assert shown(replace(RUNNING, lanes=(lane,)))[-1].endswith("parked: topics = [red]x[/red] is refused")


def test_a_trouble_in_brackets_is_shown_as_it_is() -> None:
    [line] = shown(replace(RUNNING, lanes=(), trouble="[Errno 111] refused [/A]"))
    assert line.endswith("; [Errno 111] refused [/A]")


def test_a_flow_without_lanes_has_no_table() -> None:
    assert len(shown(replace(RUNNING, lanes=()))) == 1


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "mm2.properties"
    path.write_text("clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\n")
    return str(path)


def answering(monkeypatch: pytest.MonkeyPatch, *flows: FlowStatus) -> None:
    async def read_status(_: tuple[FlowSettings, ...], __: float, ___: int) -> list[FlowStatus]:
        return list(flows)

    monkeypatch.setattr(status, "read_status", read_status)


def test_json_has_every_flow_and_lane(
    file: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answering(monkeypatch, RUNNING)
    assert main.main(["status", file, "--json"]) == 0
    [flow] = json.loads(capsys.readouterr().out)["flows"]
    assert (flow["flow"], flow["running"], flow["lanes"][0]["position"]) == ("A->B", True, 1400)
    assert flow["lanes"][1]["reason"] == "too large"


@pytest.mark.parametrize(
    ("flow", "code"),
    [
        (RUNNING, 0),
        (replace(RUNNING, trouble="cluster A: no broker answers"), 0),
        (replace(STOPPED, lanes=(), trouble="cluster B: no broker answers"), 1),
        (replace(RUNNING, running=None, trouble="cluster B: topic __heliograph-telemetry: not allowed"), 1),
    ],
)
def test_the_exit_code_is_one_only_if_a_flow_or_its_state_cannot_be_read(
    file: str, flow: FlowStatus, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answering(monkeypatch, flow)
    assert main.main(["status", file]) == code
    assert capsys.readouterr().out.startswith("A->B: ")


def test_runs_that_stand_by_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    flow = FlowStatus("A->B", True, NOW, "north", 7, "", 1, {}, (), standbys=(Standby("r", "south", 9, NOW, NOW),))
    status._show(Console(file=sys.stdout, width=200), flow, NOW)
    assert "  standing by: south, process 9, since 2023-11-14 22:13:20 UTC" in capsys.readouterr().out
    assert list(flow.as_json()["standbys"]) == [
        {"run": "r", "host": "south", "process": 9, "since_ms": NOW, "renewed_ms": NOW, "carries": False, "machine": ""}
    ]


@pytest.mark.parametrize("command", ["status", "lag"])
def test_an_unreachable_target_leaves_the_state_unknown(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mm2.properties"
    addresses = "".join(f"{alias}.bootstrap.servers = 127.0.0.1:1\n" for alias in "AB")
    path.write_text(f"clusters = A, B\n{addresses}A->B.enabled = true\n")
    assert main.main([command, str(path)]) == 1
    assert capsys.readouterr().out == "A->B: state unknown: cluster B: connection refused at 127.0.0.1:1\n"
    assert main.main([command, str(path), "--json"]) == 1
    [flow] = json.loads(capsys.readouterr().out)["flows"]
    assert (flow["running"], flow["lanes"]) == (None, [])
