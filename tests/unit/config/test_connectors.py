"""One connector's configuration: read as Connect reads it, every fault with its field, secrets never shown."""

from __future__ import annotations

import pytest

from heliograph.config.connectors import (
    HIDDEN,
    ConnectorKind,
    FaultyConnector,
    as_texts,
    faults_of,
    hidden,
    kind_of,
    read_connector,
    restored,
)

SOURCE = {
    "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
    "source.cluster.alias": "A",
    "source.cluster.bootstrap.servers": "a:1",
    "target.cluster.alias": "B",
    "target.cluster.bootstrap.servers": "b:1",
    "topics": "orders",
}
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


def faults(unknown_is_fault: bool = False, /, **changed: str) -> dict[str, str]:
    config = {**SOURCE, "name": "x", **{name.replace("__", "-").replace("_", "."): v for name, v in changed.items()}}
    found = faults_of(ConnectorKind.SOURCE, config, unknown_is_fault)
    return {fault.field: fault.sentence for fault in found}


def test_a_good_one_has_its_flow_and_all_its_keys() -> None:
    connector = read_connector("orders", SOURCE)
    assert (connector.name, connector.kind, connector.flow.name) == ("orders", ConnectorKind.SOURCE, "A->B")
    assert connector.config == {**SOURCE, "name": "orders"}


def test_the_targets_alias_has_connects_default() -> None:
    without = {name: value for name, value in SOURCE.items() if name != "target.cluster.alias"}
    assert read_connector("orders", without).flow.name == "A->target"


def test_transforms_and_converters_that_would_change_records_are_refused() -> None:
    assert faults(transforms="mask", transforms_mask_type="x") == {
        "transforms": "Invalid value mask for configuration transforms: these transforms would change records, and Heliograph "
        "copies them byte for byte: leave it out, or set transforms.ignore = true if records may be copied untransformed"
    }
    assert "this converter would change records" in faults(value_converter="JsonConverter")["value.converter"]
    assert faults(key_converter="org.apache.kafka.connect.converters.ByteArrayConverter") == {}
    assert faults(transforms="mask", value_converter="JsonConverter", transforms_ignore="true") == {}


@pytest.mark.parametrize("kind", list(ConnectorKind))
def test_a_class_is_known_by_three_names(kind: ConnectorKind) -> None:
    names = (f"org.apache.kafka.connect.mirror.{kind}", str(kind), kind.removesuffix("Connector"))
    assert [kind_of(name) for name in names] == [kind] * 3


@pytest.mark.parametrize("java_class", ["", "FileStreamSource", "org.apache.kafka.connect.mirror.Mirror"])
def test_another_class_is_refused_with_the_classes_that_there_are(java_class: str) -> None:
    with pytest.raises(FaultyConnector) as refused:
        read_connector("x", {**SOURCE, "connector.class": java_class})
    (fault,) = refused.value.faults
    assert fault.field == "connector.class"
    assert f"matches {java_class}, expected one of org.apache.kafka.connect.mirror.MirrorSourceConnector" in str(
        refused.value
    )


def test_values_are_read_as_connect_reads_json() -> None:
    assert as_texts({"a": "x", "b": 5, "c": True, "d": 1.5}) == {"a": "x", "b": "5", "c": "true", "d": "1.5"}
    with pytest.raises(FaultyConnector) as refused:
        as_texts({"topics": None, "groups": ["g"], "name": {"a": 1}, "fine": "x"})
    assert [(fault.field, fault.sentence) for fault in refused.value.faults] == [
        ("topics", "Configuration 'topics' values must not be null."),
        ("groups", "Invalid value for configuration groups: expected a text, a number, true or false"),
        ("name", "Invalid value for configuration name: expected a text, a number, true or false"),
    ]


def test_what_is_missing_is_named_as_connect_names_it() -> None:
    found = {fault.field: fault.sentence for fault in faults_of(ConnectorKind.HEARTBEAT, {})}
    assert set(found) == {
        "name",
        "source.cluster.alias",
        "source.cluster.bootstrap.servers",
        "target.cluster.bootstrap.servers",
    }
    assert found["name"] == 'Missing required configuration "name" which has no default value.'
    assert faults(name=" ") == {"name": "Invalid value   for configuration name: String may not be empty"}


@pytest.mark.parametrize("alias", ["A,C", "", "a b", "x/y", "A->B"])
def test_an_alias_is_one_word(alias: str) -> None:
    assert "source.cluster.alias" in faults(source_cluster_alias=alias)


def test_a_flow_needs_two_clusters() -> None:
    assert faults(target_cluster_alias="A") == {
        "target.cluster.alias": "Invalid value A for configuration target.cluster.alias: expected another alias than "
        "source.cluster.alias"
    }


def test_a_wrong_value_is_named_with_its_field_and_what_is_allowed() -> None:
    assert faults(offset_lag_max="x", topics="(", sync_topic_acls_enabled="maybe").keys() == {
        "offset.lag.max",
        "topics",
        "sync.topic.acls.enabled",
    }
    assert faults(offset_lag_max="x")["offset.lag.max"] == (
        "Invalid value x for configuration offset.lag.max: expected a whole number of at least 0"
    )
    assert "ports from 1 to 65535" in faults(source_cluster_bootstrap_servers="a")["source.cluster.bootstrap.servers"]
    assert "source.cluster.consumer.fetch.min.bytes" in faults(source_cluster_consumer_fetch_min_bytes="none")
    assert "topics.blacklist" in faults(topics_blacklist="[")


def test_a_misspelt_field_is_a_fault_and_an_unknown_one_only_if_the_file_says_so() -> None:
    assert faults(topics_exclud="x") == {
        "topics.exclud": "topics.exclud is not an option; did you mean topics.exclude?"
    }
    assert faults(gate_colour="red") == {}
    assert faults(True, gate_colour="red") == {"gate.colour": "gate.colour is not an option (unknown.options = error)"}


def test_what_a_provider_gives_is_checked_when_it_has_given_it() -> None:
    assert faults(offset_lag_max="${env:LAG}") == {}


@pytest.mark.parametrize(
    "value",
    [
        "hunter2",
        "${env:A}x",
        "$env:A",
    ],
)
def test_a_secret_that_is_told_is_refused_and_not_repeated(value: str) -> None:
    found = faults(source_cluster_ssl_key_password=value)
    assert list(found) == ["source.cluster.ssl.key.password"]
    assert HIDDEN in found["source.cluster.ssl.key.password"] and "${env:NAME}" in str(found)
    assert "hunter2" not in str(found)


@pytest.mark.parametrize("value", ["${env:A}", " ${file:/x:pw} ", "", " "])
def test_a_secret_by_reference_is_taken(value: str) -> None:
    assert faults(source_cluster_ssl_key_password=value, target_cluster_sasl_jaas_config=value) == {}


@pytest.mark.parametrize(
    ("jaas", "taken"),
    [
        (f'{PLAIN} username="u" password="${{env:P}}";', True),
        (f'{PLAIN} username="u" password="p";', False),
        (f'{PLAIN} username="${{env:U}}" password="p";', False),
        (f"{PLAIN};", True),
        ("no module at all", False),
    ],
)
def test_of_a_login_module_the_secret_options_are_references(jaas: str, taken: bool) -> None:
    assert (faults(source_cluster_sasl_jaas_config=jaas) == {}) is taken


def test_secrets_are_read_back_hidden_and_may_be_sent_back_so() -> None:
    stored = {**SOURCE, "source.cluster.ssl.key.password": "${env:P}", "topic.token.start.from": "latest"}
    shown = hidden(stored)
    assert list(shown) == sorted(stored)
    assert shown["source.cluster.ssl.key.password"] == HIDDEN
    assert shown["topic.token.start.from"] == "latest", "a topic may be called like a secret"
    assert restored({**shown, "topics": "other"}, stored) == {**stored, "topics": "other"}
    assert restored({"ssl.key.password": HIDDEN}, {}) == {"ssl.key.password": HIDDEN}


def test_hidden_that_nothing_is_known_of_is_no_reference() -> None:
    assert "source.cluster.ssl.key.password" in faults(source_cluster_ssl_key_password=HIDDEN)


def test_all_faults_come_at_once() -> None:
    with pytest.raises(FaultyConnector) as refused:
        read_connector("x", {**SOURCE, "tasks.max": "many", "offset.lag.max": "x"})
    assert {fault.field for fault in refused.value.faults} == {"tasks.max", "offset.lag.max"}
