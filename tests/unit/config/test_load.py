"""Files as people write them: settings, warnings, and all faults at once."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from heliograph.config.flows import FlowSettings, GroupSettings, JobSettings, Mm2Settings, Settings
from heliograph.config.load import load, load_file
from heliograph.config.providers import Outside
from heliograph.errors import ConfigError
from heliograph.model.clusters import Cluster, Flow
from heliograph.model.policies import Policies
from heliograph.replication.heartbeats import Pulse
from heliograph.replication.offset_syncs import SyncSettings
from heliograph.replication.starts import EXPECTED

BASE = """\
clusters = A, B
A.bootstrap.servers = a1:9092, a2:9092
B.bootstrap.servers = b1:9092
A->B.enabled = true
"""
IDENTITY = "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy\n"
TRIANGLE = "clusters = A, B, C\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nC.bootstrap.servers = c:1\n"


def loaded(*lines: str) -> Settings:
    return load(BASE + "\n".join(lines), "mm2.properties")


def flow(*lines: str) -> FlowSettings:
    return loaded(*lines).flows[0]


def faults(text: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        load(text, "mm2.properties")
    return caught.value.faults


def test_a_small_file_has_mirrormaker_2s_defaults() -> None:
    settings = load(BASE, "mm2.properties")
    a = Cluster("A", ("a1:9092", "a2:9092"))
    b = Cluster("B", ("b1:9092",))
    assert settings.path == "mm2.properties"
    assert settings.clusters == {"A": a, "B": b}
    assert settings.warnings == ()
    assert settings.flows == (
        FlowSettings(
            flow=Flow("A", "B"),
            source=a,
            target=b,
            enabled=True,
            topics=(".*",),
            topics_exclude=(r"mm2.*\.internal", r".*\.replica", "__.*"),
            policy="default",
            separator=".",
            internal_separator_enabled=True,
            replication_factor=2,
            config_properties_exclude=(
                r"follower\.replication\.throttled\.replicas",
                r"leader\.replication\.throttled\.replicas",
                r"message\.timestamp\.difference\.max\.ms",
                r"log\.message\.timestamp\.before\.max\.ms",
                r"log\.message\.timestamp\.after\.max\.ms",
                r"message\.timestamp\.type",
                r"unclean\.leader\.election\.enable",
                r"min\.insync\.replicas",
            ),
            use_defaults_from="target",
            refresh_topics_enabled=True,
            refresh_topics_interval_s=600,
            heartbeats_replication_enabled=True,
            isolation="read_committed",
            start="earliest",
            fetch_max_bytes=8388608,
            fetch_max_partition_bytes=1048576,
            fetch_max_wait_ms=500,
            fetch_min_bytes=1,
            receive_buffer_bytes=4194304,
            send_buffer_bytes=4194304,
            throttle=0,
            throttle_topics=(),
            codec="",
            source_admin=a,
            target_admin=b,
            source_writer=a,
            jobs=JobSettings(
                heartbeats=(Pulse("A", "B", 1, 3), Pulse("B", "A", 1, 3)),
                groups=GroupSettings(exclude=("console-consumer-.*", "connect-.*", "__.*")),
            ),
        ),
    )


def test_policies_are_a_flows_own_and_may_stand_for_all_flows() -> None:
    assert load(BASE, "mm2.properties").flows[0].policies == Policies()
    text = BASE + "on.source.reset = restart\non.data.loss = fail\nA->B.on.data.loss = continue\n"
    text += "A->B.on.target.loss = fail\nA->B.on.foreign.writer = fail\nA->B.on.bad.record = dead-letter\n"
    expected = Policies("restart", "continue", "fail", "fail", "dead-letter")
    assert load(text, "mm2.properties").flows[0].policies == expected


def test_request_timeout_ms_goes_with_every_cluster_that_is_asked() -> None:
    """Clients and admin clients had a limit of their own, whatever the file said."""
    flow = load(BASE + "request.timeout.ms = 7000\n", "mm2.properties").flows[0]
    clusters = (flow.source, flow.target, flow.source_admin, flow.target_admin)
    assert {cluster.request_timeout_ms for cluster in clusters} == {7000}
    assert load(BASE, "mm2.properties").flows[0].source.request_timeout_ms == 30_000


def test_the_engine_has_heliographs_defaults() -> None:
    engine = load(BASE, "mm2.properties").engine
    assert (engine.epoch_seconds, engine.slots, engine.slot_memory_bytes, engine.master) == (45, 0, 67108864, "")
    assert (engine.takeover_wait_seconds, engine.ledger_interval_ms, engine.topics_replication_factor) == (90, 1000, 0)
    assert (engine.request_timeout_ms, engine.lane_retry_backoff_ms, engine.lane_retry_backoff_max_ms) == (
        30000,
        1000,
        60000,
    )
    assert (engine.merge_below_bytes, engine.merge_target_bytes, engine.in_flight_batches) == (4096, 1048576, 5)
    assert (engine.telemetry_interval_ms, engine.spark) == (1000, ())


def test_the_engines_options_are_read() -> None:
    engine = loaded("epoch.seconds = 5", "slots=2", "master = spark://m:7077", "spark.b = 2", "spark.a = 1").engine
    assert (engine.epoch_seconds, engine.slots, engine.master) == (5, 2, "spark://m:7077")
    assert engine.spark == (("spark.a", "1"), ("spark.b", "2"))


def test_a_flows_options_are_read_and_win_over_the_top_level() -> None:
    settings = flow(
        "topics = x",
        "A->B.topics = orders, pay-.*",
        "topics.exclude =",
        "replication.factor = 3",
        "A->B.replication.factor = -1",
        "replication.policy.separator = _",
        "A->B.replication.policy.internal.topic.separator.enabled = false",
        "A->B.use.defaults.from = source",
        "refresh.topics.enabled = FALSE",
        "A->B.refresh.topics.interval.seconds = 5",
        "heartbeats.replication.enabled = false",
        "A->B.config.properties.exclude = retention.*",
    )
    assert settings.topics == ("orders", "pay-.*")
    assert settings.topics_exclude == ()
    assert settings.replication_factor == -1
    assert (settings.separator, settings.internal_separator_enabled) == ("_", False)
    assert settings.use_defaults_from == "source"
    assert (settings.refresh_topics_enabled, settings.refresh_topics_interval_s) == (False, 5)
    assert not settings.heartbeats_replication_enabled
    assert settings.config_properties_exclude == ("retention.*",)


def test_identity_policy_is_read() -> None:
    assert flow(IDENTITY).policy == "identity"


# Each of these was run through MirrorMakerConfig and MirrorSourceConfig of Kafka 4.3.1.
@pytest.mark.parametrize(
    ("lines", "isolation"),
    [
        ([], "read_committed"),
        (["A.consumer.isolation.level = read_uncommitted"], "read_uncommitted"),
        (["A->B.consumer.isolation.level = READ_UNCOMMITTED"], "read_uncommitted"),
        (["B.consumer.isolation.level = read_uncommitted"], "read_committed"),
        (["consumer.isolation.level = read_uncommitted"], "read_committed"),
        (["source.consumer.isolation.level = read_uncommitted"], "read_committed"),
        (
            ["A.consumer.isolation.level = read_committed", "A->B.consumer.isolation.level = read_uncommitted"],
            "read_committed",
        ),
        (
            ["A.consumer.isolation.level = read_committed", "A->B.source.consumer.isolation.level = read_uncommitted"],
            "read_uncommitted",
        ),
    ],
)
def test_consumer_options_follow_the_prefix_rules(lines: list[str], isolation: str) -> None:
    assert flow(*lines).isolation == isolation


def test_fetch_options_and_the_start_are_read() -> None:
    settings = flow(
        "A.consumer.auto.offset.reset = latest",
        "A.consumer.fetch.max.bytes = 2048",
        "A->B.consumer.max.partition.fetch.bytes = 4096",
        "A.consumer.fetch.max.wait.ms = 7",
        "A.consumer.fetch.min.bytes = 9",
    )
    assert settings.start == "latest"
    assert (settings.fetch_max_bytes, settings.fetch_max_partition_bytes) == (2048, 4096)
    assert (settings.fetch_max_wait_ms, settings.fetch_min_bytes) == (7, 9)


KEY = "ssl.truststore.location"


@pytest.mark.parametrize(
    ("lines", "reader", "writer", "admin_a", "admin_b"),
    [
        ([f"{KEY} = T"], "T", "T", "T", "T"),
        ([f"{KEY} = T", f"A.{KEY} = A", f"B.{KEY} = B"], "A", "B", "A", "B"),
        (
            [f"A.{KEY} = A", f"A.consumer.{KEY} = AC", f"B.admin.{KEY} = BA", f"B.producer.{KEY} = BP"],
            "AC",
            "BP",
            "A",
            "BA",
        ),
        ([f"A->B.{KEY} = F"], None, None, None, None),
        ([f"A->B.source.cluster.{KEY} = FC", f"A.{KEY} = A"], "A", None, "A", None),
        ([f"A->B.source.cluster.{KEY} = FC"], "FC", None, None, None),
        ([f"A->B.consumer.{KEY} = FC", f"A.{KEY} = A"], "A", None, "A", None),
        ([f"A->B.consumer.{KEY} = FC", f"A->B.source.cluster.{KEY} = FCL"], "FC", None, None, None),
        ([f"consumer.{KEY} = TC", f"producer.{KEY} = TP", f"admin.{KEY} = TA"], None, None, None, None),
        ([f"B.producer.{KEY} = BP", f"A->B.producer.override.{KEY} = FP"], None, "FP", None, None),
        ([f"A->B.source.consumer.{KEY} = FS", f"A.consumer.{KEY} = AC"], "FS", None, None, None),
    ],
)
def test_security_keys_follow_the_prefix_rules(
    lines: list[str], reader: str | None, writer: str | None, admin_a: str | None, admin_b: str | None
) -> None:
    protocols = [f"{prefix}security.protocol = ssl" for prefix in ("A.", "B.")]
    found = loaded(*protocols, *lines).flows[0]
    clusters = (found.source, found.target, found.source_admin, found.target_admin)
    paths = [
        cluster.security.tls.trust and cluster.security.tls.trust.path for cluster in clusters if cluster.security.tls
    ]
    assert paths == [reader, writer, admin_a, admin_b]


def test_admin_keys_join_the_clusters_client_without_their_prefix() -> None:
    client = loaded("B.admin.client.id = me", "B.security.protocol = plaintext").clusters["B"].client
    assert client == (("client.id", "me"),)


def test_a_login_may_differ_for_reading_writing_and_asking() -> None:
    jaas = 'x.PlainLoginModule required username="{}" password="p";'
    found = loaded(
        "security.protocol = SASL_PLAINTEXT",
        "sasl.mechanism = PLAIN",
        f"sasl.jaas.config = {jaas.format('all')}",
        f"A.consumer.sasl.jaas.config = {jaas.format('reads')}",
        f"B.producer.sasl.jaas.config = {jaas.format('writes')}",
        f"B.admin.sasl.jaas.config = {jaas.format('asks')}",
    ).flows[0]
    clusters = (found.source, found.target, found.source_admin, found.target_admin)
    users = [cluster.security.login.username for cluster in clusters if cluster.security.login]
    assert users == ["reads", "writes", "all", "asks"]


def test_keys_that_do_not_fit_together_are_faults_of_the_cluster_each_once() -> None:
    assert faults(
        BASE + "security.protocol = SASL_SSL\nA.sasl.mechanism = PLAIN\nB.sasl.mechanism = SCRAM-SHA-256"
    ) == (
        "mm2.properties: cluster A: sasl.mechanism = PLAIN needs username and password in sasl.jaas.config, which is not set",
        (
            "mm2.properties: cluster B: sasl.mechanism = SCRAM-SHA-256 needs username and password in sasl.jaas.config, "
            "which is not set"
        ),
    )


def test_keys_of_what_writes_heartbeats_to_the_source_are_looked_at_where_it_does() -> None:
    text = BASE + "B->A.producer.override.security.protocol = SASL_SSL\nB->A.producer.override.sasl.mechanism = PLAIN\n"
    needed = "sasl.mechanism = PLAIN needs username and password in sasl.jaas.config, which is not set"
    assert faults(text) == (f"mm2.properties: cluster A: {needed}",)
    assert load(text + "A->B.source.readonly = true", "mm2.properties").flows


def test_a_login_that_cannot_be_read_is_one_fault_without_its_text() -> None:
    text = BASE + "security.protocol = SASL_SSL\nsasl.mechanism = PLAIN\nA.sasl.jaas.config = s3cret"
    assert faults(text) == (
        (
            "mm2.properties:7: A.sasl.jaas.config = ***: expected required, requisite, sufficient or optional behind the "
            "login module"
        ),
    )


def test_an_unknown_mechanism_is_refused_with_those_that_are_known() -> None:
    (fault,) = faults(BASE + "security.protocol = SASL_SSL\nB.sasl.mechanism = DIGEST-MD5")
    assert fault == (
        "mm2.properties:6: B.sasl.mechanism = DIGEST-MD5: expected PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, GSSAPI "
        "or AWS_MSK_IAM"
    )


def test_settings_show_no_secret() -> None:
    settings = loaded(
        "security.protocol = SASL_SSL",
        "sasl.mechanism = PLAIN",
        'sasl.jaas.config = x.PlainLoginModule required username="u" password="s3cret";',
        "ssl.keystore.location = /k",
        "ssl.keystore.password = s3cret",
        "ssl.key.password = s3cret",
    )
    assert settings.flows[0].source.security.tls is not None
    assert "s3cret" not in repr(settings)


def test_addresses_at_the_top_level_are_a_fallback() -> None:
    settings = load(
        "clusters=A,B\nbootstrap.servers=x:1\nA.bootstrap.servers=SSL://a:1\nA->B.enabled=true", "mm2.properties"
    )
    assert settings.clusters["A"].bootstrap == ("a:1",)
    assert settings.clusters["B"].bootstrap == ("x:1",)


def test_a_cluster_that_no_flow_uses_needs_no_address() -> None:
    settings = load(BASE.replace("A, B", "A, B, C"), "mm2.properties")
    assert settings.clusters["C"] == Cluster("C", ())


def test_flows_stand_in_the_order_of_clusters() -> None:
    settings = loaded("B->A.enabled = true", "B->A.topics = x")
    assert [s.flow.name for s in settings.flows] == ["A->B", "B->A"]
    assert [s.topics for s in settings.flows] == [(".*",), ("x",)]


def test_enabled_at_the_top_level_counts_where_mirrormaker_2_runs_the_pair() -> None:
    both = load(BASE.replace("A->B.enabled", "enabled"), "mm2.properties")
    assert [s.flow.name for s in both.flows] == ["A->B", "B->A"]
    one = loaded("enabled = true", "B->A.emit.heartbeats.enabled = false")
    assert [s.flow.name for s in one.flows] == ["A->B"]


def test_aliases_may_hold_dots_and_dashes() -> None:
    text = "clusters = eu.west-1, eu\neu.west-1.bootstrap.servers=a:1\neu.bootstrap.servers=b:1\neu.west-1->eu.enabled=true"
    settings = load(text, "mm2.properties")
    assert settings.flows[0].flow == Flow("eu.west-1", "eu")
    assert settings.clusters["eu"].bootstrap == ("b:1",)


# Config providers


def test_values_of_config_providers_take_the_place_of_their_references() -> None:
    outside = Outside({"WHO": "orders"}, {"/etc/more": "b = payments\n"}.__getitem__)
    settings = load(BASE + "A->B.topics = ${env:WHO}, ${file:/etc/more:b}", "mm2.properties", outside)
    assert settings.flows[0].topics == ("orders", "payments")
    (shown,) = [value for value in settings.values if value.name == "A->B.topics"]
    assert shown.value == "${env:WHO}, ${file:/etc/more:b}", "what a provider gave is not to be seen"


def test_a_reference_that_leads_nowhere_is_a_fault_of_its_line() -> None:
    assert faults(BASE + "A->B.topics = ${env:NOBODY}") == (
        "mm2.properties:5: A->B.topics: environment variable NOBODY is not set",
    )


def test_a_provider_that_was_not_set_up_brings_a_warning() -> None:
    settings = loaded("master = ${vault:/x:y}")
    assert settings.warnings == (
        "mm2.properties:5: master: vault is not one of config.providers, so the value is left as it is",
    )


def test_a_provider_of_an_unknown_class_is_a_fault() -> None:
    (fault,) = faults(BASE + "config.providers = vault\nconfig.providers.vault.class = com.example.Vault")
    assert fault.startswith("mm2.properties:6: config.providers.vault.class = com.example.Vault: expected org.apache")


def test_a_value_from_a_provider_that_is_wrong_is_not_repeated() -> None:
    with pytest.raises(ConfigError) as caught:
        load(BASE + "epoch.seconds = ${env:N}", "mm2.properties", Outside({"N": "s3cret"}))
    assert caught.value.faults == (
        "mm2.properties:5: epoch.seconds = ${env:N}: expected a whole number from 2 to 50 (seconds)",
    )


# Warnings


def test_an_option_that_is_not_served_brings_one_warning_with_what_happens_instead() -> None:
    assert loaded("A->B.admin.timeout.ms = 1").warnings == (
        "mm2.properties:5: A->B.admin.timeout.ms is not served in this version: request.timeout.ms limits each",
    )
    assert loaded("B.producer.batch.size = 1").warnings == (
        (
            "mm2.properties:5: B.producer.batch.size is not served in this version: batches are forwarded as the source has them; "
            "see merge.target.bytes"
        ),
    )


@pytest.mark.parametrize(
    "name",
    [
        "tasks.max",
        "offset.flush.timeout.ms",
        "B.status.storage.replication.factor",
        "A->B.producer.override.retries",
        "A.consumer.max.poll.records",
    ],
)
def test_every_place_of_an_unserved_option_brings_the_warning(name: str) -> None:
    (warning,) = loaded(f"{name} = 3").warnings
    assert warning.startswith(f"mm2.properties:5: {name} is not served in this version: ")


def test_an_option_where_mirrormaker_2_drops_it_brings_one_warning_that_says_where_it_is_read() -> None:
    assert loaded("use.defaults.from = source", "A.topics = x").warnings == (
        "mm2.properties:5: use.defaults.from has no effect here; it is read as A->B.use.defaults.from",
        "mm2.properties:6: A.topics has no effect here; it is read as topics or A->B.topics",
    )


def test_an_unknown_name_brings_one_warning_without_its_value() -> None:
    assert loaded("my.setting = s3cret").warnings == ("mm2.properties:5: my.setting is not an option and is not read",)
    assert loaded("C.bootstrap.servers = c:1").warnings == (
        "mm2.properties:5: C.bootstrap.servers is not an option and is not read; C is not one of clusters",
    )


def test_a_repeated_name_counts_with_its_last_value_and_brings_one_warning() -> None:
    settings = loaded("A->B.topics = x", "A->B.topics = y")
    assert settings.flows[0].topics == ("y",)
    assert settings.warnings == ("mm2.properties:6: A->B.topics was already set in line 5; this one counts",)


def test_warnings_stand_in_the_order_of_lines() -> None:
    lines = [int(w.split(":")[1]) for w in loaded("tasks.max = 2", "foo = 1", "tasks.max = 3", "bar = 1").warnings]
    assert lines == sorted(lines)


# Faults


def test_all_faults_come_at_once_each_with_line_option_and_allowed_values() -> None:
    text = """\
clusters = A, B
A.bootstrap.servers = a
A->B.enabled = true
A->B.replication.factor = many
A->B.topics = a(b
A->B.replication.policy.class = com.example.Policy
epoch.seconds = 60
on.data.loss = maybe
X->B.enabled = true
A->Y.topics = x
A->B.topic = x
a = \\u12
security.protocol = TLS
"""
    prefix = "org.apache.kafka.connect.mirror."
    assert faults(text) == (
        (
            "mm2.properties:2: A.bootstrap.servers = a: expected a list of host:port with ports from 1 to 65535, "
            "split on commas"
        ),
        "mm2.properties:4: A->B.replication.factor = many: expected a whole number of at least 1 or -1",
        (
            "mm2.properties:5: A->B.topics = a(b: expected a list of names or Java regular expressions, split on commas; "
            "bad regular expression a(b: a group is not closed"
        ),
        (
            f"mm2.properties:6: A->B.replication.policy.class = com.example.Policy: expected {prefix}DefaultReplicationPolicy, "
            f"{prefix}IdentityReplicationPolicy, or a class in Python as module:Class (no other Java class can be loaded)"
        ),
        "mm2.properties:7: epoch.seconds = 60: expected a whole number from 2 to 50 (seconds)",
        "mm2.properties:8: on.data.loss = maybe: expected continue or fail",
        "mm2.properties:9: X->B.enabled: X is not one of clusters (A, B)",
        "mm2.properties:10: A->Y.topics: Y is not one of clusters (A, B)",
        "mm2.properties:11: A->B.topic is not an option; did you mean A->B.topics?",
        "mm2.properties:12: malformed \\uXXXX escape: expected four hexadecimal digits after \\u",
        "mm2.properties:13: security.protocol = TLS: expected PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL",
        (
            "mm2.properties: B.bootstrap.servers is missing: expected a list of host:port with ports from 1 to 65535, "
            "split on commas"
        ),
    )


def test_a_file_without_clusters_says_so_once() -> None:
    (fault,) = faults("A->B.enabled = true\nA.bootstrap.servers = a:1")
    assert fault.startswith("mm2.properties: clusters is missing: expected a list of aliases")


def test_empty_clusters_are_a_fault_of_their_line() -> None:
    (fault,) = faults("clusters =")
    assert fault.startswith("mm2.properties:1: clusters = : expected a list of aliases")


def test_an_alias_with_other_characters_is_a_fault() -> None:
    found = faults("clusters = A, B C\nA.bootstrap.servers = a:1")
    assert "letters, digits, '.', '_' and '-'" in found[0]


def test_a_file_without_an_enabled_flow_says_how_to_enable_one() -> None:
    text = BASE.replace("A->B.enabled = true", "A->B.enabled = false")
    by_rest = "or set listeners and add flows by REST"
    assert faults(text) == (f"mm2.properties: no flow is enabled: write A->B.enabled = true, {by_rest}",)
    assert faults("clusters = A") == (
        f"mm2.properties: no flow is enabled: add a second alias to clusters, then write A->ALIAS.enabled = true, {by_rest}",
    )
    assert faults("clusters = A\nlisteners = none")[0].startswith("mm2.properties: no flow is enabled")


@pytest.mark.parametrize(
    "line", ["listeners = http://127.0.0.1:8083", "rest.port = 8083", "rest.host.name = localhost"]
)
def test_a_file_that_says_where_rest_listens_may_have_no_flow_yet(line: str) -> None:
    found = load(f"clusters = A\nA.bootstrap.servers = a:1\n{line}", "mm2.properties")
    assert (found.flows, found.state) == ((), found.clusters["A"])


def test_a_connect_workers_file_is_read_and_says_what_is_not_served() -> None:
    text = (
        "bootstrap.servers = b:1\ngroup.id = connect-cluster\nkey.converter = org.apache.kafka.connect.converters."
        "ByteArrayConverter\noffset.storage.topic = connect-offsets\nconfig.storage.topic = connect-configs\n"
        "status.storage.partitions = 5\nrest.port = 8080\nplugin.path = /plugins\nsecurity.protocol = SSL\n"
    )
    found = load(text, "worker.properties")
    assert (found.flows, list(found.clusters)) == ((), ["worker"])
    assert found.state == found.clusters["worker"]
    assert (found.clusters["worker"].bootstrap, found.clusters["worker"].security.tls is not None) == (("b:1",), True)
    assert [listener.url for listener in found.server.listeners] == ["http://127.0.0.1:8080"]
    said = " ".join(found.warnings)
    assert all(
        f"{name} is not served" in said for name in ("key.converter", "worker.config.storage.topic", "plugin.path")
    )
    assert "offset.storage.topic" not in said.replace("config.storage.topic", "")
    over = {
        "clusters": "worker,A,B",
        "A.bootstrap.servers": "a:1",
        "B.bootstrap.servers": "b:1",
        "A->B.enabled": "true",
    }
    (flow,) = load(text, "worker.properties", overlay=over).flows
    assert (flow.mm2.group, flow.mm2.topic, flow.target.security.tls is not None) == (
        "connect-cluster",
        "connect-offsets",
        True,
    )
    assert flow.source.security.tls is None, "the worker's keys are not the source's"


def test_a_bad_value_of_enabled_is_one_fault() -> None:
    assert faults(BASE.replace("true", "maybe")) == ("mm2.properties:4: A->B.enabled = maybe: expected true or false",)


def test_a_flow_with_blanks_is_explained() -> None:
    (fault,) = faults(BASE + "A -> B.topics = x")
    assert fault == "mm2.properties:5: A -> B.topics = x: write the flow without blanks, as in A->B.enabled = true"


def test_a_flow_from_a_cluster_to_itself_is_refused() -> None:
    assert faults(BASE + "A->A.enabled = true") == (
        "mm2.properties:5: A->A.enabled: a flow needs two different clusters",
    )


def test_a_flow_without_an_option_is_refused() -> None:
    assert faults(BASE + "A->B = x") == (
        "mm2.properties:5: A->B: expected an option behind the flow, as in A->B.enabled = true",
    )


def test_unknown_names_are_faults_in_a_strict_file() -> None:
    assert faults(BASE + "unknown.options = error\nmy.setting = 1\nC.bootstrap.servers = c:1") == (
        "mm2.properties:6: my.setting is not an option (unknown.options = error)",
        "mm2.properties:7: C.bootstrap.servers is not an option; C is not one of clusters (unknown.options = error)",
    )


def test_a_misspelt_secret_is_named_without_its_value() -> None:
    (fault,) = faults(BASE + "A.sasl.jaas.confg = s3cret")
    assert fault == "mm2.properties:5: A.sasl.jaas.confg is not an option; did you mean A.sasl.jaas.config?"


def test_two_identity_flows_that_name_one_topic_of_one_target_are_refused() -> None:
    text = TRIANGLE + IDENTITY + "A->C.enabled=true\nB->C.enabled=true\nA->C.topics=orders,x\nB->C.topics=orders,y"
    (fault,) = faults(text)
    assert fault.startswith("mm2.properties: A->C and B->C would both write orders on C: IdentityReplicationPolicy")
    assert len(load(text + "\nB->C.topics.exclude = orders", "mm2.properties").flows) == 2
    assert len(load(text.replace("orders,", "or.*,"), "mm2.properties").flows) == 2
    assert len(load(text.replace("B->C.enabled", "B->A.enabled"), "mm2.properties").flows) == 2


def test_identity_flows_in_a_circle_are_refused_once() -> None:
    circle = TRIANGLE + IDENTITY + "A->B.enabled=true\nB->C.enabled=true\nC->A.enabled=true\n"
    (fault,) = faults(circle)
    assert fault.startswith("mm2.properties: records of .* would circle for ever through A->B: ")
    assert len(load(circle + "C->A.topics = other", "mm2.properties").flows) == 3
    assert len(load(circle.replace(IDENTITY, ""), "mm2.properties").flows) == 3


def test_identity_flows_whose_excludes_may_keep_them_apart_are_not_refused() -> None:
    apart = BASE + IDENTITY + "B->A.enabled = true\nA->B.topics.exclude = b-.*\nB->A.topics.exclude = a-.*\n"
    assert len(load(apart, "mm2.properties").flows) == 2
    named = TRIANGLE + IDENTITY + "A->B.enabled=true\nB->C.enabled=true\nC->A.enabled=true\ntopics = orders\n"
    assert "records of orders would circle" in faults(named)[0]
    assert len(load(named + "B->C.topics.exclude = ord.*", "mm2.properties").flows) == 3


def test_a_chain_that_leads_into_a_circle_is_not_blamed() -> None:
    clusters = TRIANGLE.replace("A, B, C", "A, B, C, D") + "D.bootstrap.servers = d:1\n"
    flows = "A->B.enabled=true\nB->C.enabled=true\nC->D.enabled=true\nD->B.enabled=true\n"
    (fault, shared) = faults(clusters + IDENTITY + "topics = orders\n" + flows)
    assert "would both write orders on B" in fault
    assert "through B->C" in shared


def test_two_flows_in_both_directions_that_keep_names_know_of_each_other() -> None:
    there, back = load(BASE + IDENTITY + "B->A.enabled = true", "mm2.properties").flows
    assert (there.home, back.home) == ("B->A", "A->B")
    assert (there.jobs.sync_configs, back.jobs.sync_configs) == (True, False)
    one_way = BASE + IDENTITY + "B->A.enabled = true\nA->B.sync.topic.configs.enabled = false\n"
    assert [flow.jobs.sync_configs for flow in load(one_way, "mm2.properties").flows] == [False, True]
    named = BASE + "B->A.enabled = true\nA->B.topic.rename.pairs = x -> x\n"
    assert [flow.home for flow in load(named, "mm2.properties").flows] == ["", "A->B"]
    both = named + "B->A.topic.rename.pairs = x -> x\n"
    assert [flow.home for flow in load(both, "mm2.properties").flows] == ["B->A", "A->B"]
    assert [flow.home for flow in load(BASE + "B->A.enabled = true", "mm2.properties").flows] == ["", ""]


def test_what_cannot_be_of_flows_in_both_directions_is_warned_of() -> None:
    text = BASE + IDENTITY + "B->A.enabled = true\nB->A.sync.topic.configs.enabled = true\n"
    (warning,) = load(text, "mm2.properties").warnings
    assert warning.endswith(
        "B->A.sync.topic.configs.enabled has no effect: A->B keeps names too, and the configs of both go its way"
    )
    groups = load(BASE + IDENTITY + "B->A.enabled = true\nA->B.sync.group.offsets.enabled = true", "x")
    assert "has no effect on A->B: both clusters write these topics" in groups.warnings[0]
    assert not any(flow.jobs.groups.sync or flow.jobs.groups.checkpoints for flow in groups.flows)
    full = load(BASE + IDENTITY + "B->A.enabled = true\nsync.topic.acls.scope = full", "x")
    assert [flow.jobs.sync_acls for flow in full.flows] == [True, False]
    (first, second) = load(BASE + IDENTITY + "B->A.enabled = true\nsync.topic.deletes.enabled = true", "x").warnings
    assert first.endswith("sync.topic.deletes.enabled has no effect on A->B: B->A makes the topic again")
    assert "no effect on B->A" in second


# Names


def test_names_of_its_own_are_a_flows_and_known_to_all_flows() -> None:
    text = BASE + "B->A.enabled = true\nA->B.topic.rename.pairs = orders -> sales\n"
    text += "A->B.topic.rename.regex = (.+)-prod -> prod.$1\nA->B.topic.rename.format = ${topic}.copy\n"
    settings = load(text, "mm2.properties")
    assert settings.warnings == ()
    there, back = settings.flows
    assert [there.remote_name(topic) for topic in ("orders", "x-prod", "x")] == ["sales", "prod.x", "x.copy"]
    assert back.remote_name("x") == "B.x"
    assert back.naming.is_cycle("sales", "A")
    assert there.refusal("orders") == ""
    trial = replace(there, flow=replace(there.flow, trial="try-"))
    assert trial.remote_name("orders") == "try-sales"


def test_a_format_that_keeps_names_is_the_identity_policy() -> None:
    settings = flow("topic.rename.format = ${topic}")
    assert (settings.policy, settings.routes) == ("identity", ())
    assert settings.remote_name("orders") == "orders"


def test_names_that_cannot_be_taken_back_are_refused_with_their_line() -> None:
    (fault,) = faults(BASE + "A->B.topic.rename.regex = (.*)-(.*) -> $1$2")
    assert fault.startswith("mm2.properties:5: A->B.topic.rename.regex = (.*)-(.*) -> $1$2: expected a Java regular")
    assert fault.endswith("else two topics could have one name")
    assert "expected a list of SOURCE -> REMOTE" in faults(BASE + "topic.rename.pairs = a -> x, b -> x")[0]
    assert "expected ${topic} once" in faults(BASE + "topic.rename.format = copy")[0]


def test_two_flows_that_give_one_name_on_one_target_are_refused() -> None:
    text = TRIANGLE + "A->C.enabled=true\nB->C.enabled=true\ntopic.rename.pairs = orders -> sales\n"
    (fault,) = faults(text)
    assert fault == (
        "mm2.properties: A->C and B->C would both write sales on C: name the copies apart, or name it in the topics of one "
        "of them"
    )
    assert len(load(text + "B->C.topics = clicks", "mm2.properties").flows) == 2


def test_pairs_that_lead_records_back_are_refused_once() -> None:
    text = BASE + "B->A.enabled = true\nA->B.topic.rename.pairs = x -> y\nB->A.topic.rename.pairs = y -> x, z -> q\n"
    (fault,) = faults(text)
    assert fault.startswith("mm2.properties: records of x would circle for ever through A: topic.rename.pairs")
    assert len(load(text.replace("y -> x", "y -> w"), "mm2.properties").flows) == 2


# Files


def test_a_file_is_read_as_java_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "mm2.properties"
    path.write_bytes(b"\xef\xbb\xbf" + BASE.encode() + b"A.admin.client.id = \xe9\\u20ac\n")
    settings = load_file(str(path))
    assert settings.path == str(path)
    assert dict(settings.clusters["A"].client)["client.id"] == "\u00e9\u20ac"


def test_config_providers_of_a_file_see_files_and_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HELIOGRAPH_TEST_TOPICS", "orders")
    (tmp_path / "more").write_text("a = caf\u00e9\n", encoding="utf-8")
    path = tmp_path / "mm2.properties"
    path.write_text(BASE + f"A->B.topics = ${{env:HELIOGRAPH_TEST_TOPICS}}, ${{file:{tmp_path}/more:a}}\n")
    assert load_file(str(path)).flows[0].topics == ("orders", "caf\u00e9")


def test_a_missing_file_and_a_folder_are_faults(tmp_path: Path) -> None:
    for path, why in ((tmp_path / "none", "No such file or directory"), (tmp_path, "Is a directory")):
        with pytest.raises(ConfigError, match=re.escape(f"{path}: cannot be read: {why}")):
            load_file(str(path))


# What `heliograph config` shows


def test_every_option_of_the_table_has_a_value_and_its_origin() -> None:
    settings = loaded("A->B.topics = x", "tasks.max = 4", "A.ssl.key.password = p", "foo = 1", "A.topics = y")
    values = {value.name: value for value in settings.values}
    assert (values["A->B.topics"].value, values["A->B.topics"].origin) == ("x", "line 5")
    assert (values["A->B.replication.factor"].value, values["A->B.replication.factor"].origin) == ("2", "default")
    assert (values["tasks.max"].value, values["tasks.max"].origin) == ("4", "line 6")
    assert (values["A.ssl.key.password"].value, values["A.ssl.key.password"].origin) == ("***", "line 7")
    assert values["epoch.seconds"].origin == "default"
    assert values["ssl.provider"].value == ""
    assert "foo" not in values
    assert "A.topics" not in values


def test_client_keys_with_a_meaning_here_are_read() -> None:
    settings = flow("A.consumer.receive.buffer.bytes = -1", "B.producer.send.buffer.bytes = 65536")
    assert (settings.receive_buffer_bytes, settings.send_buffer_bytes) == (-1, 65536)


def test_client_keys_without_a_meaning_here_are_named_once_with_their_reason() -> None:
    lines = ("A.consumer.max.poll.records = 7", "B.producer.linger.ms = 5", "A.consumer.metric.reporters = x")
    assert loaded(*lines).warnings == (
        "mm2.properties:5: A.consumer.max.poll.records is not served in this version: consumer.fetch.max.bytes bounds a read",
        "mm2.properties:6: B.producer.linger.ms is not served in this version: batches are forwarded as the source has them",
        (
            "mm2.properties:7: A.consumer.metric.reporters is not served in this version: Heliograph has its own reader and "
            "writer, and no such setting"
        ),
    )


def test_a_codec_is_explained_unless_the_flow_recompresses() -> None:
    assert loaded("B.producer.compression.type = zstd").warnings == (
        (
            "mm2.properties:5: B.producer.compression.type = zstd has no effect: batches keep their codec; A->B.recompress = true "
            "opts in to opening and compressing every batch anew"
        ),
    )
    settings = loaded("B.producer.compression.type = zstd", "A->B.recompress = true")
    assert (settings.flows[0].codec, settings.warnings) == ("zstd", ())
    assert loaded("A.producer.compression.type = zstd").warnings == ()  # nothing is written there


def test_to_recompress_without_a_codec_is_a_fault() -> None:
    (fault,) = faults(BASE + "recompress = true")
    assert fault.startswith("mm2.properties: B.producer.compression.type is missing, and A->B recompresses: expected ")
    (fault,) = faults(BASE + "recompress = true\nB.producer.compression.type = brotli")
    assert "B.producer.compression.type = brotli: expected" in fault


def test_limits_are_read_for_the_flow_and_for_topics() -> None:
    settings = flow(
        "throttle.bytes.per.second = 5",
        "A->B.throttle.bytes.per.second = 7",
        "A->B.topic.orders.throttle.bytes.per.second = 3",
        "A->B.topic.a.b.throttle.bytes.per.second = 2",
    )
    assert (settings.throttle, settings.throttle_topics) == (7, (("a.b", 2), ("orders", 3)))
    (fault,) = faults(BASE + "A->B.topic.orders.throttle.bytes.per.second = fast")
    assert fault.endswith("A->B.topic.orders.throttle.bytes.per.second = fast: expected a whole number of at least 0")


def test_the_limit_of_a_topic_is_shown_where_it_is_set() -> None:
    shown = {value.name: value.value for value in loaded("A->B.topic.orders.throttle.bytes.per.second = 3").values}
    assert shown["A->B.topic.orders.throttle.bytes.per.second"] == "3"
    assert shown["A->B.throttle.bytes.per.second"] == "0"


def test_a_flow_and_a_topic_say_where_they_begin() -> None:
    settings = flow(
        "start.from = latest",
        "A->B.topic.orders.v2.start.from = timestamp:2026-05-01T00:00:00Z",
        "A->B.topic.a.start.from = earliest",
    )
    assert str(settings.start_of("other")) == "latest"
    assert str(settings.start_of("orders.v2")) == "timestamp:2026-05-01T00:00:00Z"
    assert str(settings.start_of("a")) == "earliest"
    assert str(flow("A.consumer.auto.offset.reset = latest").start_of("a")) == "latest"


def test_a_start_that_is_none_is_a_fault() -> None:
    (fault,) = faults(BASE + "A->B.topic.a.start.from = noon")
    assert fault == f"mm2.properties:5: A->B.topic.a.start.from = noon: expected {EXPECTED}"


def test_a_topics_start_stands_behind_a_flow() -> None:
    assert loaded("topic.a.start.from = latest").warnings == (
        "mm2.properties:5: topic.a.start.from has no effect here; it is read as A->B.topic.<name>.start.from",
    )


def test_where_mirrormaker_2_keeps_its_progress_can_be_said() -> None:
    settings = flow(
        "A->B.name = mirror",
        "B.group.id = g",
        "B.offset.storage.topic = b",
        "offset.storage.topic = t",
        "B.offset.storage.partitions = 5",
        "B.offset.storage.replication.factor = 1",
        "A.offset.storage.topic = no",
    )
    assert settings.mm2 == Mm2Settings("mirror", "g", "t", 5, 1)
    assert flow().mm2 == Mm2Settings()


def test_heartbeats_have_the_options_of_their_pair_and_one_writer() -> None:
    back = flow("B->A.emit.heartbeats.interval.seconds = 7", "A->B.heartbeats.topic.replication.factor = 1")
    assert back.jobs.heartbeats == (Pulse("A", "B", 1, 1), Pulse("B", "A", 7, 3))
    both = loaded("B->A.enabled = true").flows
    assert [one.jobs.heartbeats for one in both] == [(Pulse("A", "B", 1, 3),), (Pulse("B", "A", 1, 3),)]
    assert flow("source.readonly = true").jobs.heartbeats == (Pulse("A", "B", 1, 3),)
    assert flow("emit.heartbeats.enabled = false").jobs.heartbeats == ()


def test_heartbeats_are_written_to_the_source_as_a_flow_back_would_write_there() -> None:
    settings = flow("A.security.protocol = SSL", "A.producer.security.protocol = PLAINTEXT")
    assert settings.source_writer == Cluster("A", ("a1:9092", "a2:9092"))
    assert settings.source.security.tls is not None


def test_topic_configs_are_kept_in_step_unless_switched_off() -> None:
    settings = flow("A->B.sync.topic.configs.interval.seconds = 5").jobs
    assert (settings.sync_configs, settings.sync_configs_interval_s) == (True, 5)
    assert not flow("sync.topic.configs.enabled = false").jobs.sync_configs


def test_topics_are_deleted_only_where_it_is_asked_for() -> None:
    assert not flow().jobs.sync_deletes
    settings = flow("A->B.sync.topic.deletes.enabled = true", "sync.topic.deletes.grace.seconds = 60").jobs
    assert (settings.sync_deletes, settings.deletes_grace_s) == (True, 60)


def test_groups_are_chosen_and_looked_after_as_the_file_says() -> None:
    settings = flow(
        "groups = billing, report-.*",
        "groups.exclude =",
        "refresh.groups.enabled = false",
        "A->B.refresh.groups.interval.seconds = 5",
        "emit.checkpoints.enabled = false",
        "emit.checkpoints.interval.seconds = 6",
        "checkpoints.topic.replication.factor = -1",
        "sync.group.offsets.enabled = true",
        "sync.group.offsets.interval.seconds = 7",
    )
    assert settings.jobs.groups == GroupSettings(("billing", "report-.*"), (), False, 5, False, 6, -1, True, 7)


def test_offset_syncs_have_mirrormaker_2s_options() -> None:
    assert flow().jobs.offset_syncs == SyncSettings(on_source=True, lag_max=100, flush_ms=60_000, replication_factor=3)
    assert flow(
        "offset-syncs.topic.location = target",
        "A->B.offset.lag.max = 7",
        "B.offset.flush.interval.ms = 5000",
        "A.offset.flush.interval.ms = 1",
        "offset-syncs.topic.replication.factor = 1",
    ).jobs.offset_syncs == SyncSettings(on_source=False, lag_max=7, flush_ms=5_000, replication_factor=1)
    assert flow("emit.offset-syncs.enabled = false").jobs.offset_syncs is None


def test_a_source_that_must_not_be_written_to_has_its_offset_syncs_on_the_target() -> None:
    settings = flow("source.readonly = true").jobs.offset_syncs
    assert settings is not None and not settings.on_source
    [fault] = faults(BASE + "source.readonly = true\nA->B.offset-syncs.topic.location = source")
    assert fault.endswith(
        "A->B: A->B.offset-syncs.topic.location = source does not go with source.readonly = true: offset syncs would be "
        "written to the source; write target, or leave it out"
    )


def test_a_place_for_offset_syncs_that_are_not_written_is_refused_as_mirrormaker_2_refuses_it() -> None:
    [fault] = faults(BASE + "emit.offset-syncs.enabled = false\noffset-syncs.topic.replication.factor = 1")
    assert fault.endswith(
        "A->B: offset-syncs.topic.replication.factor does not go with emit.offset-syncs.enabled = false: leave one of them out"
    )
