"""ACLs in step, with plain sets: mm2.md 4.6 by default, and what the full scope adds."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from heliograph.model.acls import GROUP, TOPIC, Access, Acl, Resource
from heliograph.replication.acl_sync import (
    AclRules,
    ChangeAcls,
    Note,
    Sides,
    decode_note,
    encode_note,
    note_subject,
    noted_resource,
    plan_acls,
)
from heliograph.replication.filters import NameFilter
from heliograph.replication.topic_names import DefaultPolicy, IdentityPolicy, ReplicationPolicy, should_replicate

BOB_READS = Access("User:bob", "*", "READ", "ALLOW")


def access(operation: str, permission: str = "ALLOW", principal: str = "User:bob", host: str = "*") -> Access:
    return Access(principal, host, operation, permission)


def topic(name: str, what: Access = BOB_READS, prefixed: bool = False) -> Acl:
    return Acl(Resource(TOPIC, name, prefixed), what)


def group(name: str, what: Access = BOB_READS, prefixed: bool = False) -> Acl:
    return Acl(Resource(GROUP, name, prefixed), what)


def rules(topics: str = ".*", full: bool = False, policy: ReplicationPolicy | None = None) -> AclRules:
    """Of a flow A->B."""
    how = policy or DefaultPolicy()
    names = NameFilter([topics], ["__.*"])
    return AclRules(
        full,
        lambda name: should_replicate(name, names, how, "B", False).replicate,
        NameFilter([".*"], ["connect-.*"]).accepts,
        lambda name: how.format_remote_topic("A", name),
        lambda prefix: how.format_remote_prefix("A", prefix),
    )


MM2, FULL = rules(), rules(full=True)


def planned(source: set[Acl], target: set[Acl] | None = None, how: AclRules = MM2) -> list[ChangeAcls]:
    return plan_acls(Sides(source, target or set(), {"orders", "payments"}), how, {})


def added(source: set[Acl], how: AclRules = MM2) -> set[Acl]:
    return {Acl(change.resource, each) for change in planned(source, None, how) for each in change.adds}


def after(target: set[Acl], changes: list[ChangeAcls]) -> tuple[set[Acl], dict[Resource, Note]]:
    """The target and the notes once the changes were made."""
    there = set(target)
    for change in changes:
        there |= {Acl(change.resource, each) for each in change.adds}
        there -= {Acl(change.resource, each) for each in change.removes}
    return there, {change.resource: change.after for change in changes if change.after}


def test_an_acl_of_a_topic_is_added_to_its_remote_topic_and_then_nothing_is_left() -> None:
    [change] = planned({topic("orders")})
    assert (change.subject, change.what, change.why) == (
        "ACLs of topic A.orders",
        "add ALLOW READ to User:bob",
        "the source has it for topic orders",
    )
    assert not change.routine
    there, notes = after(set(), [change])
    assert plan_acls(Sides({topic("orders")}, there, {"orders"}), MM2, notes) == []


@pytest.mark.parametrize(
    ("here", "there"),
    [
        (access("WRITE"), None),
        (access("ALL"), access("READ")),
        (access("ALL", "DENY"), access("ALL", "DENY")),
        (access("WRITE", "DENY"), access("WRITE", "DENY")),
        (access("DESCRIBE", host="10.0.0.1"), access("DESCRIBE", host="10.0.0.1")),
        (access("READ", principal="Group:ops"), access("READ", principal="Group:ops")),
    ],
)
def test_only_the_mirror_writes_and_everything_else_stays_as_it_is(here: Access, there: Access | None) -> None:
    assert added({topic("orders", here)}) == (set() if there is None else {topic("A.orders", there)})


@pytest.mark.parametrize(
    "left_out", [topic("ord", prefixed=True), group("g"), group("g", prefixed=True), topic("__hidden"), topic("B.back")]
)
def test_mirrormaker_leaves_out_prefixes_groups_and_topics_that_the_flow_does_not_take(left_out: Acl) -> None:
    assert added({left_out}) == set()


def test_mirrormaker_takes_the_wildcard_as_a_name_if_topics_does() -> None:
    assert added({topic("*")}) == {topic("A.*")}
    assert added({topic("*")}, rules(policy=IdentityPolicy("A"))) == {topic("*")}
    assert added({topic("*")}, rules("orders")) == set()


def test_what_the_target_has_is_not_written_again_and_is_not_ours() -> None:
    sides = Sides({topic("orders")}, {topic("A.orders")}, {"orders"})
    assert plan_acls(sides, FULL, {}) == []
    assert plan_acls(replace(sides, source=set()), FULL, {}) == []


def test_the_full_scope_takes_prefixes_of_topics() -> None:
    assert added({topic("ord", prefixed=True)}, FULL) == {topic("A.ord", prefixed=True)}
    only_orders = rules("orders", full=True)
    assert added({topic("ord", prefixed=True)}, only_orders) == {topic("A.ord", prefixed=True)}
    assert added({topic("other", prefixed=True)}, only_orders) == set()
    identity = rules(full=True, policy=IdentityPolicy("A"))
    assert added({topic("ord", prefixed=True)}, identity) == {topic("ord", prefixed=True)}


@pytest.mark.parametrize("back", ["B.", "B.ord", "__"])
def test_prefixes_of_remote_and_internal_topics_are_not_taken(back: str) -> None:
    assert added({topic(back, prefixed=True)}, FULL) == set()


def test_the_full_scope_makes_the_wildcard_what_it_means() -> None:
    assert added({topic("*")}, FULL) == {topic("A.", prefixed=True)}
    assert added({topic("*")}, rules(full=True, policy=IdentityPolicy("A"))) == {topic("*")}


class Backwards(DefaultPolicy):
    """Remote names that have no beginning in common."""

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return topic[::-1]

    def format_remote_prefix(self, source_alias: str, prefix: str) -> str | None:
        return ReplicationPolicy.format_remote_prefix(self, source_alias, prefix)


def test_where_remote_names_have_no_beginning_in_common_topics_are_named_one_by_one() -> None:
    how = rules(full=True, policy=Backwards())
    assert added({topic("ord", prefixed=True)}, how) == {topic("sredro")}
    assert added({topic("*")}, how) == {topic("sredro"), topic("stnemyap")}


def test_the_full_scope_takes_groups_under_their_names() -> None:
    acls = {group("g", access("ALL")), group("*"), group("team-", prefixed=True)}
    assert added(acls | {group("connect-x")}, FULL) == acls


def test_two_acls_that_come_to_the_same_are_one() -> None:
    [change] = planned({topic("orders"), topic("orders", access("ALL"))})
    assert list(change.adds) == [BOB_READS]


def test_the_full_scope_removes_what_it_set_when_the_source_no_longer_has_it() -> None:
    there, notes = after(set(), planned({topic("orders"), group("g")}, None, FULL))
    there |= {topic("A.orders", access("DESCRIBE"))}
    changes = plan_acls(Sides({group("g")}, there, {"orders"}), FULL, notes)
    assert [(change.subject, change.what, change.why) for change in changes] == [
        (
            "ACLs of topic A.orders",
            "remove ALLOW READ to User:bob",
            "the source no longer has what was copied from it",
        )
    ]
    left, forgotten = after(there, changes)
    assert left == {group("g"), topic("A.orders", access("DESCRIBE"))}
    assert forgotten == {}


def test_mirrormaker_removes_nothing_and_the_full_scope_does_once_it_is_chosen() -> None:
    there, notes = after(set(), planned({topic("orders")}))
    sides = Sides(set(), there, {"orders"})
    assert plan_acls(sides, MM2, notes) == []
    [change] = plan_acls(sides, FULL, notes)
    assert change.removes == (BOB_READS,)


def test_what_another_acl_of_the_source_still_asks_for_stays() -> None:
    there, notes = after(set(), planned({topic("orders", access("ALL")), topic("orders")}, None, FULL))
    assert plan_acls(Sides({topic("orders", access("ALL"))}, there, {"orders"}), FULL, notes) == []


def test_a_topic_that_the_flow_no_longer_takes_keeps_its_acls() -> None:
    there, notes = after(set(), planned({topic("orders")}, None, FULL))
    assert plan_acls(Sides({topic("orders")}, there, set()), rules("payments", full=True), notes) == []


def test_what_somebody_else_removed_on_the_target_is_added_again_while_the_source_has_it() -> None:
    _, notes = after(set(), planned({topic("orders")}, None, FULL))
    [change] = plan_acls(Sides({topic("orders")}, set(), {"orders"}), FULL, notes)
    assert list(change.adds) == [BOB_READS]
    [change] = plan_acls(Sides(set(), set(), {"orders"}), FULL, notes)
    assert (change.routine, change.what, change.why) == (True, "remember the", "the source has other ones")
    assert (dict(change.before), dict(change.after)) == ({BOB_READS: Resource(TOPIC, "orders")}, {})


def test_what_the_flow_back_set_on_the_source_is_not_the_sources_own() -> None:
    sides = Sides({group("g"), group("h")}, set(), {"orders"}, {group("g")})
    [change] = plan_acls(sides, FULL, {})
    assert change.resource == Resource(GROUP, "h")


def test_the_source_is_asked_for_what_the_scope_needs() -> None:
    assert (MM2.kinds, FULL.kinds) == ((TOPIC,), (TOPIC, GROUP))


@pytest.mark.parametrize(
    ("resource", "words"),
    [
        (Resource(TOPIC, "orders"), "topic orders"),
        (Resource(TOPIC, "*"), "all topics"),
        (Resource(GROUP, "team-", True), "groups that begin with 'team-'"),
    ],
)
def test_a_resource_in_words(resource: Resource, words: str) -> None:
    assert str(resource) == words


def test_an_access_from_one_host_in_words() -> None:
    assert str(access("READ", "DENY", host="10.0.0.1")) == "DENY READ to User:bob from 10.0.0.1"


@pytest.mark.parametrize("name", ["orders", "a#b", "a:b/c", "*", "ü 1"])
def test_a_resource_is_found_again_by_its_note(name: str) -> None:
    for resource in (Resource(GROUP, name), Resource(TOPIC, name, True)):
        assert "#" not in note_subject(resource)
        assert noted_resource(note_subject(resource)) == resource
    assert noted_resource("orders") is None


def test_a_note_is_read_as_it_was_written_and_only_for_the_same_source() -> None:
    note = {BOB_READS: Resource(TOPIC, "orders"), access("READ", "DENY"): Resource(TOPIC, "ord", True)}
    value = encode_note(note, "id-of-A")
    assert value is not None
    assert decode_note(value, "id-of-A") == note
    assert decode_note(value, None) == note
    assert decode_note(value, "another") == {}
    assert encode_note({}, "id-of-A") is None


@pytest.mark.parametrize(
    "value",
    [
        b"no json",
        b"[]",
        b"{}",
        b'{"version":9,"cluster":"c","set":[]}',
        b'{"version":1,"cluster":"c","set":[["too","few"]]}',
        b'{"version":1,"cluster":"c","set":[["a","b","c","d",7]]}',
    ],
)
def test_a_note_that_cannot_be_read_is_none(value: bytes) -> None:
    assert decode_note(value, "c") == {}


def test_a_row_of_a_note_without_an_origin_is_left_out() -> None:
    fields = {"version": 1, "cluster": "c", "set": [["User:bob", "*", "READ", "ALLOW", "strange"]]}
    assert decode_note(json.dumps(fields).encode(), "c") == {}
