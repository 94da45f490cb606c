from __future__ import annotations

import pytest

from heliograph.replication.findings import Level
from heliograph.replication.other_writers import (
    NO_PRODUCER_ID,
    ConnectGroup,
    RemoteWriters,
    mirror_maker_findings,
    writer_finding,
)

FLOW = ("A", "B")
OURS = frozenset({7})


def test_no_connect_group_passes() -> None:
    (finding,) = mirror_maker_findings(FLOW, ())
    assert finding.level is Level.PASS


@pytest.mark.parametrize(
    "found",
    [
        ConnectGroup("A-mm2", ("10.0.0.1",), {"MirrorSourceConnector": 3, "MirrorHeartbeatConnector": 1}),
        ConnectGroup("A-mm2", ("10.0.0.1",), {}),
        ConnectGroup("my-connect", ("10.0.0.1",), {"A->B.MirrorSourceConnector": 1}),
    ],
    ids=["dedicated", "dedicated, rebalancing", "Strimzi"],
)
def test_a_mirror_maker_that_copies_this_flow_fails(found: ConnectGroup) -> None:
    (finding,) = mirror_maker_findings(FLOW, [found])
    assert finding.level is Level.FAIL
    assert found.name in finding.sentence
    assert "10.0.0.1" in finding.sentence
    assert "stop it" in finding.advice


def test_a_mirror_maker_that_only_beats_is_a_warning() -> None:
    found = ConnectGroup("A-mm2", ("h",), {"MirrorHeartbeatConnector": 1, "MirrorSourceConnector": 0})
    (finding,) = mirror_maker_findings(FLOW, [found])
    assert finding.level is Level.WARN
    assert "has no task" in finding.sentence


def test_a_connect_cluster_with_a_mirror_of_another_name_is_a_warning() -> None:
    found = ConnectGroup("connect", ("h",), {"my-mirror": 2, "jdbc": 1})
    (finding,) = mirror_maker_findings(FLOW, [found])
    assert finding.level is Level.WARN
    assert "my-mirror" in finding.sentence
    assert "jdbc" not in finding.sentence


@pytest.mark.parametrize(
    "found",
    [
        ConnectGroup("connect", ("h",), {"jdbc": 1}),
        ConnectGroup("connect", ("h",), {"mirror": 0}),
        ConnectGroup("C-mm2", ("h",), {"MirrorSourceConnector": 1}),
    ],
    ids=["no mirror", "no task", "another flow's"],
)
def test_what_does_not_touch_this_flow_passes(found: ConnectGroup) -> None:
    (finding,) = mirror_maker_findings(FLOW, [found])
    assert finding.level is Level.PASS


def test_groups_that_may_not_be_seen_are_a_warning() -> None:
    (finding,) = mirror_maker_findings(FLOW, (), "ListGroups: error 30")
    assert (finding.level, finding.sentence) == (Level.WARN, "not known: ListGroups: error 30")


@pytest.mark.parametrize(
    ("remembered", "last", "said"),
    [
        ({7}, 7, ""),
        (set(), None, ""),
        ({7, 9, 8}, 7, "A.t-0 (producer 8, 9)"),
        (set(), NO_PRODUCER_ID, "A.t-0 (last batch without a producer id)"),
        (set(), 12, "A.t-0 (last batch of producer 12)"),
    ],
)
def test_writers_that_the_ledger_does_not_know_are_named(remembered: set[int], last: int | None, said: str) -> None:
    finding = writer_finding("A->B", OURS, [RemoteWriters("A.t-0", frozenset(remembered), last)])
    assert finding.level is (Level.WARN if said else Level.PASS)
    assert said in finding.sentence
