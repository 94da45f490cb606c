from __future__ import annotations

from heliograph.model.clusters import Flow
from heliograph.replication.filters import NameFilter
from heliograph.replication.source_group import (
    CommitPositions,
    Committing,
    OwnGroupsAside,
    is_source_group,
    source_group,
)

P0, P1 = ("orders", 0), ("orders", 1)


def test_a_group_is_called_after_its_flow() -> None:
    assert source_group(Flow("A", "B")) == "heliograph-A-B"
    assert is_source_group("heliograph-east-west") and not is_source_group("orders-heliograph-A-B")


def test_groups_of_this_kind_are_never_looked_after_and_others_as_the_file_says() -> None:
    names = OwnGroupsAside(NameFilter((".*",), ("console-.*",)))
    assert names.accepts("billing") and not names.accepts("heliograph-A-B") and not names.accepts("console-1")
    assert names.excludes("heliograph-C-D") and names.excludes("console-1") and not names.excludes("billing")


def test_the_first_look_commits_all_and_the_next_ones_what_moved() -> None:
    group = Committing("heliograph-A-B")
    first = group.due({P0: 5, P1: 7}, 0)
    assert first == [CommitPositions("heliograph-A-B", {P0: 5, P1: 7})]
    group.wrote(first[0].offsets)
    assert group.due({P0: 5, P1: 7}, 1) == []
    assert group.due({P0: 5, P1: 9}, 2) == [CommitPositions("heliograph-A-B", {P1: 9})]
    assert group.due({P0: 5, P1: 9}, 3) == [CommitPositions("heliograph-A-B", {P1: 9})], "it was not written"
    assert group.due({P0: 2, P1: 7}, 4) == [CommitPositions("heliograph-A-B", {P0: 2})], (
        "a lane that began anew goes back"
    )


def test_a_lane_at_rest_is_committed_again_before_brokers_forget_it() -> None:
    group = Committing("g")
    group.wrote(group.due({P0: 5}, 0)[0].offsets)
    assert group.due({P0: 5}, 21_599) == []
    assert group.due({P0: 5}, 21_600) == [CommitPositions("g", {P0: 5})]
    group.wrote({P0: 5})
    assert group.due({P0: 5}, 21_601) == []


def test_a_lane_that_left_and_came_back_is_committed() -> None:
    group = Committing("g")
    group.wrote(group.due({P0: 5, P1: 1}, 0)[0].offsets)
    assert group.due({P1: 1}, 1) == []
    assert group.due({P0: 5, P1: 1}, 2) == [CommitPositions("g", {P0: 5})]


def test_a_commit_reads_as_a_sentence() -> None:
    action = CommitPositions("g", {P0: 5})
    assert (action.subject, action.what, action.why) == ("group g", "commit 1 positions of", "commit.source.group")
    assert action.routine
