from __future__ import annotations

import pytest

from heliograph.config.load import load
from heliograph.config.template import Answers, render

ADDRESSES = {"source_bootstrap": "h1:9092", "target_bootstrap": "h2:9092,h3:9092"}


def test_the_file_loads_without_a_warning_and_says_what_was_answered() -> None:
    settings = load(render(Answers(topics="orders, payments-.*", **ADDRESSES)), "new.properties")
    (flow,) = settings.flows
    assert settings.warnings == ()
    assert flow.flow.name == "A->B"
    assert flow.topics == ("orders", "payments-.*")
    assert flow.target.bootstrap == ("h2:9092", "h3:9092")
    assert flow.replication_factor == -1


def test_both_ways_enables_two_flows_with_the_same_topics() -> None:
    settings = load(render(Answers(topics="orders", both_ways=True, **ADDRESSES)), "new.properties")
    assert [flow.flow.name for flow in settings.flows] == ["A->B", "B->A"]
    assert {flow.topics for flow in settings.flows} == {("orders",)}


@pytest.mark.parametrize("topics", [r"a\.b", r"a\d+, \Qx\E", "  padded  "])
def test_a_regular_expression_keeps_its_backslashes(topics: str) -> None:
    (flow,) = load(render(Answers(topics=topics, **ADDRESSES)), "new.properties").flows
    assert flow.topics == tuple(part.strip() for part in topics.split(","))


def test_every_commented_line_is_valid_once_its_mark_is_gone() -> None:
    text = render(Answers(**ADDRESSES))
    commented = [line for line in text.splitlines() if line.startswith("#") and not line.startswith("# ")]
    assert len(commented) > 8
    opened = "\n".join(line.removeprefix("#") if line in commented else line for line in text.splitlines())
    settings = load(opened, "new.properties")
    assert settings.warnings == ()
    assert settings.flows[0].source.security.protocol == "SASL_SSL"
