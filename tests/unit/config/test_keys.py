from __future__ import annotations

import pytest

from heliograph.config.keys import Place, locate, meant, split_flow, stranger

ALIASES = ("A", "B", "A.b", "topics")


@pytest.mark.parametrize(
    ("name", "place", "owner", "rest"),
    [
        ("topics", Place.TOP, "", "topics"),
        ("topics.exclude", Place.TOP, "", "topics.exclude"),
        ("topics.bootstrap.servers", Place.CLUSTER, "topics", "bootstrap.servers"),
        ("A.bootstrap.servers", Place.CLUSTER, "A", "bootstrap.servers"),
        ("A.b.bootstrap.servers", Place.CLUSTER, "A.b", "bootstrap.servers"),
        ("A->B.topics", Place.FLOW, "A->B", "topics"),
        ("B->A.b.topics", Place.FLOW, "B->A.b", "topics"),
        ("A.b->B.topics", Place.FLOW, "A.b->B", "topics"),
        ("X->B.topics", Place.TOP, "", "X->B.topics"),
        ("C.topics", Place.TOP, "", "C.topics"),
    ],
)
def test_a_name_belongs_to_the_longest_alias_or_flow(name: str, place: Place, owner: str, rest: str) -> None:
    key = locate(name, ALIASES)
    assert (key.place, key.owner, key.rest) == (place, owner, rest)


@pytest.mark.parametrize(
    ("name", "effective"),
    [
        ("replication.factor", True),
        ("A->B.replication.factor", True),
        ("A.replication.factor", False),
        ("A->B.use.defaults.from", True),
        ("use.defaults.from", False),
        ("A.consumer.isolation.level", True),
        ("A->B.consumer.isolation.level", True),
        ("A->B.source.consumer.isolation.level", True),
        ("A.source.consumer.isolation.level", False),
        ("consumer.isolation.level", False),
        ("ssl.key.password", True),
        ("A.ssl.key.password", True),
        ("A.producer.ssl.key.password", True),
        ("A->B.ssl.key.password", False),
        ("A->B.consumer.ssl.key.password", True),
        ("epoch.seconds", True),
        ("A.epoch.seconds", False),
        ("spark.x", True),
        ("A.spark.x", False),
        ("no.such.option", False),
    ],
)
def test_an_option_is_read_only_where_mirrormaker_2_reads_it(name: str, effective: bool) -> None:
    assert locate(name, ("A", "B")).takes_effect is effective


@pytest.mark.parametrize(
    ("name", "pair"),
    [
        ("X->B.topics", ("X", "B")),
        ("X->B.c.consumer.isolation.level", ("X", "B.c")),
        ("X->B.no.such", ("X", "B")),
        ("X->B", ("X", "B")),
        ("topics", None),
    ],
)
def test_an_unknown_flow_is_taken_apart(name: str, pair: tuple[str, str] | None) -> None:
    assert split_flow(name) == pair


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("topic", "topics"),
        ("topics.excludes", "topics.exclude"),
        ("replication.factors", "replication.factor"),
        ("bootstrap.server", "bootstrap.servers"),
        ("boostrap.servers", "bootstrap.servers"),
        ("enable", "enabled"),
        ("sync.topics.configs.enabled", "sync.topic.configs.enabled"),
        ("consumer.isolaton.level", "consumer.isolation.level"),
        ("producer.compresion.type", "producer.compression.type"),
        ("source.consumer.isolation.leve", "source.consumer.isolation.level"),
        ("epoch.second", "epoch.seconds"),
        ("ssl.truststore.locations", "ssl.truststore.location"),
    ],
)
def test_a_near_miss_names_the_right_option(name: str, known: str) -> None:
    assert meant(name) == known


@pytest.mark.parametrize(
    "name",
    [
        "topics",
        "consumer.max.poll.records",
        "source.cluster.client.id",
        "producer.retries",
        "transforms.topic",
        "spark.app.name",
        "my.own.setting",
        "gate",
        "C.bootstrap.servers",
    ],
)
def test_known_and_unlike_names_are_no_near_miss(name: str) -> None:
    assert meant(name) is None


def test_what_stands_in_front_of_an_option_is_a_stranger() -> None:
    assert stranger("C.bootstrap.servers") == "C"
    assert stranger("C.D.consumer.isolation.level") == "C.D"
    assert stranger("my.own.name") == ""
