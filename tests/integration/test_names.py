"""Names of a flow's own, both ways between two clusters, and every command that goes from a remote name to its source."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from heliograph.client import MirrorClient
from heliograph.operations.compare import compare_topics
from tests.support.clusters import TwoClusters
from tests.support.mirror import command, flow_file, run_to_the_end, status, word
from tests.support.topics import create_topic, ends, topic_names
from tests.support.writers import samples, write

RECORDS = 50


@dataclass(frozen=True)
class World:
    """A and B by their addresses; `w` begins every topic and alias."""

    a: str
    b: str
    w: str
    file: Path
    said: str

    @property
    def flow(self) -> str:
        return f"{self.w}A->{self.w}B"

    def names(self, bootstrap: str) -> set[str]:
        return {name.replace(self.w, "") for name in topic_names(bootstrap) if name.startswith(self.w)}

    def json(self, *arguments: str) -> object:
        said = command(arguments[0], str(self.file), *arguments[1:], "--json")
        assert said.code == 0, said.out + said.err
        return json.loads(said.out)


@pytest.fixture(scope="module")
def world(two_clusters: TwoClusters, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One run to the end. All copies match `topics` of the way back, so nothing but their names keeps them from going."""
    w = word()
    a, b = two_clusters.a.bootstrap, two_clusters.b.bootstrap
    for seed, topic in enumerate(("orders", "eu-clicks", "plain", "clash")):
        create_topic(a, f"{w}{topic}")
        write(a, f"{w}{topic}", samples(RECORDS, seed=seed))
    create_topic(b, f"{w}home")
    write(b, f"{w}home", samples(RECORDS, seed=9))
    there, back = f"{w}A->{w}B", f"{w}B->{w}A"
    more = {
        "topic.rename.format": "${topic}.copy",
        f"{there}.topic.rename.pairs": f"{w}orders -> {w}clash.copy, {w}gone -> {w}away",
        f"{there}.topic.rename.regex": f"{w}(eu|us)-(.+) -> {w}$2.in.$1",
    }
    flows = {there: f"{w}.*", back: f"{w}.*"}
    file = flow_file(tmp_path_factory.mktemp("names") / "names.properties", {f"{w}A": a, f"{w}B": b}, flows, more)
    yield World(a, b, w, file, run_to_the_end(file))


def test_every_topic_is_copied_under_its_name_and_none_comes_back(world: World) -> None:
    w = world.w
    assert world.names(world.b) == {"home", "clash.copy", "clicks.in.eu", "plain.copy"}
    assert world.names(world.a) == {"orders", "eu-clicks", "plain", "clash", "home.copy"}
    pairs = {f"{w}orders": f"{w}clash.copy", f"{w}eu-clicks": f"{w}clicks.in.eu", f"{w}plain": f"{w}plain.copy"}
    comparison = compare_topics(world.a, world.b, pairs)
    assert comparison.differences == []
    assert comparison.records == 3 * RECORDS
    home = compare_topics(world.b, world.a, {f"{w}home": f"{w}home.copy"})
    assert (home.differences, home.records) == ([], RECORDS)


def test_a_topic_whose_remote_name_is_taken_is_left_out_with_the_reason_and_the_others_go_on(world: World) -> None:
    w = world.w
    reason = f"its remote name '{w}clash.copy' is that of '{w}orders' (topic.rename.*)"
    assert f"leave out {w}clash: {reason}" in world.said
    # Every run tells it once, and another test of this file runs it again.
    event, *_ = [event for event in status(world.file)[world.flow]["events"] if event["subject"] == f"{w}clash"]
    assert (event["kind"], event["reason"]) == ("parked", f"the topic is not copied: {reason}")


def test_status_audit_translate_and_the_client_know_both_names(world: World) -> None:
    w, flow = world.w, world.flow
    shown = {lane["topic"]: lane for lane in status(world.file)[flow]["lanes"]}
    assert shown[f"{w}eu-clicks"]["remote_topic"] == f"{w}clicks.in.eu"
    assert {lane["lag"] for lane in shown.values()} == {0}
    audited = command("audit", str(world.file))
    assert audited.code == 0, audited.out
    assert f"{flow} {w}orders-0: {RECORDS} offsets from 0 = {RECORDS} copied" in audited.out
    arguments = ("--flow", flow, "--partition", "0", "--offset", "7")
    for topic in (f"{w}orders", f"{w}clash.copy"):
        said = command("translate", str(world.file), *arguments, "--topic", topic, "--reverse")
        assert said.code == 0, said.err
        assert f"{w}orders" in said.out
    client = MirrorClient(str(world.file), f"{w}B")
    copies = {name for name in client.remote_topics(f"{w}A") if name.startswith(w)}
    assert copies >= {f"{w}clash.copy", f"{w}clicks.in.eu", f"{w}plain.copy"}
    assert f"{w}home" not in copies
    assert client.translate(f"{w}A", f"{w}clicks.in.eu", 0, 5, reverse=True).position == 5


def test_nothing_is_pending_and_a_hand_back_and_a_second_run_find_everything_copied(world: World) -> None:
    pending = command("plan", str(world.file))
    assert pending.code == 0, pending.out + pending.err
    assert "create" not in pending.out
    handed = command("hand-back", str(world.file), "--flow", world.flow, "--dry-run")
    assert handed.code == 0, handed.out + handed.err
    assert f"{world.w}eu-clicks" in handed.out
    before = ends(world.b, f"{world.w}plain.copy")
    assert "copied 0 records" in run_to_the_end(world.file)
    assert ends(world.b, f"{world.w}plain.copy") == before
