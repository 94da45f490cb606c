from __future__ import annotations

import pytest

from heliograph.config.security import MECHANISMS, read_security
from heliograph.model.security import PLAINTEXT, Login, Refresh, Secret, Security, Store, Tls, TokenSource

JAAS = 'a.LoginModule required username="alice" password="s3cret";'
URL = "https://tokens.example/token"


def read(**keys: str) -> Security:
    security, faults = read_security({name.replace("_", "."): value for name, value in keys.items()})
    assert faults == []
    return security


def faults(**keys: str) -> list[str]:
    found = read_security({name.replace("_", "."): value for name, value in keys.items()})[1]
    assert "s3cret" not in repr(found)
    return found


def test_nothing_said_is_plaintext() -> None:
    assert read() == PLAINTEXT
    assert read(security_protocol="plaintext", ssl_truststore_location="/t", sasl_mechanism="PLAIN") == PLAINTEXT


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"])
def test_the_protocol_says_what_there_is(protocol: str) -> None:
    keys = {"security_protocol": protocol.lower(), "sasl_mechanism": "PLAIN", "sasl_jaas_config": JAAS}
    security = read(**keys)
    assert security.protocol == protocol
    assert (security.tls is not None, security.login is not None) == ("SSL" in protocol, "SASL" in protocol)


def test_tls_by_default_trusts_what_the_machine_trusts_and_checks_names() -> None:
    assert read(security_protocol="SSL").tls == Tls(None, None, None, True, ("TLSv1.2", "TLSv1.3"))


def test_stores_in_files() -> None:
    security = read(
        security_protocol="SSL",
        ssl_truststore_location="/trust",
        ssl_truststore_password="t",
        ssl_keystore_location="/own",
        ssl_keystore_type="pkcs12",
        ssl_keystore_password="k",
        ssl_key_password="kk",
        ssl_endpoint_identification_algorithm="",
        ssl_enabled_protocols="TLSv1.3",
    )
    assert security.tls == Tls(
        trust=Store("ssl.truststore.location", "JKS", "/trust", Secret("t")),
        own=Store("ssl.keystore.location", "PKCS12", "/own", Secret("k")),
        key_password=Secret("kk"),
        checks_host=False,
        versions=("TLSv1.3",),
    )


def test_stores_as_text() -> None:
    security = read(
        security_protocol="SSL",
        ssl_truststore_certificates="CA",
        ssl_keystore_key="KEY",
        ssl_keystore_certificate_chain="CHAIN",
    )
    assert security.tls is not None
    assert security.tls.trust == Store("ssl.truststore.certificates", "PEM", text=Secret("CA"))
    assert security.tls.own == Store("ssl.keystore.key", "PEM", text=Secret("CHAIN\nKEY"))


@pytest.mark.parametrize(
    ("keys", "fault"),
    [
        (
            {"ssl_truststore_location": "/t", "ssl_truststore_certificates": "C"},
            "ssl.truststore.location and ssl.truststore.certificates are both set: leave one of them out",
        ),
        (
            {"ssl_keystore_location": "/t", "ssl_keystore_key": "s3cret", "ssl_keystore_certificate_chain": "C"},
            "ssl.keystore.location and ssl.keystore.key are both set: leave one of them out",
        ),
        (
            {"ssl_keystore_key": "s3cret"},
            "ssl.keystore.key is set without ssl.keystore.certificate.chain: both are needed, as PEM",
        ),
        (
            {"ssl_keystore_certificate_chain": "C"},
            "ssl.keystore.certificate.chain is set without ssl.keystore.key: both are needed, as PEM",
        ),
    ],
)
def test_stores_that_contradict_each_other_are_faults(keys: dict[str, str], fault: str) -> None:
    assert faults(security_protocol="SSL", **keys) == [fault]


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_password_comes_from_jaas(mechanism: str) -> None:
    security = read(security_protocol="SASL_PLAINTEXT", sasl_mechanism=mechanism, sasl_jaas_config=JAAS)
    assert security.login == Login(mechanism, "alice", Secret("s3cret"))


@pytest.mark.parametrize(
    ("jaas", "fault"),
    [
        ("", "sasl.mechanism = PLAIN needs username and password in sasl.jaas.config, which is not set"),
        ("a.B required;", "… in sasl.jaas.config: username and password not found there"),
        ('a.B required username="x";', "… in sasl.jaas.config: password not found there"),
        (
            'a.B required username="x" password="s3cret" tokenauth="true";',
            "tokenauth=true in sasl.jaas.config: delegation tokens are not served, log in with a password",
        ),
    ],
)
def test_a_login_without_a_password_is_a_fault(jaas: str, fault: str) -> None:
    (found,) = faults(security_protocol="SASL_SSL", sasl_mechanism="PLAIN", sasl_jaas_config=jaas)
    assert found.endswith(fault.removeprefix("…"))


def test_kerberos_is_kafkas_default_mechanism_and_needs_the_brokers_name() -> None:
    assert read(security_protocol="SASL_SSL", sasl_kerberos_service_name="kafka").login == Login(
        "GSSAPI", service="kafka"
    )
    jaas = 'com.sun.security.auth.module.Krb5LoginModule required serviceName="kafka" useTicketCache=true;'
    assert read(security_protocol="SASL_SSL", sasl_jaas_config=jaas).login == Login("GSSAPI", service="kafka")
    (fault,) = faults(security_protocol="SASL_SSL")
    assert fault.startswith("sasl.mechanism = GSSAPI needs sasl.kerberos.service.name")


def test_a_keytab_is_refused_with_what_to_do() -> None:
    jaas = 'x.Krb5LoginModule required serviceName="kafka" keyTab="/k";'
    (fault,) = faults(security_protocol="SASL_SSL", sasl_jaas_config=jaas)
    assert fault.startswith("keyTab in sasl.jaas.config is not read: keep a ticket with `kinit -kt")


def test_iam_needs_tls() -> None:
    assert read(security_protocol="SASL_SSL", sasl_mechanism="AWS_MSK_IAM").login == Login("AWS_MSK_IAM")
    assert faults(security_protocol="SASL_PLAINTEXT", sasl_mechanism="AWS_MSK_IAM") == [
        "sasl.mechanism = AWS_MSK_IAM needs security.protocol = SASL_SSL, not SASL_PLAINTEXT"
    ]


def oauth(jaas: str, **keys: str) -> TokenSource:
    login = read(security_protocol="SASL_SSL", sasl_mechanism="OAUTHBEARER", sasl_jaas_config=jaas, **keys).login
    assert login is not None
    assert login.tokens is not None
    return login.tokens


def test_tokens_by_kafkas_older_names() -> None:
    jaas = 'x.L required clientId="me" clientSecret="s3cret" scope="mirror" extension_pool="p1" extension_a="b";'
    assert oauth(jaas, sasl_oauthbearer_token_endpoint_url=URL) == TokenSource(
        URL, "me", Secret("s3cret"), "mirror", extensions=(("a", "b"), ("pool", "p1"))
    )


def test_tokens_by_kafkas_newer_names_which_win() -> None:
    found = oauth(
        'x.L required clientId="no" clientSecret="no" scope="no";',
        sasl_oauthbearer_token_endpoint_url=URL,
        sasl_oauthbearer_client_credentials_client_id="me",
        sasl_oauthbearer_client_credentials_client_secret="s3cret",
        sasl_oauthbearer_scope="mirror",
        sasl_oauthbearer_header_urlencode="TRUE",
        sasl_login_connect_timeout_ms="1",
        sasl_login_read_timeout_ms="2",
        sasl_login_retry_backoff_ms="3",
        sasl_login_retry_backoff_max_ms="4",
        sasl_login_refresh_window_factor="0.6",
        sasl_login_refresh_window_jitter="0.1",
        sasl_login_refresh_min_period_seconds="5",
        sasl_login_refresh_buffer_seconds="6",
    )
    assert found == TokenSource(URL, "me", Secret("s3cret"), "mirror", True, 1, 2, 3, 4, Refresh(0.6, 0.1, 5, 6))


def test_tokens_by_strimzis_names() -> None:
    names = {"client.id": "me", "client.secret": "s3cret", "token.endpoint.uri": URL, "scope": "mirror"}
    jaas = "x.L required " + " ".join(f'oauth.{name}="{value}"' for name, value in names.items()) + ";"
    assert oauth(jaas) == TokenSource(URL, "me", Secret("s3cret"), "mirror")


def test_a_token_in_a_file_needs_no_credentials() -> None:
    assert oauth("", sasl_oauthbearer_token_endpoint_url="file:///run/token").url == "file:///run/token"


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        ("", "sasl.oauthbearer.token.endpoint.url is not set: sasl.mechanism = OAUTHBEARER needs it"),
        ("ftp://x", "sasl.oauthbearer.token.endpoint.url is ftp://x: sasl.mechanism = OAUTHBEARER needs it"),
        (URL, "sasl.mechanism = OAUTHBEARER needs sasl.oauthbearer.client.credentials.client.id and"),
    ],
)
def test_tokens_from_nowhere_are_a_fault(url: str, fault: str) -> None:
    keys = {"sasl_mechanism": "OAUTHBEARER", "sasl_oauthbearer_token_endpoint_url": url}
    (found,) = faults(security_protocol="SASL_SSL", **keys)
    assert found.startswith(fault)


def test_every_mechanism_is_read() -> None:
    for mechanism in MECHANISMS:
        security, _ = read_security({"security.protocol": "SASL_SSL", "sasl.mechanism": mechanism})
        assert security.login is not None
        assert security.login.mechanism == mechanism
