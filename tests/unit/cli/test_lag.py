from __future__ import annotations

import asyncio
import io
import json
from typing import cast

import pytest
from rich.console import Console

from heliograph.cli.lag import headline, shown, watch
from heliograph.operations.lag import FlowLag, LagLook, LaneLag


def lane(**changes: object) -> LaneLag:
    values: dict[str, object] = {
        "topic": "orders",
        "partition": 3,
        "remote_topic": "A.orders",
        "owner": "north/42",
        "state": "following",
        "source_end": 1_234_567,
        "committed": 1_234_000,
        "group_committed": 1_234_000,
        "committed_lag": 567,
        "read_position": 1_234_566,
        "read_lag": 1,
        "target_end": 1_234_265,
        "target_lag": 302,
        "log_bytes": 12_345_678_901,
        "bytes_behind": 3_020_000,
    }
    return LaneLag(**{**values, **changes})  # type: ignore[arg-type]  # names and types are those of the defaults


def printed(flow: FlowLag) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=300).print(shown([flow], 100_000))
    return [" ".join(line.split()) for line in out.getvalue().splitlines()]


def test_every_lane_has_three_lags_with_separators_and_sizes_and_brokers_come_last() -> None:
    flow = FlowLag(
        "A->B", "heliograph-A-B", True, 0, "north", 42, "", [lane()], {"A": {0: "a:9092", 1: "b:9092"}, "B": {2: "c:1"}}
    )
    running = "A->B: running since 1970-01-01 00:00:00 UTC on north, process 42"
    assert printed(flow) == [
        f"{running}; group heliograph-A-B; 302 records behind, about 3.0 MB",
        "lane source end committed behind read behind target end behind about log size state owner",
        "orders-3 1,234,567 1,234,000 567 1,234,566 1 1,234,265 302 3.0 MB 12.3 GB following north/42",
        "brokers of A: 0 = a:9092, 1 = b:9092",
        "brokers of B: 2 = c:1",
    ]


def test_what_is_not_known_is_a_dash() -> None:
    stopped = lane(owner="", state="stopped", read_position=-1, read_lag=-1, log_bytes=-1, bytes_behind=-1)
    flow = FlowLag("A->B", "g", False, 40_000, "north", 42, "", [stopped])
    assert printed(flow) == [
        "A->B: not running since 1970-01-01 00:00:40 UTC (1 min); group g; 302 records behind",
        "lane source end committed behind read behind target end behind about log size state owner",
        "orders-3 1,234,567 1,234,000 567 - - 1,234,265 302 - - stopped -",
    ]


def test_a_flow_that_cannot_be_read_says_why() -> None:
    assert headline(FlowLag("A->B", "g", False, 0, "", 0, "nobody answers"), 0) == "A->B: not running; nobody answers"
    unknown = FlowLag("A->B", "g", None, 0, "", 0, "cluster B: connection refused at b:1")
    assert headline(unknown, 0) == "A->B: state unknown: cluster B: connection refused at b:1"


def test_how_old_the_numbers_of_a_run_are_is_said() -> None:
    flow = FlowLag("A->B", "g", True, 0, "north", 42, "", [lane()], reported_ms=97_000)
    assert headline(flow, 100_000).endswith("302 records behind, about 3.0 MB, reported 3 s ago")


class Looks:
    """A lag that shrinks by a hundred from look to look."""

    def __init__(self) -> None:
        self.lag = 302

    def flow(self) -> FlowLag:
        return FlowLag("A->B", "g", True, 0, "north", 42, "", [lane(target_lag=self.lag)])

    async def look(self, now_ms: int) -> list[FlowLag]:
        assert now_ms > 0
        self.lag -= 100
        return [self.flow()]


@pytest.mark.parametrize("as_json", [True, False])
def test_watching_looks_again_until_interrupted(as_json: bool, capsys: pytest.CaptureFixture[str]) -> None:
    looks, slept = Looks(), list[float]()

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(watch(cast(LagLook, looks), [looks.flow()], as_json, sleep))
    out = capsys.readouterr().out
    if as_json:
        told = [json.loads(line)["flows"][0]["lanes"][0]["target_lag"] for line in out.splitlines()]
        assert told == [302, 202, 102]
    else:
        assert "102 records behind" in " ".join(out.split())
    assert slept == [2.0, 2.0, 2.0]
