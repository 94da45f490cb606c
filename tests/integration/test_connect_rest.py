"""The same requests to a real Kafka Connect worker and to a run of Heliograph with a worker's file; answers compared.

What must differ (ports, versions, ids, words of Java) is compared by shape. Where we answer 4xx and Connect 500, the row says so.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from heliograph.operations.compare import compare_topics
from tests.support.clusters import TwoClusters
from tests.support.connect import ConnectWorker
from tests.support.connect_pair import Pair, Side, compare
from tests.support.connect_routes import ROUTES
from tests.support.connect_steps import (
    PACKAGE,
    RECORDS,
    Taken,
    add_the_other_two,
    post_to_a_cluster_that_hangs,
    wait_until_taken,
)
from tests.support.heliograph_run import HeliographRun, write_properties
from tests.support.mirror import QUICK, word
from tests.support.rest import Rest, rest_of
from tests.support.topics import create_topic, ends
from tests.support.waiting import wait_until
from tests.support.writers import samples, write

BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
ENVIRON = {**os.environ, "DOOR_PASSWORD": "door"}
LOGIN = (
    'org.apache.kafka.common.security.plain.PlainLoginModule required username=mirror password="${env:DOOR_PASSWORD}";'
)


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
        **{name: QUICK[name] for name in ("takeover.wait.seconds", "request.timeout.ms", "lane.retry.backoff.ms")},
    }
    return write_properties(path, lines)


@pytest.fixture(scope="module")
def pair(two_clusters: TwoClusters, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    directory, topic, group = tmp_path_factory.mktemp("connect"), word(), word()
    create_topic(two_clusters.a.bootstrap, topic, partitions=2)
    write(two_clusters.a.bootstrap, topic, samples(RECORDS, partitions=2))
    file = worker_file(directory / "worker.properties", two_clusters.b.bootstrap, f"{group}-ours")
    run = HeliographRun(file, environ=ENVIRON)
    # A worker that is thought lost begins again where it last stored its progress, and what it copies twice is counted here.
    quiet = {"session.timeout.ms": "60000", "heartbeat.interval.ms": "3000"}
    lives = [run]
    with run, ConnectWorker(directory, two_clusters.b.bootstrap, group, quiet) as worker:
        theirs, ours = Rest(worker.url), Side(lambda: rest_of(lives[-1]), word(), two_clusters, topic, word())
        try:
            yield Pair(Side(lambda: theirs, word(), two_clusters, topic, word()), ours, lives)
        finally:
            lives[-1].kill_tree()


def off(offset: Any, **partition: Any) -> Any:
    """A body of PATCH /offsets, for each side."""

    def body(side: Side) -> dict[str, Any]:
        where = {"cluster": side.alias, "topic": side.topic, "partition": 0, **partition}
        return {"offsets": [{"partition": where, "offset": offset}]}

    return body


def test_answers_are_connects(pair: Pair) -> None:
    ask_of_the_worker(pair)
    ask_for_bad_connectors(pair)
    pair.ask("POST", "/connectors", lambda side: {"name": side.name, "config": side.config()})
    pair.ask("POST", "/connectors", lambda side: {"name": side.name, "config": side.config()})
    pair.wait_for("RUNNING RUNNING")
    pair.wait_copied(RECORDS)
    ask_of_a_connector(pair)
    ask_of_none(pair)
    change_its_configuration(pair)
    pair.wait_for("RUNNING RUNNING")
    pause_and_resume(pair)
    copy_again(pair)
    add_the_other_two(pair)
    beaten = pair.ours.beats()
    pair.ask("DELETE", "/connectors/orders")
    pair.ask("DELETE", "/connectors/orders")
    pair.ask("GET", "/connectors")
    assert pair.differences == []
    assert pair.ours.beats() == beaten, "what is deleted writes no heartbeats"
    assert_every_route_was_asked(pair)


def assert_every_route_was_asked(pair: Pair) -> None:
    """Rightly, and wrongly where there is a wrong way to ask."""
    for (method, template), (_, bad) in ROUTES.items():
        path = re.compile(re.sub(r"\{[^}]*\}", "[^/]+", template))
        answers = {good for asked, at, good in pair.asked if asked == method and path.fullmatch(at)}
        assert answers >= ({True} if bad is None else {True, False}), (method, template)


def ask_of_the_worker(pair: Pair) -> None:
    for path in ("/", "/health", "/connectors", "/connectors/", "/connectors?expand=status", "/connector-plugins"):
        pair.ask("GET", path)
        pair.probe(path.partition("?")[0])
    for path in ("/connectors/nope", "/connectors/nope/nonsense", "/connector-plugins/Nope/config"):
        pair.probe(path)
    pair.ask("GET", "/connector-plugins/Nope/config")
    for kind in ("Source", "Checkpoint", "Heartbeat"):
        compare_fields(pair, f"/connector-plugins/Mirror{kind}Connector/config")
    for method, path in (("PUT", "/connectors"), ("DELETE", "/connectors"), ("GET", "/connectors/a/nonsense")):
        pair.ask(method, path)
    validate = "/connector-plugins/MirrorSourceConnector/config/validate"
    pair.ask("PUT", validate, {"connector.class": f"{PACKAGE}.MirrorHeartbeatConnector"})
    pair.ask("PUT", validate, {}, instead=400)
    pair.ask("PUT", validate, raw=b"{nope", instead=400)
    pair.asked.add(("PUT", validate, True))
    theirs, ours = (validated(side, validate) for side in pair.sides)
    pair.differences += [f"{validate}: {name} is missing" for name in theirs.keys() - ours.keys()]
    for name in theirs.keys() & ours.keys():
        pair.differences += compare(*(has_errors(found[name]) for found in (theirs, ours)), f"{validate}: {name}")


def compare_fields(pair: Pair, path: str) -> None:
    """Connect's fields of a class are ours, with type and what else is said of each; we have more."""
    pair.asked.add(("GET", path, True))
    theirs, ours = ({row["name"]: row for row in side.rest.get(path)} for side in pair.sides)
    pair.differences += [f"{path}: {name} is missing" for name in theirs.keys() - ours.keys()]
    for name in theirs.keys() & ours.keys():
        rows = ({"definition": found[name], "value": {"errors": []}} for found in (theirs, ours))
        pair.differences += compare(*(has_errors(row) for row in rows), f"{path}: {name}")


def validated(side: Side, path: str) -> dict[str, dict[str, Any]]:
    config = side.config(offset_lag_max="x", tasks_max="many", source_cluster_alias=None)
    status, body = side.rest.ask("PUT", path, config)
    assert status == 200 and body.keys() == {"name", "error_count", "groups", "configs"}
    assert body["error_count"] >= 4 and body["name"] == f"{PACKAGE}.MirrorSourceConnector"
    return {row["value"]["name"]: row for row in body["configs"]}


def has_errors(row: dict[str, Any]) -> dict[str, Any]:
    """What must be the same of a field: its type, whether it is required, whether it is at fault; and all names of fields."""
    kind = row["definition"]["type"].replace("INT", "LONG").replace("SHORT", "LONG")
    same = {"type": kind, "required": row["definition"]["required"], "faulty": bool(row["value"]["errors"])}
    return {"definition": sorted(row["definition"]), "value": sorted(row["value"]), **same}


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
    pair.wait_each(Side.tells_topics, "it tells what it writes")
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
    # Not /tasks: Connect takes a POST there from its other workers.
    for path in (
        "",
        "/",
        "/config",
        "/status",
        "/tasks/0/status",
        "/topics",
        "/topics/reset",
        "/offsets",
        "/pause",
    ):
        pair.probe(f"/connectors/orders{path}")
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
    pair.ask("PUT", config, lambda side: side.config(offset_lag_max="0"))
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


def behind_doors(side: Side, alias: str, topic: str, **more: str) -> dict[str, str]:
    """A connector that logs in on both sides, with a password by reference."""
    config = side.config(source_cluster_alias=alias, topics=topic, **more)
    for end, cluster in (("source", side.clusters.a), ("target", side.clusters.b)):
        config |= {
            f"{end}.cluster.bootstrap.servers": cluster.door(),
            f"{end}.cluster.security.protocol": "SASL_PLAINTEXT",
            f"{end}.cluster.sasl.mechanism": "PLAIN",
            f"{end}.cluster.sasl.jaas.config": LOGIN,
        }
    return {**config, "target.cluster.alias": f"{alias}t"}


def test_what_was_made_survives_a_kill_and_a_parked_lane_is_a_failed_task(pair: Pair) -> None:
    ours, a, b = pair.ours, pair.ours.clusters.a.bootstrap, pair.ours.clusters.b.bootstrap
    kept, held = word(), word()
    for topic in (kept, held):
        create_topic(a, topic)
        write(a, topic, samples(20))
    create_topic(b, f"{held}.{held}", config={"max.message.bytes": "1000"})
    write(a, held, samples(1, size=5_000))
    secret = behind_doors(ours, kept, kept)
    told = {**secret, "source.cluster.sasl.jaas.config": LOGIN.replace("${env:DOOR_PASSWORD}", "door")}
    status, refused = ours.rest.ask("POST", "/connectors", {"name": kept, "config": told})
    assert (status, "refer to it, as in ${env:NAME}" in refused["message"]) == (400, True)
    assert "door" not in refused["message"]
    post_to_a_cluster_that_hangs(ours)
    made = ((kept, secret, "RUNNING"), (held, behind_doors(ours, held, held), "STOPPED"))
    for name, config, state in made:
        status, _ = ours.rest.ask("POST", "/connectors", {"name": name, "config": config, "initial_state": state})
        assert status == 201
    wait_until(lambda: sum(ends(b, f"{kept}.{kept}").values()) == 20, "the first copies", every=0.2)
    shown = ours.rest.get(f"/connectors/{kept}/config")
    assert shown["source.cluster.sasl.jaas.config"] == "[hidden]"
    status, _ = ours.rest.ask("PUT", f"/connectors/{kept}/config", {**shown, "offset.lag.max": "7"})
    assert status == 200, "what was read back may be sent back"

    with Taken(pair, kept):
        pair.lives[-1].kill_tree()
        pair.lives.append(HeliographRun(file_of(pair), environ=ENVIRON).start())
        wait_until_taken(ours, kept, "at the start")
        write(a, kept, samples(30, seed=2))
    wait_until(lambda: sum(ends(b, f"{kept}.{kept}").values()) == 50, "it goes on after the kill", every=0.2)
    assert compare_topics(a, b, {kept: f"{kept}.{kept}"}).differences == []
    assert ours.rest.get(f"/connectors/{kept}/config")["offset.lag.max"] == "7"
    assert ours.rest.get(f"/connectors/{held}/status")["connector"]["state"] == "STOPPED"
    assert sum(ends(b, f"{held}.{held}").values()) == 0

    restart_while_another_has_the_flow(pair, kept)
    assert ours.rest.ask("PUT", f"/connectors/{held}/resume")[0] == 202

    def has_failed() -> bool:
        # What is parked is tried again, and is no failure meanwhile.
        found = ours.rest.get(f"/connectors/{held}/status")
        states = [part["state"] for part in (found["connector"], *found["tasks"])]
        return states == ["RUNNING", "FAILED"] and found["tasks"][0]["trace"].startswith(f"{held}->{held}t/{held}/0: ")

    wait_until(has_failed, "its task says which lane is parked", every=0.2)
    assert sum(ends(b, f"{held}.{held}").values()) == 20, "what comes before it was copied"
    for name in (kept, held):
        assert ours.rest.ask("DELETE", f"/connectors/{name}") == (204, "")
    wait_until(lambda: not ours.rest.get("/api/v1/flows"), "both flows have ended", every=0.2)


def restart_while_another_has_the_flow(pair: Pair, name: str) -> None:
    """It cannot begin anew, says so, and begins by itself as soon as it may: nothing is lost, nothing comes twice."""
    ours, a, b = pair.ours, pair.ours.clusters.a.bootstrap, pair.ours.clusters.b.bootstrap
    with Taken(pair, name):
        assert ours.rest.ask("POST", f"/connectors/{name}/restart?includeTasks=true")[0] == 202
        wait_until_taken(ours, name, "after a restart")
        write(a, name, samples(10, seed=3))
        assert ours.rest.ask("POST", f"/connectors/{name}/tasks/0/restart")[0] == 404, "it has no tasks now"
    ours.wait_for("RUNNING RUNNING", name)
    wait_until(lambda: sum(ends(b, f"{name}.{name}").values()) == 60, "it goes on when it may", every=0.2)
    assert compare_topics(a, b, {name: f"{name}.{name}"}).differences == []


def file_of(pair: Pair) -> Path:
    return pair.lives[0].stdout.with_name("worker.properties")
