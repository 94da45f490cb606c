from __future__ import annotations

import io

from rich.console import Console

from heliograph.cli.lag import headline, shown
from heliograph.operations.lag import FlowLag, LaneLag


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
        "A->B: not running since 1970-01-01 00:00:40 UTC (1 min); group g; 302 records behind, about 0 B",
        "lane source end committed behind read behind target end behind about log size state owner",
        "orders-3 1,234,567 1,234,000 567 - - 1,234,265 302 - - stopped -",
    ]


def test_a_flow_that_cannot_be_read_says_why() -> None:
    assert headline(FlowLag("A->B", "g", False, 0, "", 0, "nobody answers"), 0) == "A->B: not running; nobody answers"
