"""A connector's fields as Connect lists them: every one with type, default and meaning, every fault at its field."""

from __future__ import annotations

import pytest

from heliograph.config.connector_definitions import definitions, validation
from heliograph.config.connectors import HIDDEN, ConnectorKind

GOOD = {
    "name": "x",
    "connector.class": "MirrorSource",
    "source.cluster.alias": "A",
    "source.cluster.bootstrap.servers": "a:1",
    "target.cluster.bootstrap.servers": "b:1",
}


@pytest.mark.parametrize(
    ("kind", "mine", "not_mine"),
    [
        (ConnectorKind.SOURCE, "offset.lag.max", "groups"),
        (ConnectorKind.CHECKPOINT, "groups", "emit.heartbeats.enabled"),
        (ConnectorKind.HEARTBEAT, "emit.heartbeats.enabled", "offset.lag.max"),
    ],
)
def test_a_kind_lists_its_own_fields_and_those_of_all(kind: ConnectorKind, mine: str, not_mine: str) -> None:
    names = [definition["name"] for definition in definitions(kind)]
    assert {mine, "name", "connector.class", "tasks.max", "replication.policy.separator", "sasl.jaas.config"} <= set(
        names
    )
    assert not_mine not in names
    assert len(names) == len(set(names))


def test_types_are_connects() -> None:
    types = {definition["name"]: definition["type"] for definition in definitions(ConnectorKind.SOURCE)}
    expected = {
        "topics": "LIST",
        "enabled": "BOOLEAN",
        "offset.lag.max": "LONG",
        "replication.policy.class": "CLASS",
        "ssl.key.password": "PASSWORD",
        "sasl.login.refresh.window.factor": "DOUBLE",
        "offset-syncs.topic.location": "STRING",
        "topic.creation.groups": "LIST",
    }
    assert {name: types[name] for name in expected} == expected


def test_a_good_configuration_has_no_error_and_shows_values_and_defaults() -> None:
    answer = validation(ConnectorKind.SOURCE, GOOD)
    values = {field["value"]["name"]: field["value"]["value"] for field in answer["configs"]}
    assert (answer["name"], answer["error_count"]) == ("org.apache.kafka.connect.mirror.MirrorSourceConnector", 0)
    assert (values["source.cluster.alias"], values["target.cluster.alias"], values["topics"]) == ("A", "target", ".*")
    assert {field["definition"]["group"] for field in answer["configs"]} == set(answer["groups"])


def test_faults_stand_at_their_fields_also_where_connect_has_none() -> None:
    config = {**GOOD, "offset.lag.max": "x", "topics.exclud": "y", "source.cluster.ssl.key.password": "${env:P}"}
    del config["name"]
    answer = validation(ConnectorKind.SOURCE, config)
    errors = {
        field["value"]["name"]: field["value"]["errors"] for field in answer["configs"] if field["value"]["errors"]
    }
    assert answer["error_count"] == 3
    assert errors.keys() == {"name", "offset.lag.max", "topics.exclud"}
    values = {field["value"]["name"]: field["value"]["value"] for field in answer["configs"]}
    assert values["source.cluster.ssl.key.password"] == HIDDEN


def test_an_unknown_field_is_a_fault_only_if_the_file_says_so() -> None:
    config = {**GOOD, "gate.colour": "red"}
    assert validation(ConnectorKind.SOURCE, config)["error_count"] == 0
    assert validation(ConnectorKind.SOURCE, config, unknown_is_fault=True)["error_count"] == 1
