"""ClusterAdmin against real brokers; what it did is looked at through confluent-kafka."""

from __future__ import annotations

import gc
import socket
import threading
import time
import warnings
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import ConfigResource  # type: ignore[attr-defined]  # its stub does not export it

from heliograph.embedded.cluster import EmbeddedCluster
from heliograph.errors import BrokerRefused, ClusterUnreachable, SetupError
from heliograph.kafka.admin import ClusterAdmin, internal_topics
from heliograph.kafka.ledger import EVENTS_TOPIC, LEDGER_TOPIC, TELEMETRY_TOPIC
from heliograph.model.clusters import Cluster
from heliograph.replication.topic_plan import AddPartitions, CreateTopic, TopicRules, plan_topics
from tests.support import topics as independent
from tests.support.clusters import ClusterFactory, TwoClusters
from tests.support.waiting import wait_until
from tests.support.writers import OpenTransaction, samples, write

TOPIC_OVERRIDE = "DYNAMIC_TOPIC_CONFIG"
BOUNDED_SECONDS = 25
"""On a busy machine; a client that waits as ever needs a minute or more."""


def admin_of(cluster: EmbeddedCluster, timeout_ms: int = 10_000) -> ClusterAdmin:
    return ClusterAdmin(Cluster(cluster.name, tuple(cluster.bootstrap.split(","))), timeout_ms)


def topic(name: str, partitions: int = 1, replicas: int = 1, configs: dict[str, str] | None = None) -> CreateTopic:
    return CreateTopic(name, partitions, replicas, configs or {}, "for a test")


def overrides(bootstrap: str, name: str) -> dict[str, str]:
    client = independent.admin(bootstrap)
    (future,) = client.describe_configs([ConfigResource("TOPIC", name)]).values()
    return {entry.name: entry.value for entry in future.result(30).values() if entry.source == 1}


@pytest.fixture
def b(two_clusters: TwoClusters) -> Iterator[ClusterAdmin]:
    with admin_of(two_clusters.b) as admin:
        yield admin


@pytest.fixture
def silent_port() -> Iterator[int]:
    """Somebody who takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


# the cluster


def test_the_cluster_tells_its_id_and_its_brokers(two_clusters: TwoClusters, b: ClusterAdmin) -> None:
    assert b.cluster_id() == two_clusters.b.cluster_id
    assert b.brokers() == 1


def test_a_brokers_setting_is_told_and_an_unknown_one_is_none(b: ClusterAdmin) -> None:
    assert b.broker_config("producer.id.expiration.ms") == "86400000"
    assert b.broker_config("no.such.setting") is None


def test_of_a_setting_that_brokers_have_differently_the_smallest_counts(new_cluster: ClusterFactory) -> None:
    cluster = new_cluster("C", brokers=2)
    independent.set_broker_config(cluster.bootstrap, 2, "producer.id.expiration.ms", "600000")
    with admin_of(cluster) as admin:
        wait_until(lambda: admin.least_broker_config("producer.id.expiration.ms") == 600_000, "broker 2 has it")
        assert admin.broker_config("producer.id.expiration.ms") == "86400000", "broker 1 does not"
        assert admin.least_broker_config("no.such.setting") is None


# topics


def test_a_created_topic_has_its_partitions_and_configs(
    two_clusters: TwoClusters, b: ClusterAdmin, unique: str
) -> None:
    configs = {"retention.ms": "1234567", "cleanup.policy": "compact,delete"}
    assert b.create(topic(unique, 3, configs=configs)) is True
    assert independent.partition_count(two_clusters.b.bootstrap, unique) == 3
    assert overrides(two_clusters.b.bootstrap, unique) == configs
    found = b.topics([unique], with_configs=True)[unique]
    assert found.partitions == 3 and len(found.topic_id) == 36
    assert {name: config.value for name, config in found.configs.items() if not config.is_default} == configs
    assert found.configs["retention.ms"].source == TOPIC_OVERRIDE
    assert found.configs["segment.ms"].is_default


def test_creating_a_topic_that_is_there_changes_nothing(b: ClusterAdmin, unique: str) -> None:
    b.create(topic(unique, 2))
    before = b.topics([unique])
    assert b.create(topic(unique, 5)) is False
    assert b.topics([unique]) == before


def test_a_topic_made_again_has_another_id(two_clusters: TwoClusters, b: ClusterAdmin, unique: str) -> None:
    b.create(topic(unique))
    first = b.topics([unique])[unique].topic_id
    independent.delete_topic(two_clusters.b.bootstrap, unique)
    b.create(topic(unique))
    assert b.topics([unique])[unique].topic_id != first


def test_topics_that_do_not_exist_or_cannot_exist_are_left_out(b: ClusterAdmin, unique: str) -> None:
    b.create(topic(unique))
    assert set(b.topics([unique, f"{unique}-not", "x" * 250, "not allowed"])) == {unique}
    assert unique in b.topics() and b.topics([]) == {}
    assert set(b.topic_configs([unique, f"{unique}-not"])) == {unique}


def test_names_of_249_characters_and_odd_names_work(b: ClusterAdmin, unique: str) -> None:
    for name in (unique.ljust(249, "x"), f"{unique}.-_a", f"-{unique}", f"_{unique}"):
        b.create(topic(name, 2))
        b.add_partitions(AddPartitions(name, 2, 3, "grown"))
        assert b.topics([name], with_configs=True)[name].partitions == 3
        assert b.ends([(name, 2)]) == {(name, 2): 0}


def test_more_replicas_than_brokers_is_an_error_that_names_option_value_and_brokers(
    b: ClusterAdmin, unique: str
) -> None:
    sentence = f"replication.factor=3 is not possible for topic '{unique}': cluster 'B' has 1 broker"
    with pytest.raises(SetupError, match=sentence):
        b.create(topic(unique, replicas=3))
    assert b.topics([unique]) == {}


@pytest.mark.parametrize(
    ("name", "configs", "code", "words"),
    [
        ("x" * 250, {}, 17, "longer than the max allowed length 249"),
        ("ok", {"retention.ms": "soon"}, 40, "Not a number"),
        ("ok", {"no.such.config": "1"}, 40, "Unknown topic config name: no.such.config"),
    ],
)
def test_what_a_broker_refuses_is_told_with_its_code_and_words(
    b: ClusterAdmin, unique: str, name: str, configs: dict[str, str], code: int, words: str
) -> None:
    with pytest.raises(BrokerRefused, match=f"cluster 'B', create topic.*{words}") as refusal:
        b.create(topic(unique if name == "ok" else name, configs=configs))
    assert refusal.value.code == code


def test_of_many_topics_a_refused_one_is_told_and_the_others_are_made(b: ClusterAdmin, unique: str) -> None:
    first, bad, last = (f"{unique}.{number}" for number in range(3))
    refused = b.create_all([topic(first), topic(bad, configs={"cleanup.policy": "nonsense"}), topic(last)])
    assert set(refused) == {bad}
    assert f"create topic '{bad}'" in str(refused[bad])
    assert set(b.topics([first, bad, last])) == {first, last}


def test_a_topic_grows_once(two_clusters: TwoClusters, b: ClusterAdmin, unique: str) -> None:
    b.create(topic(unique, 2))
    assert b.add_partitions(AddPartitions(unique, 2, 5, "grown")) is True
    assert b.add_partitions(AddPartitions(unique, 2, 5, "grown")) is False
    assert b.add_partitions(AddPartitions(unique, 2, 4, "grown")) is False
    assert independent.partition_count(two_clusters.b.bootstrap, unique) == 5


def test_growing_a_topic_that_is_gone_is_refused(b: ClusterAdmin, unique: str) -> None:
    with pytest.raises(BrokerRefused) as refusal:
        b.add_partitions(AddPartitions(unique, 1, 2, "grown"))
    assert refusal.value.code == 3


def test_a_plan_made_of_two_clusters_and_applied_leaves_nothing_to_do(
    two_clusters: TwoClusters, b: ClusterAdmin, unique: str
) -> None:
    rules = TopicRules(1, config_exclude=lambda name: name == "min.insync.replicas")
    wanted = {"cleanup.policy": "compact", "retention.ms": "777777"}
    source = two_clusters.a.bootstrap
    independent.create_topic(source, unique, 4, config={**wanted, "min.insync.replicas": "1"})
    independent.create_topic(source, f"{unique}.grown", 3)
    b.create(topic(f"A.{unique}.grown", 1))
    with admin_of(two_clusters.a) as a:
        selected = a.topics([unique, f"{unique}.grown"], with_configs=True)
    actions = plan_topics(selected, b.topics(), lambda name: f"A.{name}", rules)
    assert [type(action) for action in actions] == [CreateTopic, AddPartitions]
    for action in actions:
        assert isinstance(action, CreateTopic | AddPartitions)
        assert b.create(action) if isinstance(action, CreateTopic) else b.add_partitions(action)
    assert plan_topics(selected, b.topics(), lambda name: f"A.{name}", rules) == []
    target = two_clusters.b.bootstrap
    assert independent.partition_count(target, f"A.{unique}") == 4
    assert independent.partition_count(target, f"A.{unique}.grown") == 3
    assert overrides(target, f"A.{unique}") == wanted


def test_a_name_that_the_plan_calls_a_collision_is_refused_by_the_broker_too(b: ClusterAdmin, unique: str) -> None:
    b.create(topic(f"{unique}_x"))
    with pytest.raises(BrokerRefused) as refusal:
        b.create(topic(f"{unique}.x"))
    assert refusal.value.code == 17


def test_sizes_are_bytes_on_disk_and_what_is_not_there_is_left_out(
    two_clusters: TwoClusters, b: ClusterAdmin, unique: str
) -> None:
    independent.create_topic(two_clusters.b.bootstrap, unique, 2)
    # A broker tells of a topic before it has made the logs.
    wait_until(lambda: b.sizes([unique]) == {unique: 0}, "it has a log")
    write(two_clusters.b.bootstrap, unique, samples(100, size=1000, partitions=2), "none")
    found = b.sizes([unique, f"{unique}-not"])
    assert set(found) == {unique} and 100_000 < found[unique] < 120_000
    assert b.sizes([]) == {}


# offsets


def test_starts_and_ends_are_those_of_the_log(two_clusters: TwoClusters, b: ClusterAdmin, unique: str) -> None:
    bootstrap = two_clusters.b.bootstrap
    independent.create_topic(bootstrap, unique, 2)
    write(bootstrap, unique, samples(100, partitions=2), "none")
    independent.delete_records(bootstrap, unique, 0, 20)
    both = [(unique, 0), (unique, 1)]
    assert b.starts(both) == {(unique, 0): 20, (unique, 1): 0}
    assert b.ends(both) == {(unique, 0): 50, (unique, 1): 50}
    assert b.ends([]) == {}


def test_an_open_transaction_holds_the_stable_end_back(two_clusters: TwoClusters, b: ClusterAdmin, unique: str) -> None:
    bootstrap = two_clusters.b.bootstrap
    independent.create_topic(bootstrap, unique)
    hanging = OpenTransaction(bootstrap, unique, unique, count=10)
    assert b.ends([(unique, 0)], "read_committed") == {(unique, 0): 0}
    assert b.ends([(unique, 0)], "read_uncommitted") == {(unique, 0): 10}
    hanging.commit()
    # A commit is answered before its markers are written.
    wait_until(lambda: b.ends([(unique, 0)], "read_committed") == {(unique, 0): 11}, "the stable end moves")


def test_offsets_of_a_partition_that_does_not_exist_are_refused_soon(b: ClusterAdmin, unique: str) -> None:
    began = time.monotonic()
    with pytest.raises(BrokerRefused, match=unique) as refusal:
        b.ends([(unique, 0)])
    assert refusal.value.code == 3 and time.monotonic() - began < BOUNDED_SECONDS


# Heliograph's own topics


def test_internal_topics_are_made_once_and_as_they_must_be(new_cluster: ClusterFactory) -> None:
    cluster = new_cluster("C")
    with admin_of(cluster) as admin:
        with pytest.raises(SetupError, match=r"heliograph\.topics\.replication\.factor=2 .* 'C' has 1 broker"):
            admin.ensure_internal_topics(2)
        admin.ensure_internal_topics()
        before = admin.topics()
        admin.ensure_internal_topics()
        assert admin.topics() == before
    counts = {
        name: independent.partition_count(cluster.bootstrap, name)
        for name in independent.topic_names(cluster.bootstrap)
    }
    assert counts == {LEDGER_TOPIC: 16, TELEMETRY_TOPIC: 1, EVENTS_TOPIC: 1}
    for action in internal_topics(1):
        assert overrides(cluster.bootstrap, action.name) == dict(action.configs)


def test_a_ledger_that_is_not_compacted_is_refused(new_cluster: ClusterFactory) -> None:
    cluster = new_cluster("C")
    independent.create_topic(cluster.bootstrap, LEDGER_TOPIC)
    with admin_of(cluster) as admin, pytest.raises(SetupError, match="cleanup.policy=delete: it must be compact"):
        admin.ensure_internal_topics()


def test_three_brokers_carry_the_ledger_and_the_loss_of_the_one_that_is_asked_is_survived(
    new_cluster: ClusterFactory, unique: str
) -> None:
    cluster = new_cluster("C", brokers=3)
    with admin_of(cluster, timeout_ms=30_000) as admin:
        assert admin.brokers() == 3
        admin.ensure_internal_topics()
        assert overrides(cluster.bootstrap, LEDGER_TOPIC)["min.insync.replicas"] == "2"
        # The library goes on asking the broker that it took for the controller: that one must be the one to die.
        asked = admin._client._controller_id  # type: ignore[union-attr]
        cluster.kill(asked)
        assert admin.create(topic(unique, 3, replicas=2)) is True
        assert admin.topics([unique])[unique].partitions == 3
    with warnings.catch_warnings():
        # The library leaves the socket of a broker that died to the collector, which would complain in some later test.
        warnings.simplefilter("ignore", ResourceWarning)
        del admin
        gc.collect()


# nobody there


def test_a_cluster_that_is_not_there_is_named_with_its_addresses_in_bounded_time_and_leaves_no_thread() -> None:
    threads = set(threading.enumerate())
    admin = ClusterAdmin(Cluster("Z", ("127.0.0.1:1", "127.0.0.1:2")), request_timeout_ms=600_000)
    began = time.monotonic()
    with pytest.raises(ClusterUnreachable, match="^cluster Z: connection refused at 127.0.0.1:1, 127.0.0.1:2$"):
        admin.topics()
    assert time.monotonic() - began < BOUNDED_SECONDS
    assert set(threading.enumerate()) <= threads


def test_a_broker_that_takes_connections_and_says_nothing_is_unreachable_in_bounded_time(silent_port: int) -> None:
    admin = ClusterAdmin(Cluster("Z", (f"127.0.0.1:{silent_port}",)), request_timeout_ms=1_000)
    began = time.monotonic()
    with pytest.raises(ClusterUnreachable, match="cluster Z at 127.0.0.1:.* did not answer within 1 s"):
        admin.brokers()
    assert time.monotonic() - began < BOUNDED_SECONDS


def test_addresses_that_are_dead_or_silent_do_not_hide_one_that_serves(
    two_clusters: TwoClusters, silent_port: int
) -> None:
    addresses = ("127.0.0.1:1", f"127.0.0.1:{silent_port}", two_clusters.b.bootstrap)
    with ClusterAdmin(Cluster("B", addresses), request_timeout_ms=10_000) as admin:
        assert admin.cluster_id() == two_clusters.b.cluster_id


def test_a_broker_that_freezes_is_unreachable_and_is_asked_again_when_it_wakes(
    new_cluster: ClusterFactory, unique: str
) -> None:
    cluster = new_cluster("C")
    with admin_of(cluster, timeout_ms=2_000) as admin:
        assert admin.topics() == {}
        cluster.freeze(1)
        began = time.monotonic()
        with pytest.raises(ClusterUnreachable, match="cluster C at"):
            admin.create(topic(unique))
        assert time.monotonic() - began < BOUNDED_SECONDS
        cluster.thaw(1)

        def is_made() -> bool:
            # The frozen request may have been carried out on waking: then it is there already. For its controller it is gone
            # until it is heard again, and it may take longer than two seconds to be itself.
            try:
                admin.create(topic(unique))
                return set(admin.topics()) == {unique}
            except (ClusterUnreachable, SetupError):
                return False

        wait_until(is_made, "it is asked again, and makes the topic")


def test_a_broker_that_restarts_is_asked_again(new_cluster: ClusterFactory, unique: str) -> None:
    cluster = new_cluster("C")
    with admin_of(cluster) as admin:
        admin.create(topic(unique))
        cluster.restart(1)
        assert set(admin.topics()) == {unique}


def test_a_closed_admin_connects_again_and_closing_twice_is_nothing(two_clusters: TwoClusters) -> None:
    threads = set(threading.enumerate())
    admin = admin_of(two_clusters.b)
    assert admin.brokers() == 1
    admin.close()
    admin.close()
    assert set(threading.enumerate()) <= threads
    assert admin.brokers() == 1
    admin.close()


# settings


def test_client_settings_reach_the_client(two_clusters: TwoClusters) -> None:
    settings = (
        ("client.id", "mine"),
        ("metadata.max.age.ms", "60000"),
        ("receive.buffer.bytes", "-1"),
    )
    with ClusterAdmin(Cluster("B", (two_clusters.b.bootstrap,), settings)) as admin:
        assert admin.brokers() == 1
        found = admin._client.config  # type: ignore[union-attr]
    assert (found["client_id"], found["metadata_max_age_ms"], found["receive_buffer_bytes"]) == ("mine", 60000, None)


def test_a_setting_that_is_no_number_is_refused() -> None:
    with pytest.raises(SetupError, match="metadata.max.age.ms=soon of cluster 'B' is not a whole number"):
        ClusterAdmin(Cluster("B", ("b:9092",), (("metadata.max.age.ms", "soon"),)))


@pytest.mark.parametrize("address", ["", "host", "host:", "host:abc", "a:1:2", "host :1", ":9092", "host:65536"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(SetupError, match="bootstrap.servers of cluster 'B' holds .*host:port is expected"):
        ClusterAdmin(Cluster("B", (address,)))


def test_no_address_at_all_is_refused() -> None:
    with pytest.raises(SetupError, match="host:port is expected"):
        ClusterAdmin(Cluster("B", ()))
