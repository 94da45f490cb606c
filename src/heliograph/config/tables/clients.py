"""How connections log in (Kafka's client security keys), and the client prefixes of a MirrorMaker 2 file."""

from __future__ import annotations

from heliograph.config.kinds import Choice, ClassName, Flag, Fraction, Jaas, Kind, Names, Text, Whole
from heliograph.config.option import CLUSTER, CONSUMER, SECURITY, TOP, Option
from heliograph.config.security import MECHANISMS

_MS = Whole(0, unit="ms")
_JAVA_ONLY = "TLS comes from OpenSSL, not from Java"
_NO_CLASS = "Java classes are not loaded; how to log in is built in"
_BROKER_CHECKS = "the broker checks tokens, a client does not"
_ONLY_CREDENTIALS = "tokens are fetched with client credentials"
_TICKET = "a ticket is taken as it is: keep one with kinit"
_OAUTH_CLASSES = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler",
    "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler",
    "io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler",
)
_IAM_CLASSES = ("software.amazon.msk.auth.iam.IAMClientCallbackHandler",)
_STORES = Choice(("JKS", "PKCS12", "PEM"), any_case=True)


def _security(name: str, kind: Kind, default: str, doc: str, since: str = "2.4.0") -> Option:
    return Option(name, kind, default, doc, SECURITY, since=since)


def _unserved(name: str, kind: Kind, default: str | None, instead: str, since: str = "2.4.0") -> Option:
    doc = "A key of Kafka's Java clients."
    return Option(name, kind, default, doc, SECURITY, served=False, instead=instead, since=since)


def _assertion(name: str, kind: Kind, default: str | None) -> Option:
    return _unserved(f"sasl.oauthbearer.assertion.{name}", kind, default, _ONLY_CREDENTIALS, "4.1.0")


_TLS_ROWS = (
    _unserved("ssl.protocol", Text(), "TLSv1.3", "ssl.enabled.protocols says which versions are used"),
    _unserved("ssl.provider", Text(), None, _JAVA_ONLY),
    _unserved("ssl.cipher.suites", Names(), "", "OpenSSL's own list of safe suites is offered"),
    _security("ssl.enabled.protocols", Names(("TLSv1.2", "TLSv1.3")), "TLSv1.2,TLSv1.3", "TLS versions allowed."),
    _security(
        "ssl.keystore.type", _STORES, "JKS", "Format of the key store; JKS and PKCS12 are told apart by content."
    ),
    _security("ssl.keystore.location", Text(), "", "File with our key and certificates."),
    _security("ssl.keystore.password", Text(), "", "Opens the key store."),
    _security("ssl.keystore.key", Text(), "", "Our private key as PEM, with ssl.keystore.certificate.chain.", "2.7.0"),
    _security("ssl.keystore.certificate.chain", Text(), "", "Our certificates as PEM, our own first.", "2.7.0"),
    _security("ssl.key.password", Text(), "", "Opens our private key; else the key store's password does."),
    _security("ssl.truststore.type", _STORES, "JKS", "Format of the trust store."),
    _security(
        "ssl.truststore.location", Text(), "", "File with the certificates that we trust; empty: this machine's."
    ),
    _security("ssl.truststore.password", Text(), "", "Opens the trust store."),
    _security("ssl.truststore.certificates", Text(), "", "Certificates that we trust, as PEM.", "2.7.0"),
    _unserved("ssl.keymanager.algorithm", Text(), "SunX509", _JAVA_ONLY),
    _unserved("ssl.trustmanager.algorithm", Text(), "PKIX", _JAVA_ONLY),
    _security(
        "ssl.endpoint.identification.algorithm",
        Choice(("https", ""), any_case=True),
        "https",
        "Whether a broker's certificate must hold the name it is reached by; empty: not checked.",
    ),
    _unserved("ssl.secure.random.implementation", Text(), None, _JAVA_ONLY),
    _unserved("ssl.engine.factory.class", ClassName(), None, _JAVA_ONLY, "2.6.0"),
)
_LOGIN_ROWS = (
    _security("sasl.mechanism", Choice(MECHANISMS), "GSSAPI", "How we log in."),
    _security("sasl.jaas.config", Jaas(), "", "Who we are: one login module with its options, in Java's form."),
    _security(
        "sasl.login.callback.handler.class", ClassName(_OAUTH_CLASSES, may_be_empty=True), "", "How tokens are fetched."
    ),
    _security(
        "sasl.client.callback.handler.class", ClassName(_IAM_CLASSES, may_be_empty=True), "", "How AWS_MSK_IAM signs."
    ),
    _unserved("sasl.login.class", ClassName(), None, _NO_CLASS),
    _security(
        "sasl.login.refresh.window.factor", Fraction(0.5, 1.0), "0.8", "At which part of its life a token is renewed."
    ),
    _security("sasl.login.refresh.window.jitter", Fraction(0.0, 0.25), "0.05", "Spread of that moment."),
    _security(
        "sasl.login.refresh.min.period.seconds", Whole(0, 900, unit="seconds"), "60", "Shortest time between renewals."
    ),
    _security(
        "sasl.login.refresh.buffer.seconds",
        Whole(0, 3600, unit="seconds"),
        "300",
        "How long before its end at the latest.",
    ),
    _security("sasl.login.connect.timeout.ms", _MS, "10000", "Limit for reaching the token endpoint.", "3.1.0"),
    _security("sasl.login.read.timeout.ms", _MS, "10000", "Limit for its answer.", "3.1.0"),
    _security("sasl.login.retry.backoff.ms", _MS, "100", "First wait before asking it again.", "3.1.0"),
    _security("sasl.login.retry.backoff.max.ms", _MS, "10000", "Longest time of asking again.", "3.1.0"),
    _security("sasl.kerberos.service.name", Text(), "", "Kerberos name of the brokers."),
    _unserved("sasl.kerberos.kinit.cmd", Text(), "/usr/bin/kinit", _TICKET),
    _unserved("sasl.kerberos.ticket.renew.window.factor", Fraction(0.0, 1.0), "0.8", _TICKET),
    _unserved("sasl.kerberos.ticket.renew.jitter", Fraction(0.0, 1.0), "0.05", _TICKET),
    _unserved("sasl.kerberos.min.time.before.relogin", _MS, "60000", _TICKET),
)
_OAUTH_ROWS = (
    _security(
        "sasl.oauthbearer.token.endpoint.url",
        Text(),
        "",
        "Where tokens come from; a file:// URL names a file that holds one.",
        "3.1.0",
    ),
    _security("sasl.oauthbearer.client.credentials.client.id", Text(), "", "Our id there.", "4.1.0"),
    _security("sasl.oauthbearer.client.credentials.client.secret", Text(), "", "Our secret there.", "4.1.0"),
    _security("sasl.oauthbearer.scope", Text(), "", "What the token is for.", "4.1.0"),
    _security(
        "sasl.oauthbearer.header.urlencode", Flag(), "false", "Whether id and secret are URL-encoded first.", "3.9.0"
    ),
    _unserved("sasl.oauthbearer.scope.claim.name", Text(), "scope", _BROKER_CHECKS, "3.1.0"),
    _unserved("sasl.oauthbearer.sub.claim.name", Text(), "sub", _BROKER_CHECKS, "3.1.0"),
    _unserved("sasl.oauthbearer.jwks.endpoint.url", Text(), None, _BROKER_CHECKS, "3.1.0"),
    _unserved("sasl.oauthbearer.jwks.endpoint.refresh.ms", _MS, "3600000", _BROKER_CHECKS, "3.1.0"),
    _unserved("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", _MS, "100", _BROKER_CHECKS, "3.1.0"),
    _unserved("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", _MS, "10000", _BROKER_CHECKS, "3.1.0"),
    _unserved("sasl.oauthbearer.clock.skew.seconds", Whole(0, unit="seconds"), "30", _BROKER_CHECKS, "3.1.0"),
    _unserved("sasl.oauthbearer.expected.audience", Names(), "", _BROKER_CHECKS, "3.1.0"),
    _unserved("sasl.oauthbearer.expected.issuer", Text(), None, _BROKER_CHECKS, "3.1.0"),
    _unserved("sasl.oauthbearer.jwt.retriever.class", ClassName(), None, _NO_CLASS, "4.1.0"),
    _unserved("sasl.oauthbearer.jwt.validator.class", ClassName(), None, _NO_CLASS, "4.1.0"),
    _assertion("algorithm", Choice(("ES256", "RS256"), any_case=True), "RS256"),
    _assertion("claim.aud", Text(), None),
    _assertion("claim.exp.seconds", Whole(0, 86400, unit="seconds"), "300"),
    _assertion("claim.iss", Text(), None),
    _assertion("claim.jti.include", Flag(), "false"),
    _assertion("claim.nbf.seconds", Whole(0, 3600, unit="seconds"), "60"),
    _assertion("claim.sub", Text(), None),
    _assertion("file", Text(), None),
    _assertion("private.key.file", Text(), None),
    _assertion("private.key.passphrase", Text(), None),
    _assertion("template.file", Text(), None),
)
SECURITY_ROWS = (
    _security(
        "security.protocol",
        Choice(("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"), any_case=True),
        "PLAINTEXT",
        "How brokers are reached: with TLS (SSL), with a login (SASL), or both.",
    ),
    *_TLS_ROWS,
    *_LOGIN_ROWS,
    *_OAUTH_ROWS,
)

PROVIDER_ROWS = (
    Option("config.providers", Names(), "", "Names of config providers; env, file and dir need no entry here.", TOP),
    Option(
        "config.providers.*",
        Text(),
        "",
        "The class of a provider, and its limits: param.allowed.paths, param.allowlist.pattern.",
        TOP,
    ),
)


def _admin(name: str, kind: Kind, default: str, doc: str) -> Option:
    return Option(f"admin.{name}", kind, default, doc, CLUSTER)


ADMIN_ROWS = (
    _admin("client.id", Text(), "heliograph-admin", "The name that brokers see of admin connections."),
    _admin(
        "client.dns.lookup",
        Choice(("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only")),
        "use_all_dns_ips",
        "How names of brokers are resolved.",
    ),
    _admin("connections.max.idle.ms", Whole(-1, unit="ms"), "300000", "When an idle connection is closed."),
    _admin("metadata.max.age.ms", _MS, "300000", "When the list of brokers is read again."),
    _admin("reconnect.backoff.ms", _MS, "50", "First wait before connecting again."),
    _admin("reconnect.backoff.max.ms", _MS, "1000", "Longest wait before connecting again."),
    _admin("retry.backoff.ms", _MS, "100", "Wait before asking again."),
    _admin("receive.buffer.bytes", Whole(-1), "65536", "Socket buffer; -1: the system's."),
    _admin("send.buffer.bytes", Whole(-1), "131072", "Socket buffer; -1: the system's."),
)


def _producer(name: str, kind: Kind, default: str | None, doc: str, instead: str) -> Option:
    return Option(f"producer.{name}", kind, default, doc, CLUSTER, served=False, instead=instead)


_BATCHES_STAY = "batches are forwarded as the source has them"
_NEVER_GIVEN_UP = "a lane never gives a record up"
_PARTITION_STAYS = "a record goes to the partition that it has on the source"
_BYTES = "records are copied byte for byte"
_NO_INTERCEPTORS = "Java classes are not loaded"

WRITER_ROWS = (
    Option(
        "producer.compression.type",
        Choice(("none", "gzip", "snappy", "lz4", "zstd")),
        "none",
        "Codec of the copies where the flow says `recompress = true`. Without that batches keep the codec that they have.",
        CLUSTER,
    ),
    Option(
        "producer.send.buffer.bytes",
        Whole(-1),
        "4194304",
        "Socket buffer of connections that write; -1: the system's. The log says how much the system granted.",
        CLUSTER,
    ),
)

PRODUCER_ROWS = (
    _producer("acks", Choice(("all", "-1", "0", "1")), "all", "Replicas that must have a batch.", "acks is always all"),
    _producer("batch.size", Whole(0), "16384", "Size of batches.", _BATCHES_STAY + "; see merge.target.bytes"),
    _producer("linger.ms", _MS, "5", "How long a batch waits to fill.", _BATCHES_STAY),
    _producer("buffer.memory", Whole(0), "33554432", "Memory of a producer.", "slot.memory.bytes bounds a slot"),
    _producer(
        "max.request.size", Whole(0), "1048576", "Largest request.", "the remote topic's max.message.bytes rules"
    ),
    _producer("enable.idempotence", Flag(), "false", "Broker refuses repeats.", "every lane is idempotent"),
    _producer(
        "max.in.flight.requests.per.connection",
        Whole(1),
        "1",
        "Unanswered requests.",
        "in.flight.batches bounds a lane",
    ),
    _producer("transactional.id", Text(), None, "Name of transactions.", "data is written without transactions"),
    _producer("delivery.timeout.ms", _MS, "2147483647", "When a record is given up.", _NEVER_GIVEN_UP),
    _producer("max.block.ms", _MS, "9223372036854775807", "When a send gives up.", _NEVER_GIVEN_UP),
    _producer("retries", Whole(0), "2147483647", "Tries of a request.", _NEVER_GIVEN_UP),
    _producer("request.timeout.ms", _MS, "30000", "Limit of a request.", "request.timeout.ms of the file rules"),
    _producer("client.id", Text(), None, "The name that brokers see.", "connections that write are called heliograph"),
    _producer("receive.buffer.bytes", Whole(-1), "32768", "Socket buffer of answers.", "answers to a writer are small"),
    _producer("partitioner.class", ClassName(), None, "Chooses partitions.", _PARTITION_STAYS),
    _producer("partitioner.ignore.keys", Flag(), "false", "Chooses partitions.", _PARTITION_STAYS),
    _producer("key.serializer", ClassName(), None, "Java class.", _BYTES),
    _producer("value.serializer", ClassName(), None, "Java class.", _BYTES),
    _producer("interceptor.classes", Names(), "", "Java classes.", _NO_INTERCEPTORS),
    *(
        _producer(
            f"compression.{codec}.level", Whole(-131072), None, "How hard.", "recompress uses the codec's default"
        )
        for codec in ("gzip", "lz4", "zstd")
    ),
)


def _consumer(name: str, kind: Kind, default: str | None, doc: str, instead: str) -> Option:
    return Option(f"consumer.{name}", kind, default, doc, CONSUMER, served=False, instead=instead)


_NO_GROUP = "the source is read without a consumer group, positions are in the ledger"

CONSUMER_ROWS = (
    *(
        _consumer(name, Text(), None, "Consumer groups.", _NO_GROUP)
        for name in ("group.id", "group.instance.id", "group.protocol", "group.remote.assignor")
    ),
    _consumer("partition.assignment.strategy", Names(), "", "Who reads which partition.", "slots share lanes by load"),
    _consumer("enable.auto.commit", Flag(), "false", "Commit offsets.", _NO_GROUP),
    _consumer("auto.commit.interval.ms", _MS, "5000", "How often.", _NO_GROUP),
    _consumer("session.timeout.ms", _MS, "45000", "When a reader counts as dead.", _NO_GROUP),
    _consumer("heartbeat.interval.ms", _MS, "3000", "How often a reader is heard.", _NO_GROUP),
    _consumer("max.poll.interval.ms", _MS, "300000", "Longest time between reads.", _NO_GROUP),
    _consumer("max.poll.records", Whole(1), "500", "Records in one read.", "consumer.fetch.max.bytes bounds a read"),
    _consumer("check.crcs", Flag(), "true", "Verify batches.", "the CRC is carried on, and the target verifies it"),
    _consumer("client.rack", Text(), "", "Read from the nearest replica.", "leaders are read"),
    _consumer("client.id", Text(), None, "The name that brokers see.", "connections that read are called heliograph"),
    _consumer("request.timeout.ms", _MS, "30000", "Limit of a request.", "request.timeout.ms of the file rules"),
    _consumer("send.buffer.bytes", Whole(-1), "131072", "Socket buffer of requests.", "requests to a source are small"),
    _consumer("key.deserializer", ClassName(), None, "Java class.", _BYTES),
    _consumer("value.deserializer", ClassName(), None, "Java class.", _BYTES),
    _consumer("interceptor.classes", Names(), "", "Java classes.", _NO_INTERCEPTORS),
)


def _family(prefix: str, doc: str, instead: str) -> Option:
    return Option(f"{prefix}.*", Text(), None, doc, (f"{{flow}}.{prefix}.*",), served=False, instead=instead)


_OWN_CLIENTS = "Heliograph has its own reader and writer, and no such setting"

FAMILY_ROWS = (
    _family("consumer", "Kafka's consumer keys, other than those named here.", _OWN_CLIENTS),
    _family("producer", "Kafka's producer keys, other than those named here.", _OWN_CLIENTS),
    _family("admin", "Kafka's admin client keys, other than those named here.", _OWN_CLIENTS),
    *(
        _family(f"{client}.override", "Connect's overrides.", _OWN_CLIENTS)
        for client in ("consumer", "producer", "admin")
    ),
    *(
        _family(f"{side}.{client}", f"Client keys of one flow's {side}.", _OWN_CLIENTS)
        for side in ("source", "target")
        for client in ("consumer", "producer", "admin", "cluster")
    ),
)

ROWS = (*SECURITY_ROWS, *PROVIDER_ROWS, *ADMIN_ROWS, *WRITER_ROWS, *PRODUCER_ROWS, *CONSUMER_ROWS, *FAMILY_ROWS)

_SHARED = """
bootstrap.servers client.dns.lookup client.id config.providers connections.max.idle.ms enable.metrics.push
interceptor.classes metadata.max.age.ms metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy
metric.reporters metrics.num.samples metrics.recording.level metrics.sample.window.ms receive.buffer.bytes
reconnect.backoff.max.ms reconnect.backoff.ms request.timeout.ms retry.backoff.max.ms retry.backoff.ms security.protocol
security.providers send.buffer.bytes socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms
"""
_CONSUMER = """
allow.auto.create.topics auto.commit.interval.ms auto.offset.reset check.crcs client.rack default.api.timeout.ms
enable.auto.commit exclude.internal.topics fetch.max.bytes fetch.max.wait.ms fetch.min.bytes group.id group.instance.id
group.protocol group.remote.assignor heartbeat.interval.ms isolation.level key.deserializer max.partition.fetch.bytes
max.poll.interval.ms max.poll.records partition.assignment.strategy poll.timeout.ms session.timeout.ms
share.acknowledgement.mode share.acquire.mode value.deserializer
"""
_PRODUCER = """
acks batch.size buffer.memory compression.gzip.level compression.lz4.level compression.type compression.zstd.level
delivery.timeout.ms enable.idempotence key.serializer linger.ms max.block.ms max.in.flight.requests.per.connection
max.request.size metadata.max.idle.ms partitioner.adaptive.partitioning.enable partitioner.availability.timeout.ms
partitioner.class partitioner.ignore.keys retries transaction.timeout.ms transaction.two.phase.commit.enable
transactional.id value.serializer
"""
_ADMIN = "bootstrap.controllers default.api.timeout.ms retries"

CLIENT_KEYS = {
    "consumer": frozenset((_SHARED + _CONSUMER).split()),
    "producer": frozenset((_SHARED + _PRODUCER).split()),
    "admin": frozenset((_SHARED + _ADMIN).split()),
}
"""The keys of Kafka's three clients (4.3), so that a misspelt one is told from one that has no row."""
