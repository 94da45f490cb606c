"""One run with every job on and a steady load: what its commands, REST and metrics say is true, and they say the same."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from heliograph.embedded.cluster import start_many
from tests.support.arrivals import SteadyWriter
from tests.support.commands import Said, command
from tests.support.doors import AuthorizedCluster
from tests.support.groups import commit, committed
from tests.support.heliograph_run import HeliographRun
from tests.support.mirror import flow_file, status_when_following
from tests.support.rest import Rest, rest_of
from tests.support.topics import create_topic, ends, topic_names
from tests.support.waiting import wait_until
from tests.support.writers import samples, write, write_transactions

FLOW = "A->B"
LOADED, PAID, KEYED = "orders", "payments", "customers"
GROUP = "billing"
EVERYTHING = {
    "emit.heartbeats.enabled": "true",
    "heartbeats.replication.enabled": "true",
    "heartbeats.topic.replication.factor": "1",
    "emit.offset-syncs.enabled": "true",
    "offset-syncs.topic.replication.factor": "1",
    "emit.checkpoints.enabled": "true",
    "emit.checkpoints.interval.seconds": "1",
    "checkpoints.topic.replication.factor": "1",
    "refresh.groups.interval.seconds": "1",
    "sync.group.offsets.enabled": "true",
    "sync.group.offsets.interval.seconds": "1",
    "commit.source.group": "true",
    "epoch.seconds": "5",
    "listeners": "http://127.0.0.1:0",
}


class Healthy:
    """Clusters of its own, because all topics are mirrored, and the run between them."""

    def __init__(self, a: str, b: str, file: Path, run: HeliographRun) -> None:
        self.a, self.b, self.file, self.run = a, b, file, run
        self.rest: Rest = rest_of(run)

    def said(self, name: str, *options: str) -> Said:
        return command(name, str(self.file), *options)

    def told(self, name: str, *options: str) -> Any:
        said = self.said(name, "--json", *options)
        assert said.out, said.err
        return json.loads(said.out)


@pytest.fixture
def healthy(kafka_jars: Path, tmp_path: Path) -> Iterator[Healthy]:
    del kafka_jars
    pair = [AuthorizedCluster("A", tmp_path), AuthorizedCluster("B", tmp_path)]
    try:
        start_many(pair)
        a, b = (cluster.bootstrap for cluster in pair)
        create_topic(a, LOADED, 2)
        create_topic(a, PAID)
        create_topic(a, KEYED, config={"cleanup.policy": "compact"})
        write(a, LOADED, samples(200, partitions=2))
        write(a, KEYED, samples(50))
        write_transactions(a, PAID, f"{PAID}-x", transactions=4)
        commit(a, GROUP, {(LOADED, 0): 50, (LOADED, 1): 60})
        file = flow_file(tmp_path / "mm2.properties", {"A": a, "B": b}, {FLOW: ".*"}, EVERYTHING)
        with HeliographRun(file) as run:
            yield Healthy(a, b, file, run)
            assert run.exit_status == 0 or run.terminate() == 0, run.output
    finally:
        for cluster in pair:
            cluster.stop()


def test_a_healthy_mirror_is_said_to_be_one_by_everything_that_can_be_asked(healthy: Healthy) -> None:
    status_when_following(healthy.file, FLOW)
    wait_until(lambda: bool(committed(healthy.b, GROUP)), "the group's offsets are set on B", every=0.2)
    with _load(healthy.a, LOADED):
        wait_until(lambda: ends(healthy.b, f"A.{LOADED}")[0] > 120, "the load arrives", every=0.2)
        for _ in range(5):
            _every_row_adds_up(healthy)
    _everything_says_nothing_is_behind(healthy)
    _compares_without_a_difference(healthy)
    _an_offset_beyond_the_end_is_said_to_be(healthy)
    _what_is_paused_is_said_to_be(healthy)
    with HeliographRun(healthy.file, "--standby") as second:
        _a_second_run_says_who_carries_and_who_waits(healthy, second)
        _what_was_changed_counts_for_the_run_that_takes_over(healthy, second)
        assert second.terminate() == 0, second.output


@contextlib.contextmanager
def _load(bootstrap: str, topic: str) -> Iterator[None]:
    writer = SteadyWriter(bootstrap, topic, every_s=0.002)
    try:
        yield
    finally:
        writer.stop()


def _rows(healthy: Healthy) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every lane as each view has it that tells positions."""
    [flow] = healthy.told("status")["flows"]
    yield from (("status", row) for row in flow["lanes"])
    top = healthy.told("top", "--once", "--url", healthy.rest.url)
    yield from (("top", row) for row in top["lanes"][FLOW])
    yield from (("REST", row) for row in healthy.rest.get(f"/api/v1/flows/{FLOW}/lanes")["lanes"])


def _every_row_adds_up(healthy: Healthy) -> None:
    """Its numbers are of one moment, whatever the logs have got since."""
    for view, row in _rows(healthy):
        assert min(row["source_end"], row["position"], row["remote_end"]) >= 0, (view, row)
        assert row["lag"] == row["source_end"] - row["position"], (view, row)
        assert row["delta"] == row["remote_end"] - row["position"], (view, row)
    for row in _lag_rows(healthy):
        for far, lag in (("committed", "committed_lag"), ("read_position", "read_lag")):
            assert row[lag] == max(0, row["source_end"] - row[far]), row
        if row["topic"] == LOADED:  # it has no markers, so that offsets are the same on both sides
            assert row["target_lag"] == row["source_end"] - row["target_end"], row


def _lag_rows(healthy: Healthy) -> list[dict[str, Any]]:
    [flow] = healthy.told("lag")["flows"]
    rows: list[dict[str, Any]] = flow["lanes"]
    return rows


def _everything_says_nothing_is_behind(healthy: Healthy) -> None:
    """Of the topics that nobody writes any more; heartbeats go on."""
    mine = {LOADED, PAID, KEYED}

    def behind() -> list[object]:
        found = [(view, row["topic"], row["lag"]) for view, row in _rows(healthy)]
        found += [("lag", row["topic"], row["target_lag"]) for row in _lag_rows(healthy)]
        found += [("committed", row["topic"], row["committed_lag"]) for row in _lag_rows(healthy)]
        found += [("/metrics", topic, lag) for topic, lag in _metric_lags(healthy) if topic in mine]
        assert {topic for view, topic, _ in found if view == "/metrics"} == mine
        found += [("audit", row["topic"], row["not_yet"]) for row in healthy.told("audit")]
        assert {topic for view, topic, _ in found if view == "audit"} >= mine
        return [one for one in found if one[1] in mine and one[2]]

    seen: list[object] = []

    def all_say_zero() -> bool:
        seen[:] = behind()
        return not seen

    wait_until(all_say_zero, f"everything says that nothing is behind: {seen}", every=0.5)
    zero = f'heliograph_flow_lag_records{{flow="{FLOW}"}} 0.0\n'
    wait_until(lambda: zero in _metrics(healthy), "the metric of the flow says zero too", every=0.3)
    firsts: list[str] = []

    def headline_says_zero() -> bool:
        """Between two heartbeats."""
        firsts.append(healthy.said("status").out.splitlines()[0])
        return ", 0 records behind, reported " in firsts[-1]

    wait_until(headline_says_zero, f"the first line of `status` says zero too: {firsts}", every=0.3)
    assert "paused" not in firsts[-1], firsts[-1]


def _metric_lags(healthy: Healthy) -> list[tuple[str, float]]:
    """Topic and records behind, of every lane."""
    found = re.findall(r"^heliograph_lane_lag_records\{(.*)\} (\S+)$", _metrics(healthy), re.MULTILINE)
    return [(re.findall(r'topic="([^"]*)"', labels)[0], float(value)) for labels, value in found]


def _metrics(healthy: Healthy) -> str:
    _, _, body = healthy.rest.whole("GET", "/metrics")
    return body.decode()


def _an_offset_beyond_the_end_is_said_to_be(healthy: Healthy) -> None:
    end = ends(healthy.a, KEYED)[0]
    place = ("--flow", FLOW, "--topic", KEYED, "--partition", "0")
    said = healthy.said("translate", *place, "--offset", "99999999")
    assert (said.code, said.err) == (1, "")
    assert f"99999999 -> A.{KEYED}-0 ?, not known: it lies beyond the source's end ({end})" in said.out
    assert ", exact" in healthy.said("translate", *place, "--offset", str(end)).out


def _what_is_paused_is_said_to_be(healthy: Healthy) -> None:
    steer = ("--url", healthy.rest.url, "--flow", FLOW, "--topic", PAID, "--reason", "lag test")
    assert healthy.said("pause", *steer).code == 0
    states = {view: row["state"] for view, row in _rows(healthy) if row["topic"] == PAID}
    assert states.keys() == {"status", "top", "REST"}
    assert "following" not in states.values(), "a change that was answered is seen by whoever looks next"
    _wait_until_paused(healthy)  # what a task has read before it heard of it is still copied
    write(healthy.a, PAID, samples(30))

    def waits() -> bool:
        found = [row for _, row in _rows(healthy) if row["topic"] == PAID]
        said = {(row["state"], row["reason"].partition(" (by ")[0], row["lag"]) for row in found}
        return said == {("paused", "lag test", 30)}

    wait_until(waits, "every view says that 30 records wait because somebody paused the topic", every=0.3)
    summary = healthy.rest.flow(FLOW)
    assert (summary["state"], summary["reason"]) == ("running", "1 topic paused")
    said = healthy.said("status").out
    assert ", 1 topic paused; " in said.splitlines()[0]
    assert any("paused for " in line and " s: lag test" in line for line in said.splitlines()), said
    wait_until(lambda: healthy.rest.flow(FLOW)["bottleneck"] == "paused", "that is what keeps records back", every=0.3)
    top = healthy.said("top", "--once", "--url", healthy.rest.url).out
    assert "running, 1 topic paused" in top and f"{FLOW} {PAID}: paused by " in top, top
    assert healthy.said("resume", *steer).code == 0
    wait_until(lambda: healthy.rest.flow(FLOW)["reason"] == "", "nothing is paused", every=0.3)
    _everything_says_nothing_is_behind(healthy)


def _compares_without_a_difference(healthy: Healthy) -> None:
    assert "A.checkpoints.internal" in topic_names(healthy.b)
    compared = healthy.said("compare")
    assert (compared.code, compared.err) == (0, "")
    assert compared.out.startswith("A->B: no differences (4 topics, "), compared.out


def _a_second_run_says_who_carries_and_who_waits(healthy: Healthy, second: HeliographRun) -> None:
    host, first = os.uname().nodename, healthy.run.pid
    carried = f"{FLOW} is carried by {host}, process {first}, since "
    assert carried in healthy.said("run", "--dry-run").out, "a plan says it too"
    second.wait_for_text("Spark is up: this run is ready to take over")
    said_first = second.output.partition("Spark is up")[0]
    assert carried in said_first and "this run stands by" in said_first, "it is said before anything is waited for"
    there = rest_of(second)
    wait_until(lambda: there.flow(FLOW)["state"] == "standby", "its REST says that it stands by", every=0.3)
    flow = there.flow(FLOW)
    assert (flow["carried_by"]["host"], flow["carried_by"]["process"]) == (host, first)
    assert (flow["lag_records"], flow["bottleneck"]) == (None, ""), "what it does not carry it does not know"
    waiting = [(host, second.pid)]

    def both_are_known() -> bool:
        told = healthy.rest.flow(FLOW)
        return [(one["host"], one["process"]) for one in told["standbys"]] == waiting

    wait_until(both_are_known, "the run that carries knows who waits", every=0.3)
    assert healthy.rest.flow(FLOW)["carried_by"]["process"] == first
    said = healthy.said("status").out
    assert f" on {host}, process {first};" in said and f"  standing by: {host}, process {second.pid}, since " in said
    for words in (("pause",), ("resume",), ("throttle", "--bytes-per-second", "5"), ("pause", "--topic", PAID)):
        refused = healthy.said(words[0], "--url", there.url, "--flow", FLOW, "--reason", "here", *words[1:])
        assert (refused.code, refused.out) == (1, "")
        assert f"is carried by {host}, process {first}, since " in refused.err, refused.err
        assert "; this run stands by: make the change there" in refused.err


def _what_was_changed_counts_for_the_run_that_takes_over(healthy: Healthy, second: HeliographRun) -> None:
    steer = ("--flow", FLOW, "--reason", "moving house")
    assert healthy.said("pause", "--url", healthy.rest.url, *steer, "--topic", PAID).code == 0
    assert healthy.said("topics", "remove", KEYED, "--url", healthy.rest.url, *steer).code == 0
    _wait_until_paused(healthy)
    write(healthy.a, PAID, samples(20))
    held = ends(healthy.b, f"A.{PAID}"), ends(healthy.b, f"A.{KEYED}")
    assert healthy.run.terminate() == 0, healthy.run.output
    healthy.rest = rest_of(second)
    wait_until(lambda: healthy.rest.flow(FLOW)["state"] == "running", "the other run carries", every=0.3)
    wait_until(
        lambda: PAID in _states(healthy) and KEYED not in _states(healthy),
        "it goes by the topics that were chosen",
        every=0.3,
    )
    write(healthy.a, KEYED, samples(5))
    before = sum(ends(healthy.b, f"A.{LOADED}").values())
    write(healthy.a, LOADED, samples(40, partitions=2))
    wait_until(lambda: sum(ends(healthy.b, f"A.{LOADED}").values()) == before + 40, "it copies", every=0.2)
    assert _states(healthy)[PAID] == ("paused", "moving house")

    def all_know_what_is_paused() -> bool:
        """Although no task of this run has ever had it."""
        found = {(view, row["state"], row["lag"]) for view, row in _rows(healthy) if row["topic"] == PAID}
        return found == {(view, "paused", 20) for view in ("status", "top", "REST")}

    wait_until(all_know_what_is_paused, "every view says that 20 records wait because a topic is paused", every=0.3)
    for name in ("status", "lag"):
        assert ", 1 topic paused; " in healthy.said(name).out.splitlines()[0]
    assert (ends(healthy.b, f"A.{PAID}"), ends(healthy.b, f"A.{KEYED}")) == held
    assert healthy.said("resume", "--url", healthy.rest.url, *steer, "--topic", PAID).code == 0
    wait_until(lambda: ends(healthy.b, f"A.{PAID}") != held[0], "what was paused is copied on", every=0.2)
    events = [json.loads(line) for line in healthy.said("events", "--json").out.splitlines()]
    assert {event["kind"] for event in events} == {"changed", "taken-over"}, events
    [over] = [event["reason"] for event in events if event["kind"] == "taken-over"]
    assert over.startswith("this run carries the flow: "), over
    changed = [event["reason"] for event in events if event["kind"] == "changed"]
    assert all(" by " in reason and reason.endswith((": lag test", ": moving house")) for reason in changed), changed


def _wait_until_paused(healthy: Healthy) -> None:
    wait_until(lambda: _states(healthy)[PAID][0] == "paused", "no task carries the topic", every=0.1)


def _states(healthy: Healthy) -> dict[str, tuple[str, str]]:
    rows = healthy.rest.get(f"/api/v1/flows/{FLOW}/lanes")["lanes"]
    return {row["topic"]: (row["state"], row["reason"].partition(" (by ")[0]) for row in rows}
