"""Deleting remote topics of deleted sources: every doubt keeps the topic."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heliograph.replication.topic_deletes import (
    Answer,
    DeleteTopic,
    Facts,
    Grace,
    Remember,
    Seen,
    decode_seen,
    encode_seen,
    plan_deletes,
)

GRACE = Grace(grace_ms=86_400_000, interval_ms=600_000)
SEEN = Seen("cluster-A", "A.orders", "id-1")
NOW = 1_700_000_000_000
MISSED = replace(SEEN, missing_since_ms=NOW - 1_000, looked_ms=NOW - 1_000)
OVERDUE = replace(SEEN, missing_since_ms=NOW - GRACE.grace_ms, looked_ms=NOW - 600_000)
GONE = Facts(NOW, "cluster-A", {}, {"orders": Answer.GONE}, {"A.orders": "id-1"})


def planned(note: Seen | None, facts: Facts) -> list[Remember | DeleteTopic]:
    return plan_deletes({} if note is None else {"orders": note}, facts, GRACE)


@pytest.mark.parametrize("note", [None, MISSED, replace(SEEN, cluster_id="other"), replace(SEEN, remote_id="id-0")])
def test_a_topic_that_exists_is_noted_with_its_cluster_and_its_remote_topic(note: Seen | None) -> None:
    facts = Facts(NOW, "cluster-A", {"orders": ("A.orders", "id-1")})
    assert planned(note, facts) == [Remember("orders", SEEN)]
    assert planned(SEEN, facts) == []


def test_a_topic_that_is_gone_is_named_first() -> None:
    [action] = planned(SEEN, GONE)
    assert isinstance(action, Remember) and action.routine
    assert action.seen == replace(SEEN, missing_since_ms=NOW, looked_ms=NOW)
    assert (
        action.notice
        == action.why
        == (
            "source topic 'orders' does not exist any more: its remote topic 'A.orders' is deleted if that stays so for 86400 s "
            "(sync.topic.deletes.grace.seconds)"
        )
    )
    assert (action.subject, action.what) == ("topic orders", "remember")


def test_during_the_grace_only_the_look_is_noted() -> None:
    [action] = planned(MISSED, GONE)
    assert action == Remember("orders", replace(MISSED, looked_ms=NOW))
    assert action.why == "a topic that was seen can be missed"


def test_after_the_grace_the_remote_topic_is_deleted() -> None:
    [action] = planned(OVERDUE, GONE)
    assert action == DeleteTopic("orders", "A.orders", "source topic 'orders' has not existed for 86400 s")
    assert (action.subject, action.what, action.routine) == ("topic A.orders", "delete", False)
    [not_yet] = planned(replace(OVERDUE, missing_since_ms=OVERDUE.missing_since_ms + 1), GONE)
    assert isinstance(not_yet, Remember)


@pytest.mark.parametrize(
    "facts",
    [
        replace(GONE, answers={"orders": Answer.UNKNOWN}),
        replace(GONE, answers={"orders": Answer.EXISTS}),
        replace(GONE, answers={}),
        replace(GONE, cluster_id="cluster-C"),
    ],
    ids=["may not be seen", "no longer chosen", "not answered", "another cluster under the alias"],
)
def test_any_doubt_ends_the_grace(facts: Facts) -> None:
    assert planned(OVERDUE, facts) == [Remember("orders", SEEN)]
    assert planned(SEEN, facts) == []


@pytest.mark.parametrize("remote_ids", [{}, {"A.orders": "id-2"}], ids=["deleted already", "made anew by somebody"])
def test_a_remote_topic_that_is_not_the_copy_is_forgotten(remote_ids: dict[str, str]) -> None:
    assert planned(OVERDUE, replace(GONE, remote_ids=remote_ids)) == [Remember("orders", None)]


def test_a_long_time_without_a_look_begins_the_grace_anew() -> None:
    [action] = planned(replace(OVERDUE, looked_ms=NOW - 6_000_001), GONE)
    assert isinstance(action, Remember) and action.seen is not None
    assert action.seen.missing_since_ms == NOW and action.notice


def test_a_note_is_read_back_as_it_was_written() -> None:
    assert decode_seen(encode_seen(MISSED)) == MISSED


@pytest.mark.parametrize("value", [b"", b"[]", b"{}", b'{"version":2}', b'{"version":1}'])
def test_a_note_that_cannot_be_read_is_no_note(value: bytes) -> None:
    assert decode_seen(value) is None
