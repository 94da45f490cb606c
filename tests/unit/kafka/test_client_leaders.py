"""Which broker is asked who leads, and which answer counts."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from heliograph.errors import ConnectionLost
from heliograph.kafka.client import ClusterClient
from heliograph.kafka.connections import Connection
from heliograph.kafka.leaders import Leader, TopicView, Views
from heliograph.model.clusters import Cluster

ID = "11111111-1111-1111-1111-111111111111"
BROKERS = {1: ("one", 9092), 2: ("two", 9092), 3: ("three", 9092)}


class Kept:
    """Of a connection, what choosing one needs."""

    closed = False

    def __init__(self, name: str) -> None:
        self.name = name

    def is_idle(self, _: float) -> bool:
        return False


class Client(ClusterClient):
    """Three brokers with a kept connection to each; a broker without an answer is silent."""

    def __init__(self, answers: dict[str, Leader]) -> None:
        super().__init__(Cluster("A", ("one:9092",), request_timeout_ms=7_000))
        self.answers = answers
        self.asked: list[str] = []
        self.limits: list[float | None] = []
        self._brokers = dict(BROKERS)
        for node, (host, port) in BROKERS.items():
            self._connections[(node, "ask")] = cast(Connection, Kept(f"{host}:{port}"))

    async def _ask_metadata(self, connection: Connection, names: list[str], timeout_s: float | None) -> Views:
        host = connection.name.partition(":")[0]
        self.asked.append(host)
        self.limits.append(timeout_s)
        if host not in self.answers:
            raise ConnectionLost(f"{host}: no answer")
        return {name: TopicView(ID, {0: self.answers[host]}) for name in names}

    def leader(self) -> Leader:
        return asyncio.run(self.metadata(["orders"]))["orders"].leaders[0]


def test_what_a_broker_may_be_silent_for_is_the_clusters_option() -> None:
    assert Client({}).timeout_s == 7.0


def test_the_same_broker_is_asked_until_it_is_doubted_and_then_another() -> None:
    client = Client(dict.fromkeys(("one", "two", "three"), Leader(1, 4)))
    for _ in range(2):
        assert client.leader() == Leader(1, 4)
    for _ in range(3):
        client.doubt()
        client.leader()
    assert client.asked == ["one", "one", "two", "three", "one"]


def test_a_broker_that_lost_its_controller_is_outvoted_by_a_higher_epoch() -> None:
    client = Client({"one": Leader(1, 4), "two": Leader(2, 5), "three": Leader(2, 5)})
    assert client.leader() == Leader(1, 4)
    client.doubt()
    assert client.leader() == Leader(2, 5)
    client.doubt()
    client.doubt()
    assert client.leader() == Leader(2, 5)


def test_the_leader_that_a_refusal_names_counts_although_no_broker_knows_it_yet() -> None:
    client = Client(dict.fromkeys(("one", "two", "three"), Leader(1, 4)))
    client.leader()
    client.doubt((ID, 0), 3, 5)
    assert client.leader() == Leader(3, 5)
    assert client.asked == ["one", "two", "three", "one"], "the others were asked too"
    client.doubt((ID, 0), -1, -1)
    assert client.leader() == Leader(3, 5)


def test_a_silent_broker_is_given_up_for_another_and_the_last_has_all_the_time() -> None:
    client = Client({"three": Leader(3, 1)})
    assert client.leader() == Leader(3, 1)
    assert client.asked == ["one", "two", "three"]
    assert client.limits == [5.0, 5.0, None]


def test_where_no_broker_answers_the_question_is_lost() -> None:
    client = Client({})
    with pytest.raises(ConnectionLost, match="no answer"):
        client.leader()


def test_a_second_opinion_that_does_not_come_is_done_without() -> None:
    client = Client({"one": Leader(1, 4)})
    client.doubt((ID, 0), 3, 5)
    assert client.leader() == Leader(3, 5)
