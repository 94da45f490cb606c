"""Connectors to entries of a driver file: complete together, refused by name where they contradict, loaded as any file."""

from __future__ import annotations

import pytest

from heliograph.config.connector_entries import FileFacts, Mapped, entries_of
from heliograph.config.connectors import Connector, FaultyConnector, read_connector
from heliograph.config.flows import FlowSettings
from heliograph.config.load import load
from heliograph.config.properties import parse

NO_FILE = FileFacts()
FILE = "clusters = A, C\nA.bootstrap.servers = a:1\nC.bootstrap.servers = c:1\nA->C.enabled = true\n"


def connector(kind: str, name: str = "", *, flow: tuple[str, str] = ("A", "B"), **config: str) -> Connector:
    source, target = flow
    fields = {
        "connector.class": f"Mirror{kind}",
        "source.cluster.alias": source,
        "source.cluster.bootstrap.servers": f"{source.lower()}:1",
        "target.cluster.alias": target,
        "target.cluster.bootstrap.servers": f"{target.lower()}:1",
        **{key.replace("__", "-").replace("_", "."): value for key, value in config.items()},
    }
    return read_connector(name or kind.lower(), fields)


def facts(text: str) -> FileFacts:
    settings = load(text, "mm2.properties")
    entries = {entry.name: entry.value for entry in parse(text)}
    return FileFacts(tuple(settings.clusters), frozenset(flow.flow.name for flow in settings.flows), entries)


def flow_of(mapped: Mapped, name: str = "A->B") -> FlowSettings:
    text = "\n".join(f"{entry} = {value}" for entry, value in mapped.entries.items()).replace("\\", "\\\\")
    return next(flow for flow in load(text, "rest").flows if flow.flow.name == name)


def refusal(*connectors: Connector, file: FileFacts = NO_FILE) -> dict[str, str]:
    with pytest.raises(FaultyConnector) as refused:
        entries_of(connectors, file)
    return {fault.field: fault.sentence for fault in refused.value.faults}


def test_no_connector_says_nothing() -> None:
    assert entries_of([], NO_FILE) == Mapped({})


def test_a_source_connector_copies_and_does_nothing_else() -> None:
    flow = flow_of(entries_of([connector("Source", topics="orders.*", replication_policy_separator="_")], NO_FILE))
    assert (flow.topics, flow.separator, flow.source.bootstrap, flow.target.bootstrap) == (
        ("orders.*",),
        "_",
        ("a:1",),
        ("b:1",),
    )
    assert flow.jobs.heartbeats == ()
    assert (flow.jobs.groups.checkpoints, flow.jobs.groups.sync, flow.jobs.sync_configs) == (False, False, True)
    assert flow.mm2.connector == "source", "it goes on where a connector of this name stopped"


def test_connectors_of_one_flow_complete_each_other() -> None:
    source = connector("Source", topics="t", sync_topic_acls_enabled="false", refresh_topics_interval_seconds="60")
    checkpoint = connector("Checkpoint", groups="g", sync_group_offsets_enabled="true", topics="t")
    heartbeat = connector("Heartbeat", emit_heartbeats_interval_seconds="5")
    for order in ([source, checkpoint, heartbeat], [heartbeat, checkpoint, source]):
        flow = flow_of(entries_of(order, NO_FILE))
        assert (flow.topics, flow.jobs.sync_acls, flow.refresh_topics_interval_s) == (("t",), False, 60)
        assert (flow.jobs.groups.include, flow.jobs.groups.checkpoints, flow.jobs.groups.sync) == (("g",), True, True)
        assert [(pulse.source, pulse.target, pulse.interval_s) for pulse in flow.jobs.heartbeats] == [("A", "B", 5)]


def test_without_a_source_connector_nothing_is_copied() -> None:
    for one in (connector("Checkpoint"), connector("Heartbeat")):
        flow = flow_of(entries_of([one], NO_FILE))
        assert (flow.topics, flow.heartbeats_replication_enabled) == ((), False)


def test_one_that_does_nothing_now_or_is_disabled_is_as_if_it_were_not_there() -> None:
    three = [connector("Source", topics="t"), connector("Checkpoint"), connector("Heartbeat", enabled="false")]
    assert flow_of(entries_of(three, NO_FILE)).jobs.heartbeats, "heartbeats do not look at enabled"
    flow = flow_of(entries_of(three, NO_FILE, idle={"checkpoint", "heartbeat", "source"}))
    assert (flow.jobs.groups.checkpoints, flow.jobs.heartbeats) == (False, ())
    assert flow.topics == ("t",), "a source connector that is stopped is held, and keeps its topics"
    disabled = [connector("Source", topics="t", enabled="false"), connector("Checkpoint", enabled="false")]
    flow = flow_of(entries_of(disabled, NO_FILE))
    assert (flow.topics, flow.jobs.groups.checkpoints) == ((), False)


def test_both_directions_have_their_own_heartbeats() -> None:
    both = [connector("Source"), connector("Heartbeat", "back", flow=("B", "A"))]
    mapped = entries_of(both, NO_FILE)
    assert [pulse.target for pulse in flow_of(mapped, "B->A").jobs.heartbeats] == ["A"]
    assert flow_of(mapped).jobs.heartbeats == ()


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"consumer_fetch_min_bytes": "2"}, 2),
        ({"consumer_fetch_min_bytes": "2", "source_cluster_consumer_fetch_min_bytes": "3"}, 3),
        ({"source_consumer_fetch_min_bytes": "4", "source_cluster_consumer_fetch_min_bytes": "3"}, 4),
        ({"source_consumer_fetch_min_bytes": "4", "consumer_fetch_min_bytes": "2"}, 4),
        ({"target_consumer_fetch_min_bytes": "5"}, 1),
    ],
)
def test_client_kind_wins_over_cluster_and_client_kind_of_a_cluster_over_both(
    fields: dict[str, str], expected: int
) -> None:
    assert flow_of(entries_of([connector("Source", **fields)], NO_FILE)).fetch_min_bytes == expected


def test_security_keys_reach_the_connections_they_are_for() -> None:
    one = connector(
        "Source",
        source_cluster_security_protocol="SSL",
        target_cluster_security_protocol="PLAINTEXT",
        source_admin_security_protocol="PLAINTEXT",
        producer_override_security_protocol="SSL",
    )
    flow = flow_of(entries_of([one], NO_FILE))
    assert (flow.source.security.tls is None, flow.source_admin.security.tls is None) == (False, True)
    assert (flow.target.security.tls is None, flow.target_admin.security.tls is None) == (False, True)


def test_producer_and_admin_keys_are_the_clusters() -> None:
    one = connector(
        "Source",
        producer_linger_ms="1",
        target_cluster_producer_linger_ms="2",
        producer_override_compression_type="zstd",
        recompress="true",
        admin_client_id="me",
        consumer_override_max_poll_records="5",
        consumer_poll_timeout_ms="7",
        source_cluster_nonsense="x",
    )
    mapped = entries_of([one], NO_FILE)
    assert (mapped.entries["A.producer.linger.ms"], mapped.entries["B.producer.linger.ms"]) == ("1", "2")
    assert flow_of(mapped).codec == "zstd"
    assert (mapped.entries["A.admin.client.id"], mapped.entries["B.admin.client.id"]) == ("me", "me")
    assert {"A->B.consumer.override.max.poll.records", "A->B.consumer.poll.timeout.ms"} <= mapped.entries.keys()
    assert mapped.entries["A->B.source.cluster.nonsense"] == "x", "load says that it is not read"


def test_old_names_are_understood_and_lose_against_new_ones() -> None:
    one = connector("Source", topics_blacklist="old", topics_exclude="new", groups_blacklist="x")
    mapped = entries_of([one], NO_FILE)
    assert flow_of(mapped).topics_exclude == ("new",)
    assert entries_of([connector("Source", topics_blacklist="old")], NO_FILE).entries["A->B.topics.exclude"] == "old"


def test_what_another_kind_reads_is_said() -> None:
    source = connector("Source", groups="g", emit_heartbeats_enabled="false", source_readonly="true")
    checkpoint = connector("Checkpoint", replication_factor="1", tasks_max="4", gate_colour="red", topics="t")
    mapped = entries_of([source], NO_FILE)
    assert mapped.said == (
        "connector source: groups is not read in a MirrorSourceConnector: it is a setting of MirrorCheckpointConnector",
        (
            "connector source: emit.heartbeats.enabled is not read in a MirrorSourceConnector: it is a setting of "
            "MirrorHeartbeatConnector"
        ),
    )
    assert entries_of([checkpoint], NO_FILE).said == (
        (
            "connector checkpoint: replication.factor is not read in a MirrorCheckpointConnector: it is a setting of "
            "MirrorSourceConnector"
        ),
        (
            "connector checkpoint: tasks.max is not read in a MirrorCheckpointConnector: slots says how many tasks carry all "
            "flows"
        ),
        "connector checkpoint: gate.colour is not read in a MirrorCheckpointConnector: it is not an option",
    )


def test_an_alias_is_one_cluster() -> None:
    other = connector("Source", "other", flow=("A", "C"), source_cluster_bootstrap_servers="z:9")
    found = refusal(connector("Source"), other)
    assert found == {
        "A.bootstrap.servers": "connector other: A.bootstrap.servers = z:9, but connector source has a:1: one alias is one "
        "cluster, one flow has one set of options"
    }
    same = connector("Source", "other", flow=("A", "C"), source_cluster_bootstrap_servers="PLAINTEXT://a:1")
    assert "A.bootstrap.servers" in entries_of([connector("Source"), same], NO_FILE).entries
    refs = [connector("Source", n, flow=("A", n), source_cluster_bootstrap_servers="${env:A}") for n in "BC"]
    assert entries_of(refs, NO_FILE).entries["A.bootstrap.servers"] == "${env:A}"


def test_secrets_are_not_in_what_is_said_of_a_conflict() -> None:
    keys = ({"source_cluster_ssl_key_password": f"${{env:{name}}}"} for name in "PQ")
    one, two = (connector("Source", n, flow=("A", n), **key) for n, key in zip("BC", keys, strict=True))
    said = refusal(one, two)["A.ssl.key.password"]
    assert "env" not in said and "another value" in said


def test_connectors_of_one_flow_agree_where_both_say_something() -> None:
    source = connector("Source", replication_policy_separator="_")
    assert "A->B.replication.policy.separator" in refusal(
        source, connector("Checkpoint", replication_policy_separator="-")
    )
    assert flow_of(entries_of([source, connector("Checkpoint")], NO_FILE)).separator == "_"


@pytest.mark.parametrize(
    ("sources", "checkpoints", "fits"),
    [("t", "t", True), ("t", "u", False), ("", ".*", True), ("", "t", False), ("t", "", True)],
)
def test_checkpoints_are_written_for_what_is_copied(sources: str, checkpoints: str, fits: bool) -> None:
    pair = [
        connector("Source", **({"topics": sources} if sources else {})),
        connector("Checkpoint", **({"topics": checkpoints} if checkpoints else {})),
    ]
    if fits:
        assert flow_of(entries_of(pair, NO_FILE)).topics == ((sources or ".*"),)
    else:
        assert "checkpoints are written for what is copied" in refusal(*pair)["topics"]


def test_a_flow_has_one_connector_of_each_kind() -> None:
    assert refusal(connector("Source", "one"), connector("Source", "two")) == {
        "connector.class": "connector two: flow A->B has a MirrorSourceConnector, one: change that one, or use another alias"
    }


def test_the_files_flows_and_clusters_are_the_files() -> None:
    file = facts(FILE)
    assert refusal(connector("Heartbeat", flow=("A", "C")), file=file) == {
        "source.cluster.alias": "connector heartbeat: the file has flow A->C: change it there"
    }
    assert (
        "the file has a:1"
        in refusal(connector("Source", source_cluster_bootstrap_servers="z:1"), file=file)["A.bootstrap.servers"]
    )
    assert (
        "the file has nothing"
        in refusal(connector("Source", source_cluster_security_protocol="SSL"), file=file)["A.security.protocol"]
    )
    mapped = entries_of([connector("Source"), connector("Source", "back", flow=("C", "A"))], file)
    assert mapped.entries["clusters"] == "A,C,B"
    assert "A.bootstrap.servers" not in mapped.entries
    assert "A->C.emit.heartbeats.enabled" not in mapped.entries, "what the file has is left alone"
    longer = connector("Source", flow=("A.b", "B"))
    assert entries_of([longer], file).entries["A.b.bootstrap.servers"] == "a.b:1", (
        "another alias, although it begins alike"
    )
