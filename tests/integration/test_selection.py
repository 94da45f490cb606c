"""Which topics go where, under which names, for many flows in one file: four clusters, one run, and what is refused.

A->B and B->A both ways, A, B and C into D, the chain A->B->C->D, A to several, Identity and another separator; one process
carries all of it while these tests look.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from heliograph.embedded.cluster import start_many
from heliograph.operations.compare import compare_topics
from tests.support.clusters import TwoClusters
from tests.support.doors import AuthorizedCluster
from tests.support.heliograph_run import HeliographRun
from tests.support.mirror import command, flow_file, status, word
from tests.support.topics import create_topic, ends, topic_names
from tests.support.waiting import wait_until
from tests.support.writers import samples, write

IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
REFRESH_SECONDS = 2
RECORDS = 200


@dataclass(frozen=True)
class World:
    """Addresses by letter; `w` begins every topic, `alias` gives a letter's alias in the file."""

    addresses: dict[str, str]
    w: str
    run: HeliographRun
    properties: Path

    def alias(self, letter: str) -> str:
        return f"{self.w}{letter}"

    def remote(self, letter: str, kind: str) -> str:
        return f"{self.alias(letter)}.{self.w}-{kind}"

    def names(self, letter: str) -> set[str]:
        return {name for name in topic_names(self.addresses[letter]) if self.w in name}

    def assert_copied(self, source: str, topic: str, target: str, remote: str) -> None:
        """The remote topic gets everything, and the same."""
        here, there = self.addresses[source], self.addresses[target]
        wanted = sum(ends(here, topic).values())
        assert wanted > 0

        def arrived() -> bool:
            assert self.run.exit_status is None, self.run.output
            return sum(ends(there, remote).values()) >= wanted

        wait_until(arrived, f"{topic} of {source} is on {target} as {remote}", every=0.2)
        comparison = compare_topics(here, there, {topic: remote})
        assert comparison.differences == []
        assert comparison.records == wanted


@pytest.fixture(scope="module")
def addresses(two_clusters: TwoClusters, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    directory = tmp_path_factory.mktemp("more-clusters")
    more = [AuthorizedCluster("C", directory), AuthorizedCluster("D", directory)]
    try:
        start_many(more)
        yield dict(zip("ABCD", (cluster.bootstrap for cluster in (two_clusters.a, two_clusters.b, *more)), strict=True))
    finally:
        for cluster in more:
            cluster.stop()


SOURCE_TOPICS = {
    "A": ["both", "chain", "three", "fan", "list-one", "list-two", "list-three", "re-1", "re-22", "re-no"],
    "B": ["both", "three", "my-three"],
    "C": ["three", "ident", "skip-me"],
    "D": ["sep"],
}


@pytest.fixture(scope="module")
def world(addresses: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    w = word()
    seed = 0
    for letter, kinds in SOURCE_TOPICS.items():
        for kind in kinds:
            seed += 1
            create_topic(addresses[letter], f"{w}-{kind}", partitions=2)
            write(addresses[letter], f"{w}-{kind}", samples(RECORDS, partitions=2, seed=seed), "lz4")
    for internal in (f"__{w}-hidden", f".{w}-hidden", f"mm2-{w}.internal", f"{w}.checkpoints.internal"):
        create_topic(addresses["C"], internal)
        write(addresses["C"], internal, samples(10))

    def flow(source: str, target: str) -> str:
        return f"{w}{source}->{w}{target}"

    flows = {
        flow("A", "B"): rf"{w}-chain, {w}-list-one, {w}-list-two, {w}-re-\\d+, {w}-fan, .*both",
        flow("B", "A"): ".*both",
        flow("B", "C"): rf"{w}A\\.{w}-chain",
        flow("A", "D"): f"{w}-three, {w}-fan",
        flow("B", "D"): f"{w}-(my-)?three",
        flow("C", "D"): ".*",
        flow("C", "A"): f"{w}-ident",
        flow("D", "B"): f"{w}-sep",
    }
    more = {
        "refresh.topics.interval.seconds": str(REFRESH_SECONDS),
        f"{flow('A', 'B')}.topics.exclude": f"{w}-re-1",
        f"{flow('C', 'D')}.topics.exclude": ".*-skip-me",
        f"{flow('C', 'A')}.replication.policy.class": IDENTITY,
        f"{flow('D', 'B')}.replication.policy.separator": "_",
    }
    path = tmp_path_factory.mktemp("selection") / "world.properties"
    properties = flow_file(path, {f"{w}{letter}": address for letter, address in addresses.items()}, flows, more)
    with HeliographRun(properties) as run:
        yield World(addresses, w, run, properties)
        assert run.terminate() == 0, run.output


def test_topics_of_a_list_are_copied_and_others_are_not(world: World) -> None:
    for kind in ("list-one", "list-two"):
        world.assert_copied("A", f"{world.w}-{kind}", "B", world.remote("A", kind))
    assert world.remote("A", "list-three") not in world.names("B")


def test_a_regex_matches_the_whole_name_and_exclude_wins(world: World) -> None:
    world.assert_copied("A", f"{world.w}-re-22", "B", world.remote("A", "re-22"))
    assert not {world.remote("A", "re-1"), world.remote("A", "re-no")} & world.names("B")


def test_both_directions_are_copied_and_never_come_back(world: World) -> None:
    world.assert_copied("A", f"{world.w}-both", "B", world.remote("A", "both"))
    world.assert_copied("B", f"{world.w}-both", "A", world.remote("B", "both"))
    # Twice the refresh interval: a topic that went round would have been found by now.
    time.sleep(2 * REFRESH_SECONDS + 1)
    a, b = world.alias("A"), world.alias("B")
    circles = [name for letter in "AB" for name in world.names(letter) if f"{a}.{b}." in name or f"{b}.{a}." in name]
    assert circles == []


def test_three_clusters_flow_into_one(world: World) -> None:
    for letter in "ABC":
        world.assert_copied(letter, f"{world.w}-three", "D", world.remote(letter, "three"))


def test_a_chain_goes_through_all_clusters_with_all_aliases_in_the_name(world: World) -> None:
    first = world.remote("A", "chain")
    second = f"{world.alias('B')}.{first}"
    third = f"{world.alias('C')}.{second}"
    world.assert_copied("A", f"{world.w}-chain", "B", first)
    world.assert_copied("A", f"{world.w}-chain", "C", second)
    world.assert_copied("A", f"{world.w}-chain", "D", third)


def test_one_topic_goes_to_two_targets(world: World) -> None:
    for target in "BD":
        world.assert_copied("A", f"{world.w}-fan", target, world.remote("A", "fan"))


def test_all_topics_means_no_internal_and_no_excluded_ones(world: World) -> None:
    world.assert_copied("C", f"{world.w}-three", "D", world.remote("C", "three"))
    # Other tests of this module make topics of their own on these clusters; they may come along.
    mine = (world.w, world.alias("A"), world.alias("B"), "__", "mm2-", ".checkpoints.")
    found = {name for name in world.names("D") if name.startswith(f"{world.alias('C')}.")}
    from_c = {name for name in found if any(word in name.partition(".")[2] for word in mine)}
    second = f"{world.alias('B')}.{world.remote('A', 'chain')}"
    assert from_c <= {world.remote("C", "three"), world.remote("C", "ident"), f"{world.alias('C')}.{second}"}
    assert not [
        name for name in topic_names(world.addresses["D"]) if "heliograph" in name and not name.startswith("__")
    ]


def test_the_identity_policy_keeps_the_name(world: World) -> None:
    world.assert_copied("C", f"{world.w}-ident", "A", f"{world.w}-ident")


def test_another_separator_stands_in_the_name(world: World) -> None:
    world.assert_copied("D", f"{world.w}-sep", "B", f"{world.alias('D')}_{world.w}-sep")


def test_status_shows_every_flow_and_the_right_remote_topic_of_every_lane(world: World) -> None:
    """Also where one topic's name ends with another's."""
    for kind in ("three", "my-three"):
        world.assert_copied("B", f"{world.w}-{kind}", "D", world.remote("B", kind))
    assert len(status(world.properties)) == 8
    wait_until(
        lambda: all(flow["running"] and flow["process"] == world.run.pid for flow in status(world.properties).values()),
        "every flow is carried by this run",
        every=0.3,
    )
    flows = status(world.properties)
    found = {
        (lane["topic"], lane["remote_topic"]) for lane in flows[f"{world.alias('B')}->{world.alias('D')}"]["lanes"]
    }
    assert found == {(f"{world.w}-{kind}", world.remote("B", kind)) for kind in ("three", "my-three")}


def test_one_cluster_on_both_ends_is_refused(addresses: dict[str, str], tmp_path: Path) -> None:
    properties = flow_file(tmp_path / "f", {"X": addresses["A"], "Y": addresses["A"]}, {"X->Y": "some"})
    said = command("run", str(properties))
    assert said.code == 2
    assert "flow X->Y: X and Y are the same cluster (cluster id " in said.err


def test_two_flows_into_one_remote_topic_are_refused(addresses: dict[str, str], tmp_path: Path) -> None:
    w = word()
    for letter in "AC":
        create_topic(addresses[letter], f"{w}-1")
    properties = flow_file(
        tmp_path / "f",
        {letter: addresses[letter] for letter in "ACD"},
        {"A->D": rf"{w}-\\d", "C->D": rf"{w}-[0-9]"},
        {"replication.policy.class": IDENTITY},
    )
    said = command("run", str(properties))
    assert said.code == 2
    assert f"would write the same remote topic '{w}-1' on cluster 'D'" in said.err
    assert f"{w}-1" not in topic_names(addresses["D"])


def test_two_aliases_of_one_target_do_not_hide_that_two_flows_write_one_topic(
    addresses: dict[str, str], tmp_path: Path
) -> None:
    w = word()
    create_topic(addresses["A"], w)
    clusters = {"A": addresses["A"], "D": addresses["D"], "E": addresses["D"]}
    properties = flow_file(tmp_path / "f", clusters, {"A->D": w, "A->E": w})
    said = command("run", str(properties))
    assert said.code == 2
    assert f"would write the same remote topic 'A.{w}'" in said.err


def test_clusters_chooses_flows_by_target(addresses: dict[str, str], tmp_path: Path) -> None:
    w = word()
    for letter in "AB":
        create_topic(addresses[letter], w)
    clusters = {letter: addresses[letter] for letter in "AB"}
    properties = flow_file(tmp_path / "f", clusters, {"A->B": w, "B->A": w})
    chosen = command("run", str(properties), "--clusters", "B", "--dry-run")
    assert chosen.code == 0, chosen.err
    assert "flow A->B: 1 topic" in chosen.out
    assert "flow B->A" not in chosen.out
    unknown = command("run", str(properties), "--clusters", "Z", "--dry-run")
    assert unknown.code == 2
    assert "--clusters Z: no such alias; the file has A, B" in unknown.err


def test_a_dry_run_says_what_it_would_do_and_changes_nothing(world: World, tmp_path: Path) -> None:
    w, addresses = word(), world.addresses
    world.assert_copied("C", f"{world.w}-three", "D", world.remote("C", "three"))  # it has made its own topics there
    create_topic(addresses["A"], w, partitions=3)
    write(addresses["A"], w, samples(42, partitions=3))
    properties = flow_file(tmp_path / "f", {letter: addresses[letter] for letter in "AD"}, {"A->D": w}, {"slots": "2"})
    before = topic_names(addresses["D"])
    said = command("run", str(properties), "--dry-run")
    assert said.code == 0, said.err
    assert "flow A->D: 1 topic, 3 partitions, 42 records" in said.out
    assert f"create A.{w}: 3 partitions" in said.out
    assert "master local[4,4], 2 slots" in said.out
    made = topic_names(addresses["D"]) - before  # the run of the other tests may go on making remote topics of its own
    assert not [name for name in made if not name.startswith(world.w)]


def test_a_name_that_would_be_too_long_on_the_target_is_left_out_and_said(
    addresses: dict[str, str], tmp_path: Path
) -> None:
    long = word().ljust(249, "y")
    create_topic(addresses["A"], long)
    properties = flow_file(tmp_path / "f", {letter: addresses[letter] for letter in "AD"}, {"A->D": long})
    said = command("run", str(properties), "--dry-run")
    assert said.code == 0, said.err
    assert f"leave out {long}: the remote name has 251 characters, Kafka allows 249" in said.out


def test_a_bad_file_is_refused_with_all_its_faults_and_nothing_is_touched(
    world: World, addresses: dict[str, str], tmp_path: Path
) -> None:
    w = word()
    world.assert_copied("C", f"{world.w}-three", "D", world.remote("C", "three"))  # it has made its own topics there
    create_topic(addresses["A"], w)
    more = {"epoch.seconds": "soon", "A->D.replication.factor": "many", "A->D.topics.exlude": "x", "slots": "-3"}
    properties = flow_file(tmp_path / "f", {letter: addresses[letter] for letter in "AD"}, {"A->D": w}, more)
    before = topic_names(addresses["D"])
    said = command("run", str(properties))
    assert said.code == 2
    lines = {name.split(" ")[0]: number for number, name in enumerate(properties.read_text().splitlines(), start=1)}
    for name in more:
        assert any(f"{properties}:{lines[name]}: " in line and name in line for line in said.err.splitlines()), said.err
    made = topic_names(addresses["D"]) - before  # the run of the other tests may go on making remote topics of its own
    assert not [name for name in made if not name.startswith(world.w)]


def test_too_large_a_replication_factor_names_the_option_and_the_brokers(
    addresses: dict[str, str], tmp_path: Path
) -> None:
    w = word()
    create_topic(addresses["A"], w)
    properties = flow_file(
        tmp_path / "f", {letter: addresses[letter] for letter in "AD"}, {"A->D": w}, {"replication.factor": "3"}
    )
    said = command("run", str(properties), "--until-caught-up")
    assert said.code in (1, 2)
    assert "replication.factor" in said.err
    assert "1 broker" in said.err
