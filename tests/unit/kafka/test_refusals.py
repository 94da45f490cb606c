from __future__ import annotations

from heliograph.kafka.refusals import topic_refused


def test_a_missing_permission_is_named_with_where_to_grant_it() -> None:
    error = topic_refused(29, "reading orders-0 at 7", "READ", "orders", "A")
    assert error.what == "reading orders-0 at 7 (this needs READ on the topic orders of cluster A)"
    assert error.advice == "grant READ on the topic orders to Heliograph's principal on cluster A"


def test_another_refusal_asks_for_nothing() -> None:
    error = topic_refused(6, "reading orders-0 at 7", "READ", "orders", "A")
    assert (error.code, error.what, error.advice) == (6, "reading orders-0 at 7", "")
