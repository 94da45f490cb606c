"""One run that is watched: lag in three ways, the group on the source as others see it, canary, limits, Burrow's paths."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer

from heliograph.cli.main import main
from tests.support.clusters import TwoClusters
from tests.support.commands import Said
from tests.support.groups import commit, committed
from tests.support.heliograph_run import HeliographRun
from tests.support.mirror import flow_file, word
from tests.support.rest import Rest, rest_of
from tests.support.topics import create_topic, ends, partition_count
from tests.support.waiting import wait_until
from tests.support.writers import samples, write

RECORDS, MORE = 300, 40
SLOW_BYTES_PER_SECOND = 20_000


class Watched:
    """Clusters with aliases that no other test has, a topic, a slow topic, and a file that has everything watched."""

    def __init__(self, clusters: TwoClusters, topic: str, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.source, self.target = clusters.a.bootstrap, clusters.b.bootstrap
        self.topic, self.slow = topic, f"{topic}-slow"
        self.a, self.b = word(), word()
        self.flow = f"{self.a}->{self.b}"
        self.group = f"heliograph-{self.a}-{self.b}"
        self.canary = f"heliograph-canary-{self.a}-{self.b}"
        lines = {
            "commit.source.group": "true",
            "emit.checkpoints.enabled": "true",
            "checkpoints.topic.replication.factor": "1",
            "emit.checkpoints.interval.seconds": "1",
            "refresh.groups.interval.seconds": "1",
            f"{self.flow}.groups": f"{topic}-app, heliograph-.*",
            "canary.enabled": "true",
            "canary.limit.ms": "1",
            "lag.limit.seconds": "2",
            "group.health.interval.seconds": "1",
            "listeners": "http://127.0.0.1:0",
            f"{self.flow}.topic.{self.slow}.throttle.bytes.per.second": str(SLOW_BYTES_PER_SECOND),
        }
        aliases = {self.a: self.source, self.b: self.target}
        self.file = flow_file(directory / "mm2.properties", aliases, {self.flow: f"{topic}, {self.slow}"}, lines)
        create_topic(self.source, self.topic, 2)
        create_topic(self.source, self.slow)
        # Written in ten minutes' time, so that the lane that is told to be late is the slow one and no other.
        soon_ms = time.time_ns() // 1_000_000 + 600_000
        records = samples(RECORDS, partitions=2)
        write(self.source, self.topic, (replace(record, timestamp_ms=soon_ms) for record in records))
        write(self.source, self.slow, samples(400, size=5_000))
        commit(self.source, f"{topic}-app", {(topic, 0): 7})

    def command(self, name: str, *options: str) -> Said:
        """A command of the shell, in this process."""
        code = main([name, str(self.file), *options])
        return Said(code, *self._capsys.readouterr())

    def lag(self, *options: str) -> dict[str, Any]:
        said = self.command("lag", "--json", *options)
        assert said.code == 0, said.err
        (flow,) = json.loads(said.out)["flows"]
        found: dict[str, Any] = flow
        return found

    def canary_detail(self, rest: Rest) -> dict[str, Any]:
        (job,) = [job for job in rest.flow(self.flow)["jobs"] if job["name"] == "canary"]
        found: dict[str, Any] = job["detail"]
        return found

    def events(self, rest: Rest, kind: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = rest.get(f"/api/v1/events?kind={kind}")
        return found


def test_lag_source_group_canary_and_limits_of_one_run(
    two_clusters: TwoClusters, unique: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    watched = Watched(two_clusters, unique, tmp_path, capsys)
    source_ends = {(unique, number): end for number, end in ends(watched.source, unique).items()}
    with HeliographRun(watched.file) as run:
        wait_until(
            lambda: source_ends.items() <= committed(watched.source, watched.group).items(),
            "another client sees the positions as a group of the source",
            every=0.3,
        )
        rest = rest_of(run)
        _canary_arrives(watched, rest)
        wait_until(lambda: bool(watched.events(rest, "lag")), "a lane that is throttled is told to be late", every=0.5)
        late = watched.events(rest, "lag")[0]
        assert (late["subject"], f"{watched.slow}-0: a record waits for" in late["reason"]) == ("lag", True)
        _running_lag(watched)
        checkpointed = json.loads(watched.command("status", "--groups", "--json").out)["flows"][0]["groups"]
        assert {row["group"] for row in checkpointed} == {f"{unique}-app"}, "our own groups are nobody's to look after"
        _burrow_answers(watched, rest)
        assert run.terminate() == 0
    _stopped_lag(watched)


def _canary_arrives(watched: Watched, rest: Rest) -> None:
    wait_until(lambda: watched.canary_detail(rest).get("arrived", 0) >= 2, "canaries arrive", every=0.5)
    assert partition_count(watched.target, f"{watched.a}.{watched.canary}") == 1, (
        "it is copied though topics has it not"
    )
    detail = watched.canary_detail(rest)
    assert (detail["topic"], detail["limit_ms"], detail["late"]) == (watched.canary, 1, True)
    assert detail["sent"] >= detail["arrived"] and 0 < detail["last_ms"] <= detail["longest_ms"]
    (told,) = watched.events(rest, "canary")
    assert told["subject"] == watched.canary and "canary.limit.ms is 1" in told["reason"]
    said = watched.command("canary", "--json")
    (look,) = json.loads(said.out)
    assert (said.code, look["flow"], look["remote_topic"]) == (0, watched.flow, f"{watched.a}.{watched.canary}")
    assert look["latency_ms"] > 0


def _running_lag(watched: Watched) -> None:
    flow: dict[str, Any] = {}

    def follows() -> bool:
        """It is no epoch's end just now."""
        flow.update(watched.lag("--topic", watched.topic))
        return {lane["state"] for lane in flow["lanes"]} == {"following"}

    wait_until(follows, "both lanes follow", every=0.3)
    assert (flow["group"], flow["running"]) == (watched.group, True)
    for lane in flow["lanes"]:
        assert lane["source_end"] == RECORDS // 2
        assert (
            lane["committed"] == lane["group_committed"] == lane["read_position"] == lane["target_end"] == RECORDS // 2
        )
        assert (lane["committed_lag"], lane["read_lag"], lane["target_lag"], lane["bytes_behind"]) == (0, 0, 0, 0)
        assert lane["owner"] == f"{flow['host']}/{flow['process']}" and lane["log_bytes"] > 0
    assert [lane["partition"] for lane in flow["lanes"]] == [0, 1]
    assert {alias: len(brokers) for alias, brokers in flow["brokers"].items()} == {watched.a: 1, watched.b: 1}
    everything = watched.lag("--flow", watched.flow)
    assert {lane["topic"] for lane in everything["lanes"]} == {watched.topic, watched.slow, watched.canary}
    unknown = watched.command("lag", "--topic", "nothing")
    assert unknown.code == 2 and "--topic nothing: no flow copies a topic of this name" in unknown.err


def _burrow_answers(watched: Watched, rest: Rest) -> None:
    kafka, app = f"/v3/kafka/{watched.a}", f"{watched.topic}-app"
    assert rest.get("/burrow/admin") == "GOOD"
    assert rest.get("/v3/kafka")["clusters"] == sorted([watched.a, watched.b])
    assert rest.get(kafka)["module"]["servers"]
    assert f"{watched.a}.{watched.topic}" in rest.get(f"/v3/kafka/{watched.b}/topic")["topics"]
    assert rest.get(f"{kafka}/topic/{watched.topic}")["offsets"] == [RECORDS // 2, RECORDS // 2]
    assert {app, watched.group} <= set(rest.get(f"{kafka}/consumer")["consumers"])
    assert rest.get(f"{kafka}/topic/{watched.topic}/consumers")["consumers"] == sorted([app, watched.group])
    told = rest.get(f"{kafka}/consumer/{app}/status")
    assert (told["error"], told["message"], told["request"]["url"]) == (
        False,
        "consumer status returned",
        f"{kafka}/consumer/{app}/status",
    )
    status = told["status"]
    assert (status["cluster"], status["group"], status["status"]) == (watched.a, app, "ERR")
    (stopped,) = status["partitions"]
    assert (stopped["status"], stopped["current_lag"], stopped["end"]["offset"]) == ("STOP", RECORDS // 2 - 7, 7)
    assert status["maxlag"] == stopped and status["totallag"] == RECORDS // 2 - 7
    commit(watched.source, app, {(watched.topic, 0): RECORDS // 2})

    def is_well() -> bool:
        return bool(rest.get(f"{kafka}/consumer/{app}/lag")["status"]["totallag"] == 0)

    wait_until(is_well, "the group is where its topic ends", every=0.2)
    lag = rest.get(f"{kafka}/consumer/{app}/lag")["status"]
    assert (lag["status"], lag["partition_count"], len(lag["partitions"])) == ("OK", 1, 1)
    assert rest.get(f"{kafka}/consumer/{app}/status")["status"]["partitions"] == []
    window = rest.get(f"{kafka}/consumer/{app}")["topics"][watched.topic][0]
    offsets = [at and at["offset"] for at in window["offsets"]]
    assert offsets[:8] == [None] * 8 and offsets[8:] == [7, RECORDS // 2] and window["current-lag"] == 0
    ours = rest.get(f"{kafka}/consumer/{watched.group}/lag")["status"]
    behind = {(part["topic"], part["partition"]): part["current_lag"] for part in ours["partitions"]}
    assert behind[watched.topic, 0] == behind[watched.topic, 1] == 0
    _burrow_owner_and_refusals(watched, rest)


def _burrow_owner_and_refusals(watched: Watched, rest: Rest) -> None:
    kafka, group = f"/v3/kafka/{watched.a}/consumer", f"{watched.topic}-member"
    settings = {"bootstrap.servers": watched.source, "group.id": group, "auto.offset.reset": "earliest"}
    reader = Consumer({**settings, "client.id": "somebody", "enable.auto.commit": False})
    reader.subscribe([watched.topic])
    try:
        message = reader.poll(30)
        assert message is not None and message.error() is None
        reader.commit(message=message, asynchronous=False)
        wait_until(lambda: rest.ask("GET", f"{kafka}/{group}/lag")[0] == 200, "the group is seen", every=0.2)
        (part,) = rest.get(f"{kafka}/{group}/lag")["status"]["partitions"]
        assert (part["client_id"], part["owner"]) == ("somebody", "127.0.0.1")
    finally:
        reader.close()
    code, missing = rest.ask("GET", f"{kafka}/nobody/status")
    assert (code, missing["error"], missing["status"]["status"]) == (404, False, "NOTFOUND")
    for path, sentence in (
        (f"{kafka}/nobody", "cluster or consumer not found"),
        ("/v3/kafka/nowhere", "cluster module not found"),
        ("/v3/kafka/nowhere/consumer", "cluster not found"),
        (f"/v3/kafka/{watched.a}/topic/nothing", "cluster or topic not found"),
    ):
        code, body = rest.ask("GET", path)
        assert (code, body["error"], body["message"], body["request"]["url"]) == (404, True, sentence, path)


def _stopped_lag(watched: Watched) -> None:
    """Nothing runs: the ledger and both logs still tell."""
    write(watched.source, watched.topic, samples(MORE, partitions=2))
    flow = watched.lag("--topic", f"{watched.a}.{watched.topic}")
    assert flow["running"] is False
    for lane in flow["lanes"]:
        assert (lane["committed_lag"], lane["target_lag"]) == (MORE // 2, MORE // 2)
        assert (lane["read_position"], lane["read_lag"], lane["owner"]) == (-1, -1, "")
        assert 0 < lane["bytes_behind"] < lane["log_bytes"]
    shown = watched.command("lag").out
    assert f"group {watched.group}; " in shown and f"brokers of {watched.a}: " in shown
    assert watched.command("canary", "--timeout", "1").code == 1
