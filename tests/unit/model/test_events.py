"""Events as values: one line for people, versioned JSON for machines, and what cannot be read is passed over."""

from __future__ import annotations

import json

import pytest

from heliograph.model.events import EVENT_VERSION, Deed, Event, EventKind, decode_event, encode_event

EVENT = Event(1_700_000_000_000, "A->B", "orders-3", EventKind.DATA_LOSS, "13 offsets were lost", "raise retention")


def test_an_event_survives_writing_and_reading() -> None:
    assert decode_event(encode_event(EVENT)) == EVENT
    fields = json.loads(encode_event(EVENT))
    assert fields["version"] == EVENT_VERSION
    assert (fields["kind"], fields["what_to_do"]) == ("data-loss", "raise retention")


def test_a_line_says_flow_subject_reason_and_what_to_do() -> None:
    assert str(EVENT) == "A->B: orders-3: 13 offsets were lost; raise retention"
    about_the_flow = Event(1, "A->B", "A->B", EventKind.TROUBLE, "B does not answer")
    assert str(about_the_flow) == "A->B: B does not answer"


def test_the_same_said_later_is_the_same() -> None:
    later = Event(2, "A->B", "orders-3", "data-loss", "13 offsets were lost")
    assert later.told == EVENT.told
    assert Event(2, "A->B", "orders-3", "data-loss", "14 offsets were lost").told != EVENT.told


def test_a_kind_that_this_version_does_not_know_is_kept() -> None:
    newer = json.loads(encode_event(EVENT)) | {"kind": "eclipse", "more": 1}
    found = decode_event(json.dumps(newer).encode())
    assert found is not None and found.kind == "eclipse"


@pytest.mark.parametrize(
    "value",
    [None, b"", b"\xff", b"[]", b'{"version":2}', b'{"version":1}', b'{"version":1,"time_ms":"soon"}'],
)
def test_what_is_no_event_is_none(value: bytes | None) -> None:
    assert decode_event(value) is None


def test_what_somebody_did_is_an_event_with_who_and_why() -> None:
    event = Deed("A->B", "paused", "ann", "lag test", "orders-3").event(7)
    assert (event.time_ms, event.flow, event.subject, event.kind) == (7, "A->B", "orders-3", "changed")
    assert (event.reason, event.what_to_do) == ("paused by ann: lag test", "")
    of_the_flow = Deed("A->B", "resumed", "").event(8)
    assert (of_the_flow.subject, of_the_flow.reason) == ("A->B", "resumed")
