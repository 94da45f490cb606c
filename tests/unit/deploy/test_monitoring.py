"""The dashboard and the alert rules in deploy/: every query asks for metrics, labels and values that exist."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from heliograph.metrics.meters import KINDS
from heliograph.metrics.series import FLOW_STATES, LANE_STATES
from heliograph.metrics.table import COUNTER, HISTOGRAM, METRICS
from heliograph.model.events import EventKind
from tests.support.promql import NotPromql, Query, read_query
from tests.support.rules_file import NotRules, read_rules

DEPLOY = Path(__file__).parents[3] / "deploy"
DASHBOARD: dict[str, Any] = json.loads((DEPLOY / "grafana" / "heliograph.json").read_text(encoding="utf-8"))
RULES = read_rules((DEPLOY / "prometheus" / "alerts.yml").read_text(encoding="utf-8"))
ALERTS: list[dict[str, Any]] = [rule for group in RULES["groups"] for rule in group["rules"]]
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
VALUES = {
    "kind": {str(kind) for kind in EventKind},
    "spent_on": set(KINDS),
    "path": {"raw", "rebuilt"},
}
_ENDS = ("_bucket", "_sum", "_count")
_LABEL_IN_TEXT = re.compile(r"\{\{ ?\$?(?:labels\.)?(\w+)[^}]*\}\}")


def queries() -> Iterator[tuple[str, str]]:
    for panel in PANELS:
        yield from ((panel["title"], target["expr"]) for target in panel["targets"])
    yield from (("annotations", one["expr"]) for one in DASHBOARD["annotations"]["list"])
    yield from ((alert["alert"], alert["expr"]) for alert in ALERTS)


def labels_of(name: str) -> set[str] | None:
    """The labels of a metric by the name that its samples have; None if there is no such metric."""
    metric = METRICS.get(name)
    if metric is not None:
        return None if metric.kind == HISTOGRAM else set(metric.labels)
    for end in _ENDS:
        whole = METRICS.get(name.removesuffix(end))
        if name.endswith(end) and whole is not None and whole.kind == HISTOGRAM:
            return {*whole.labels, *(["le"] if end == "_bucket" else [])}
    return None


def plain(expr: str) -> str:
    """As Prometheus gets it: Grafana puts a duration and the chosen flows in."""
    return expr.replace("$__rate_interval", "1m").replace('"$flow"', '".*"')


def faults(query: Query) -> list[str]:
    found = []
    every: set[str] = set()
    for name, used in query.metrics.items():
        labels = labels_of(name)
        if labels is None:
            found.append(f"no metric {name}")
            continue
        every |= labels
        found += [f"{name} has no label {label}" for label in used - labels]
    found += [f"no metric has a label {label}" for label in query.grouped - every]
    for (name, label), values in query.values.items():
        known = _states(name) if label == "state" else VALUES.get(label, values)
        found += [f"{name}: {label} is never {value}" for value in values - known]
    return found


def _states(name: str) -> set[str]:
    return set(FLOW_STATES if name == "heliograph_flow_state" else LANE_STATES)


@pytest.mark.parametrize(("where", "expr"), [*queries()])
def test_a_query_asks_for_what_exists(where: str, expr: str) -> None:
    query = read_query(plain(expr))
    assert query.metrics, where
    assert not faults(query), where


@pytest.mark.parametrize(("where", "expr"), [*queries()])
def test_only_counters_have_rates(where: str, expr: str) -> None:
    for name in re.findall(r"(?:rate|increase)\((\w+)", expr):
        metric = METRICS.get(name) or METRICS[name.removesuffix("_bucket")]
        assert metric.kind in (COUNTER, HISTOGRAM), (where, name)


@pytest.mark.parametrize(
    ("expr", "fault"),
    [
        ("heliograph_flow_lag_minutes", "no metric heliograph_flow_lag_minutes"),
        ("heliograph_replication_latency_seconds", "no metric heliograph_replication_latency_seconds"),
        ('heliograph_flow_lag_seconds{topic="x"}', "heliograph_flow_lag_seconds has no label topic"),
        ("sum by (topic) (heliograph_flow_lag_seconds)", "no metric has a label topic"),
        ('heliograph_flow_lanes{state="broken"}', "heliograph_flow_lanes: state is never broken"),
        ('heliograph_events_total{kind="x"}', "heliograph_events_total: kind is never x"),
    ],
)
def test_a_query_for_what_does_not_exist_would_be_found(expr: str, fault: str) -> None:
    assert faults(read_query(expr)) == [fault]


@pytest.mark.parametrize("expr", ["sum(x", "x}", "nonsense(x)", 'x{a<"b"}', "x ? y", ""])
def test_what_is_no_query_would_be_found(expr: str) -> None:
    with pytest.raises(NotPromql):
        read_query(expr)


# -- the dashboard --------------------------------------------------------------------------------------------------------


def test_panels_have_numbers_of_their_own_and_do_not_lie_on_each_other() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24 and not cells & taken, panel["title"]
        taken |= cells


def test_a_legend_names_labels_that_its_query_keeps() -> None:
    for panel in PANELS:
        for target in panel["targets"]:
            query = read_query(plain(target["expr"]))
            kept = query.grouped or set().union(*(labels_of(name) or set() for name in query.metrics))
            assert set(_LABEL_IN_TEXT.findall(target["legendFormat"])) <= kept, panel["title"]


def test_flows_are_chosen_by_a_label_that_exists() -> None:
    (flow,) = [one for one in DASHBOARD["templating"]["list"] if one["name"] == "flow"]
    metric, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", flow["query"]).groups()  # type: ignore[union-attr]  # or it fails
    assert label in METRICS[metric].labels


# -- alerts ---------------------------------------------------------------------------------------------------------------


def test_every_alert_says_what_is_wrong_and_what_to_do() -> None:
    assert len({alert["alert"] for alert in ALERTS}) == len(ALERTS)
    for alert in ALERTS:
        assert alert.keys() - {"for"} == {"alert", "expr", "labels", "annotations"}, alert["alert"]
        assert alert["labels"].keys() == {"severity"} and alert["labels"]["severity"] in ("warning", "critical")
        assert alert["annotations"].keys() == {"summary", "description"}
        assert re.fullmatch(r"\d+[smhd]", alert.get("for", "1m"))


def test_a_sentence_of_an_alert_names_labels_that_its_query_keeps() -> None:
    for alert in ALERTS:
        query = read_query(alert["expr"])
        kept = query.grouped or set().union(*(labels_of(name) or set() for name in query.metrics))
        used = set(_LABEL_IN_TEXT.findall(" ".join(alert["annotations"].values()))) - {"value"}
        assert used <= kept, alert["alert"]


def test_a_file_of_another_form_would_be_found() -> None:
    for text in ("groups: [1]", 'a: "x"\na: "y"', 'a: "x"\n    b: "y"', "a: 'x'"):
        with pytest.raises(NotRules):
            read_rules(text)
