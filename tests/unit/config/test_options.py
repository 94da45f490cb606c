"""The table is complete and says the same as MirrorMaker 2 where it has the option."""

from __future__ import annotations

import pytest

from heliograph.config.option import Option, is_secret
from heliograph.config.options import BY_NAME, OPTIONS, client_prefix, find, is_client_key, known_names

# The names that ConfigDef of Kafka 4.3.1 lists for the three connectors and the driver, without ssl.* and sasl.*.
MIRRORMAKER = """
admin.timeout.ms checkpoints.topic.replication.factor clusters config.action.reload config.properties.exclude
config.property.filter.class config.providers connector.class connector.plugin.version consumer.poll.timeout.ms
dedicated.mode.enable.internal.rest emit.checkpoints.enabled emit.checkpoints.interval.seconds emit.heartbeats.enabled
emit.heartbeats.interval.seconds emit.offset-syncs.enabled enabled errors.log.enable errors.log.include.messages
errors.retry.delay.max.ms errors.retry.timeout errors.tolerance forwarding.admin.class group.filter.class groups
groups.exclude header.converter heartbeats.replication.enabled heartbeats.topic.replication.factor key.converter
listeners metric.names.formats metric.reporters name offset-syncs.topic.location offset-syncs.topic.replication.factor
offset.lag.max predicates refresh.groups.enabled refresh.groups.interval.seconds refresh.topics.enabled
refresh.topics.interval.seconds replication.factor replication.policy.class
replication.policy.internal.topic.separator.enabled replication.policy.separator response.http.headers.config
rest.advertised.host.name rest.advertised.listener rest.advertised.port security.protocol source.cluster.alias
sync.group.offsets.enabled sync.group.offsets.interval.seconds sync.topic.acls.enabled sync.topic.acls.interval.seconds
sync.topic.configs.enabled sync.topic.configs.interval.seconds target.cluster.alias tasks.max tasks.max.enforce
topic.filter.class topics topics.exclude transforms use.defaults.from value.converter access.control.allow.methods
access.control.allow.origin task.assigned.partitions task.assigned.groups task.index offset.flush.interval.ms
offset.flush.timeout.ms offset.storage.partitions status.storage.partitions offset.storage.replication.factor
config.storage.replication.factor status.storage.replication.factor exactly.once.source.support session.timeout.ms
scheduled.rebalance.max.delay.ms rebalance.timeout.ms heartbeat.interval.ms task.shutdown.graceful.timeout.ms
connect.protocol exactly.once.support transaction.boundary transaction.boundary.interval.ms offsets.storage.topic
topics.blacklist groups.blacklist config.properties.blacklist use.incremental.alter.configs add.source.alias.to.metrics
auto.include.jmx.reporter ssl.client.auth
"""
SECURITY = """
ssl.protocol ssl.provider ssl.cipher.suites ssl.enabled.protocols ssl.keystore.type ssl.keystore.location
ssl.keystore.password ssl.keystore.key ssl.keystore.certificate.chain ssl.key.password ssl.truststore.type
ssl.truststore.location ssl.truststore.password ssl.truststore.certificates ssl.keymanager.algorithm
ssl.trustmanager.algorithm ssl.endpoint.identification.algorithm ssl.secure.random.implementation
ssl.engine.factory.class sasl.mechanism sasl.jaas.config sasl.client.callback.handler.class
sasl.login.callback.handler.class sasl.login.class sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
sasl.login.refresh.min.period.seconds sasl.login.refresh.buffer.seconds sasl.login.connect.timeout.ms
sasl.login.read.timeout.ms sasl.login.retry.backoff.ms sasl.login.retry.backoff.max.ms sasl.kerberos.service.name
sasl.kerberos.kinit.cmd sasl.kerberos.ticket.renew.window.factor sasl.kerberos.ticket.renew.jitter
sasl.kerberos.min.time.before.relogin sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name
sasl.oauthbearer.token.endpoint.url sasl.oauthbearer.jwks.endpoint.url sasl.oauthbearer.jwks.endpoint.refresh.ms
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms
sasl.oauthbearer.clock.skew.seconds sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer
sasl.oauthbearer.header.urlencode
"""
PREFIXES = """
consumer.x producer.x admin.x source.consumer.x source.producer.x source.admin.x target.consumer.x target.producer.x
target.admin.x source.cluster.x target.cluster.x producer.override.x consumer.override.x admin.override.x
topic.creation.x config.providers.x listeners.https.x inter.worker.x transforms.x predicates.x spark.x
"""


@pytest.mark.parametrize("name", [*MIRRORMAKER.split(), *SECURITY.split()])
def test_every_option_of_mirrormaker_2_has_a_row(name: str) -> None:
    assert name in BY_NAME


@pytest.mark.parametrize("name", PREFIXES.split())
def test_every_prefix_of_mirrormaker_2_is_known(name: str) -> None:
    found = find(name)
    assert found is not None
    assert found.is_family


def test_names_are_unique() -> None:
    assert len(OPTIONS) == len(BY_NAME)


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_a_row_is_whole(option: Option) -> None:
    assert option.doc.endswith(".")
    assert option.scope
    assert option.type
    assert option.allowed
    assert option.served != bool(option.instead)
    assert not option.instead.endswith(".")
    if option.default is not None:
        option.kind.parse(option.default)


def test_every_served_option_but_the_required_ones_has_a_default() -> None:
    required = [option.name for option in OPTIONS if option.served and option.default is None]
    assert required == ["clusters", "bootstrap.servers"]


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("topics", "topics"),
        ("ssl.key.password", "ssl.key.password"),
        ("consumer.ssl.key.password", "ssl.key.password"),
        ("source.cluster.ssl.key.password", "ssl.key.password"),
        ("producer.override.security.protocol", "security.protocol"),
        ("consumer.isolation.level", "consumer.isolation.level"),
        ("source.consumer.isolation.level", "consumer.isolation.level"),
        ("source.consumer.max.poll.records", "consumer.max.poll.records"),
        ("source.consumer.metric.reporters", "source.consumer.*"),
        ("consumer.topics", "consumer.*"),
        ("offset.storage.topic", "offset.storage.topic"),
        ("offset.storage.segment.ms", "offset.storage.*"),
        ("spark.app.name", "spark.*"),
    ],
)
def test_a_name_behind_client_prefixes_means_its_option(name: str, meaning: str) -> None:
    found = find(name)
    assert found is not None
    assert found.name == meaning


def test_a_name_without_meaning_is_not_found() -> None:
    assert find("no.such.option") is None


def test_client_prefixes_are_told_apart() -> None:
    assert client_prefix("source.consumer.x") == "source.consumer."
    assert client_prefix("consumer.x") == "consumer."
    assert client_prefix("topics") == ""


def test_kafkas_own_client_keys_are_known() -> None:
    assert is_client_key("consumer.max.poll.records")
    assert is_client_key("source.cluster.client.id")
    assert not is_client_key("consumer.linger.ms")
    assert not is_client_key("max.poll.records")
    assert "source.consumer.isolation.level" in set(known_names())


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("A.ssl.keystore.password", True),
        ("sasl.jaas.config", True),
        ("ssl.keystore.key", True),
        ("spark.hadoop.fs.s3a.access.key", True),
        ("spark.hadoop.fs.s3a.secretKey", True),
        ("sasl.oauthbearer.client.credentials.client.secret", True),
        ("sasl.oauthbearer.token.endpoint.url", False),
        ("key.converter", False),
        ("A->B.topics", False),
    ],
)
def test_secrets_are_known_by_their_names(name: str, secret: bool) -> None:
    assert is_secret(name) is secret
