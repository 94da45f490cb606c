"""One broker with many doors: TLS, SASL and both, and some whose certificate is not in order. Its authorizer is on.

The open door stays for the comparison. Passwords are unlike anything else, so that a test can look for them anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from heliograph.config.load import load
from heliograph.embedded.cluster import EmbeddedCluster
from heliograph.model.clusters import Cluster
from tests.support.certificates import PASSWORD, Certificates, make_certificates
from tests.support.doors import AUTHORIZER, grant_footprint
from tests.support.token_server import TokenServer, serving_tokens
from tests.support.topics import admin

USER = "mirror, the first=1"  # what SCRAM must escape
LOGIN_PASSWORD = 'l0gin-s3cret "quoted" \\ back'
TOKEN_SECRET = "t0ken-s3cret"
SECRETS = (PASSWORD, "l0gin-s3cret", TOKEN_SECRET)
RELOGIN_MS = 5_000
"""Logins are renewed after 85 %: the rest must be enough for a machine that stands still for a moment."""
_MODULES = "org.apache.kafka.common.security"
_DOORS = {
    "TLS": "SSL",
    "SASL": "SASL_PLAINTEXT",
    "SAFE": "SASL_SSL",
    "EXPIRED": "SSL",
    "ELSEWHERE": "SSL",
    "ENDING": "SSL",
}
_MECHANISMS = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER"


def quoted(text: str) -> str:
    """As a JAAS option's value."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


@dataclass(frozen=True)
class Secured:
    """The cluster, its certificates and its token endpoint."""

    cluster: EmbeddedCluster
    certificates: Certificates
    tokens: TokenServer

    def tls(self, **more: str) -> dict[str, str]:
        """Keys that trust the CA; `more` has `_` for `.`."""
        keys = {"ssl.truststore.type": "PEM", "ssl.truststore.location": self.certificates.ca()}
        return keys | {name.replace("_", "."): value for name, value in more.items()}

    def client_certificate(self) -> dict[str, str]:
        return self.tls(ssl_keystore_type="PEM", ssl_keystore_location=self.certificates.pem("client"))

    def login(self, mechanism: str, password: str = LOGIN_PASSWORD) -> dict[str, str]:
        if mechanism == "OAUTHBEARER":
            return {
                "sasl.mechanism": mechanism,
                "sasl.login.callback.handler.class": f"{_MODULES}.oauthbearer.OAuthBearerLoginCallbackHandler",
                "sasl.oauthbearer.token.endpoint.url": self.tokens.url,
                "sasl.jaas.config": f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required "
                f'clientId="mirror" clientSecret="{TOKEN_SECRET}" scope="mirror";',
            }
        module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
        options = f"username={quoted(USER)} password={quoted(password)}"
        return {"sasl.mechanism": mechanism, "sasl.jaas.config": f"{_MODULES}.{module} required {options};"}

    def keys(self, door: str, *more: dict[str, str]) -> dict[str, str]:
        """The protocol of a door and these keys."""
        found = {"security.protocol": _DOORS[door]}
        for keys in more:
            found |= keys
        return found

    def through(self, door: str, *more: dict[str, str]) -> Cluster:
        """The cluster as a file with these keys would have it."""
        return cluster_of("S", self.cluster.bootstrap_of(door), self.keys(door, *more))


def cluster_of(alias: str, bootstrap: str, keys: dict[str, str]) -> Cluster:
    lines = [f"clusters = {alias}, other", f"{alias}.bootstrap.servers = {bootstrap}", "other.bootstrap.servers = x:1"]
    lines += [f"{alias}->other.enabled = true", *(f"{alias}.{name} = {in_file(value)}" for name, value in keys.items())]
    return load("\n".join(lines), "test.properties").flows[0].source


def in_file(value: str) -> str:
    """As a value in a properties file."""
    return value.replace("\\", "\\\\")


def prefixed(alias: str, keys: dict[str, str]) -> dict[str, str]:
    """Keys of one cluster as lines of a properties file."""
    return {f"{alias}.{name}": in_file(value) for name, value in keys.items()}


@contextmanager
def secured_cluster(folder: Path) -> Iterator[Secured]:
    certificates = make_certificates(folder)
    with serving_tokens(TokenServer("mirror", TOKEN_SECRET)) as tokens:
        cluster = EmbeddedCluster("S", folder / "brokers", config=_config(certificates), listeners=_DOORS)
        try:
            cluster.start()
            _add_scram_user(cluster.bootstrap)
            grant_footprint(cluster.bootstrap, "User:*")
            yield Secured(cluster, certificates, tokens)
        finally:
            cluster.stop()


def _config(made: Certificates) -> dict[str, str]:
    config: dict[str, str] = AUTHORIZER | {"sasl.enabled.mechanisms": _MECHANISMS}
    shown = {"expired": "expired", "elsewhere": "elsewhere", "ending": "ending"}
    for door in (name.lower() for name in _DOORS):
        prefix = f"listener.name.{door}"
        config |= {
            f"{prefix}.ssl.keystore.type": "PEM",
            f"{prefix}.ssl.keystore.location": made.pem(shown.get(door, "broker")),
            f"{prefix}.ssl.truststore.type": "PEM",
            f"{prefix}.ssl.truststore.location": made.ca(),
            f"{prefix}.ssl.client.auth": "required" if door == "tls" else "none",
            f"{prefix}.sasl.enabled.mechanisms": _MECHANISMS,
            f"{prefix}.plain.sasl.jaas.config": _plain_users(),
            f"{prefix}.scram-sha-256.sasl.jaas.config": f"{_MODULES}.scram.ScramLoginModule required;",
            f"{prefix}.scram-sha-512.sasl.jaas.config": f"{_MODULES}.scram.ScramLoginModule required;",
            f"{prefix}.oauthbearer.sasl.jaas.config": f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required "
            'unsecuredLoginStringClaim_sub="broker";',
        }
    for mechanism in ("plain", "scram-sha-256", "scram-sha-512"):
        config[f"listener.name.safe.{mechanism}.connections.max.reauth.ms"] = str(RELOGIN_MS)
    return config


def _plain_users() -> str:
    return in_file(f'{_MODULES}.plain.PlainLoginModule required "user_{USER}"={quoted(LOGIN_PASSWORD)};')


def _add_scram_user(bootstrap: str) -> None:
    client = admin(bootstrap)
    for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
        info = ScramCredentialInfo(mechanism, 4096)
        wanted = UserScramCredentialUpsertion(USER, info, LOGIN_PASSWORD.encode())
        for future in client.alter_user_scram_credentials([wanted]).values():
            future.result(30)
