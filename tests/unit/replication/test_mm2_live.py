"""Whether a MirrorMaker 2 carries a flow now, from its group's members."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heliograph.replication.mm2_live import (
    HIDDEN,
    ConnectGroup,
    Member,
    Sought,
    lookalikes,
    refusal,
    unknown_connectors,
)

SOUGHT = Sought("A->B", "A-mm2", {"MirrorSourceConnector", "A->B.MirrorSourceConnector"})


def group(name: str, tasks: dict[str, tuple[int, ...]] | None, state: str = "Stable") -> ConnectGroup:
    return ConnectGroup(name, state, [Member("10.0.0.7", tasks)])


def test_without_groups_the_flow_may_start() -> None:
    assert refusal(SOUGHT, []) == ""


@pytest.mark.parametrize(
    ("name", "connector"),
    [("A-mm2", "MirrorSourceConnector"), ("mirror-maker-cluster", "A->B.MirrorSourceConnector")],
)
def test_a_member_with_a_task_of_the_source_connector_is_named(name: str, connector: str) -> None:
    said = refusal(SOUGHT, [group(name, {"x": (0,), connector: (-1, 0)})])
    assert said == (
        f"flow A->B: a MirrorMaker 2 on 10.0.0.7 (group '{name}') copies it (connector '{connector}'): stop it first, or "
        "copy beside it under other names with --trial PREFIX"
    )


def test_a_herder_that_only_emits_heartbeats_does_not_hinder() -> None:
    heartbeats = group("A-mm2", {"MirrorSourceConnector": (-1,), "MirrorHeartbeatConnector": (-1, 0)})
    assert "is about to copy it" in refusal(SOUGHT, [heartbeats])
    assert refusal(replace(SOUGHT, may_be_disabled=True), [heartbeats]) == ""


def test_another_connect_cluster_does_not_hinder() -> None:
    assert refusal(SOUGHT, [group("sinks", {"jdbc": (-1, 0)}), group("new", None, "PreparingRebalance")]) == ""
    assert refusal(SOUGHT, [group("mirrors", {"A->B.MirrorSourceConnector": (-1,)})]) == ""


@pytest.mark.parametrize(("tasks", "state"), [(None, "Stable"), ({}, "Stable"), ({}, "PreparingRebalance")])
def test_the_flows_own_group_is_believed_only_when_it_is_settled(
    tasks: dict[str, tuple[int, ...]] | None, state: str
) -> None:
    assert "is starting, stopping or was lost a moment ago" in refusal(SOUGHT, [group("A-mm2", tasks, state)])


def test_a_stopped_connector_leaves_a_group_that_does_not_hinder() -> None:
    assert refusal(SOUGHT, [group("A-mm2", {"MirrorCheckpointConnector": (-1, 0)})]) == ""


@pytest.mark.parametrize(
    ("found", "named"),
    [
        (group("connect", {"my-mirror": (-1, 0), "jdbc": (0,)}), ("my-mirror",)),
        (group("connect", {"my-mirror": (-1,)}), ()),
        (group("connect", {"A->B.MirrorSourceConnector": (0,)}), ()),
        (group("C-mm2", {"my-mirror": (0,)}), ()),
        (group("connect", None), ()),
    ],
    ids=["with a task", "without", "known", "another flow's", "not assigned yet"],
)
def test_mirrors_of_unknown_names_in_a_connect_cluster_are_named(found: ConnectGroup, named: tuple[str, ...]) -> None:
    assert lookalikes(SOUGHT, [found]) == named


def test_the_flows_own_group_is_refused_when_its_members_may_not_be_seen() -> None:
    assert refusal(SOUGHT, [ConnectGroup("sinks", HIDDEN, [])]) == ""
    said = refusal(SOUGHT, [ConnectGroup("A-mm2", HIDDEN, [])])
    assert "DESCRIBE on group 'A-mm2' of the target is missing" in said
    assert said.endswith(": grant DESCRIBE on group A-mm2 to Heliograph's principal")


def test_connectors_with_tasks_that_no_name_tells_of_are_unknown() -> None:
    groups = [
        group("connect", {"orders": (-1, 0), "idle": (-1,), "A->B.MirrorSourceConnector": (0,)}),
        group("new", None),
    ]
    assert unknown_connectors(SOUGHT, groups) == {"orders"}
