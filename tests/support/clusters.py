"""Fixtures with real brokers; tests/conftest.py offers them to every test."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from heliograph.embedded.cluster import EmbeddedCluster, start_many
from heliograph.embedded.jars import ensure_kafka_jars
from tests.support.doors import AuthorizedCluster

ClusterFactory = Callable[..., EmbeddedCluster]


@dataclass(frozen=True)
class TwoClusters:
    """A and B, one broker each, with the authorizer on, shared by the whole session: use names of your own."""

    a: AuthorizedCluster
    b: AuthorizedCluster


@pytest.fixture(scope="session")
def kafka_jars() -> Path:
    """Kafka's jars, fetched once per machine."""
    return ensure_kafka_jars()


@pytest.fixture(scope="session")
def two_clusters(kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoClusters]:
    """Clusters A and B, started once, at the same time."""
    del kafka_jars  # wanted for its effect: brokers start from the jars
    directory = tmp_path_factory.mktemp("clusters")
    pair = TwoClusters(AuthorizedCluster("A", directory), AuthorizedCluster("B", directory))
    try:
        start_many([pair.a, pair.b])
        yield pair
    finally:
        pair.a.stop()
        pair.b.stop()


@pytest.fixture
def unique() -> str:
    """A word that no other test uses, for topics, aliases and transactional ids. Not `random`: it is seeded per test."""
    return f"t{uuid.uuid4().hex[:10]}"


@pytest.fixture
def new_cluster(kafka_jars: Path, tmp_path: Path) -> Iterator[ClusterFactory]:
    """Makes further clusters, started and for this test alone: `new_cluster("C", brokers=3, config={...})`.

    With `kind=RelayedCluster` Heliograph reaches it over lines that can be slow, cut or silent (tests/support/relay.py).
    """
    del kafka_jars
    made: list[EmbeddedCluster] = []

    def make(
        name: str,
        brokers: int = 1,
        config: Mapping[str, str] | None = None,
        kind: type[AuthorizedCluster] = AuthorizedCluster,
    ) -> EmbeddedCluster:
        cluster = kind(name, tmp_path / f"cluster-{len(made)}", brokers, config)
        made.append(cluster)
        return cluster.start()

    try:
        yield make
    finally:
        for cluster in made:
            cluster.stop()
