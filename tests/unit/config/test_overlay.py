"""What REST changed counts instead of the file's entries, and is checked as they are."""

from __future__ import annotations

import pytest

from heliograph.config.flows import Settings
from heliograph.config.load import load
from heliograph.config.overlay import OptionChange, TopicChange, option_change_of, overlay, topic_change_of
from heliograph.config.providers import NOTHING
from heliograph.errors import ConfigError

BASE = (
    "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\nA->B.topics = orders\n"
)
WHO = ("why", "ann", 7)


def loaded(over: dict[str, str]) -> Settings:
    return load(BASE, "mm2.properties", NOTHING, over)


def topic(name: str, chosen: bool, flow: str = "A->B") -> TopicChange:
    return TopicChange(flow, name, chosen, *WHO)


def test_topics_are_added_to_what_the_file_names_by_their_very_names() -> None:
    flows = loaded({}).flows
    over = overlay(flows, [topic("pay.eu", True), topic("orders", True)], [])
    assert over == {"A->B.topics": "orders,pay\\.eu"}
    names = loaded(over).flows[0].topic_names
    assert [names.accepts(name) for name in ("orders", "pay.eu", "pay-eu")] == [True, True, False]


def test_topics_that_were_taken_out_are_excluded_besides_what_the_file_excludes() -> None:
    over = overlay(loaded({}).flows, [topic("orders", False)], [])
    assert over.keys() == {"A->B.topics.exclude"}
    assert over["A->B.topics.exclude"].endswith(",orders")
    assert not loaded(over).flows[0].topic_names.accepts("orders")


def test_options_are_those_of_flows_that_there_are() -> None:
    limit = OptionChange("A->B.throttle.bytes.per.second", "5", *WHO)
    gone = OptionChange("A->C.throttle.bytes.per.second", "5", *WHO)
    over = overlay(loaded({}).flows, [topic("x", True, "A->C")], [limit, gone])
    assert over == {"A->B.throttle.bytes.per.second": "5"}
    found = loaded(over)
    assert found.flows[0].throttle == 5
    shown = next(value for value in found.values if value.name == "A->B.throttle.bytes.per.second")
    assert (shown.value, shown.origin) == ("5", "REST")


def test_a_bad_value_is_a_fault_that_came_by_rest() -> None:
    with pytest.raises(ConfigError) as caught:
        loaded({"A->B.throttle.bytes.per.second": "much", "A->B.topics": "["})
    assert [fault.partition(":")[0] for fault in caught.value.faults] == ["REST", "REST"]


def test_changes_are_read_as_they_were_written() -> None:
    change, option = topic("orders", True), OptionChange("A->B.topics", "x", *WHO)
    assert topic_change_of(change.as_fields()) == change
    assert option_change_of(option.as_fields()) == option
