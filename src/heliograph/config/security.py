"""From Kafka's client security keys to a Security value, or to sentences about what does not fit together.

Gets the keys of one connection, each already valid by itself (config/tables/clients.py). Opens no file; sentences name
options and never hold a secret.
"""

from __future__ import annotations

from collections.abc import Mapping

from heliograph.config.jaas import LoginModule, parse_jaas
from heliograph.model.security import Login, Refresh, Secret, Security, Store, Tls, TokenSource

SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISMS = ("PLAIN", *SCRAM, "OAUTHBEARER", "GSSAPI", "AWS_MSK_IAM")
_DEFAULT_MECHANISM = "GSSAPI"
_EXTENSION = "extension_"

Keys = Mapping[str, str]
Faults = list[str]


def read_security(keys: Keys) -> tuple[Security, Faults]:
    """What the keys of one connection say, and what is wrong with them as a whole."""
    protocol = keys.get("security.protocol", "PLAINTEXT").upper()
    faults: Faults = []
    tls = _tls(keys, faults) if protocol.endswith("SSL") else None
    login = _login(keys, protocol, faults) if protocol.startswith("SASL") else None
    return Security(tls, login), faults


# -- TLS ----------------------------------------------------------------------------------------------------------------


def _tls(keys: Keys, faults: Faults) -> Tls:
    versions = tuple(name.strip() for name in keys.get("ssl.enabled.protocols", "").split(",") if name.strip())
    return Tls(
        trust=_trust(keys, faults),
        own=_own(keys, faults),
        key_password=_secret(keys, "ssl.key.password"),
        checks_host=bool(keys.get("ssl.endpoint.identification.algorithm", "https").strip()),
        versions=versions or Tls().versions,
    )


def _trust(keys: Keys, faults: Faults) -> Store | None:
    text = keys.get("ssl.truststore.certificates", "")
    if text and keys.get("ssl.truststore.location"):
        faults.append("ssl.truststore.location and ssl.truststore.certificates are both set: leave one of them out")
    if text:
        return Store("ssl.truststore.certificates", "PEM", text=Secret(text))
    return _file(keys, "truststore")


def _own(keys: Keys, faults: Faults) -> Store | None:
    key, chain = keys.get("ssl.keystore.key", ""), keys.get("ssl.keystore.certificate.chain", "")
    if (key or chain) and keys.get("ssl.keystore.location"):
        faults.append("ssl.keystore.location and ssl.keystore.key are both set: leave one of them out")
    if key and chain:
        return Store("ssl.keystore.key", "PEM", text=Secret(f"{chain}\n{key}"))
    if key or chain:
        there, missing = ("key", "certificate.chain") if key else ("certificate.chain", "key")
        faults.append(f"ssl.keystore.{there} is set without ssl.keystore.{missing}: both are needed, as PEM")
    return _file(keys, "keystore")


def _file(keys: Keys, store: str) -> Store | None:
    path = keys.get(f"ssl.{store}.location", "")
    if not path:
        return None
    kind = keys.get(f"ssl.{store}.type", "JKS").upper()
    return Store(f"ssl.{store}.location", kind, path, _secret(keys, f"ssl.{store}.password"))


# -- the login ----------------------------------------------------------------------------------------------------------


def _login(keys: Keys, protocol: str, faults: Faults) -> Login:
    mechanism = keys.get("sasl.mechanism", _DEFAULT_MECHANISM)
    module = _module(keys)
    if mechanism == "OAUTHBEARER":
        return Login(mechanism, tokens=_tokens(keys, module.options, faults))
    if mechanism == "GSSAPI":
        return _kerberos(keys, module.options, faults)
    if mechanism == "AWS_MSK_IAM":
        if protocol != "SASL_SSL":
            faults.append(f"sasl.mechanism = AWS_MSK_IAM needs security.protocol = SASL_SSL, not {protocol}")
        return Login(mechanism)
    return _password(mechanism, keys, module.options, faults)


def _module(keys: Keys) -> LoginModule:
    text = keys.get("sasl.jaas.config", "")
    return parse_jaas(text) if text else LoginModule("", "", {})


def _password(mechanism: str, keys: Keys, options: Keys, faults: Faults) -> Login:
    needed = f"sasl.mechanism = {mechanism} needs username and password in sasl.jaas.config"
    missing = [name for name in ("username", "password") if not options.get(name)]
    if not keys.get("sasl.jaas.config"):
        faults.append(f"{needed}, which is not set")
    elif missing:
        faults.append(f"{needed}: {' and '.join(missing)} not found there")
    if options.get("tokenauth", "").lower() == "true":
        faults.append("tokenauth=true in sasl.jaas.config: delegation tokens are not served, log in with a password")
    return Login(mechanism, options.get("username", ""), Secret(options.get("password", "")))


def _kerberos(keys: Keys, options: Keys, faults: Faults) -> Login:
    service = keys.get("sasl.kerberos.service.name") or options.get("serviceName", "")
    if not service:
        faults.append("sasl.mechanism = GSSAPI needs sasl.kerberos.service.name, the brokers' Kerberos name")
    if options.get("keyTab"):
        faults.append("keyTab in sasl.jaas.config is not read: keep a ticket with `kinit -kt KEYTAB PRINCIPAL` instead")
    return Login("GSSAPI", service=service)


def _tokens(keys: Keys, options: Keys, faults: Faults) -> TokenSource:
    """Kafka's keys of 4.1, else its JAAS options, else those of Strimzi's login handler."""
    url = keys.get("sasl.oauthbearer.token.endpoint.url") or options.get("oauth.token.endpoint.uri", "")
    credentials = "sasl.oauthbearer.client.credentials.client"
    client_id = keys.get(f"{credentials}.id") or options.get("clientId") or options.get("oauth.client.id", "")
    secret = keys.get(f"{credentials}.secret") or options.get("clientSecret") or options.get("oauth.client.secret", "")
    is_file = url.startswith("file:")
    if not url.startswith(("http://", "https://", "file:")):
        said = f"is {url}" if url else "is not set"
        faults.append(
            f"sasl.oauthbearer.token.endpoint.url {said}: sasl.mechanism = OAUTHBEARER needs it, http(s)://… or file:///…"
        )
    elif not is_file and not (client_id and secret):
        faults.append(f"sasl.mechanism = OAUTHBEARER needs {credentials}.id and {credentials}.secret")
    return TokenSource(
        url=url,
        client_id=client_id,
        client_secret=Secret(secret),
        scope=keys.get("sasl.oauthbearer.scope") or options.get("scope") or options.get("oauth.scope", ""),
        urlencode=keys.get("sasl.oauthbearer.header.urlencode", "").lower() == "true",
        connect_timeout_ms=int(keys.get("sasl.login.connect.timeout.ms", TokenSource.connect_timeout_ms)),
        read_timeout_ms=int(keys.get("sasl.login.read.timeout.ms", TokenSource.read_timeout_ms)),
        backoff_ms=int(keys.get("sasl.login.retry.backoff.ms", TokenSource.backoff_ms)),
        backoff_max_ms=int(keys.get("sasl.login.retry.backoff.max.ms", TokenSource.backoff_max_ms)),
        refresh=_refresh(keys),
        extensions=tuple(
            sorted((name.removeprefix(_EXTENSION), v) for name, v in options.items() if name.startswith(_EXTENSION))
        ),
    )


def _refresh(keys: Keys) -> Refresh:
    return Refresh(
        factor=float(keys.get("sasl.login.refresh.window.factor", Refresh.factor)),
        jitter=float(keys.get("sasl.login.refresh.window.jitter", Refresh.jitter)),
        min_period_s=int(keys.get("sasl.login.refresh.min.period.seconds", Refresh.min_period_s)),
        buffer_s=int(keys.get("sasl.login.refresh.buffer.seconds", Refresh.buffer_s)),
    )


def _secret(keys: Keys, name: str) -> Secret | None:
    return Secret(keys[name]) if keys.get(name) else None
