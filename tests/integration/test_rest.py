"""A run seen and steered over HTTP: pause, drain, throttle, topics; what is refused; a server that is killed."""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import json
import os
import platform
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from heliograph.cli.main import main
from heliograph.config.load import load_file
from heliograph.control.events import EventReader
from heliograph.kafka.slot import Warm
from heliograph.model.events import EventKind
from heliograph.operations.compare import compare_topics
from tests.support.clusters import TwoClusters
from tests.support.connect import mirror_source
from tests.support.heliograph_run import HeliographRun
from tests.support.mirror import flow_file, word
from tests.support.processes import command_of
from tests.support.rest import Rest, rest_of, wait_for_flow
from tests.support.topics import create_topic, ends
from tests.support.waiting import wait_until
from tests.support.writers import samples, write


@dataclass
class Stage:
    """A run with its server, and topics of its own."""

    clusters: TwoClusters
    here: str
    there: str
    w: str
    file: Path
    run: HeliographRun

    @property
    def flow(self) -> str:
        return f"{self.here}->{self.there}"

    @property
    def rest(self) -> Rest:
        return rest_of(self.run)

    def topic(self, kind: str, records: int = 0) -> str:
        create_topic(self.clusters.a.bootstrap, f"{self.w}.{kind}", partitions=2)
        self.write(kind, records)
        return f"{self.w}.{kind}"

    def write(self, kind: str, records: int) -> None:
        write(self.clusters.a.bootstrap, f"{self.w}.{kind}", samples(records))

    def copied(self, kind: str) -> int:
        return sum(ends(self.clusters.b.bootstrap, f"{self.here}.{self.w}.{kind}").values())

    def tell(self, method: str, path: str, body: Any = None) -> Any:
        status, answer = self.rest.ask(method, f"/api/v1/flows/{self.flow}{path}", body)
        assert status in (200, 201), (path, status, answer)
        return answer

    def lanes(self, kind: str) -> list[dict[str, Any]]:
        found = self.rest.get(f"/api/v1/flows/{self.flow}/lanes?search={self.w}.{kind}")["lanes"]
        return [lane for lane in found if lane["topic"] == f"{self.w}.{kind}"]

    def wait_copied(self, kind: str, records: int) -> None:
        wait_until(lambda: self.copied(kind) == records, f"{records} of {kind} are copied", every=0.1)


@pytest.fixture(scope="module")
def stage(two_clusters: TwoClusters, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    here, there, file = word(), word(), tmp_path_factory.mktemp("rest") / "mm2.properties"
    made = Stage(two_clusters, here, there, word(), file, HeliographRun(file))
    for kind in ("steady", "held", "drained"):
        made.topic(kind, 20)
    addresses = {here: two_clusters.a.bootstrap, there: two_clusters.b.bootstrap}
    topics = ", ".join(f"{made.w}.{kind}" for kind in ("steady", "held", "drained"))
    flow_file(file, addresses, {made.flow: topics}, {"listeners": "http://127.0.0.1:0", "state.cluster": there})
    made.run.start()
    try:
        for kind in ("steady", "held", "drained"):
            made.wait_copied(kind, 20)
        wait_for_flow(made.rest, made.flow)
        yield made
    finally:
        made.run.kill_tree()  # of the run that it has now: a test ends one and begins another


def test_what_there_is_to_see(stage: Stage) -> None:
    rest, flow = stage.rest, stage.flow
    assert rest.get("/health")["status"] == "healthy"
    assert rest.get("/api/v1")["process"] == stage.run.pid
    assert {row["alias"] for row in rest.get("/api/v1/clusters")} == {stage.here, stage.there}

    def is_whole() -> bool:
        seen = rest.flow(flow)
        return (seen["state"], seen["topics"], seen["lanes"]) == ("running", 3, 6)

    wait_until(is_whole, "three topics and their lanes are shown: a view is a second old", every=0.1)
    wait_until(lambda: rest.flow(flow)["lanes_by_state"] == {"following": 6}, "all lanes follow")
    topics = rest.get(f"/api/v1/flows/{flow}/topics")
    assert {row["remote_topic"] for row in topics} == {
        f"{stage.here}.{stage.w}.{kind}" for kind in ("steady", "held", "drained")
    }
    configs = rest.get(f"/api/v1/flows/{flow}/topics/{stage.w}.steady")["configs"]
    assert {"name", "source", "target", "differs", "set", "copied"} == configs[0].keys()
    assert any(row["name"] == "retention.ms" and not row["differs"] for row in configs)
    options = rest.get("/api/v1/settings")["options"]
    assert next(row["origin"] for row in options if row["name"] == "state.cluster").startswith("line ")
    assert options[0].keys() == {"name", "value", "origin", "doc", "default", "served"}
    assert rest.get(f"/api/v1/flows/{flow}/translate?topic={stage.w}.steady&partition=0&offset=3")["translated"][0][
        "answer"
    ] in ("exact", "not yet copied")
    assert rest.get("/api/v1/plan")["flows"][0]["flow"] == flow
    assert "groups" in rest.get(f"/api/v1/flows/{flow}/groups")
    assert rest.get(f"/api/v1/history?flow={flow}")["step_s"] == 5
    assert "/api/v1/flows/{flow}/pause" in rest.get("/api/v1/openapi.json")["paths"]


def test_a_topic_is_paused_with_its_reason_and_goes_on_where_it_was(stage: Stage) -> None:
    before, steady = stage.copied("held"), stage.copied("steady")
    held = stage.tell("POST", "/pause", {"topic": f"{stage.w}.held", "reason": "schema change"})
    assert (held["kind"], held["reason"]) == ("pause", "schema change")
    wait_until(lambda: {lane["state"] for lane in stage.lanes("held")} == {"paused"}, "it is paused", every=0.1)
    assert {lane["reason"] for lane in stage.lanes("held")} == {"schema change (by 127.0.0.1)"}
    stage.write("held", 30)
    stage.write("steady", 30)
    stage.wait_copied("steady", steady + 30)
    assert stage.copied("held") == before, "nothing is copied of what is paused"
    assert stage.tell("POST", "/resume", {"topic": f"{stage.w}.held"})["resumed"] == [f"{stage.flow}/{stage.w}.held"]
    stage.wait_copied("held", before + 30)
    topics = {f"{stage.w}.{kind}": f"{stage.here}.{stage.w}.{kind}" for kind in ("held", "steady")}
    assert compare_topics(stage.clusters.a.bootstrap, stage.clusters.b.bootstrap, topics).differences == []


def test_who_looks_after_a_change_was_answered_sees_it(stage: Stage) -> None:
    """Not a second later, with the next view."""
    for _ in range(3):
        stage.tell("POST", "/pause", {"topic": f"{stage.w}.held", "reason": "a look"})
        assert [hold["reason"] for hold in stage.rest.flow(stage.flow)["holds"]] == ["a look"]
        assert {lane["state"] for lane in stage.lanes("held")} <= {"draining", "paused"}
        wait_until(lambda: {lane["state"] for lane in stage.lanes("held")} == {"paused"}, "it is paused", every=0.1)
        stage.tell("POST", "/resume", {"topic": f"{stage.w}.held"})
        assert stage.rest.flow(stage.flow)["holds"] == []


def test_a_drain_carries_what_is_there_and_then_stops(stage: Stage) -> None:
    before = stage.copied("drained")
    stage.write("drained", 500)
    stage.tell("POST", "/drain", {"topic": f"{stage.w}.drained", "reason": "cut-over"})
    stage.wait_copied("drained", before + 500)
    wait_until(lambda: {lane["state"] for lane in stage.lanes("drained")} == {"paused"}, "it is drained", every=0.1)
    stage.write("drained", 10)
    time.sleep(1.5)
    assert stage.copied("drained") == before + 500, "what came later waits"
    stage.tell("POST", "/resume", {"topic": f"{stage.w}.drained"})
    stage.wait_copied("drained", before + 510)


def test_topics_are_added_and_taken_out_and_limits_set_while_it_runs(stage: Stage) -> None:
    name = stage.topic("later", 40)
    assert stage.rest.ask("POST", f"/api/v1/flows/{stage.flow}/topics", {"topic": f"{stage.w}.steady"})[0] == 409
    assert stage.tell("POST", "/topics", {"topic": name, "reason": "new team"})["chosen"] is True
    stage.wait_copied("later", 40)
    stage.tell("DELETE", f"/topics/{name}?reason=moved")
    wait_until(lambda: stage.lanes("later") == [], "it is taken out", every=0.1)
    time.sleep(5)  # so long a change may take to be in force
    stage.write("later", 5)
    assert stage.tell("PUT", "/throttle", {"bytes_per_second": 2_000_000, "reason": "night"})["value"] == "2000000"
    wait_until(lambda: stage.rest.flow(stage.flow)["throttle_bytes_per_s"] == 2_000_000, "the limit is shown")
    changes = {change["what"]: change["reason"] for change in stage.rest.flow(stage.flow)["changes"]}
    assert changes[f"{stage.flow}.throttle.bytes.per.second = 2000000"] == "night"
    options = stage.rest.get("/api/v1/settings")["options"]
    limit = next(row for row in options if row["name"] == f"{stage.flow}.throttle.bytes.per.second")
    assert (limit["value"], limit["origin"]) == ("2000000", "REST")
    stage.tell("PUT", "/throttle", {"bytes_per_second": 0})
    assert stage.copied("later") == 40


def test_bad_requests_are_refused_with_the_field_and_change_nothing(stage: Stage) -> None:
    rest, flow = stage.rest, f"/api/v1/flows/{stage.flow}"
    refused = {
        ("POST", f"{flow}/pause", b"{"): (400, "JSON"),
        ("POST", f"{flow}/pause", b'{"topik": "x"}'): (422, "topik: is not known here"),
        ("POST", f"{flow}/pause", b'{"partition": "one"}'): (422, "partition"),
        ("POST", f"{flow}/pause", b'{"topic": "no-such-topic"}'): (404, "does not copy a topic no-such-topic"),
        ("POST", "/api/v1/flows/X->Y/pause", b"{}"): (404, "flows are"),
        ("PUT", f"{flow}/throttle", b'{"bytes_per_second": -1}'): (422, "bytes_per_second"),
        ("PUT", f"{flow}/throttle", b"{}"): (422, "bytes_per_second: is missing"),
        ("POST", f"{flow}/topics", b'{"topic": "a b"}'): (422, "topic"),
        ("GET", f"{flow}/lanes?sort=size", None): (422, "sort"),
        ("GET", f"{flow}/translate?topic=x", None): (422, "expected topic, partition and offset"),
        ("GET", "/api/v1/nothing", None): (404, "not found"),
        ("DELETE", "/api/v1/flows", None): (405, "method not allowed"),
    }
    for (method, path, raw), (status, word_in) in refused.items():
        got, body = rest.ask(method, path, raw=raw)
        assert got == status, (method, path, raw, got, body)
        assert word_in in body["error"]["message"], (path, body)
    elsewhere = rest.ask("POST", f"{flow}/pause", {}, headers={"Origin": "http://evil.example"})
    assert elsewhere[0] == 403
    renamed = rest.ask("POST", f"{flow}/pause", {}, headers={"Host": "evil.example", "Origin": "http://evil.example"})
    assert renamed[0] == 403
    assert rest.ask("POST", f"{flow}/pause", raw=b" " * 2_000_000)[0] == 413
    assert rest.flow(stage.flow)["state"] == "running"


def test_flows_of_the_file_are_connectors_and_stay_as_the_file_has_them(stage: Stage) -> None:
    rest, name = stage.rest, f"MirrorSourceConnector-{stage.here}-{stage.there}"
    assert rest.get("/connectors") == [name], "this file wants neither checkpoints nor heartbeats"
    config = rest.get(f"/connectors/{name}/config")
    assert (config["source.cluster.alias"], f"{stage.w}.steady" in config["topics"]) == (stage.here, True)
    assert (config["source.cluster.bootstrap.servers"], rest.flow(stage.flow)["origin"]) == (
        stage.clusters.a.door(),
        "file",
    )
    for method, path, body in (
        ("PUT", f"/connectors/{name}/config", config),
        ("PATCH", f"/connectors/{name}/config", {"topics": "x"}),
        ("DELETE", f"/connectors/{name}", None),
    ):
        status, answer = rest.ask(method, path, body)
        assert (status, "change it there" in answer["message"]) == (409, True), answer
    other = {**config, "name": "other", "connector.class": "MirrorHeartbeat"}
    status, answer = rest.ask("POST", "/connectors", {"name": "other", "config": other})
    assert (status, f"the file has flow {stage.flow}" in answer["message"]) == (400, True), answer
    masked = {**config, "name": "masked", "target.cluster.alias": "elsewhere", "transforms": "mask"}
    status, answer = rest.ask("POST", "/connectors", {"name": "masked", "config": masked})
    assert (status, "these transforms would change records" in answer["message"]) == (400, True), answer
    assert rest.ask("PUT", f"/connectors/{name}/stop")[0] == 204
    wait_for_flow(rest, stage.flow, "paused")
    assert rest.get(f"/connectors/{name}/status")["connector"]["state"] == "STOPPED"
    offsets = rest.get(f"/connectors/{name}/offsets")["offsets"]
    assert {row["partition"]["cluster"] for row in offsets} == {stage.here}
    assert rest.ask("PUT", f"/connectors/{name}/resume")[0] == 202
    wait_for_flow(rest, stage.flow)


def test_the_shell_steers_and_watches_as_rest_does(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    def shell(*words: str, code: int = 0) -> str:
        assert main([words[0], str(stage.file), *words[1:], "--url", stage.rest.url]) == code
        said = capsys.readouterr()
        return said.err if code else said.out

    flow, held = ("--flow", stage.flow), f"{stage.w}.held"
    assert shell("pause", *flow, "--topic", held, "--dry-run").startswith("would be done, nothing was changed: ")
    assert stage.rest.flow(stage.flow)["holds"] == []
    assert shell("pause", *flow, "--topic", held, "--reason", "by hand") == f"{stage.flow}/{held}: 2 lanes paused\n"
    assert json.loads(shell("resume", *flow, "--json"))["resumed"] == [f"{stage.flow}/{held}"]
    assert shell("resume", *flow) == "nothing was held\n"
    assert shell("throttle", *flow, "--bytes-per-second", "20M", "--dry-run").endswith(f"{stage.flow}: 20.0 MB/s\n")
    absent = f"{stage.w}.absent"
    assert shell("topics", "add", absent, *flow, "--reason", "soon") == (
        f"{stage.flow}: there is no topic {absent} on {stage.here}; it will be copied once it exists\n"
    )
    assert "is copied no more" in shell("topics", "remove", absent, *flow)
    shell("topics", "add", absent, *flow)
    stage.topic("absent", 4)
    name = stage.topic("by-hand", 3)
    assert "is copied from now on" in shell("topics", "add", name, *flow)
    for kind, records in (("by-hand", 3), ("absent", 4)):
        stage.wait_copied(kind, records)
        assert "is copied no more" in shell("topics", "remove", f"{stage.w}.{kind}", *flow)
    wait_until(lambda: stage.lanes("by-hand") == stage.lanes("absent") == [], "they are taken out", every=0.1)
    assert "was read again" in shell("reload", "--reason", "a & b")
    assert "it takes one topic by its name" in shell("topics", "add", "any.*", *flow, code=2)
    view = json.loads(shell("top", "--once", "--json"))
    assert (view["flows"][0]["flow"], len(view["lanes"][stage.flow])) == (stage.flow, 6)
    assert "furthest behind" in shell("top", "--once")
    assert "flows are" in shell("drain", "--flow", "X->Y", code=1)
    assert "--partition needs --topic" in shell("pause", *flow, "--partition", "1", code=2)
    assert main(["pause", str(stage.file), *flow, "--url", "http://127.0.0.1:9"]) == 1
    assert "no run answers at http://127.0.0.1:9" in capsys.readouterr().err


def test_every_change_by_hand_is_an_event_with_who_and_why(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    me, held, url = f"{getpass.getuser()}@{platform.node()}", f"{stage.w}.held", stage.rest.url
    later, connector = stage.topic("evented"), f"MirrorSourceConnector-{stage.here}-{stage.there}"
    path, flow = str(stage.file), ("--flow", stage.flow, "--url", url)
    why = ("--reason", "why not")
    assert main(["pause", path, *flow, "--topic", held, "--partition", "1", *why, "--dry-run"]) == 0
    for _ in range(2):
        assert main(["pause", path, *flow, "--topic", held, "--partition", "1", *why]) == 0
        assert main(["resume", path, *flow]) == 0
    assert main(["resume", path, *flow]) == 0, "nothing is held: nothing is done"
    assert main(["drain", path, *flow, "--topic", held, *why]) == 0
    stage.tell("POST", "/resume", {"topic": held})
    assert main(["throttle", path, *flow, "--bytes-per-second", "20M", *why]) == 0
    stage.tell("PUT", "/throttle", {"bytes_per_second": 0})
    assert main(["topics", path, "add", later, *flow, *why]) == 0
    assert main(["topics", path, "remove", later, *flow]) == 0
    assert main(["reload", path, "--url", url, *why]) == 0
    for method, verb in (("PUT", "stop"), ("PUT", "resume"), ("POST", "restart")):
        assert stage.rest.ask(method, f"/connectors/{connector}/{verb}")[0] in (202, 204)
    wait_for_flow(stage.rest, stage.flow)
    origin = {"Origin": url, "Authorization": ""}
    assert stage.rest.ask("POST", f"/api/v1/flows/{stage.flow}/pause", {"reason": "x"}, headers=origin)[0] == 200
    stage.tell("POST", "/resume", {})
    wanted = [
        (f"{held}-1", f"paused by {me}: why not"),
        (stage.flow, f"resumed by {me}"),
        (f"{held}-1", f"paused by {me}: why not"),
        (stage.flow, f"resumed by {me}"),
        (held, f"drained, to stop where its source ends now by {me}: why not"),
        (held, "resumed by 127.0.0.1"),
        (stage.flow, f"limited to 20,000,000 bytes/s by {me}: why not"),
        (stage.flow, "no longer limited by 127.0.0.1"),
        (later, f"added to the flow by {me}: why not"),
        (later, f"taken out of the flow by {me}"),
        (path, f"the file was read again by {me}: why not"),
        (stage.flow, f"connector {connector} stopped by 127.0.0.1"),
        (stage.flow, f"connector {connector} resumed by 127.0.0.1"),
        (stage.flow, f"connector {connector} restarted by 127.0.0.1"),
        (stage.flow, "paused by 127.0.0.1 (page): x"),
        (stage.flow, "resumed by 127.0.0.1"),
    ]

    def told() -> list[tuple[str, str]]:
        capsys.readouterr()
        assert main(["events", path, "--json"]) == 0
        rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        return [(row["subject"], row["reason"]) for row in rows if row["kind"] == "changed"]

    # Of other tests of this file the same sentence may be the last one that is there by now: only all of them are these.
    with contextlib.suppress(AssertionError):
        wait_until(lambda: told()[-len(wanted) :] == wanted, "every change is in the topic", every=0.2)
    assert told()[-len(wanted) :] == wanted


def test_whoever_creates_changes_and_deletes_a_connector_is_told_in_an_event(stage: Stage) -> None:
    rest, alias, topic = stage.rest, word(), stage.topic("connected", 10)
    source, target = stage.clusters.a.bootstrap, stage.clusters.b.bootstrap
    name, flow = f"made-{alias}", f"{alias}->{alias}t"
    config = mirror_source((alias, source), (f"{alias}t", target), topic)
    del config["offset-syncs.topic.replication.factor"]  # this file wants none
    status, answer = rest.ask("POST", "/connectors", {"name": name, "config": config})
    assert status == 201, answer
    wait_until(lambda: sum(ends(target, f"{alias}.{topic}").values()) == 10, "it copies", every=0.2)
    assert rest.ask("PUT", f"/connectors/{name}/config", {**config, "offset.lag.max": "7"})[0] == 200
    assert rest.ask("PATCH", f"/connectors/{name}/config", {"offset.lag.max": "8"})[0] == 200
    assert rest.ask("DELETE", f"/connectors/{name}")[0] == 204
    by = "by 127.0.0.1"
    again = f"connector {name} given another configuration {by}"
    wanted = [f"connector {name} created {by}", again, again, f"connector {name} deleted {by}"]

    async def read() -> list[str]:
        warm = Warm()
        try:
            cluster = load_file(str(stage.file)).clusters[stage.there]
            found = await EventReader(warm.client(cluster), [flow]).read()
            return [event.reason for event in found if event.kind == EventKind.CHANGED]
        finally:
            warm.close()

    with contextlib.suppress(AssertionError):
        wait_until(lambda: asyncio.run(read()) == wanted, "every change is in the topic", every=0.2)
    assert asyncio.run(read()) == wanted


def test_a_killed_server_comes_back_and_what_was_changed_survives_the_run(stage: Stage) -> None:
    stage.tell("POST", "/pause", {"topic": f"{stage.w}.held", "partition": 1, "reason": "kept"})
    servers = [one for one in psutil.Process(stage.run.pid).children() if "heliograph.rest.server" in command_of(one)]
    steady, opened = stage.copied("steady"), stage.run.output.count("page, REST and metrics")
    os.kill(servers[0].pid, signal.SIGKILL)
    stage.write("steady", 10)
    stage.wait_copied("steady", steady + 10)
    wait_until(lambda: stage.run.output.count("page, REST and metrics") > opened, "the server is back", every=0.1)
    wait_for_flow(stage.rest, stage.flow)
    assert stage.run.terminate() == 0, stage.run.output
    assert psutil.wait_procs(servers, timeout=5)[1] == []
    stage.run = HeliographRun(stage.file).start()
    wait_for_flow(stage.rest, stage.flow)
    wait_until(lambda: len(stage.lanes("held")) == 2, "its lanes are planned")

    def is_kept() -> bool:
        states = {lane["partition"]: (lane["state"], lane["reason"]) for lane in stage.lanes("held")}
        return states[1] == ("paused", "kept (by 127.0.0.1)")

    wait_until(is_kept, "what was paused is paused, for the reason that was given", every=0.1)
    holds = stage.rest.flow(stage.flow)["holds"]
    assert [(hold["subject"], hold["reason"]) for hold in holds] == [(f"{stage.flow}/{stage.w}.held/1", "kept")]
    stage.tell("POST", "/resume", {})
    wait_until(lambda: stage.rest.flow(stage.flow)["holds"] == [], "the next test finds nothing held", every=0.1)
