"""The same requests to a real Kafka Connect worker and to a run of Heliograph with a worker's file; answers compared.

What must differ (ports, versions, ids, words of Java) is compared by shape. Where we answer 4xx and Connect 500, the row says so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.clusters import TwoClusters
from tests.support.connect import ConnectWorker, mirror_source
from tests.support.heliograph_run import HeliographRun, write_properties
from tests.support.mirror import QUICK, word
from tests.support.rest import Rest, rest_of
from tests.support.topics import create_topic, ends
from tests.support.waiting import wait_until
from tests.support.writers import samples, write

PACKAGE = "org.apache.kafka.connect.mirror"
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
RECORDS = 100
SHAPES = {"worker_id", "version", "commit", "kafka_cluster_id", "trace"}
"""Fields whose values must differ; both must have them, with a value of the same type."""


@dataclass
class Side:
    """A worker, and the alias under which it copies, so that both write topics of their own."""

    rest: Rest
    alias: str
    clusters: TwoClusters
    topic: str

    def config(self, **changed: str | None) -> dict[str, Any]:
        base = mirror_source((self.alias, self.clusters.a.bootstrap), ("B", self.clusters.b.bootstrap), self.topic)
        fields = {**base, **{name.replace("_", "."): value for name, value in changed.items()}}
        return {name: value for name, value in fields.items() if value is not None}

    def copied(self) -> int:
        return sum(ends(self.clusters.b.bootstrap, f"{self.alias}.{self.topic}").values())

    def state(self) -> str:
        status, body = self.rest.ask("GET", "/connectors/orders/status")
        if status != 200:
            return ""
        return " ".join([body["connector"]["state"], *(task["state"] for task in body["tasks"])])

    def wait_for(self, state: str) -> None:
        wait_until(lambda: self.state() == state, f"{self.alias} is {state}", every=0.2)


@dataclass
class Pair:
    """Connect and Heliograph."""

    connect: Side
    ours: Side
    differences: list[str] = field(default_factory=list)

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.connect, self.ours

    def ask(self, method: str, path: str, body: Any = None, instead: int = 0, **sent: Any) -> None:
        """`body` may be made for each side; `instead` is our status where Connect answers 500."""
        answers = []
        for side in self.sides:
            data = body(side) if callable(body) else body
            answers.append(side.rest.ask(method, path, data, **sent))
        (theirs, said), (ours, we_said) = answers
        label = f"{method} {path} {sent.get('raw', '')!r}"
        if instead:
            assert (theirs, ours) == (500, instead), (label, answers)
            assert we_said["error_code"] == ours and we_said["message"], label
            assert "Exception" not in we_said["message"]
            return
        assert theirs == ours, (label, answers)
        found = list(compare(self._plain(said, self.connect), self._plain(we_said, self.ours), label))
        self.differences += found

    def _plain(self, body: Any, side: Side) -> Any:
        return json.loads(json.dumps(body).replace(side.alias, "A")) if body != "" else ""

    def wait_for(self, state: str) -> None:
        for side in self.sides:
            side.wait_for(state)

    def wait_copied(self, records: int) -> None:
        for side in self.sides:
            wait_until(lambda side=side: side.copied() == records, f"{side.alias}: {records} are copied", every=0.2)


def compare(theirs: Any, ours: Any, where: str) -> Iterator[str]:
    """Where two answers differ, in words."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        if theirs.keys() != ours.keys():
            yield f"{where}: {sorted(theirs)} / {sorted(ours)}"
        for name in theirs.keys() & ours.keys():
            if name in SHAPES:
                if type(theirs[name]) is not type(ours[name]):
                    yield f"{where}.{name}: {theirs[name]!r} / {ours[name]!r}"
            else:
                yield from compare(theirs[name], ours[name], f"{where}.{name}")
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for place, (one, other) in enumerate(zip(theirs, ours, strict=True)):
            yield from compare(one, other, f"{where}[{place}]")
    elif theirs != ours:
        yield f"{where}: {theirs!r} / {ours!r}"


def worker_file(path: Path, bootstrap: str, group: str) -> Path:
    """A worker's file as people have them."""
    lines = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "key.converter": BYTES,
        "value.converter": BYTES,
        "key.converter.schemas.enable": "true",
        "value.converter.schemas.enable": "true",
        **{f"{kind}.storage.topic": f"{group}-{kind}" for kind in ("offset", "config", "status")},
        **{f"{kind}.storage.replication.factor": "1" for kind in ("offset", "config", "status")},
        "offset.flush.interval.ms": "10000",
        "plugin.path": "/usr/share/java",
        "listeners": "http://127.0.0.1:0",
        **{name: QUICK[name] for name in ("takeover.wait.seconds", "lane.retry.backoff.ms")},
    }
    return write_properties(path, lines)


@pytest.fixture(scope="module")
def pair(two_clusters: TwoClusters, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    directory, topic, group = tmp_path_factory.mktemp("connect"), word(), word()
    create_topic(two_clusters.a.bootstrap, topic, partitions=2)
    write(two_clusters.a.bootstrap, topic, samples(RECORDS, partitions=2))
    run = HeliographRun(worker_file(directory / "worker.properties", two_clusters.b.bootstrap, f"{group}-ours"))
    quiet = {"session.timeout.ms": "10000", "heartbeat.interval.ms": "3000"}
    with run, ConnectWorker(directory, two_clusters.b.bootstrap, group, quiet) as worker:
        ours = Side(rest_of(run), word(), two_clusters, topic)
        yield Pair(Side(Rest(worker.url), word(), two_clusters, topic), ours)


def off(offset: Any, **partition: Any) -> Any:
    """A body of PATCH /offsets, for each side."""

    def body(side: Side) -> dict[str, Any]:
        where = {"cluster": side.alias, "topic": side.topic, "partition": 0, **partition}
        return {"offsets": [{"partition": where, "offset": offset}]}

    return body


def test_answers_are_connects(pair: Pair) -> None:
    ask_of_the_worker(pair)
    ask_for_bad_connectors(pair)
    pair.ask("POST", "/connectors", lambda side: {"name": "orders", "config": side.config()})
    pair.ask("POST", "/connectors", lambda side: {"name": "orders", "config": side.config()})
    pair.wait_for("RUNNING RUNNING")
    pair.wait_copied(RECORDS)
    ask_of_a_connector(pair)
    ask_of_none(pair)
    change_its_configuration(pair)
    pair.wait_for("RUNNING RUNNING")
    pause_and_resume(pair)
    copy_again(pair)
    add_the_other_two(pair)
    pair.ask("DELETE", "/connectors/orders")
    pair.ask("DELETE", "/connectors/orders")
    pair.ask("GET", "/connectors")
    assert pair.differences == []


def ask_of_the_worker(pair: Pair) -> None:
    for path in ("/", "/health", "/connectors", "/connectors/", "/connectors?expand=status", "/connector-plugins"):
        pair.ask("GET", path)
    pair.ask("GET", "/connector-plugins/Nope/config")
    for method, path in (("PUT", "/connectors"), ("DELETE", "/connectors"), ("GET", "/connectors/a/nonsense")):
        pair.ask(method, path)
    validate = "/connector-plugins/MirrorSourceConnector/config/validate"
    pair.ask("PUT", validate, {"connector.class": f"{PACKAGE}.MirrorHeartbeatConnector"})
    pair.ask("PUT", validate, {}, instead=400)
    pair.ask("PUT", validate, raw=b"{nope", instead=400)
    theirs, ours = (validated(side, validate) for side in pair.sides)
    assert theirs.keys() <= ours.keys(), "every field that Connect's class has is known"
    for name, (definition, value) in theirs.items():
        assert (definition.keys(), value.keys()) == (ours[name][0].keys(), ours[name][1].keys())
        assert bool(value["errors"]) is bool(ours[name][1]["errors"]), (name, value, ours[name][1])
        numbers = ("INT", "LONG", "SHORT")
        assert definition["type"] == ours[name][0]["type"] or (definition["type"] in numbers and "LONG"), name


def validated(side: Side, path: str) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    config = side.config(
        offset_lag_max="x", tasks_max="many", source_cluster_alias=None, producer_override_linger_ms=None
    )
    status, body = side.rest.ask("PUT", path, config)
    assert status == 200 and body.keys() == {"name", "error_count", "groups", "configs"}
    assert body["error_count"] >= 4 and body["name"] == f"{PACKAGE}.MirrorSourceConnector"
    return {row["definition"]["name"]: (row["definition"], row["value"]) for row in body["configs"]}


def ask_for_bad_connectors(pair: Pair) -> None:
    def post(change: Any = None, instead: int = 0, **sent: Any) -> None:
        pair.ask("POST", "/connectors", change, instead=instead, **sent)

    for raw in (b"{nope", b"", b"[]", b'"x"', b"{}", b'{"name": "x"}', b'{"name": "x", "config": "s"}'):
        post(raw=raw, instead=400)
    for name in ("", None):
        post(lambda side, name=name: {"name": name, "config": side.config()})
    post({"name": "x", "config": {}})
    post(lambda side: {"name": "x", "config": side.config(name="y")})
    post(lambda side: {"name": "x", "config": {**side.config(), "topics": None}})
    post(lambda side: {"name": "x", "config": {**side.config(), "topics": ["a"]}}, instead=400)
    post(lambda side: {"name": "x", "config": side.config(source_cluster_alias=None)})
    post(lambda side: {"name": "x", "config": side.config(), "extra": 1}, instead=400)
    post(lambda side: {"name": "x", "config": side.config(), "initial_state": "BOGUS"}, instead=400)
    post(lambda side: {"name": "x", "config": side.config()}, headers={"Content-Type": "text/plain"})
    for side in pair.sides:
        status, body = side.rest.ask("POST", "/connectors", {"name": "x", "config": side.config(offset_lag_max="x")})
        assert status == 400 and "Invalid value x for configuration offset.lag.max: " in body["message"]
        assert body["message"].startswith("Connector configuration is invalid and contains the following 1 error(s):\n")
        status, body = side.rest.ask("POST", "/connectors", {"name": "x", "config": {"connector.class": "Nope"}})
        assert status == 400 and re.search(r"Failed to find any class that .* matches Nope", body["message"])
    pair.ask("GET", "/connectors")


def ask_of_a_connector(pair: Pair) -> None:
    for query in ("", "?expand=status", "?expand=info", "?expand=status&expand=info", "?expand=bogus"):
        pair.ask("GET", f"/connectors{query}")
    for path in (
        "",
        "/",
        "/config",
        "/status",
        "/tasks",
        "/tasks/0/status",
        "/tasks/9/status",
        "/tasks/x/status",
        "/topics",
    ):
        pair.ask("GET", f"/connectors/orders{path}")
    for path in ("/tasks/7/restart", "/tasks/x/restart"):
        pair.ask("POST", f"/connectors/orders{path}")
    pair.ask("DELETE", "/connectors/orders/offsets")


def ask_of_none(pair: Pair) -> None:
    for path in ("", "/config", "/status", "/tasks", "/tasks/0/status", "/topics", "/offsets"):
        pair.ask("GET", f"/connectors/nope{path}")
    for verb in ("pause", "resume", "stop", "topics/reset"):
        pair.ask("PUT", f"/connectors/nope/{verb}")
    for path in ("/restart", "/restart?includeTasks=true", "/tasks/0/restart"):
        pair.ask("POST", f"/connectors/nope{path}")
    pair.ask("DELETE", "/connectors/nope")
    pair.ask("DELETE", "/connectors/nope/offsets")
    pair.ask("PATCH", "/connectors/nope/offsets", off({"offset": 1}))
    pair.ask("PATCH", "/connectors/nope/config", {"a": "b"})


def change_its_configuration(pair: Pair) -> None:
    config = "/connectors/orders/config"
    pair.ask("PATCH", config, {"refresh.topics.interval.seconds": "60"})
    pair.ask("PATCH", config, {"refresh.topics.interval.seconds": None})
    pair.ask("PATCH", config, raw=b"{nope", instead=400)
    pair.ask("PUT", config, lambda side: side.config(offset_lag_max="50"))
    pair.ask("PUT", config, lambda side: side.config(name="other"))
    pair.ask("PUT", config, {})
    pair.ask("PUT", config, raw=b"", instead=400)
    pair.ask("GET", config)
    pair.ask("POST", "/connectors/orders/restart")


def pause_and_resume(pair: Pair) -> None:
    pair.ask("PUT", "/connectors/orders/pause")
    pair.wait_for("PAUSED PAUSED")
    pair.ask("GET", "/connectors/orders/status")
    pair.ask("PATCH", "/connectors/orders/offsets", off({"offset": 1}))
    pair.ask("PUT", "/connectors/orders/resume")
    pair.wait_for("RUNNING RUNNING")
    pair.ask("POST", "/connectors/orders/tasks/0/restart")
    pair.wait_for("RUNNING RUNNING")
    pair.ask("POST", "/connectors/orders/restart?includeTasks=true&onlyFailed=false")
    pair.wait_for("RUNNING RUNNING")


def copy_again(pair: Pair) -> None:
    """Offsets are set and taken back while it is stopped, and records are copied again from there, on both sides."""
    path = "/connectors/orders/offsets"
    pair.ask("PUT", "/connectors/orders/stop")
    pair.wait_for("STOPPED")
    for what in ("/status", "/tasks", "/offsets", "/topics", ""):
        pair.ask("GET", f"/connectors/orders{what}")
    for body in ({"offsets": []}, {}, {"offsets": None}):
        pair.ask("PATCH", path, body)
    for bad in ({"offset": -1}, {"offset": "x"}, {"position": 1}, {"offset": 1.5}):
        pair.ask("PATCH", path, off(bad), instead=400)
    for wrong in ({"partition": -1}, {"partition": "x"}):
        pair.ask("PATCH", path, off({"offset": 1}, **wrong), instead=400)
    pair.ask("PATCH", path, {"offsets": "x"}, instead=400)
    pair.ask("PATCH", path, lambda side: {**off({"offset": 1})(side), "more": 1}, instead=400)
    pair.ask("PATCH", path, off({"offset": 29}))
    pair.ask("GET", path)
    pair.ask("PUT", "/connectors/orders/resume")
    pair.wait_for("RUNNING RUNNING")
    pair.wait_copied(RECORDS + 20)
    pair.ask("PUT", "/connectors/orders/stop")
    pair.wait_for("STOPPED")
    pair.ask("DELETE", path)
    pair.ask("GET", path)
    pair.ask("PUT", "/connectors/orders/resume")
    pair.wait_for("RUNNING RUNNING")
    pair.wait_copied(2 * RECORDS + 20)


def add_the_other_two(pair: Pair) -> None:
    for kind in ("Checkpoint", "Heartbeat"):
        fields = {
            "connector_class": f"{PACKAGE}.Mirror{kind}Connector",
            "topics": None,
            "producer_override_linger_ms": None,
        }
        pair.ask(
            "POST",
            "/connectors",
            lambda side, kind=kind, fields=fields: {"name": kind, "config": side.config(**fields)},
        )
        pair.ask("GET", f"/connectors/{kind}/config")
    pair.ask("GET", "/connectors")
    for kind in ("Checkpoint", "Heartbeat"):
        pair.ask("DELETE", f"/connectors/{kind}")
