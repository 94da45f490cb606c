"""Metrics of one real run: each test causes something and sees the numbers that tell of it. Other runs of the file would be dear."""

from __future__ import annotations

import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from heliograph.control.clock import Clock
from heliograph.metrics.table import METRICS
from tests.support.clusters import TwoClusters
from tests.support.exposition import Family, read_exposition
from tests.support.groups import commit
from tests.support.heliograph_run import HeliographRun
from tests.support.mirror import flow_file, status, word
from tests.support.rest import Rest, rest_of, wait_for_flow
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
COST = 250.0
KINDS = ("plain", "small", "sure", "slow", "stuck", "held", "alien")


@dataclass(frozen=True)
class Scrape:
    """All metrics at one moment, of one flow where they have that label."""

    families: dict[str, Family]
    flow: str

    def of(self, name: str, end: str = "", **labels: str) -> float:
        """A number; 0 if it is not told yet, as rate() would have it."""
        family = self.families.get(name)
        if family is None:
            return 0.0
        mine = {"flow": self.flow} if "flow" in METRICS[name].labels else {}
        return family.value(end, **mine, **labels) or 0.0

    def sum(self, name: str, **labels: str) -> float:
        """Over all series with these labels."""
        family = self.families.get(name)
        samples_ = family.samples.items() if family is not None else ()
        return sum(value for (_, have), value in samples_ if set(labels.items()) <= have)


@dataclass
class Stage:
    clusters: TwoClusters
    here: str
    there: str
    w: str
    file: Path
    run: HeliographRun
    rest: Rest | None = None

    @property
    def flow(self) -> str:
        return f"{self.here}->{self.there}"

    @property
    def source(self) -> str:
        return self.clusters.a.bootstrap

    def topic(self, kind: str) -> str:
        return f"{self.w}.{kind}"

    def remote(self, kind: str) -> str:
        return f"{self.here}.{self.w}.{kind}"

    def copied(self, kind: str) -> int:
        return sum(ends(self.clusters.b.bootstrap, self.remote(kind)).values())

    def scrape(self) -> Scrape:
        assert self.rest is not None
        with urllib.request.urlopen(f"{self.rest.url}/metrics", timeout=30) as answer:  # noqa: S310  loopback
            assert answer.headers["Content-Type"].startswith("text/plain")
            found = read_exposition(answer.read().decode())
        assert found.keys() <= METRICS.keys()
        return Scrape(found, self.flow)

    def until(self, holds: Callable[[Scrape], bool], what: str) -> Scrape:
        last: list[Scrape] = []

        def is_so() -> bool:
            last[:] = [self.scrape()]
            return holds(last[0])

        wait_until(is_so, what, every=0.3)
        return last[0]

    def lane(self, kind: str, partition: int = 0) -> dict[str, str]:
        return {"topic": self.topic(kind), "partition": str(partition)}


@pytest.fixture(scope="module")
def stage(two_clusters: TwoClusters, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    here, there, file = word(), word(), tmp_path_factory.mktemp("metrics") / "mm2.properties"
    made = Stage(two_clusters, here, there, word(), file, HeliographRun(file))
    for kind in KINDS:
        create_topic(made.source, made.topic(kind), partitions=2 if kind == "plain" else 1)
    create_topic(two_clusters.b.bootstrap, made.remote("stuck"), config={"max.message.bytes": "50000"})
    addresses = {here: two_clusters.a.bootstrap, there: two_clusters.b.bootstrap}
    options = {
        "listeners": "http://127.0.0.1:0",
        "slots": "1",
        "epoch.seconds": "8",
        "emit.checkpoints.enabled": "true",
        "emit.checkpoints.interval.seconds": "1",
        "checkpoints.topic.replication.factor": "1",
        "refresh.groups.interval.seconds": "1",
        "wan.cost.per.gb": f"{COST}",
        f"{made.flow}.topic.{made.topic('slow')}.throttle.bytes.per.second": "4000",
    }
    flow_file(file, addresses, {made.flow: f"{made.w}.*"}, options)
    with made.run:
        made.rest = rest_of(made.run)
        wait_for_flow(made.rest, made.flow)
        made.until(lambda found: found.of("heliograph_flow_lanes", state="following") >= 8, "all lanes follow")
        yield made


def test_traffic_is_counted_for_the_flow_its_lanes_and_the_slot(stage: Stage) -> None:
    before = stage.scrape()
    written = write_dense(stage.source, stage.topic("plain"), samples(4000, size=500, partitions=2))
    mm2 = {"source": stage.here, "target": stage.there, "topic": stage.remote("plain")}
    after = stage.until(
        lambda found: found.sum(f"{MM2}_record_count", **mm2) == before.sum(f"{MM2}_record_count", **mm2) + written,
        "all are counted",
    )

    def grown(name: str, end: str = "", **labels: str) -> float:
        return after.of(name, end, **labels) - before.of(name, end, **labels)

    assert grown("heliograph_flow_records_total") >= written
    assert grown("heliograph_replication_latency_seconds", "_count") >= written
    assert grown("heliograph_batches_total", path="raw") > 0
    assert grown("heliograph_flow_bytes_total") > 0
    assert grown("heliograph_wan_bytes_total") >= grown("heliograph_fetch_bytes_total") > 0
    cost = after.of("heliograph_wan_cost_total")
    assert cost == pytest.approx(after.of("heliograph_wan_bytes_total") / 1e9 * COST)
    assert grown("heliograph_fetch_requests_total") > 0
    assert after.of("heliograph_fetch_requests_per_second") > 0
    assert after.of("heliograph_fetch_size_max_bytes") >= after.of("heliograph_fetch_size_avg_bytes") > 0
    assert after.of("heliograph_batch_size_max_bytes") >= after.of("heliograph_batch_size_avg_bytes") > 1000
    target = {"target": stage.there}
    assert grown("heliograph_produce_requests_total", **target) > 0
    assert after.of("heliograph_produce_requests_in_flight", **target) > 0
    assert after.of("heliograph_produce_request_max_seconds", **target) > 0
    assert sum(grown("heliograph_slot_time_seconds_total", slot="0", spent_on=kind) for kind in ("source", "busy")) > 0
    assert 0 < after.of("heliograph_slot_io_wait_ratio", slot="0") <= 1
    assert 0 < after.of("heliograph_slot_io_ratio", slot="0") < 1
    for partition, end in ends(stage.source, stage.topic("plain")).items():
        lane = stage.lane("plain", partition)
        assert after.of("heliograph_lane_position", **lane) == after.of("heliograph_lane_source_end", **lane) == end
        assert (after.of("heliograph_lane_lag_records", **lane), after.of("heliograph_lane_delta", **lane)) == (0, 0)
        times = [
            after.of(f"{MM2}_replication_latency_ms{end}", **mm2, partition=str(partition)) for end in ("_min", "_max")
        ]
        assert 0 < times[0] <= times[1]
        assert after.of(f"{MM2}_record_age_ms_max", **mm2, partition=str(partition)) > 0


def test_small_batches_are_rebuilt_and_say_why(stage: Stage) -> None:
    before = stage.scrape()
    write_single_record_batches(stage.source, stage.topic("small"), 300)
    reason = {"reason": "small"}
    after = stage.until(
        lambda found: (
            found.of("heliograph_rebuilt_batches_total", **reason)
            > before.of("heliograph_rebuilt_batches_total", **reason)
        ),
        "small batches are rebuilt",
    )
    assert after.of("heliograph_batches_total", path="rebuilt") > before.of("heliograph_batches_total", path="rebuilt")
    assert after.of("heliograph_lane_batches_total", **stage.lane("small"), path="rebuilt") > 0


def test_aborted_transactions_and_markers_are_dropped_and_say_why(stage: Stage) -> None:
    before = stage.scrape()
    write_transactions(stage.source, stage.topic("sure"), stage.w, transactions=6, size=5)
    for reason in ("aborted", "control"):
        stage.until(
            lambda found, reason=reason: (
                found.of("heliograph_dropped_batches_total", reason=reason)  # type: ignore[misc]
                > before.of("heliograph_dropped_batches_total", reason=reason)
            ),
            f"batches are dropped: {reason}",
        )


def test_a_limit_makes_records_wait_and_is_named_as_the_bottleneck(stage: Stage) -> None:
    before = stage.scrape()
    write(stage.source, stage.topic("slow"), samples(120, size=500), batch_num_messages=5)
    lane = stage.lane("slow")
    held = stage.until(
        lambda found: (
            found.of("heliograph_lane_lag_seconds", **lane) > 2
            and found.of("heliograph_flow_bottleneck", bottleneck="throttled") == 1
        ),
        "the lane waits",
    )
    assert held.of("heliograph_lane_lag_records", **lane) > 0
    assert held.of("heliograph_flow_lag_seconds") > 2
    spent = {"spent_on": "throttled"}
    for name, more in (
        ("heliograph_flow_time_seconds_total", {}),
        ("heliograph_slot_time_seconds_total", {"slot": "0"}),
    ):
        assert held.of(name, **spent, **more) > before.of(name, **spent, **more)
    assert status(stage.file)[stage.flow]["bottleneck"] == "throttled"
    done = stage.until(lambda found: found.of("heliograph_lane_lag_records", **lane) == 0, "it is caught up")
    assert done.of("heliograph_lane_lag_seconds", **lane) == 0


def test_a_parked_lane_waits_on_and_is_at_risk(stage: Stage) -> None:
    before = stage.scrape()
    write(stage.source, stage.topic("stuck"), [Sample(bytes(100_000))])
    lane = stage.lane("stuck")
    after = stage.until(lambda found: found.of("heliograph_lane_state", **lane, state="parked") == 1, "it is parked")
    assert after.of("heliograph_flow_lanes", state="parked") == before.of("heliograph_flow_lanes", state="parked") + 1
    kind = {"kind": "bad-record"}
    stage.until(
        lambda found: found.of("heliograph_events_total", **kind) > before.of("heliograph_events_total", **kind),
        "an event is counted",
    )
    assert after.of("heliograph_lane_lag_records", **lane) == 1
    assert after.of("heliograph_flow_at_risk_records") >= 1
    waited = after.of("heliograph_lane_lag_seconds", **lane)
    later = stage.until(lambda found: found.of("heliograph_lane_lag_seconds", **lane) > waited + 1, "it waits on")
    assert later.of("heliograph_flow_at_risk_seconds") >= waited


def test_the_lag_of_a_paused_topic_grows_with_its_source(stage: Stage) -> None:
    assert stage.rest is not None
    subject = {"topic": stage.topic("held"), "reason": "a test"}
    assert stage.rest.ask("POST", f"/api/v1/flows/{stage.flow}/pause", subject)[0] == 200
    lane = stage.lane("held")
    stage.until(lambda found: found.of("heliograph_lane_state", **lane, state="paused") == 1, "it is paused")
    write(stage.source, stage.topic("held"), samples(40))
    behind = stage.until(
        lambda found: (
            found.of("heliograph_lane_lag_records", **lane) == 40
            and found.of("heliograph_lane_lag_seconds", **lane) > 1
        ),
        "its lag is seen",
    )
    assert behind.of("heliograph_flow_at_risk_records") >= 40
    assert stage.rest.ask("POST", f"/api/v1/flows/{stage.flow}/resume", {"topic": stage.topic("held")})[0] == 200
    done = stage.until(lambda found: found.of("heliograph_lane_lag_records", **lane) == 0, "it is copied")
    assert done.of("heliograph_lane_lag_seconds", **lane) == 0


def test_offsets_that_others_took_shift_the_delta(stage: Stage) -> None:
    before = stage.scrape()
    write(stage.clusters.b.bootstrap, stage.remote("alien"), samples(3))
    write(stage.source, stage.topic("alien"), samples(5, seed=2))
    after = stage.until(
        lambda found: found.of("heliograph_foreign_offsets_total") == before.of("heliograph_foreign_offsets_total") + 3,
        "others are noticed",
    )
    assert after.of("heliograph_lane_delta", **stage.lane("alien")) == 3


def test_a_group_has_its_checkpoints_latency_and_its_risk(stage: Stage) -> None:
    write(stage.source, stage.topic("plain"), samples(50, partitions=2, seed=5))
    at = ends(stage.source, stage.topic("plain"))
    commit(stage.source, stage.w, {(stage.topic("plain"), partition): end for partition, end in at.items()})
    where = {"source": stage.here, "target": stage.there, "topic": stage.remote("plain"), "partition": "0"}
    after = stage.until(
        lambda found: (
            found.of(f"{MM2_GROUP}_checkpoint_latency_ms", **where, group=stage.w) > 0
            and "heliograph_group_repeat_records" in found.families  # its next turn reads what this one wrote
            and found.families["heliograph_group_repeat_records"].value(group=stage.w) == 0
        ),
        "its checkpoint is written",
    )
    assert after.of(f"{MM2_GROUP}_checkpoint_latency_ms_max", **where, group=stage.w) > 0
    assert after.families["heliograph_group_at_risk_records"].value(group=stage.w) == 0
    assert after.of("heliograph_job_actions_total", job="checkpoints") > 0
    assert Clock().now_ms() / 1000 - after.of("heliograph_job_last_success_timestamp_seconds", job="checkpoints") < 60


def test_epochs_end_and_hand_their_lanes_over(stage: Stage) -> None:
    after = stage.until(
        lambda found: (
            found.of("heliograph_epochs_total") >= 1
            and found.of("heliograph_handover_gap_seconds", "_count") >= 7
            and found.of("heliograph_epoch_duration_seconds") > 5  # one that no change of lanes ended early
        ),
        "an epoch ended in its time",
    )
    assert after.of("heliograph_epoch_duration_seconds") < 40
    assert after.of("heliograph_epoch_seconds_total") >= after.of("heliograph_epoch_duration_seconds")
    assert after.of("heliograph_handover_gap_seconds", "_sum") > 0
    assert after.of("heliograph_epoch") > after.of("heliograph_epochs_total")


def test_the_run_names_itself_and_is_heard_of(stage: Stage) -> None:
    found = stage.scrape()
    assert found.families["heliograph_run_info"].value(process=str(stage.run.pid)) == 1
    assert found.of("heliograph_run_silent_seconds") < 10
    assert found.of("heliograph_flow_state", state="running") == 1
    assert found.of("heliograph_flow_trouble") == 0
