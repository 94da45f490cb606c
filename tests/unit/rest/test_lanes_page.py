"""Pages of lanes: what is found, in which order, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from heliograph.rest.lanes_page import ORDERS, SORTS, STATES, BadQuery, LanesQuery, page_of, query_of
from heliograph.rest.scene import Scene

FLOW = "A->B"


def lane(topic: str, partition: int, flow: str = FLOW, **more: Any) -> dict[str, Any]:
    place = {"flow": flow, "topic": topic, "partition": partition, "remote_topic": f"A.{topic}"}
    return {"lane": f"{flow}/{topic}/{partition}", "state": "following", **place, **more}


def lanes_of(*rows: dict[str, Any]) -> dict[str, dict[str, Any]]:
    scene = Scene()
    scene.merge({"lanes": list(rows)}, 1.0)
    return scene.lanes


LANES = lanes_of(
    lane("orders", 0, position=10, source_end=25, target_next=8),
    lane("orders", 10, position=10, source_end=12, target_next=10),
    lane("orders", 2, state="parked", reason="Topic is too small", position=10, source_end=11),
    lane("clicks", 0, position=0, source_end=0, target_next=0, totals={"records": 7, "dropped": {"control": 2, "aborted": 1}}),
    lane("orders", 0, flow="A->BC", position=0, source_end=99),
    lane("waits", 0, state="waiting"),
)  # fmt: skip


def found(**given: str) -> list[str]:
    return [f"{row['topic']}-{row['partition']}" for row in page_of(LANES, query_of(FLOW, given)).lanes]


def test_lanes_stand_by_topic_and_number_unless_asked_otherwise() -> None:
    assert found() == ["clicks-0", "orders-0", "orders-2", "orders-10", "waits-0"]
    assert found(order="desc") == ["waits-0", "orders-10", "orders-2", "orders-0", "clicks-0"]


def test_a_flow_has_its_own_lanes_and_not_those_of_one_whose_name_begins_alike() -> None:
    assert page_of(LANES, LanesQuery("A->BC")).total == 1
    assert page_of(LANES, LanesQuery("A->")).total == 0


def test_what_is_equal_stands_by_name_in_either_order() -> None:
    assert found(sort="lag", order="desc") == ["orders-0", "orders-10", "orders-2", "clicks-0", "waits-0"]
    assert found(sort="lag") == ["clicks-0", "waits-0", "orders-2", "orders-10", "orders-0"]


def test_states_stand_by_how_much_they_need_a_look() -> None:
    assert found(sort="state")[:2] == ["orders-2", "waits-0"]
    strange = lanes_of(lane("x", 0, state="following"), lane("x", 1, state="unheard-of"))
    assert [row["partition"] for row in page_of(strange, query_of(FLOW, {"sort": "state"})).lanes] == [0, 1]


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("order", ORDERS)
def test_every_field_can_be_sorted_by_and_loses_no_lane(sort: str, order: str) -> None:
    assert sorted(found(sort=sort, order=order)) == sorted(found())


@pytest.mark.parametrize(
    "sort", [sort for sort in SORTS if sort not in ("lane", "topic", "state", "delta", "dropped", "rebuilt")]
)
def test_the_shown_value_is_the_one_that_is_sorted_by(sort: str) -> None:
    values = [row[sort] for row in page_of(LANES, query_of(FLOW, {"sort": sort})).lanes]
    assert values == sorted(values)


@pytest.mark.parametrize(
    ("search", "lanes"),
    [
        ("ORDERS-1", ["orders-10"]),
        ("too small", ["orders-2"]),
        ("small orders", ["orders-2"]),
        ("a.clicks", ["clicks-0"]),
        ("parked", ["orders-2"]),
        ("orders clicks", []),
        ("  ", ["clicks-0", "orders-0", "orders-2", "orders-10", "waits-0"]),
    ],
)
def test_every_word_of_a_search_must_stand_somewhere_in_a_lane(search: str, lanes: list[str]) -> None:
    assert found(search=search) == lanes


def test_a_topic_is_meant_exactly() -> None:
    assert found(topic="orders") == ["orders-0", "orders-2", "orders-10"]
    assert found(topic="order") == []


def test_several_states_may_be_asked_for() -> None:
    assert found(state="parked,waiting") == ["orders-2", "waits-0"]


def test_a_page_counts_all_lanes_and_all_that_match() -> None:
    page = page_of(LANES, query_of(FLOW, {"search": "orders", "offset": "1", "limit": "1"}))
    assert (page.total, page.matched, [row["lane"] for row in page.lanes]) == (5, 3, ["A->B/orders/2"])
    assert page.as_json() == {"total": 5, "matched": 3, "lanes": list(page.lanes)}
    assert page_of(LANES, query_of(FLOW, {"offset": "900"})).lanes == []


def test_what_is_not_known_yet_is_no_lag_and_no_delta() -> None:
    rows = {row["topic"]: row for row in page_of(LANES, LanesQuery(FLOW)).lanes}
    assert (rows["waits"]["lag"], rows["waits"]["delta"]) == (0, None)
    assert (rows["clicks"]["lag"], rows["clicks"]["delta"]) == (0, 0)
    assert rows["clicks"]["dropped"] == {"control": 2, "aborted": 1}


@pytest.mark.parametrize(
    ("given", "field", "allowed"),
    [
        ({"sort": "lug"}, "sort", SORTS),
        ({"order": "up"}, "order", ORDERS),
        ({"state": "parked,broken"}, "state", STATES),
        ({"limit": "0"}, "limit", ()),
        ({"limit": "1001"}, "limit", ()),
        ({"limit": "ten"}, "limit", ()),
        ({"offset": "-1"}, "offset", ()),
        ({"offset": "٣"}, "offset", ()),
        ({"offset": "9" * 400}, "offset", ()),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_name(
    given: dict[str, str], field: str, allowed: tuple[str, ...]
) -> None:
    with pytest.raises(BadQuery) as refused:
        query_of(FLOW, given)
    assert refused.value.field == field
    assert refused.value.allowed == allowed
    assert "allowed: " in str(refused.value)
