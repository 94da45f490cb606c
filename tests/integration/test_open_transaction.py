"""A source with an open transaction: the lane waits, says for which producer since when, and goes on after the commit."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

from heliograph.kafka.client import ClusterClient
from heliograph.model.clusters import Cluster
from heliograph.operations.compare import compare_topics
from tests.support.clusters import TwoClusters
from tests.support.heliograph_run import HeliographRun
from tests.support.mirror import flow_file, lanes_of, status, word
from tests.support.topics import create_topic, ends, stable_ends
from tests.support.waiting import wait_until
from tests.support.writers import OpenTransaction, samples, write


def test_the_lane_names_the_producer_that_holds_it_back_and_goes_on_after_the_commit(
    two_clusters: TwoClusters, tmp_path: Path
) -> None:
    here, there = two_clusters.a.bootstrap, two_clusters.b.bootstrap
    topic, source, target = word(), word(), word()
    flow, remote = f"{source}->{target}", f"{source}.{topic}"
    create_topic(here, topic)
    write(here, topic, samples(100))
    hanging = OpenTransaction(here, topic, f"{topic}-open", count=10)
    write(here, topic, samples(50, seed=7))
    properties = flow_file(tmp_path / "integ.properties", {source: here, target: there}, {flow: topic})

    def lane() -> dict[str, Any]:
        found = lanes_of(status(properties)[flow], topic)
        return found[0] if found else {"reason": "", "state": ""}

    with HeliographRun(properties) as run:
        wait_until(lambda: sum(ends(there, remote).values()) == 100, "what lies before it is copied", every=0.2)
        assert stable_ends(here, topic) == {0: 100}
        seen: dict[str, Any] = {}

        def says_who() -> bool:
            seen.update(lane())
            return "producer" in seen["reason"] and seen["state"] == "following"  # not while it is handed over

        wait_until(says_who, "the lane follows and says who holds it back", every=0.5)
        reason = re.search(r"held back by producer (\d+) since (\S+).*open at offset (\d+)", seen["reason"])
        assert reason is not None, seen["reason"]
        assert open_producers(here, topic) == {int(reason[1])}
        assert int(reason[3]) == 100
        assert ends(there, remote) == {0: 100}
        hanging.commit()
        wait_until(lambda: ends(there, remote) == {0: 160}, "the rest is copied after the commit")
        wait_until(lambda: lane()["reason"] == "", "nothing holds the lane back", every=0.5)
        comparison = compare_topics(here, there, {topic: remote})
        assert (comparison.differences, comparison.records) == ([], 160)
        assert run.terminate() == 0, run.output


def test_until_caught_up_ends_at_the_last_stable_offset(two_clusters: TwoClusters, tmp_path: Path) -> None:
    here, there = two_clusters.a.bootstrap, two_clusters.b.bootstrap
    topic, source, target = word(), word(), word()
    create_topic(here, topic)
    write(here, topic, samples(100))
    hanging = OpenTransaction(here, topic, f"{topic}-open", count=10)
    try:
        properties = flow_file(
            tmp_path / "integ.properties", {source: here, target: there}, {f"{source}->{target}": topic}
        )
        with HeliographRun(properties, "--until-caught-up") as run:
            assert run.wait() == 0, run.output
        assert ends(there, f"{source}.{topic}") == {0: 100}
    finally:
        hanging.abort()


def open_producers(bootstrap: str, topic: str) -> set[int]:
    """Ids of the producers with an open transaction in partition 0, as the broker itself knows them."""

    async def ask() -> set[int]:
        client = ClusterClient(Cluster("here", (bootstrap,)))
        try:
            node = (await client.metadata([topic]))[topic].leaders[0].node
            found = (await client.producers(node, [(topic, 0)]))[(topic, 0)]
            assert not isinstance(found, int), f"DescribeProducers answered {found}"
            return {producer for producer, state in found.items() if state.transaction_start >= 0}
        finally:
            client.close()

    return asyncio.run(ask())
