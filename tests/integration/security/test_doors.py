"""TLS and SASL against a real broker: every way in, and the sentence for every door that stays closed."""

from __future__ import annotations

import asyncio
import pickle
from pathlib import Path

import pytest

from heliograph.errors import AccessRefused, ConnectionLost, HeliographError, SetupError
from heliograph.kafka.admin import ClusterAdmin
from heliograph.kafka.client import ClusterClient
from heliograph.kafka.connections import Connection
from heliograph.kafka.keystores import carried
from heliograph.model.clusters import Cluster
from tests.support.certificates import PASSWORD
from tests.support.secured import RELOGIN_MS, SECRETS, Secured, cluster_of

AT_ONCE_SECONDS = 60
"""Half of what a client would wait for an answer: nobody waited for that, however busy the machine is."""
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")


def cluster_id(cluster: Cluster, timeout_s: float = 30) -> str:
    async def ask() -> str:
        client = ClusterClient(cluster, timeout_s=timeout_s)
        try:
            await client.metadata([])
            return client.cluster_id
        finally:
            client.close()

    return asyncio.run(ask())


def both_get_in(secured: Secured, cluster: Cluster) -> None:
    """Our own client, after a journey to another host, and the library's."""
    travelled = pickle.loads(pickle.dumps(cluster))  # noqa: S301  our own
    assert cluster_id(travelled) == secured.cluster.cluster_id
    with ClusterAdmin(cluster) as admin:
        assert admin.cluster_id() == secured.cluster.cluster_id


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("door", ["SASL", "SAFE"])
def test_a_login_opens_the_door(secured: Secured, door: str, mechanism: str) -> None:
    tls = secured.tls() if door == "SAFE" else {}
    both_get_in(secured, secured.through(door, tls, secured.login(mechanism)))


@pytest.mark.parametrize("kind", ["PEM", "PKCS12", "JKS"])
def test_a_client_certificate_opens_the_door_from_any_store(secured: Secured, kind: str) -> None:
    made = secured.certificates
    keys = secured.client_certificate()
    if kind != "PEM":
        for store, path in (("keystore", made.key_store("client", kind)), ("truststore", made.trust_store(kind))):
            keys |= {f"ssl.{store}.type": kind, f"ssl.{store}.location": path, f"ssl.{store}.password": PASSWORD}
    cluster = secured.through("TLS", keys)
    ready = Cluster(cluster.alias, cluster.bootstrap, security=carried(cluster.security))
    both_get_in(secured, ready)


def test_certificates_may_stand_in_the_file_itself(secured: Secured) -> None:
    whole = Path(secured.certificates.pem("client")).read_text()
    chain, begin, key = whole.partition("-----BEGIN PRIVATE KEY-----")
    keys = {
        "ssl.keystore.certificate.chain": chain.replace("\n", " "),
        "ssl.keystore.key": (begin + key).replace("\n", " "),
        "ssl.truststore.certificates": Path(secured.certificates.ca()).read_text().replace("\n", " "),
    }
    both_get_in(secured, secured.through("TLS", keys))


def test_names_may_go_unchecked(secured: Secured) -> None:
    keys = secured.tls(ssl_endpoint_identification_algorithm="")
    both_get_in(secured, secured.through("ELSEWHERE", keys))


def test_either_version_of_tls_can_be_asked_for(secured: Secured) -> None:
    for version in ("TLSv1.2", "TLSv1.3"):
        cluster = secured.through("TLS", secured.client_certificate(), {"ssl.enabled.protocols": version})
        assert cluster_id(cluster) == secured.cluster.cluster_id


def refusals(cluster: Cluster, kind: type[HeliographError]) -> list[str]:
    """What our own client and the library's say; neither may take long, nor tell a secret."""
    found = []
    with pytest.raises(kind) as ours:
        cluster_id(cluster, timeout_s=2 * AT_ONCE_SECONDS)
    found.append(str(ours.value))
    with ClusterAdmin(cluster, request_timeout_ms=2_000 * AT_ONCE_SECONDS) as admin, pytest.raises(kind) as theirs:
        admin.cluster_id()
    found.append(str(theirs.value))
    assert not [secret for secret in SECRETS for sentence in found if secret in sentence]
    return found


@pytest.mark.parametrize(
    ("door", "mechanism", "sentence"),
    [
        (
            "SASL",
            "PLAIN",
            "it refuses the login of mirror, the first=1 by PLAIN (Authentication failed: Invalid username",
        ),
        ("SAFE", "PLAIN", "check username and password of sasl.jaas.config"),
        (
            "SAFE",
            "SCRAM-SHA-256",
            "check username and password of sasl.jaas.config, and that this user has a SCRAM-SHA-256",
        ),
        ("SASL", "SCRAM-SHA-512", "it refuses the login of mirror, the first=1 by SCRAM-SHA-512"),
    ],
)
@pytest.mark.timeout(AT_ONCE_SECONDS, func_only=True)
def test_a_wrong_password_is_refused_at_once(secured: Secured, door: str, mechanism: str, sentence: str) -> None:
    cluster = secured.through(door, secured.tls(), secured.login(mechanism, SECRETS[0]))
    for said in refusals(cluster, AccessRefused):
        assert said.startswith(f"cluster S: {cluster.bootstrap[0]}: ")
        assert sentence in said


@pytest.mark.parametrize(
    ("door", "sentence"),
    [
        ("EXPIRED", "its certificate has expired"),
        ("ELSEWHERE", "its certificate is not for 127.0.0.1: reach it by a name that the certificate has"),
    ],
)
@pytest.mark.timeout(AT_ONCE_SECONDS, func_only=True)
def test_a_certificate_that_is_not_in_order_is_refused_at_once(secured: Secured, door: str, sentence: str) -> None:
    for said in refusals(secured.through(door, secured.tls()), AccessRefused):
        assert said.startswith("cluster S: 127.0.0.1:")
        assert sentence in said


@pytest.mark.timeout(AT_ONCE_SECONDS, func_only=True)
def test_an_unknown_ca_is_refused_with_the_option_that_mends_it(secured: Secured) -> None:
    wrong = secured.tls(ssl_truststore_location=secured.certificates.ca("stranger"))
    for said in refusals(secured.through("ENDING", wrong), AccessRefused):
        assert "its certificate is not signed by any of ssl.truststore.location: add its CA there" in said
    for said in refusals(secured.through("ENDING"), AccessRefused):
        assert "this machine trusts: set ssl.truststore.location" in said


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
@pytest.mark.timeout(AT_ONCE_SECONDS, func_only=True)
def test_a_broker_that_wants_a_certificate_says_so(secured: Secured, version: str) -> None:
    for said in refusals(secured.through("TLS", secured.tls(ssl_enabled_protocols=version)), AccessRefused):
        assert "it wants a certificate of ours" in said
        assert "set ssl.keystore.location" in said


def test_a_refusal_that_comes_late_says_so_too(secured: Secured) -> None:
    """In TLS 1.3 it comes after our handshake, and finds us waiting for the first answer."""
    cluster = secured.through("TLS", secured.tls(ssl_enabled_protocols="TLSv1.3"))
    host, port = cluster.bootstrap[0].split(":")

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pause_s: float) -> None:
        while part := await reader.read(65536):
            await asyncio.sleep(pause_s)
            writer.write(part)
        writer.close()

    async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to_broker = await asyncio.open_connection(host, int(port))
        await asyncio.gather(pass_on(reader, to_broker[1], 0), pass_on(to_broker[0], writer, 0.1))

    async def open_door() -> None:
        async with await asyncio.start_server(accepted, "127.0.0.1", 0) as slow:
            await Connection.open("127.0.0.1", slow.sockets[0].getsockname()[1], 5, cluster.security)

    with pytest.raises(AccessRefused, match="it wants a certificate of ours"):
        asyncio.run(open_door())


def test_a_certificate_of_ours_that_the_broker_does_not_take_says_so(secured: Secured) -> None:
    own = {"ssl.keystore.type": "PEM", "ssl.keystore.location": secured.certificates.pem("stranger")}
    for said in refusals(secured.through("TLS", secured.tls(), own), AccessRefused):
        assert "it does not take our certificate of ssl.keystore.location" in said


def test_a_mechanism_that_the_broker_lacks_is_named_with_those_it_has(secured: Secured) -> None:
    keys = {"sasl.mechanism": "GSSAPI", "sasl.kerberos.service.name": "kafka"}
    for said in refusals(secured.through("SASL", keys), AccessRefused):
        assert "it does not take sasl.mechanism = GSSAPI; it takes OAUTHBEARER, PLAIN, SCRAM-SHA-256" in said


def test_tls_against_an_open_port_and_no_tls_against_a_tls_port_are_told_apart(secured: Secured) -> None:
    closed = cluster_of("S", secured.cluster.bootstrap, {"security.protocol": "SSL"} | secured.tls())
    with pytest.raises(HeliographError, match=r"is this a TLS port \(security.protocol\)|does not speak TLS"):
        cluster_id(closed)
    opened = cluster_of("S", secured.cluster.bootstrap_of("TLS"), {})
    with pytest.raises(HeliographError, match="set security.protocol to SSL or SASL_SSL|closed by the broker"):
        cluster_id(opened)


def test_a_token_endpoint_that_is_busy_is_asked_again(secured: Secured) -> None:
    secured.tokens.busy = 2
    keys = secured.login("OAUTHBEARER") | {"sasl.login.retry.backoff.ms": "20"}
    assert cluster_id(secured.through("SASL", keys)) == secured.cluster.cluster_id
    assert secured.tokens.busy == 0
    assert secured.tokens.asked[-1] == {"grant_type": ["client_credentials"], "scope": ["mirror"]}


@pytest.mark.parametrize(
    ("key", "value", "kind", "sentence"),
    [
        (
            "client.credentials.client.secret",
            "wrong",
            AccessRefused,
            "gives no token for client mirror (status 401, invalid",
        ),
        ("token.endpoint.url", "http://127.0.0.1:1/x", HeliographError, "http://127.0.0.1:1/x does not answer"),
        ("token.endpoint.url", "file:///none/such", AccessRefused, "file /none/such cannot be read: No such file"),
    ],
)
def test_a_token_that_cannot_be_had_is_explained(
    secured: Secured, key: str, value: str, kind: type[HeliographError], sentence: str
) -> None:
    keys = secured.login("OAUTHBEARER") | {f"sasl.oauthbearer.{key}": value, "sasl.login.retry.backoff.max.ms": "50"}
    with pytest.raises(kind) as caught:
        cluster_id(secured.through("SASL", keys))
    assert sentence in str(caught.value)
    assert not [secret for secret in SECRETS if secret in str(caught.value)]


def test_a_connection_logs_in_again_before_its_login_ends(secured: Secured) -> None:
    cluster = secured.through("SAFE", secured.tls(), secured.login("SCRAM-SHA-256"))

    async def story() -> None:
        client = ClusterClient(cluster, timeout_s=5)
        try:
            await client.metadata([])
            first = await client.connection(1)
            for _ in range(3):
                async with asyncio.timeout(RELOGIN_MS / 1000):
                    while not first.login_ends:
                        await asyncio.sleep(0.02)  # not a moment longer than must be: the broker ends it soon
                await asyncio.gather(client.offsets(1, [], -1), client.offsets(1, [], -1))
                assert not first.login_ends
                assert await client.connection(1) is first
        finally:
            client.close()

    asyncio.run(story())


def test_a_connection_that_nobody_used_for_long_is_dialled_anew(secured: Secured) -> None:
    """A broker closes what is idle, and nobody would notice before the next question failed."""

    async def story(idle_s: float) -> bool:
        client = ClusterClient(secured.through("TLS", secured.client_certificate()), idle_s=idle_s)
        try:
            first = await client.connection(1)
            assert await client.metadata([]) == {}
            return await client.connection(1) is first
        finally:
            client.close()

    assert asyncio.run(story(idle_s=60))
    assert not asyncio.run(story(idle_s=0))


@pytest.mark.parametrize("kind", ["PKCS12", "JKS"])
def test_stores_that_cannot_be_read_say_why(secured: Secured, tmp_path: Path, kind: str) -> None:
    whole = Path(secured.certificates.key_store("broker", kind))
    short = tmp_path / "short"
    short.write_bytes(whole.read_bytes()[:300])
    for path, password, why in (
        (whole, "wrong-s3cret", "does not open: the password of ssl.keystore.password is wrong"),
        (short, PASSWORD, "is not a whole key store (was it cut off?)"),
        (tmp_path / "none", PASSWORD, "does not exist: correct the path, or put the file there"),
        (tmp_path, PASSWORD, "cannot be read by this user: Is a directory"),
    ):
        keys = secured.tls(ssl_keystore_location=str(path), ssl_keystore_password=password)
        with pytest.raises(SetupError) as caught:
            cluster_id(secured.through("TLS", keys))
        assert str(caught.value).startswith(f"ssl.keystore.location: file {path} {why}")
        assert "s3cret" not in str(caught.value)


def test_a_broker_that_does_not_answer_is_no_refusal(secured: Secured) -> None:
    nobody = cluster_of("S", "127.0.0.1:1", {"security.protocol": "SSL"} | secured.tls())
    with pytest.raises(HeliographError) as caught:
        cluster_id(nobody)
    assert not isinstance(caught.value, AccessRefused | ConnectionLost)
