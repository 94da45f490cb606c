from __future__ import annotations

import pytest

from heliograph.replication.findings import Level
from heliograph.replication.other_writers import (
    NO_PRODUCER_ID,
    RemoteWriters,
    mirror_maker_finding,
    writer_finding,
)

FLOW = ("A", "B")
OURS = frozenset({7})


def test_no_mirror_maker_passes() -> None:
    assert mirror_maker_finding(FLOW, "").level is Level.PASS


def test_a_mirror_maker_that_copies_this_flow_fails_with_the_sentence_of_a_run() -> None:
    said = "flow A->B: a MirrorMaker 2 on 10.0.0.1 (group 'A-mm2') copies it: stop it first, or copy beside it"
    finding = mirror_maker_finding(FLOW, said)
    assert finding.level is Level.FAIL
    assert finding.sentence == "a MirrorMaker 2 on 10.0.0.1 (group 'A-mm2') copies it"
    assert finding.advice == "stop it first, or copy beside it"


def test_a_connect_cluster_with_a_mirror_of_another_name_is_a_warning() -> None:
    finding = mirror_maker_finding(FLOW, "", ["my-mirror"])
    assert finding.level is Level.WARN
    assert "my-mirror" in finding.sentence


def test_groups_that_may_not_be_seen_are_a_warning() -> None:
    finding = mirror_maker_finding(FLOW, "", why_not="ListGroups: error 30")
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
