"""The files of examples/, each begun on three real clusters: records arrive where they should, and the ends stand still.

Lanes are carried by slots in this process: what Spark adds is shown elsewhere, and seventeen flows would take minutes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from heliograph.config.flows import FlowSettings, Settings
from heliograph.config.load import load
from heliograph.control.opening import open_lanes
from heliograph.control.planner import FlowPlanner
from heliograph.embedded.cluster import start_many
from heliograph.operations.compare import compare_topics
from tests.integration.protocol.harness import Opened, carry, with_warm
from tests.support.clusters import TwoClusters
from tests.support.doors import AuthorizedCluster, address_lines
from tests.support.topics import create_topic, ends, topic_names
from tests.support.writers import samples, write

EXAMPLES = Path(__file__).parents[2] / "examples"
RECORDS = 30
ROUNDS = 6


@dataclass(frozen=True)
class Expected:
    """Topics that applications write, by alias, and the copies that must come of them: (source, topic, target, remote)."""

    written: Mapping[str, tuple[str, ...]]
    copies: tuple[tuple[str, str, str, str], ...]


MESH = ("rome", "oslo", "lima")
TOPOLOGIES = {
    "active-standby": Expected(
        {"primary": ("orders", "payments", "scratch")},
        tuple(("primary", topic, "standby", f"primary.{topic}") for topic in ("orders", "payments")),
    ),
    "active-active": Expected(
        {"east": ("carts",), "west": ("carts",)},
        (("east", "carts", "west", "east.carts"), ("west", "carts", "east", "west.carts")),
    ),
    "hub-and-spoke": Expected(
        {"north": ("sales",), "south": ("sales",)},
        tuple((branch, "sales", "centre", f"{branch}.sales") for branch in ("north", "south")),
    ),
    "fan-out": Expected(
        {"main": ("invoices", "products")},
        (
            ("main", "invoices", "reports", "invoices"),
            ("main", "products", "reports", "products"),
            ("main", "products", "search", "products"),
        ),
    ),
    "chain": Expected(
        {"edge": ("readings",), "region": ("readings",)},
        (
            ("edge", "readings", "region", "edge.readings"),
            ("edge", "readings", "core", "region.edge.readings"),
            ("region", "readings", "core", "region.readings"),
        ),
    ),
    "mesh": Expected(
        dict.fromkeys(MESH, ("bookings",)),
        tuple((one, "bookings", other, f"{one}.bookings") for one in MESH for other in MESH if one != other),
    ),
}


@pytest.fixture(scope="module")
def addresses(two_clusters: TwoClusters, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str, str]]:
    third = AuthorizedCluster("C", tmp_path_factory.mktemp("third"))
    try:
        start_many([third])
        yield two_clusters.a.bootstrap, two_clusters.b.bootstrap, third.bootstrap
    finally:
        third.stop()


def test_every_example_has_its_topology() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.properties")} == set(TOPOLOGIES)


def settings_of(name: str, addresses: tuple[str, ...], word: str) -> tuple[Settings, dict[str, str]]:
    """The example as it stands, with our addresses, one broker each, and topics that no other test has."""
    text = (EXAMPLES / f"{name}.properties").read_text()
    found = re.search(r"^clusters = (.*)$", text, re.MULTILINE)
    assert found is not None
    where = dict(zip(found[1].split(", "), addresses, strict=False))
    topics = "|".join(sorted({topic for written in TOPOLOGIES[name].written.values() for topic in written}))
    text = re.sub(r"(?m)^[^#\n]*topics = .*$", lambda line: re.sub(rf"\b({topics})\b", rf"{word}\1", line[0]), text)
    ours = [address_lines(alias, address) for alias, address in where.items()]
    lines = [f"{key} = {value}" for keys in ours for key, value in keys.items()]
    lines += ["replication.factor = 1", "heartbeats.replication.enabled = false"]
    return load("\n".join([text, *lines]), f"{name}.properties"), where


def round_of(settings: Settings) -> int:
    """Every flow is planned, its topics are made, and its lanes carry what is there now; how many records that was."""
    return sum(carried(flow, settings) for flow in settings.flows)


def carried(flow: FlowSettings, settings: Settings) -> int:
    planner = FlowPlanner(flow, settings.engine)
    try:
        plan = planner.apply(planner.discover())
        opened = Opened(plan, with_warm(lambda warm: open_lanes(plan, planner, warm)))
    finally:
        planner.close()
    return carry(opened).records if opened.plan.lanes else 0


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_records_of_every_cluster_arrive_and_no_cycle_grows(
    name: str, addresses: tuple[str, str, str], unique: str
) -> None:
    expected = TOPOLOGIES[name]
    settings, where = settings_of(name, addresses, unique)
    written = {(alias, f"{unique}{topic}") for alias, topics in expected.written.items() for topic in topics}
    for seed, (alias, topic) in enumerate(sorted(written)):
        create_topic(where[alias], topic, partitions=2)
        write(where[alias], topic, samples(RECORDS, partitions=2, seed=seed))
    rounds = [round_of(settings)]
    while rounds[-1]:
        assert len(rounds) < ROUNDS, f"records still move after {rounds}: they go in a circle"
        rounds.append(round_of(settings))
    copies = {(target, _named(remote, unique)) for _, _, target, remote in expected.copies}
    there = {(alias, topic) for alias, at in where.items() for topic in topic_names(at) if unique in topic}
    assert there == written | copies
    for source, topic, target, remote in expected.copies:
        pair = {f"{unique}{topic}": _named(remote, unique)}
        comparison = compare_topics(where[source], where[target], pair)
        assert comparison.differences == []
        assert comparison.records == RECORDS
    before = {(alias, topic): ends(where[alias], topic) for alias, topic in there}
    assert round_of(settings) == 0
    assert {(alias, topic): ends(where[alias], topic) for alias, topic in there} == before


def _named(remote: str, word: str) -> str:
    """The remote name of a topic that begins with our word."""
    hops, dot, topic = remote.rpartition(".")
    return f"{hops}{dot}{word}{topic}"
