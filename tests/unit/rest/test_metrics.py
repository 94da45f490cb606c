"""/metrics: every metric of the table from one scene, read by an independent reader; which lanes are told of; what it costs."""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from heliograph.control.meters import Meters
from heliograph.errors import Refused
from heliograph.metrics.picture import ALL_LANES
from heliograph.metrics.table import COUNTER, METRICS
from heliograph.rest.metrics import picture_of, text_of
from heliograph.rest.scene import Scene
from tests.support.exposition import Family, read_exposition
from tests.unit.control.test_meters import NOW as ACKED
from tests.unit.control.test_meters import Task
from tests.unit.rest.test_scene import FLOW, lane

NOW = 1_700_000_000_000
F = {"flow": "A->B"}
L0 = {"flow": "A->B", "topic": "orders", "partition": "0"}
M0 = {"source": "A", "target": "B", "topic": "A.orders", "partition": "0"}
G = {"flow": "A->B", "group": "billing"}
MG = {"source": "A", "target": "B", "group": "billing", "topic": "A.orders", "partition": "0"}
MM2 = "kafka_connect_mirror_mirrorsourceconnector"
MM2_GROUP = "kafka_connect_mirror_mirrorcheckpointconnector"
TOTALS = {
    "records": 700,
    "bytes": 70_000,
    "raw_batches": 11,
    "rebuilt_batches": 4,
    "refused": 2,
    "attaches": 3,
    "foreign": 6,
    "dropped": {"control": 5, "aborted": 1},
    "rebuilt": {"gap": 4},
    "skipped": {"skip": 9},
}
CANARY = {"sent": 30, "arrived": 28, "last_ms": 45, "waiting_ms": 1500, "late": True, "median_ms": 40, "longest_ms": 90}
JOB = {"ended_ms": NOW, "took_ms": 250, "actions": 8, "late": 1, "trouble": "refused"}
GROUP = {
    "group": "billing",
    "topic": "orders",
    "remote_topic": "A.orders",
    "partition": 0,
    "committed": 1450,
    "repeat": 50,
    "latency_ms": [7.0, 3.0, 20.0, 9.5],
}


def measured() -> dict[str, Any]:
    """As a run tells it after two reports of a task."""
    meters, task = Meters(), Task()
    meters.take("one", task.report(1.0, 1.0, source=1.0), 0.0)
    meters.tick(0.0)
    for latency_ms in (4, 4000):
        task.flow.fetched(5000, 5100, 30)
        task.flow.note(task.lane, (ACKED - latency_ms, ACKED, 350, 35_000))
        task.writer.answered(0.75, 12)
    task.flow.retried += 20
    meters.take("one", task.report(11.0, 6.0, source=1.0, target=4.0, throttled=1.0), 10.0)
    meters.gap("A->B/orders/0", 0.03)
    meters.epoch_ended(45.5)
    gone = {**TOTALS, "raw_batches": 100, "dropped": {"control": 1}}
    return {**meters.view(10.0, {("A->B", "parked"): 2}), "gone": {"A->B": gone}}


def stage() -> Scene:
    """A scene in which every metric says something."""
    made = Scene()
    run = {"version": "0.1", "host": "h", "process": 42, "since_ms": NOW - 5000, "time_ms": NOW, "epoch": 7}
    jobs = [{"name": "checkpoints", **JOB}, {"name": "canary", **JOB, "trouble": "", "detail": CANARY}]
    flow = {**FLOW, "jobs": jobs, "throttle": 1000, "wan_cost_per_gb": 1000.0}
    where = {"position": 1400, "source_end": 1500, "target_next": 1390, "waiting_since_ms": NOW - 3000}
    times = {"record_age_ms": [2, 1, 9, 4.5], "replication_latency_ms": [12, 8, 30, 15.5]}
    parts = {"run": {**run, "events_dropped": 3}, "meters": measured(), "groups": {"A->B": [GROUP]}}
    rows = [lane(0, 0, **where), lane(1, 0, state="parked", reason="why")]
    made.merge({"parts": parts, "flows": {"A->B": flow}, "lanes": rows}, 100.0)
    made.merge({"lanes": [{**rows[0], "totals": TOTALS, **times}]}, 101.0)
    return made


def text(made: Scene, lanes: int = ALL_LANES) -> str:
    return text_of(picture_of(made, 103.5), lanes)[0].decode()


@pytest.fixture(scope="module")
def families() -> dict[str, Family]:
    return read_exposition(text(stage()))


EXPECTED: dict[str, list[tuple[dict[str, str], float]]] = {
    "heliograph_run_info": [({"version": "0.1", "host": "h", "process": "42"}, 1)],
    "heliograph_run_start_time_seconds": [({}, (NOW - 5000) / 1000)],
    "heliograph_run_silent_seconds": [({}, 2.5)],
    "heliograph_epoch": [({}, 7)],
    "heliograph_epochs_total": [({}, 1)],
    "heliograph_epoch_seconds_total": [({}, 45.5)],
    "heliograph_epoch_duration_seconds": [({}, 45.5)],
    "heliograph_events_dropped_total": [({}, 3)],
    "heliograph_events_total": [({**F, "kind": "parked"}, 2)],
    "heliograph_flow_info": [({**F, "source": "A", "target": "B"}, 1)],
    "heliograph_flow_state": [({**F, "state": "running"}, 1), ({**F, "state": "trouble"}, 0)],
    "heliograph_flow_lanes": [({**F, "state": "following"}, 1), ({**F, "state": "parked"}, 1), ({**F, "state": "done"}, 0)],
    "heliograph_flow_bottleneck": [
        ({**F, "bottleneck": "waiting for target"}, 0),
        ({**F, "bottleneck": "the mirror itself is busy"}, 1),
    ],
    "heliograph_flow_trouble": [(F, 0)],
    "heliograph_flow_topics": [(F, 1)],
    "heliograph_flow_lag_records": [(F, 100)],
    "heliograph_flow_lag_seconds": [(F, 3)],
    "heliograph_flow_at_risk_records": [(F, 100)],
    "heliograph_flow_at_risk_seconds": [(F, 3)],
    "heliograph_flow_records_total": [(F, 700)],
    "heliograph_flow_bytes_total": [(F, 70_000)],
    "heliograph_flow_records_per_second": [(F, 70)],
    "heliograph_flow_bytes_per_second": [(F, 7000)],
    "heliograph_flow_attaches_total": [(F, 6)],
    "heliograph_refused_batches_total": [(F, 4)],
    "heliograph_foreign_offsets_total": [(F, 12)],
    "heliograph_throttle_bytes_per_second": [(F, 1000)],
    "heliograph_wan_bytes_total": [(F, 10_200)],
    "heliograph_wan_cost_total": [(F, 10_200 / 1e9 * 1000)],
    "heliograph_batches_total": [({**F, "path": "raw"}, 111), ({**F, "path": "rebuilt"}, 8)],
    "heliograph_rebuilt_batches_total": [({**F, "reason": "gap"}, 8)],
    "heliograph_dropped_batches_total": [({**F, "reason": "control"}, 6), ({**F, "reason": "aborted"}, 1)],
    "heliograph_skipped_records_total": [({**F, "how": "skip"}, 18)],
    "heliograph_flow_time_seconds_total": [({**F, "spent_on": "busy"}, 5), ({**F, "spent_on": "target"}, 4)],
    "heliograph_fetch_requests_total": [(F, 2)],
    "heliograph_fetch_bytes_total": [(F, 10_000)],
    "heliograph_fetch_requests_per_second": [(F, 0.2)],
    "heliograph_fetch_size_avg_bytes": [(F, 5000)],
    "heliograph_fetch_size_max_bytes": [(F, 5000)],
    "heliograph_fetch_throttle_avg_seconds": [(F, 0.03)],
    "heliograph_fetch_throttle_max_seconds": [(F, 0.03)],
    "heliograph_batch_size_avg_bytes": [(F, 35_000)],
    "heliograph_batch_size_max_bytes": [(F, 35_000)],
    "heliograph_record_retries_total": [(F, 20)],
    "heliograph_record_retries_per_second": [(F, 2)],
    "heliograph_produce_requests_total": [({"target": "B"}, 2)],
    "heliograph_produce_request_seconds_total": [({"target": "B"}, 1.5)],
    "heliograph_produce_request_avg_seconds": [({"target": "B"}, 0.75)],
    "heliograph_produce_request_max_seconds": [({"target": "B"}, 0.75)],
    "heliograph_produce_requests_in_flight": [({"target": "B"}, 0.15)],
    "heliograph_produce_throttle_avg_seconds": [({"target": "B"}, 0.012)],
    "heliograph_slot_time_seconds_total": [({"slot": "0", "spent_on": kind}, at) for kind, at in (
        ("source", 1), ("target", 4), ("throttled", 1), ("busy", 5)
    )],
    "heliograph_slot_seconds_total": [({"slot": "0"}, 11)],
    "heliograph_slot_io_ratio": [({"slot": "0"}, 0.1)],
    "heliograph_slot_io_wait_ratio": [({"slot": "0"}, 0.5)],
    "heliograph_slot_memory_peak_bytes": [({"slot": "0"}, 1 << 20)],
    "heliograph_lane_lag_records": [(L0, 100)],
    "heliograph_lane_lag_seconds": [(L0, 3)],
    "heliograph_lane_position": [(L0, 1400)],
    "heliograph_lane_source_end": [(L0, 1500)],
    "heliograph_lane_delta": [(L0, -10)],
    "heliograph_lane_state": [({**L0, "state": "following"}, 1), ({**L0, "partition": "1", "state": "parked"}, 1)],
    "heliograph_lane_batches_total": [({**L0, "path": "raw"}, 11), ({**L0, "path": "rebuilt"}, 4)],
    f"{MM2}_record_count": [(M0, 700)],
    f"{MM2}_record_rate": [(M0, 700)],
    f"{MM2}_byte_count": [(M0, 70_000)],
    f"{MM2}_byte_rate": [(M0, 70_000)],
    **{f"{MM2}_record_age_ms{end}": [(M0, at)] for end, at in (("", 2), ("_min", 1), ("_max", 9), ("_avg", 4.5))},
    **{
        f"{MM2}_replication_latency_ms{end}": [(M0, at)]
        for end, at in (("", 12), ("_min", 8), ("_max", 30), ("_avg", 15.5))
    },
    **{
        f"{MM2_GROUP}_checkpoint_latency_ms{end}": [(MG, at)]
        for end, at in (("", 7), ("_min", 3), ("_max", 20), ("_avg", 9.5))
    },
    "heliograph_group_at_risk_records": [(G, 50)],
    "heliograph_group_at_risk_seconds": [(G, 3)],
    "heliograph_group_repeat_records": [(G, 50)],
    "heliograph_job_trouble": [({**F, "job": "checkpoints"}, 1), ({**F, "job": "canary"}, 0)],
    "heliograph_job_last_success_timestamp_seconds": [({**F, "job": "checkpoints"}, NOW / 1000)],
    "heliograph_job_duration_seconds": [({**F, "job": "checkpoints"}, 0.25)],
    "heliograph_job_actions_total": [({**F, "job": "checkpoints"}, 8)],
    "heliograph_job_late_turns_total": [({**F, "job": "checkpoints"}, 1)],
    "heliograph_canary_sent_total": [(F, 30)],
    "heliograph_canary_arrived_total": [(F, 28)],
    "heliograph_canary_latency_seconds": [(F, 0.045)],
    "heliograph_canary_waiting_seconds": [(F, 1.5)],
    "heliograph_canary_late": [(F, 1)],
}  # fmt: skip
HISTOGRAMS = {"heliograph_replication_latency_seconds", "heliograph_handover_gap_seconds"}


def test_every_metric_of_the_table_is_told_and_none_besides(families: dict[str, Family]) -> None:
    assert families.keys() == METRICS.keys() == EXPECTED.keys() | HISTOGRAMS


@pytest.mark.parametrize("name", EXPECTED)
def test_a_metric_says_what_the_scene_holds(families: dict[str, Family], name: str) -> None:
    for labels, value in EXPECTED[name]:
        assert families[name].value(**labels) == pytest.approx(value), labels


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_has_the_kind_the_help_and_the_labels_of_its_row(families: dict[str, Family], name: str) -> None:
    family, metric = families[name], METRICS[name]
    assert (family.kind, family.help) == (metric.kind, metric.meaning)
    assert family.label_names() == {frozenset(metric.labels)}


def test_latencies_and_gaps_are_histograms(families: dict[str, Family]) -> None:
    latency, gap = (families[name] for name in sorted(HISTOGRAMS, reverse=True))
    assert latency.value("_count", **F) == 700
    assert latency.value("_sum", **F) == pytest.approx(350 * 4.004)
    assert [latency.value("_bucket", **F, le=le) for le in ("0.002", "0.005", "2.0", "5.0", "+Inf")] == [
        0, 350, 350, 700, 700,
    ]  # fmt: skip
    assert [gap.value("_bucket", **F, le=le) for le in ("0.02", "0.05")] == [0, 1]


def test_what_is_not_known_is_not_told() -> None:
    """A parked lane that never was attached has no position; without a canary, checkpoints or a price there is no number."""
    made = stage()
    flow = {**made.flows["A->B"], "jobs": [{**JOB, "name": "canary", "ended_ms": 0}], "wan_cost_per_gb": 0}
    groups = [
        {**GROUP, "repeat": None, "latency_ms": None},
        {**GROUP, "partition": 1, "repeat": None, "latency_ms": None},
    ]
    made.merge({"flows": {"A->B": flow}, "parts": {"groups": {"A->B": groups}}}, 102.0)
    found = read_exposition(text(made))
    gone = {
        name
        for name in METRICS
        if name.startswith(("heliograph_canary", "heliograph_wan_cost", "heliograph_group_repeat", MM2_GROUP))
    } | {"heliograph_job_last_success_timestamp_seconds"}
    assert METRICS.keys() - found.keys() == gone
    assert found["heliograph_lane_position"].value(**{**L0, "partition": "1"}) is None
    assert found["heliograph_lane_lag_records"].value(**{**L0, "partition": "1"}) == 0


def test_a_lag_that_is_not_known_has_no_sample() -> None:
    """Of a run that stands by: a zero would hide what the run that carries the flow says."""
    made = stage()
    made.merge({"flows": {"A->B": {**made.flows["A->B"], "opened": False}}}, 102.0)
    found = read_exposition(text(made))
    for name in ("lag_records", "lag_seconds", "at_risk_records", "at_risk_seconds"):
        assert f"heliograph_flow_{name}" not in found


def test_a_canary_that_never_arrived_has_no_latency() -> None:
    made = stage()
    jobs = [{**JOB, "name": "canary", "detail": {**CANARY, "arrived": 0, "last_ms": None}}]
    made.merge({"flows": {"A->B": {**made.flows["A->B"], "jobs": jobs}}}, 102.0)
    found = read_exposition(text(made))
    assert "heliograph_canary_latency_seconds" not in found
    assert found["heliograph_canary_waiting_seconds"].value(**F) == 1.5


def test_a_run_that_measured_nothing_yet_tells_what_it_knows() -> None:
    made = Scene()
    with pytest.raises(Refused):
        picture_of(made, 1.0)
    run = {"version": "0.1", "host": "h", "process": 1, "since_ms": 1, "time_ms": 5, "epoch": 0, "events_dropped": 0}
    made.merge({"parts": {"run": run}, "flows": {"A->B": {**FLOW, "wan_cost_per_gb": 0}}, "lanes": [lane(0, 0)]}, 100.0)
    found = read_exposition(text(made))
    assert found["heliograph_flow_bottleneck"].value(**F, bottleneck="nothing to do") == 1
    assert "heliograph_fetch_requests_total" not in found


def test_names_are_escaped() -> None:
    made = stage()
    name = 'a "quoted\\ name\nin two lines'
    made.merge({"parts": {"groups": {"A->B": [{**GROUP, "group": name}]}}}, 102.0)
    found = read_exposition(text(made))["heliograph_group_repeat_records"]
    assert found.value(group=name) == 50


def test_the_librarys_own_reader_reads_the_same(families: dict[str, Family]) -> None:
    told = {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text(stage()))
        for sample in family.samples
    }
    assert told == {key: value for family in families.values() for key, value in family.samples.items()}


def test_openmetrics_is_told_to_who_asks_for_it() -> None:
    found, kind = text_of(picture_of(stage(), 103.5), 1, "application/openmetrics-text; version=1.0.0")
    assert kind.startswith("application/openmetrics-text")
    assert found.endswith(b"# EOF\n")
    assert b"# TYPE heliograph_flow_records counter" in found


# -- which lanes ----------------------------------------------------------------------------------------------------------


def many(lanes: int) -> Scene:
    made = stage()
    rows = [lane(number, number, position=0, source_end=number) for number in range(lanes)]
    made.merge({"lanes": rows}, 102.0)
    return made


def told(made: Scene, lanes: int) -> list[int]:
    found = read_exposition(text(made, lanes)).get("heliograph_lane_lag_records")
    places = [dict(labels)["partition"] for _, labels in found.samples] if found is not None else []
    return sorted(map(int, places))


def test_only_so_many_lanes_have_series_those_that_need_a_look_first() -> None:
    made = many(100)
    made.merge({"lanes": [lane(3, 0, state="parked", reason="why")]}, 103.0)
    assert told(made, 3) == [3, 98, 99]
    assert told(made, 0) == []
    assert len(told(made, ALL_LANES)) == 100
    assert len(told(made, 1000)) == 100


def test_without_series_of_lanes_the_sums_are_the_same() -> None:
    made = many(50)
    whole, none = (read_exposition(text(made, lanes)) for lanes in (ALL_LANES, 0))
    assert whole["heliograph_flow_lag_records"].samples == none["heliograph_flow_lag_records"].samples
    assert METRICS.keys() - none.keys() == {metric.name for metric in METRICS.values() if metric.per_lane}


def test_all_of_5000_lanes_are_told() -> None:
    assert len(told(many(5000), ALL_LANES)) == 5000


def test_a_counter_does_not_go_back_when_a_lane_goes() -> None:
    """What it carried stays in the sums: the driver tells of lanes that are gone."""
    counters = [metric.name for metric in METRICS.values() if metric.kind == COUNTER and not metric.per_lane]
    made = stage()
    before = read_exposition(text(made))
    meters = made.part("meters")
    gone = {name: _sum(value, TOTALS[name]) for name, value in meters["gone"]["A->B"].items()}
    made.merge({"parts": {"meters": {**meters, "gone": {"A->B": gone}}}, "gone": ["A->B/orders/0"]}, 104.0)
    after = read_exposition(text(made))
    for name in counters:
        assert after[name].samples.keys() >= before[name].samples.keys(), name
        assert all(after[name].samples[key] >= value for key, value in before[name].samples.items()), name


def _sum(one: Any, other: Any) -> Any:
    if isinstance(one, dict):
        return {name: one.get(name, 0) + other.get(name, 0) for name in {*one, *other}}
    return one + other
