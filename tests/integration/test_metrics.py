"""Metrics of one real run: each test causes something and sees the numbers that tell of it. Other runs of the file would be dear."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from heliograph.config.load import load_file
from heliograph.control.clock import Clock
from heliograph.control.events import QUEUE_EVENTS, EventLog
from heliograph.kafka.ledger import EVENTS_TOPIC
from heliograph.kafka.slot import Warm
from heliograph.metrics.picture import ALL_LANES
from heliograph.metrics.table import METRICS, MM2_KINDS
from heliograph.model.events import Event, EventKind, decode_event
from heliograph.rest.metrics import picture_of, text_of
from heliograph.rest.scene import Scene
from tests.integration.protocol.harness import with_warm
from tests.support.acls import add, remove
from tests.support.clusters import TwoClusters
from tests.support.exposition import read_exposition
from tests.support.groups import commit
from tests.support.metrics_stage import CANARY_LIMIT_MS, COST, EPOCH_SECONDS, Stage, metrics_stage
from tests.support.mirror import status
from tests.support.quotas import quotas
from tests.support.reading import messages
from tests.support.scraped import CAUSES, Scrape, causes
from tests.support.topics import create_topic, ends
from tests.support.waiting import wait_until
from tests.support.writers import (
    Sample,
    samples,
    write,
    write_dense,
    write_single_record_batches,
    write_transactions,
)

MM2 = "kafka_connect_mirror_mirrorsourceconnector"
MM2_GROUP = "kafka_connect_mirror_mirrorcheckpointconnector"
LATENCIES = tuple(f"{MM2}_replication_latency_ms{end}" for end in MM2_KINDS)
AGES = tuple(f"{MM2}_record_age_ms{end}" for end in MM2_KINDS)
CHECKPOINT_LATENCIES = tuple(f"{MM2_GROUP}_checkpoint_latency_ms{end}" for end in MM2_KINDS)
ALERTS = Path(__file__).parents[2] / "deploy" / "prometheus" / "alerts.yml"
COUNTS = tuple(f"{MM2}_{name}" for name in ("record_count", "record_rate", "byte_count", "byte_rate"))


@pytest.fixture(scope="module")
def stage(two_clusters: TwoClusters, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with metrics_stage(two_clusters, tmp_path_factory.mktemp("metrics")) as made:
        yield made


@contextmanager
def denied(bootstrap: str, kind: str, name: str, operation: str) -> Iterator[None]:
    row = (kind, name, "LITERAL", "User:mirror", operation, "DENY")
    add(bootstrap, row)
    try:
        yield
    finally:
        remove(bootstrap, row)


def test_every_metric_has_a_test_that_causes_it() -> None:
    """Those tests fail, too, if they do not see it change."""
    assert CAUSES.keys() == METRICS.keys()


# -- what is carried ----------------------------------------------------------------------------------------------------


@causes(
    "heliograph_flow_records_total", "heliograph_flow_bytes_total", "heliograph_flow_records_per_second",
    "heliograph_flow_bytes_per_second", "heliograph_replication_latency_seconds", "heliograph_batches_total",
    "heliograph_wan_bytes_total", "heliograph_wan_cost_total", "heliograph_fetch_requests_total", "heliograph_fetch_bytes_total",
    "heliograph_fetch_requests_per_second", "heliograph_fetch_size_avg_bytes", "heliograph_fetch_size_max_bytes",
    "heliograph_batch_size_avg_bytes", "heliograph_batch_size_max_bytes", "heliograph_slot_memory_peak_bytes",
)  # fmt: skip
def test_traffic_is_counted_for_the_flow(stage: Stage) -> None:
    before = stage.scrape()
    written = write_dense(stage.source, stage.topic("plain"), samples(4000, size=500, partitions=2), "none")
    after = stage.until(
        lambda found: found.of("heliograph_flow_records_total") >= before.of("heliograph_flow_records_total") + written,
        "all are counted",
    )

    def grown(name: str, end: str = "", **labels: str) -> float:
        return after.of(name, end, **labels) - before.of(name, end, **labels)

    assert grown("heliograph_replication_latency_seconds", "_count") >= written
    assert grown("heliograph_batches_total", path="raw") > 0
    assert grown("heliograph_flow_bytes_total") > 0
    assert grown("heliograph_wan_bytes_total") >= grown("heliograph_fetch_bytes_total") > 0
    assert grown("heliograph_wan_cost_total") == pytest.approx(grown("heliograph_wan_bytes_total") / 1e9 * COST)
    assert grown("heliograph_fetch_requests_total") > 0
    for name in ("heliograph_flow_records_per_second", "heliograph_flow_bytes_per_second"):
        assert grown(name) > 0
    assert after.of("heliograph_fetch_requests_per_second") > 0 != grown("heliograph_fetch_requests_per_second")
    for name in ("heliograph_fetch_size", "heliograph_batch_size"):  # no other test writes batches that are as large
        assert grown(f"{name}_max_bytes") > 0 != grown(f"{name}_avg_bytes")
        assert after.of(f"{name}_max_bytes") >= after.of(f"{name}_avg_bytes") > 1000
    peak = "heliograph_slot_memory_peak_bytes"
    assert any(after.of(peak, slot=slot) != before.of(peak, slot=slot) for slot in ("0", "1"))


@causes(
    "heliograph_lane_position", "heliograph_lane_source_end", *COUNTS, *LATENCIES, *AGES,
)  # fmt: skip
def test_traffic_is_counted_for_its_lanes_under_our_names_and_mirrormakers(stage: Stage) -> None:
    before = after = stage.scrape()
    mm2 = {"source": stage.here, "target": stage.there, "topic": stage.remote("lanes")}
    count, written = f"{MM2}_record_count", 0
    for _ in range(
        4
    ):  # once, unless lanes changed hands just then: a task that has copied nothing has no times to tell
        written += write(stage.source, stage.topic("lanes"), samples(200, size=500, partitions=2))
        after = stage.until(
            lambda found, wanted=written: found.sum(count, **mm2) == before.sum(count, **mm2) + wanted,  # type: ignore[misc]  # the default binds it
            "all are counted",
        )
        told = (after.of(name, **mm2, partition=part) for name in (*COUNTS, *LATENCIES, *AGES) for part in ("0", "1"))
        if all(value > 0 for value in told):
            break
    for partition, end in ends(stage.source, stage.topic("lanes")).items():
        lane = stage.lane("lanes", partition)
        assert before.of("heliograph_lane_position", **lane) < after.of("heliograph_lane_position", **lane) == end
        assert before.of("heliograph_lane_source_end", **lane) < after.of("heliograph_lane_source_end", **lane) == end
        assert (after.of("heliograph_lane_lag_records", **lane), after.of("heliograph_lane_delta", **lane)) == (0, 0)
        place = {**mm2, "partition": str(partition)}
        for last, least, most, mean in (LATENCIES, AGES):
            assert after.of(least, **place) <= after.of(last, **place) <= after.of(most, **place)
            assert after.of(least, **place) <= after.of(mean, **place) <= after.of(most, **place)
        for name in (*COUNTS, *LATENCIES, *AGES):
            assert after.of(name, **place) > before.of(name, **place) == 0, name


@causes(
    "heliograph_produce_requests_total", "heliograph_produce_request_seconds_total", "heliograph_produce_request_avg_seconds",
    "heliograph_produce_request_max_seconds", "heliograph_produce_requests_in_flight", "heliograph_slot_seconds_total",
    "heliograph_slot_io_ratio", "heliograph_slot_io_wait_ratio", "heliograph_job_late_turns_total",
    "heliograph_job_duration_seconds",
)  # fmt: skip
def test_a_target_that_stands_still_for_a_while_is_seen_in_its_requests_in_the_slot_and_in_jobs(stage: Stage) -> None:
    target, slot, job = {"target": stage.there}, {"slot": "0"}, {"job": "checkpoints"}
    slowest, late = "heliograph_produce_request_max_seconds", "heliograph_job_late_turns_total"
    before = stage.until(lambda found: found.of(slowest, **target) < 1, "the target has been quick for a while")
    after = before
    for _ in range(4):  # once, unless lanes were between two tasks just then, so that no request was on its way
        _stand_still(stage, slot)
        after = stage.until(
            lambda found: found.sum("heliograph_lane_lag_records", topic=stage.topic("plain")) == 0, "all is copied"
        )
        if after.of(slowest, **target) > 1 and after.of(late, **job) > before.of(late, **job):
            break
    assert after.of(late, **job) > before.of(late, **job)
    for name in (
        "requests_total",
        "request_seconds_total",
        "requests_in_flight",
        "request_avg_seconds",
        "request_max_seconds",
    ):
        whole = f"heliograph_produce_{name}"
        assert after.of(whole, **target) > before.of(whole, **target), name
    for name in ("heliograph_slot_io_ratio", "heliograph_slot_io_wait_ratio"):
        assert 0 < after.of(name, **slot) < 1 and after.of(name, **slot) != before.of(name, **slot)
    name = "heliograph_job_duration_seconds"
    # In milliseconds one turn may take as long as another.
    stage.until(lambda found: found.of(name, **job) != before.of(name, **job), "a turn takes another time")


def _stand_still(stage: Stage, slot: dict[str, str]) -> None:
    """For three seconds."""
    broker = stage.clusters.b.brokers[0]
    stage.clusters.b.freeze(broker)
    try:
        write(stage.source, stage.topic("plain"), samples(200, size=500, partitions=2))
        for _ in range(6):
            assert stage.scrape().of("heliograph_slot_seconds_total", **slot) > 0
            time.sleep(0.5)
    finally:
        stage.clusters.b.thaw(broker)


@causes("heliograph_rebuilt_batches_total", "heliograph_lane_batches_total")
def test_small_batches_are_rebuilt_and_say_why(stage: Stage) -> None:
    before, lane = stage.scrape(), stage.lane("small")
    write_single_record_batches(stage.source, stage.topic("small"), 300)

    def grown(found: Scrape, name: str, **labels: str) -> float:
        return found.of(name, **labels) - before.of(name, **labels)

    after = stage.until(  # the reason is known when they are read, the batch counts when it is acknowledged
        lambda found: grown(found, "heliograph_lane_batches_total", path="rebuilt", **lane) > 0,
        "small batches are rebuilt",
    )
    assert grown(after, "heliograph_rebuilt_batches_total", reason="small") > 0
    assert grown(after, "heliograph_batches_total", path="rebuilt") > 0


@causes("heliograph_dropped_batches_total")
def test_aborted_transactions_and_markers_are_dropped_and_say_why(stage: Stage) -> None:
    before = stage.scrape()
    write_transactions(stage.source, stage.topic("sure"), stage.w, transactions=6, size=5)
    for reason in ("aborted", "control"):
        stage.until(
            lambda found, reason=reason: (
                found.of("heliograph_dropped_batches_total", reason=reason)  # type: ignore[misc]  # the default binds it
                > before.of("heliograph_dropped_batches_total", reason=reason)
            ),
            f"batches are dropped: {reason}",
        )


@causes("heliograph_foreign_offsets_total", "heliograph_lane_delta")
def test_offsets_that_others_took_shift_the_delta(stage: Stage) -> None:
    before, lane = stage.scrape(), stage.lane("alien")
    assert before.of("heliograph_lane_delta", **lane) == 0
    write(stage.target, stage.remote("alien"), samples(3))
    write(stage.source, stage.topic("alien"), samples(5, seed=2))
    after = stage.until(
        # A task that attaches just then counts the others before it has copied anything behind them.
        lambda found: found.of("heliograph_lane_delta", **lane) == 3,
        "others are noticed, and where our records lie",
    )
    noticed = after.of("heliograph_foreign_offsets_total") - before.of("heliograph_foreign_offsets_total")
    assert noticed == 3


# -- what holds it up ---------------------------------------------------------------------------------------------------


@causes(
    "heliograph_flow_bottleneck",
    "heliograph_flow_time_seconds_total",
    "heliograph_slot_time_seconds_total",
    "heliograph_flow_lag_seconds",
)
def test_a_limit_makes_records_wait_and_is_named_as_the_bottleneck(stage: Stage) -> None:
    before = stage.until(
        lambda found: found.of("heliograph_flow_bottleneck", bottleneck="throttled") == 0, "nothing is held back"
    )
    write(stage.source, stage.topic("slow"), samples(300, size=500), batch_num_messages=5)
    lane = stage.lane("slow")
    held = stage.until(
        lambda found: (
            found.of("heliograph_lane_lag_seconds", **lane) > 2
            and found.of("heliograph_flow_bottleneck", bottleneck="throttled") == 1
        ),
        "the lane waits",
    )
    assert held.of("heliograph_lane_lag_records", **lane) > 0
    assert before.of("heliograph_flow_lag_seconds") != held.of("heliograph_flow_lag_seconds") > 2
    spent = {"spent_on": "throttled"}
    for name, more in (
        ("heliograph_flow_time_seconds_total", {}),
        ("heliograph_slot_time_seconds_total", {"slot": "0"}),
    ):
        assert held.of(name, **spent, **more) > before.of(name, **spent, **more)
    # It is told of the last seconds, in which a canary's event may have been waited for: not of every moment the same.
    wait_until(lambda: status(stage.file)[stage.flow]["bottleneck"] == "throttled", "the status names it too")
    stage.limit(0, stage.topic("slow"))
    end = ends(stage.source, stage.topic("slow"))[0]
    done = stage.until(lambda found: found.of("heliograph_lane_position", **lane) == end, "it is caught up")
    assert done.of("heliograph_lane_lag_seconds", **lane) == 0


@causes("heliograph_throttle_bytes_per_second")
def test_a_flows_limit_is_told_while_there_is_one(stage: Stage) -> None:
    for limit in (5_000_000, 0):
        stage.limit(limit)
        stage.until(
            lambda found, limit=limit: found.of("heliograph_throttle_bytes_per_second") == limit,  # type: ignore[misc]  # the default binds it
            f"the limit is {limit}",
        )


@causes(
    "heliograph_fetch_throttle_avg_seconds",
    "heliograph_fetch_throttle_max_seconds",
    "heliograph_produce_throttle_avg_seconds",
)
def test_a_quota_of_the_brokers_is_seen_on_both_sides(stage: Stage) -> None:
    """A broker holds an answer back for a second at most where somebody takes too much of its time."""
    mean, most = (f"heliograph_fetch_throttle_{kind}_seconds" for kind in ("avg", "max"))
    produce, target = "heliograph_produce_throttle_avg_seconds", {"target": stage.there}
    before, quota = stage.scrape(), ("mirror", "request_percentage", 0.01)
    assert before.of(mean) == before.of(most) == before.of(produce, **target) == 0
    with quotas((stage.target,), *quota):
        write(stage.source, stage.topic("plain"), samples(20, partitions=2))
        stage.until(lambda found: 0 < found.of(produce, **target) <= 1, "the target holds answers back")
    with quotas((stage.source,), *quota):
        held = stage.until(lambda found: found.of(mean) > 0, "the source holds answers back")
    assert held.of(mean) <= held.of(most) <= 1


@causes(
    "heliograph_record_retries_total",
    "heliograph_record_retries_per_second",
    "heliograph_refused_batches_total",
    "heliograph_flow_attaches_total",
)
def test_what_the_target_refuses_for_a_while_is_sent_again_and_arrives_once(stage: Stage) -> None:
    before, lane = stage.scrape(), stage.lane("again")
    names = ("heliograph_record_retries_total", "heliograph_refused_batches_total", "heliograph_flow_attaches_total")
    with denied(stage.target, "topic", stage.remote("again"), "WRITE"):
        write(stage.source, stage.topic("again"), samples(10))
        stage.until(
            lambda found: (
                all(found.of(name) > before.of(name) for name in names)
                and found.of("heliograph_record_retries_per_second") > before.of("heliograph_record_retries_per_second")
                and found.of("heliograph_lane_lag_records", **lane) == 10
            ),
            "it is refused",
        )
    # Not the lag, which is 0, too, while nobody knows it.
    stage.until(lambda found: found.of("heliograph_lane_position", **lane) == 10, "the target takes it")
    assert stage.copied("again") == 10


@causes("heliograph_lane_state", "heliograph_flow_lanes", "heliograph_events_total")
def test_a_parked_lane_waits_on_and_is_at_risk(stage: Stage) -> None:
    before, lane, parked = stage.scrape(), stage.lane("stuck"), {"state": "parked"}
    assert before.of("heliograph_lane_state", **lane, **parked) == 0
    write(stage.source, stage.topic("stuck"), [Sample(bytes(100_000))])
    after = stage.until(
        lambda found: (
            found.of("heliograph_lane_state", **lane, **parked) == 1 == found.of("heliograph_lane_lag_records", **lane)
        ),
        "it is parked, with one record behind",
    )
    assert after.of("heliograph_flow_lanes", **parked) == before.of("heliograph_flow_lanes", **parked) + 1
    kind = {"kind": "bad-record"}
    stage.until(
        lambda found: found.of("heliograph_events_total", **kind) > before.of("heliograph_events_total", **kind),
        "an event is counted",
    )
    assert after.of("heliograph_flow_at_risk_records") >= 1
    waited = after.of("heliograph_lane_lag_seconds", **lane)
    longer = waited + EPOCH_SECONDS + 1
    later = stage.until(
        lambda found: found.of("heliograph_lane_lag_seconds", **lane) > longer, "it waits on, from epoch to epoch"
    )
    assert later.of("heliograph_flow_at_risk_seconds") >= waited


@causes("heliograph_skipped_records_total")
def test_a_record_that_a_policy_takes_out_is_counted(stage: Stage) -> None:
    where = {"flow": stage.second, "how": "dead-letter"}
    before = stage.scrape().of("heliograph_skipped_records_total", **where)
    write(stage.source, stage.huge, [Sample(b"small"), Sample(bytes(100_000)), Sample(b"small, too")])
    stage.until(
        lambda found: found.of("heliograph_skipped_records_total", **where) == before + 1, "it is taken out, once"
    )
    wait_until(lambda: sum(ends(stage.target, f"{stage.beside}.{stage.huge}").values()) == 2, "the others are copied")


# -- what is behind -----------------------------------------------------------------------------------------------------


@causes(
    "heliograph_flow_lag_records", "heliograph_flow_at_risk_records", "heliograph_flow_at_risk_seconds",
    "heliograph_lane_lag_records", "heliograph_lane_lag_seconds", "heliograph_group_at_risk_records",
    "heliograph_group_at_risk_seconds", "heliograph_group_repeat_records",
)  # fmt: skip
def test_what_is_not_copied_is_behind_and_at_risk_for_the_flow_and_for_a_group(stage: Stage) -> None:
    lane, group, held = stage.lane("held"), {"group": f"{stage.w}-held"}, stage.topic("held")

    def is_all_there(found: Scrape) -> bool:
        return found.of("heliograph_lane_lag_records", **lane) == 0 == found.of("heliograph_lane_lag_seconds", **lane)

    def risk(found: Scrape) -> tuple[float, ...]:
        names = ("at_risk_records", "repeat_records")
        return tuple(found.of(f"heliograph_group_{name}", **group) for name in names)

    write(stage.source, held, samples(5))
    stage.until(lambda found: found.of("heliograph_lane_position", **lane) == 5, "it is copied")
    commit(stage.source, group["group"], {(held, 0): 5})
    with stage.paused(held):
        stage.until(lambda found: found.of("heliograph_lane_state", **lane, state="paused") == 1, "it is paused")
        write(stage.source, held, samples(40))
        behind = stage.until(
            lambda found: (
                found.of("heliograph_lane_lag_records", **lane) == 40
                and found.of("heliograph_lane_lag_seconds", **lane) > 1
                and risk(found) == (40, 0)
                and found.of("heliograph_group_at_risk_seconds", **group) > 1
            ),
            "its lag is seen",
        )
        assert behind.of("heliograph_flow_at_risk_records") == behind.of("heliograph_flow_lag_records") >= 40
        assert behind.of("heliograph_flow_lag_records") == behind.sum("heliograph_lane_lag_records", flow=stage.flow)
        assert behind.of("heliograph_flow_at_risk_seconds") == behind.of("heliograph_flow_lag_seconds") > 1
        commit(stage.source, group["group"], {(held, 0): 35})
        stage.until(lambda found: risk(found) == (10, 30), "the group has read on, and would read 30 again")
    done = stage.until(lambda found: is_all_there(found) and risk(found) == (0, 0), "all is copied, and the group safe")
    assert done.of("heliograph_group_at_risk_seconds", **group) == 0
    for unit in ("records", "seconds"):
        assert done.of(f"heliograph_flow_at_risk_{unit}") == done.of(f"heliograph_flow_lag_{unit}")


@causes(*CHECKPOINT_LATENCIES, "heliograph_job_actions_total", "heliograph_job_last_success_timestamp_seconds")
def test_a_group_has_its_checkpoints_latency(stage: Stage) -> None:
    before, job = stage.scrape(), {"job": "checkpoints"}
    write(stage.source, stage.topic("plain"), samples(50, partitions=2, seed=5))
    at = ends(stage.source, stage.topic("plain"))
    commit(stage.source, stage.w, {(stage.topic("plain"), partition): end for partition, end in at.items()})
    where = {"source": stage.here, "target": stage.there, "topic": stage.remote("plain"), "partition": "0"}
    assert [before.of(name, **where, group=stage.w) for name in CHECKPOINT_LATENCIES] == [0, 0, 0, 0]
    after = stage.until(
        lambda found: (
            all(found.of(name, **where, group=stage.w) > 0 for name in CHECKPOINT_LATENCIES)
            and found.of("heliograph_job_actions_total", **job) > before.of("heliograph_job_actions_total", **job)
        ),
        "its checkpoint is written",
    )
    name = "heliograph_job_last_success_timestamp_seconds"
    assert before.of(name, **job) < after.of(name, **job) < Clock().now_ms() / 1000 + 1


# -- the canary, jobs, the flow, the run --------------------------------------------------------------------------------


@causes(
    *(
        f"heliograph_canary_{name}"
        for name in ("sent_total", "arrived_total", "latency_seconds", "waiting_seconds", "late")
    )
)
def test_a_canary_that_does_not_arrive_in_time_is_late_until_it_does(stage: Stage) -> None:
    """An event says so, and the alert HeliographCanaryLate asks for the same metric."""
    limit = CANARY_LIMIT_MS / 1000
    assert 'expr: "heliograph_canary_late == 1 or' in ALERTS.read_text(encoding="utf-8")

    def canary(found: Scrape, name: str) -> float:
        return found.of(f"heliograph_canary_{name}")

    def events(found: Scrape, kind: str) -> float:
        return found.of("heliograph_events_total", kind=kind)

    before = stage.until(  # none under way: it would arrive later, and be counted then
        lambda found: (
            canary(found, "sent_total") == canary(found, "arrived_total") > 2
            and canary(found, "late") == 0 < canary(found, "latency_seconds") <= limit
        ),
        "canaries arrive in time",
    )
    with stage.paused(stage.canary):
        late = stage.until(
            lambda found: (
                canary(found, "waiting_seconds") > limit
                and canary(found, "late") == 1
                and events(found, "canary") > events(before, "canary")  # a busy machine may have been late once before
            ),
            "it is late, and an event says so",
        )
        assert canary(late, "sent_total") > canary(late, "arrived_total") >= canary(before, "arrived_total")
    after = stage.until(
        lambda found: (
            canary(found, "late") == canary(found, "waiting_seconds") == 0
            and events(found, "recovered") > events(late, "recovered")
        ),
        "it is in time again, and an event says so",
    )
    sent, arrived = (canary(after, name) - canary(before, name) for name in ("sent_total", "arrived_total"))
    assert sent == arrived > canary(late, "sent_total") - canary(before, "sent_total")
    assert canary(after, "latency_seconds") != canary(before, "latency_seconds")


@causes("heliograph_job_trouble")
def test_a_job_that_may_not_do_its_work_has_trouble(stage: Stage) -> None:
    def trouble(found: Scrape) -> float:
        return found.of("heliograph_job_trouble", job="canary")

    stage.until(lambda found: found.of("heliograph_canary_arrived_total") > 0 == trouble(found), "the canary sings")
    with denied(stage.source, "topic", stage.canary, "WRITE"):
        stage.until(lambda found: trouble(found) == 1, "it may not write")
    stage.until(
        lambda found: (
            trouble(found) == found.of("heliograph_canary_late") == found.of("heliograph_canary_waiting_seconds") == 0
        ),
        "it may again, and does not wait for what it could not write",
    )


@causes("heliograph_flow_trouble", "heliograph_flow_state", "heliograph_flow_topics")
def test_a_flow_that_cannot_be_planned_has_trouble_and_finds_a_new_topic_afterwards(stage: Stage) -> None:
    def trouble(found: Scrape) -> tuple[float, ...]:
        states = (found.of("heliograph_flow_state", state=state) for state in ("trouble", "running"))
        return found.of("heliograph_flow_trouble"), *states

    before = stage.until(lambda found: trouble(found) == (0, 0, 1), "the flow runs")
    with denied(stage.target, "broker", "kafka-cluster", "DESCRIBE_CONFIGS"):
        create_topic(stage.source, stage.topic("late"))
        stage.until(lambda found: trouble(found) == (1, 1, 0), "it may not look")
    stage.until(
        lambda found: (
            trouble(found) == (0, 0, 1)
            and found.of("heliograph_flow_topics") == before.of("heliograph_flow_topics") + 1
        ),
        "it has one topic more",
    )


@causes(
    "heliograph_epoch",
    "heliograph_epochs_total",
    "heliograph_epoch_seconds_total",
    "heliograph_epoch_duration_seconds",
    "heliograph_handover_gap_seconds",
)
def test_epochs_end_and_hand_their_lanes_over(stage: Stage) -> None:
    before = stage.scrape()
    gap = "heliograph_handover_gap_seconds"
    after = stage.until(
        lambda found: (
            found.of("heliograph_epochs_total") > before.of("heliograph_epochs_total")
            and found.of(gap, "_count") >= before.of(gap, "_count") + 7
            and before.of("heliograph_epoch_duration_seconds") != found.of("heliograph_epoch_duration_seconds") > 5
        ),
        "an epoch ended in its time",  # and no change of lanes ended it early
    )
    assert after.of("heliograph_epoch_duration_seconds") < 40
    for name in ("heliograph_epoch", "heliograph_epoch_seconds_total"):
        assert after.of(name) > before.of(name)
    assert after.of(gap, "_sum") > before.of(gap, "_sum")
    assert after.of("heliograph_epoch") > after.of("heliograph_epochs_total")


@causes(
    "heliograph_run_info", "heliograph_run_start_time_seconds", "heliograph_flow_info", "heliograph_run_silent_seconds"
)
def test_the_run_names_itself_and_is_heard_of_unless_it_stands_still(stage: Stage) -> None:
    found = stage.until(lambda found: found.of("heliograph_run_silent_seconds") < 2, "it is heard of")
    assert found.of("heliograph_run_info", process=str(stage.run.pid)) == 1
    assert found.of("heliograph_flow_info", source=stage.here, target=stage.there) == 1
    assert 0 < Clock().now_ms() / 1000 - found.of("heliograph_run_start_time_seconds") < 3600
    os.kill(stage.run.pid, signal.SIGSTOP)
    try:
        stage.until(lambda found: found.of("heliograph_run_silent_seconds") > 3, "it is silent")
    finally:
        os.kill(stage.run.pid, signal.SIGCONT)
    stage.until(lambda found: found.of("heliograph_run_silent_seconds") < 2, "it is heard of again")


@causes("heliograph_events_dropped_total")
def test_events_that_a_target_does_not_take_for_too_long_are_lost_and_counted(stage: Stage) -> None:
    """In this process: a run does not tell so many within a test."""
    settings, clock, lost = load_file(str(stage.file)).flows[0], Clock(), 7

    async def tell(warm: Warm) -> None:
        log = EventLog(warm, {stage.flow: settings.target}, clock.now_ms)
        assert _dropped(stage, log) == 0
        with denied(stage.target, "topic", EVENTS_TOPIC, "WRITE"):
            for number in range(QUEUE_EVENTS + lost):
                log.tell(Event(clock.now_ms(), stage.flow, stage.w, EventKind.PARKED, f"event {number} of a test"))
            await log.flush(1)
            assert _dropped(stage, log) == lost
        await log.flush(30)
        assert _dropped(stage, log) == lost, "they stay lost when the target takes the others"

    with_warm(tell)
    kept = [decode_event(message.value()) for message in messages(stage.target, EVENTS_TOPIC)]
    ours = [event for event in kept if event is not None and event.flow == stage.flow]
    assert sum(event.subject == stage.w for event in ours) == QUEUE_EVENTS
    assert [event.reason[:8] for event in ours if event.kind == EventKind.EVENTS_DROPPED] == [f"{lost} events"]


def _dropped(stage: Stage, log: EventLog) -> float:
    run = {"version": "", "host": "", "process": 0, "since_ms": 0, "time_ms": 0, "epoch": 0}
    scene = Scene()
    scene.merge({"parts": {"run": {**run, "events_dropped": log.dropped}}}, 1.0)
    text = text_of(picture_of(scene, 1.0), ALL_LANES)[0].decode()
    return Scrape(read_exposition(text), stage.flow).of("heliograph_events_dropped_total")
