"""No option is dropped in silence: every row of the table, set in a file, changes the settings or is warned of.

And no setting is: every field that the settings have is read outside the folder that makes them.
"""

from __future__ import annotations

import re
from dataclasses import fields, replace
from functools import cache
from pathlib import Path

import pytest

from heliograph.config.flows import EngineSettings, FlowSettings, JobSettings, Mm2Settings, ServerSettings, Settings
from heliograph.config.kinds import Choice, Flag, Fraction, Names, Regexes, Servers, Whole
from heliograph.config.load import load
from heliograph.config.option import Option
from heliograph.config.options import OPTIONS
from heliograph.config.providers import Outside
from heliograph.errors import ConfigError
from heliograph.model.policies import Policies

pytestmark = pytest.mark.no_cover
"""Reads 1,400 files of settings, which tracing makes three times as slow; what it runs is covered by the tests of each part."""
SOURCE = Path(__file__).parents[3] / "src" / "heliograph"
BASE = {"clusters": "A, B", "A.bootstrap.servers": "a:1", "B.bootstrap.servers": "b:1", "A->B.enabled": "true"}
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required username=u password={};"
OAUTH_CLASS = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
SAMPLES = {
    "clusters": "A, B, C",
    "enabled": "true",
    "start.from": "latest",
    "topic.<name>.start.from": "latest",
    "topic.<name>.throttle.bytes.per.second": "1000",
    "topic.rename.pairs": "a -> b",
    "topic.rename.regex": "(.*) -> x$1",
    "topic.rename.format": "x${topic}",
    "replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
    "topic.filter.class": "tests.unit.config.test_no_option_in_silence:Filter",
    "config.property.filter.class": "tests.unit.config.test_no_option_in_silence:Filter",
    "group.filter.class": "tests.unit.config.test_no_option_in_silence:Filter",
    "replication.policy.separator": "_",
    "config.providers": "env",
    "security.protocol": "SSL",
    "sasl.jaas.config": PLAIN.format("other"),
    "sasl.mechanism": "SCRAM-SHA-256",
    "sasl.login.callback.handler.class": OAUTH_CLASS,
    "sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMClientCallbackHandler",
    "sasl.oauthbearer.token.endpoint.url": "https://other",
    "config.providers.*": "x",
    "master": "spark://m:1",
    "listeners": "none",
    "rest.host.name": "127.0.0.2",
    "state.cluster": "B",
    "metrics.lanes": "all",
    "wan.cost.per.gb": "0.02",
}


def both(**keys: str) -> dict[str, str]:
    """Security keys of both clusters, with `_` for `.`."""
    return {f"{alias}.{name.replace('_', '.')}": value for alias in "AB" for name, value in keys.items()}


TLS = both(security_protocol="SSL")
LOGIN = both(security_protocol="SASL_SSL", sasl_mechanism="PLAIN", sasl_jaas_config=PLAIN.format("p"))
KERBEROS = both(security_protocol="SASL_SSL", sasl_mechanism="GSSAPI", sasl_kerberos_service_name="kafka")
TOKENS = both(
    security_protocol="SASL_SSL",
    sasl_mechanism="OAUTHBEARER",
    sasl_oauthbearer_token_endpoint_url="https://tokens",
    sasl_oauthbearer_client_credentials_client_id="id",
    sasl_oauthbearer_client_credentials_client_secret="secret",
)
WITH = {
    "producer.compression.type": {"A->B.recompress": "true", "B.producer.compression.type": "zstd"},
    "recompress": {"B.producer.compression.type": "lz4"},
    "canary.interval.seconds": {"A->B.canary.enabled": "true"},
    "canary.limit.ms": {"A->B.canary.enabled": "true"},
    "plugin.*": {"topic.filter.class": SAMPLES["topic.filter.class"]},
    "config.providers.*": {"config.providers": "extra"},
    "ssl.keystore.type": TLS | both(ssl_keystore_location="/keys"),
    "ssl.keystore.key": TLS | both(ssl_keystore_certificate_chain="chain", ssl_keystore_key="key"),
    "ssl.keystore.certificate.chain": TLS | both(ssl_keystore_certificate_chain="chain", ssl_keystore_key="key"),
    "ssl.keystore.password": TLS | both(ssl_keystore_location="/keys"),
    "ssl.key.password": TLS | both(ssl_keystore_location="/keys"),
    "ssl.truststore.type": TLS | both(ssl_truststore_location="/trust"),
    "ssl.truststore.password": TLS | both(ssl_truststore_location="/trust"),
    "sasl.mechanism": LOGIN,
    "sasl.jaas.config": LOGIN,
    "sasl.kerberos.service.name": KERBEROS,
}
"""Options that have an effect only beside others."""


def beside(option: Option) -> dict[str, str]:
    """What an option stands beside in its file."""
    by_prefix = {"ssl.": TLS, "sasl.": TOKENS}
    guess = next((lines for prefix, lines in by_prefix.items() if option.name.startswith(prefix)), {})
    return {**BASE, **WITH.get(option.name, guess)}


class Filter:
    def __init__(self, options: dict[str, str]) -> None:
        self.options = options

    def should_replicate_topic(self, topic: str) -> bool:
        return bool(topic)

    def should_replicate_group(self, group: str) -> bool:
        return bool(group)

    def should_replicate_config_property(self, name: str) -> bool:
        return bool(name)


def sample(option: Option) -> str:
    """A value that is allowed and is not the default."""
    if option.name in SAMPLES:
        return SAMPLES[option.name]
    default = option.default or ""
    if option.name.endswith(".enable"):
        return "false"
    match option.kind:
        case Flag():
            return "false" if default == "true" else "true"
        case Whole(low=low, high=high):
            number = int(default or low) + 1
            return str(number if high is None or number <= high else low)
        case Fraction(low=low, high=high):
            return str(high if float(default) == low else low)
        case Choice(values=values):
            return next((value for value in values if value.lower() != default.lower()), values[0])
        case Names(values=values):
            return values[-1] if values else "x"
        case Regexes():
            return "x"
        case Servers():
            return "x:1"
    return "x"


def forms(option: Option) -> list[str]:
    """The names under which the option may stand in a file."""
    name = option.name.replace("<name>", "orders").replace("*", "extra")
    places = {"cluster": ("A", "B"), "flow": ("A->B",)}
    found = []
    for form in option.scope:
        wanted = next((place for place in places if f"{{{place}}}" in form), "")
        owners = places.get(wanted, ("",))
        found += [form.format(name=name, **({wanted: owner} if wanted else {})) for owner in owners]
    return found


def settled(lines: dict[str, str]) -> Settings:
    text = "".join(f"{name} = {value}\n" for name, value in lines.items()).replace("\\", "\\\\")
    return load(text, "mm2.properties", Outside({}, lambda _: ""))


@cache
def unchanged(lines: tuple[tuple[str, str], ...]) -> Settings:
    return settled(dict(lines))


def bare(settings: Settings) -> Settings:
    return replace(settings, warnings=(), values=())


def outcome(option: Option, name: str) -> str:
    """What became of an option that is set under one name."""
    others = beside(option)
    try:
        before = unchanged(tuple(others.items()))
        after = settled({**others, name: sample(option)})
    except ConfigError as error:
        return "refused" if any(name in fault or option.name in fault for fault in error.faults) else f"other: {error}"
    if any(name in warning for warning in after.warnings):
        return "warned"
    return "changed" if bare(before) != bare(after) else "silent"


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_an_option_that_is_set_changes_the_settings_or_is_warned_of(option: Option) -> None:
    found = {name: outcome(option, name) for name in forms(option)}
    if option.name in ONLY_READ:
        assert not {"changed", "warned"} & set(found.values()), f"{found}: it is no exception"
        return
    if option.served:
        assert {"changed", "warned"} & set(found.values()), found
    else:
        assert set(found.values()) <= {"warned", "refused"}, found


ONLY_READ = {
    "unknown.options": "says what becomes of names that no row has",
    "transforms.ignore": "says what becomes of a file with transforms",
    "config.providers": "fills in values before anything else is read",
    "config.providers.*": "says which classes and limits those have; what is not built in is refused",
    "sasl.login.callback.handler.class": "names what is built in; another class is refused",
    "sasl.client.callback.handler.class": "names what is built in; another class is refused",
}
"""Options that say how a file is read, or name what is there anyway: nothing else could come of them."""


@pytest.mark.parametrize("kind", [FlowSettings, JobSettings, Mm2Settings, EngineSettings, ServerSettings, Policies])
def test_every_setting_is_read_outside_the_folder_that_makes_it(kind: type) -> None:
    inside = SOURCE / "config"
    text = "\n".join(path.read_text() for path in SOURCE.rglob("*.py") if inside not in path.parents)
    # A field may be read through a method of the settings themselves.
    methods = (inside / "flows.py").read_text().partition("class Mm2Settings")[0]
    names = [field.name for field in fields(kind)]
    unread = [name for name in names if not re.search(rf"\.{name}\b", text) and f"self.{name}" not in methods]
    assert unread == []
