"""Two clusters side by side, with plain values: only what differs, under the flow's names."""

from __future__ import annotations

from heliograph.model.acls import GROUP, TOPIC, Access, Acl, Resource
from heliograph.model.topics import ConfigValue, Topic
from heliograph.replication.acl_sync import AclRules, Sides
from heliograph.replication.side_by_side import (
    About,
    Difference,
    GroupPlace,
    TopicPair,
    compare_acls,
    compare_configs,
    compare_groups,
    compare_quotas,
    compare_topics,
)

BOB = Access("User:bob", "*", "READ", "ALLOW")


def topic(name: str, partitions: int = 1, **configs: ConfigValue) -> Topic:
    return Topic(name, f"id-of-{name}", partitions, {key.replace("_", "."): value for key, value in configs.items()})


def pair(here: Topic | None, there: Topic | None, name: str = "orders", remote: str = "A.orders") -> TopicPair:
    return TopicPair(name, remote, here, there)


def test_topics_that_are_missing_or_have_other_partitions_differ() -> None:
    pairs = [
        pair(topic("a", 3), topic("A.a", 3), "a", "A.a"),
        pair(topic("b", 3), topic("A.b", 1), "b", "A.b"),
        pair(topic("c"), None, "c", "A.c"),
        pair(None, topic("d"), "d", "d"),
    ]
    assert list(compare_topics(pairs)) == [
        Difference(About.TOPICS, "b -> A.b", "3 partitions", "1 partition"),
        Difference(About.TOPICS, "c -> A.c", "1 partition", "-"),
        Difference(About.TOPICS, "d", "-", "1 partition"),
    ]


def test_configs_differ_by_their_values_whoever_set_them() -> None:
    default = ConfigValue("1", "DEFAULT_CONFIG")
    here = topic(
        "orders",
        same=ConfigValue("1"),
        ours=ConfigValue("2"),
        theirs=default,
        both=ConfigValue("3"),
        left_out=ConfigValue("5"),
        only_here=ConfigValue("6"),
        secret=ConfigValue("x", sensitive=True),
        empty=ConfigValue(None),
        defaults=default,
    )
    there = topic(
        "A.orders",
        same=default,
        ours=default,
        theirs=ConfigValue("7"),
        both=ConfigValue("4"),
        left_out=ConfigValue("8"),
        secret=ConfigValue("y", sensitive=True),
        empty=ConfigValue(""),
        defaults=ConfigValue("9", "DEFAULT_CONFIG"),
    )
    found = list(
        compare_configs([pair(here, there), pair(here, None), pair(None, there)], lambda name: name == "left.out")
    )
    assert found == [
        Difference(About.CONFIGS, "orders -> A.orders: both", "3", "4"),
        Difference(About.CONFIGS, "orders -> A.orders: only.here", "6", "-"),
        Difference(About.CONFIGS, "orders -> A.orders: ours", "2", "1"),
        Difference(About.CONFIGS, "orders -> A.orders: theirs", "1", "7"),
    ]


def acl(name: str, access: Access = BOB, kind: str = TOPIC) -> Acl:
    return Acl(Resource(kind, name), access)


RULES = AclRules(True, lambda _: True, lambda _: True, lambda name: f"A.{name}", lambda prefix: f"A.{prefix}")


def test_acls_are_held_against_what_the_flow_makes_of_them() -> None:
    everything = Access("User:eve", "*", "ALL", "ALLOW")
    reads = Access("User:eve", "*", "READ", "ALLOW")
    writes = Access("User:mirror", "*", "WRITE", "ALLOW")
    here = {acl("orders"), acl("orders", everything), acl("g", kind=GROUP), acl("orders", writes)}
    same = {acl("A.orders"), acl("A.orders", reads), acl("g", kind=GROUP), acl("A.orders", writes), acl("other")}
    assert list(compare_acls(Sides(here, same, {"orders"}), RULES)) == []

    more = {acl("A.orders"), acl("A.quiet")}
    assert list(compare_acls(Sides(here, more, {"orders", "quiet"}), RULES)) == [
        Difference(About.ACLS, "group g", "ALLOW READ to User:bob", "-"),
        Difference(About.ACLS, "topic A.orders", "ALLOW READ to User:eve", "-"),
        Difference(About.ACLS, "topic A.quiet", "-", "ALLOW READ to User:bob"),
    ]


def test_quotas_differ_by_whom_they_are_for_and_their_values() -> None:
    here = {"user a": {"producer_byte_rate": 1048576.0, "request_percentage": 12.5}, "user b": {"x": 1.0}}
    there = {"user a": {"producer_byte_rate": 1048576.0, "request_percentage": 25.0}, "user c": {"x": 1.0}}
    assert list(compare_quotas(here, here)) == []
    assert list(compare_quotas(here, there)) == [
        Difference(About.QUOTAS, "user a: request_percentage", "12.5", "25"),
        Difference(About.QUOTAS, "user b: x", "1", "-"),
        Difference(About.QUOTAS, "user c: x", "-", "1"),
    ]


def test_groups_differ_where_the_target_does_not_know_them_or_has_them_elsewhere() -> None:
    places = [
        GroupPlace("same", "A.orders-0", 10, 8, "", 8),
        GroupPlace("gone", "A.orders-0", 10, 8, "", None),
        GroupPlace("gone", "A.orders-1", 10, None, "not yet copied", None),
        GroupPlace("behind", "A.orders-1", 10, 8, "", 5),
        GroupPlace("behind", "A.orders-0", 10, 8, "", None),
        GroupPlace("behind", "A.orders-2", 10, None, "never copied", 7),
        GroupPlace("behind", "A.orders-3", 10, 6, "", 6, behind=4),
        GroupPlace("behind", "A.orders-4", 10, 6, "", 5, behind=4),
        GroupPlace("one", "A.orders-0", 10, 8, "", None),
    ]
    assert list(compare_groups(places)) == [
        Difference(About.GROUPS, "behind: A.orders-0", "10, which is 8 there", "-"),
        Difference(About.GROUPS, "behind: A.orders-1", "10, which is 8 there", "5"),
        Difference(About.GROUPS, "behind: A.orders-2", "10: never copied", "7"),
        Difference(About.GROUPS, "behind: A.orders-4", "10, which is 6 there, 4 not yet copied", "5"),
        Difference(About.GROUPS, "gone", "committed for 2 partitions", "-"),
        Difference(About.GROUPS, "one", "committed for 1 partition", "-"),
    ]
