"""Whether a MirrorMaker 2 carries a flow now, from its group's members."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heliograph.replication.mm2_live import (
    HIDDEN,
    ConnectGroup,
    Member,
    Sought,
    connectors_to_look_up,
    is_sharing_out,
    lookalikes,
    refusal,
    strangers,
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


def test_a_connect_cluster_that_shares_out_its_tasks_may_run_a_connector_that_copies_the_flow() -> None:
    sharing = group("connect", None, "PreparingRebalance")
    assert is_sharing_out(sharing)
    assert not is_sharing_out(group("connect", {"my-mirror": (0,)}))
    assert not is_sharing_out(group("A-mm2", None, "PreparingRebalance"))
    said = refusal(replace(SOUGHT, configured={"my-mirror"}), [sharing])
    assert "may copy it (connector 'my-mirror'): its Connect cluster is sharing out tasks: stop it first" in said


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


def test_a_dedicated_mirror_maker_of_another_flow_does_not_hinder() -> None:
    hub = group("M-mm2", {"MirrorSourceConnector": (-1, 0), "MirrorCheckpointConnector": (-1, 0)})
    assert refusal(SOUGHT, [hub]) == ""
    assert "copies it" in refusal(SOUGHT, [hub, group("A-mm2", {"MirrorSourceConnector": (-1, 0)})])


def test_a_connect_cluster_whose_group_is_named_like_a_dedicated_one_is_known_by_its_connector() -> None:
    assert "copies it" in refusal(SOUGHT, [group("our-mm2", {"A->B.MirrorSourceConnector": (-1, 0)})])


def test_a_connector_of_the_same_name_that_copies_another_source_does_not_hinder() -> None:
    connect = group("connect", {"MirrorSourceConnector": (-1, 0)})
    assert "copies it" in refusal(SOUGHT, [connect])
    known = replace(SOUGHT, strangers={"MirrorSourceConnector"})
    assert refusal(known, [connect]) == ""
    assert lookalikes(known, [connect]) == ()
    assert "copies it" in refusal(known, [group("A-mm2", {"MirrorSourceConnector": (-1, 0)})])


def test_connectors_outside_the_flows_own_group_are_looked_up() -> None:
    groups = [
        group("connect", {"orders": (-1, 0), "idle": (-1,), "A->B.MirrorSourceConnector": (0,)}),
        group("new", None),
        group("A-mm2", {"MirrorSourceConnector": (0,), "MirrorCheckpointConnector": (0,)}),
        group("M-mm2", {"MirrorSourceConnector": (0,)}),
    ]
    assert connectors_to_look_up(SOUGHT, groups) == {"orders", "A->B.MirrorSourceConnector"}


@pytest.mark.parametrize(
    ("sources", "clusters", "found"),
    [(["M"], 1, True), (["A"], 1, False), (["M", "A"], 2, False), (["M"], 2, False), ([], 1, False)],
    ids=["another source", "this source", "one of two", "one of two is not to be seen", "none is to be seen"],
)
def test_a_connector_is_a_stranger_only_if_all_of_its_name_are_seen_to_be(
    sources: list[str], clusters: int, found: bool
) -> None:
    mirror = {"connector.class": "MirrorSourceConnector"}
    configs = {"orders": [mirror | {"source.cluster.alias": source} for source in sources]}
    groups = [group(f"connect-{number}", {"orders": (-1, 0)}) for number in range(clusters)]
    assert ("orders" in strangers({"orders"}, [*groups, group("M-mm2", {"orders": (0,)})], configs, "A")) is found
