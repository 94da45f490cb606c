from __future__ import annotations

from heliograph.model.clusters import Flow
from heliograph.replication.filters import NameFilter
from heliograph.replication.naming import RenamingPolicy, Route
from heliograph.replication.renames import Renames
from heliograph.replication.topic_names import DefaultPolicy, IdentityPolicy, Reason, should_replicate

AB, BA, BC, CA = Flow("A", "B"), Flow("B", "A"), Flow("B", "C"), Flow("C", "A")
ALL = NameFilter((".*",))


def policy(flow: Flow, *routes: Route) -> RenamingPolicy:
    return RenamingPolicy(DefaultPolicy(), flow, routes)


def test_rules_come_before_the_policy_and_heartbeats_keep_their_names() -> None:
    names = policy(AB, (AB, Renames((("orders", "sales"),))))
    assert names.format_remote_topic("A", "orders") == "sales"
    assert names.format_remote_topic("A", "clicks") == "A.clicks"
    assert (names.topic_source("sales"), names.upstream_topic("sales")) == ("A", "orders")
    assert (names.topic_source("A.clicks"), names.upstream_topic("A.clicks")) == ("A", "clicks")
    assert (names.topic_source("local"), names.upstream_topic("local")) == (None, None)
    every = policy(AB, (AB, Renames(form="copy-${topic}")))
    assert every.format_remote_topic("A", "heartbeats") == "A.heartbeats"
    assert every.format_remote_topic("A", "B.heartbeats") == "A.B.heartbeats"
    assert not every.is_heartbeats("copy-heartbeats")
    assert every.topic_source("A.heartbeats") == "A"
    assert every.is_checkpoints("A.checkpoints.internal")


def test_a_prefix_has_a_remote_one_where_all_its_topics_do() -> None:
    copy = Renames(form="copy-${topic}.x")
    assert policy(AB, (AB, copy)).format_remote_prefix("A", "or") == "copy-or"
    assert policy(AB, (AB, Renames((("orders", "x"),), form="copy-${topic}"))).format_remote_prefix("A", "or") is None
    assert policy(BA, (AB, copy)).format_remote_prefix("B", "or") == "B.or"


def test_the_separator_of_internal_names_is_the_policys() -> None:
    names = RenamingPolicy(DefaultPolicy("_", internal_separator_enabled=False), AB, [(AB, Renames(form="x${topic}"))])
    assert names.is_checkpoints("A.checkpoints.internal")
    assert not names.is_checkpoints("A_checkpoints_internal")


def test_a_copy_does_not_go_back_where_it_came_from_over_any_number_of_hops() -> None:
    copy = Renames(form="${topic}.copy")
    both = [(AB, copy), (BA, copy)]
    assert should_replicate("orders", ALL, policy(AB, *both), "B", True).replicate
    assert should_replicate("orders.copy", ALL, policy(BA, *both), "A", True).reason is Reason.CYCLE
    ring = [(AB, copy), (BC, Renames(form="far-${topic}")), (CA, copy)]
    assert should_replicate("orders.copy", ALL, policy(BC, *ring), "C", True).replicate
    assert should_replicate("far-orders.copy", ALL, policy(CA, *ring), "A", True).reason is Reason.CYCLE
    assert should_replicate("far-orders", ALL, policy(CA, *ring), "A", True).replicate


def test_a_flow_without_rules_knows_the_names_that_others_give() -> None:
    back = policy(BA, (AB, Renames(form="${topic}.copy")))
    assert should_replicate("orders.copy", ALL, back, "A", True).reason is Reason.CYCLE
    assert should_replicate("A.orders", ALL, back, "A", True).reason is Reason.CYCLE
    assert back.format_remote_topic("B", "clicks") == "B.clicks"


def test_a_renamed_topic_that_the_policy_named_before_is_known_on_its_way() -> None:
    onwards = policy(BC, (BC, Renames(form="${topic}.far")))
    back = policy(Flow("C", "A"), (BC, Renames(form="${topic}.far")))
    assert onwards.format_remote_topic("B", "A.orders") == "A.orders.far"
    assert should_replicate("A.orders.far", ALL, back, "A", True).reason is Reason.CYCLE


def test_a_kept_name_tells_nothing_and_rules_in_a_ring_end() -> None:
    kept = Renames((("orders", "orders"),))
    assert should_replicate("orders", ALL, policy(BA, (AB, kept), (BA, kept)), "A", True).replicate
    ring = Renames((("x", "y"), ("y", "x")))
    names = policy(AB, (AB, ring), (Flow("C", "A"), ring), (Flow("A", "C"), ring))
    assert names.original_topic("x") == "y"
    assert not names.is_cycle("x", "B")


def test_a_topic_whose_remote_name_belongs_to_another_is_refused() -> None:
    names = policy(AB, (AB, Renames((("orders", "A.clicks"),))))
    assert names.refusal("A", "orders") == ""
    assert names.refusal("A", "other") == ""
    assert names.refusal("A", "clicks") == "its remote name 'A.clicks' is that of 'orders' (topic.rename.*)"
    hidden = policy(AB, (AB, Renames(form="_${topic}")))
    assert "begins with '__'" in hidden.refusal("A", "_x")
    assert IdentityPolicy("A").refusal("A", "x") == ""
