from __future__ import annotations

from collections.abc import Callable

import pytest

from heliograph.config.properties import Property
from heliograph.config.providers import (
    BUILT_IN,
    CLASSES,
    NOTHING,
    NotProvided,
    Outside,
    Provider,
    resolve,
    set_up,
    strangers,
)

ENV, FILE, DIR = CLASSES
FILES = {
    "/etc/kafka/secret": "user = alice\npass\\ word = se\\u00e9cret\n",
    "/etc/kafka/bad": "x = \\u12",
    "/run/secrets/password": "hunter2\r\n",
}


def read(path: str) -> str:
    if path == "/etc/kafka/binary":
        return b"\xff".decode()
    if path not in FILES:
        raise FileNotFoundError(2, "No such file or directory", path)
    return FILES[path]


OUTSIDE = Outside({"WHO": "bob", "EMPTY": ""}, read)


def entries(**values: str) -> dict[str, Property]:
    names = {name.replace("__", "-").replace("_", "."): value for name, value in values.items()}
    return {name: Property(name, value, line) for line, (name, value) in enumerate(names.items(), start=1)}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${env:WHO}", "bob"),
        ("${env::WHO}", "bob"),
        ("${env:EMPTY}", ""),
        ("a${env:WHO}b${file:/etc/kafka/secret:user}c", "abobbalicec"),
        ("${file:/etc/kafka/secret:pass word}", "se\u00e9cret"),
        ("${dir:/run/secrets:password}", "hunter2"),
        ("${directory:/run/secrets:password}", "hunter2"),
        ("nothing ${here} $env:WHO", "nothing ${here} $env:WHO"),
        ("${vault:/x:y}", "${vault:/x:y}"),
    ],
)
def test_references_are_replaced_by_what_they_mean(text: str, value: str) -> None:
    assert resolve(text, BUILT_IN, OUTSIDE) == value


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("${env:NOBODY}", "environment variable NOBODY is not set"),
        ("${env:/path:WHO}", r"an environment variable has no path: write \$\{env:WHO\}"),
        ("${file:/etc/kafka/none:user}", "file /etc/kafka/none cannot be read: No such file or directory"),
        ("${file:/etc/kafka/secret:nobody}", "file /etc/kafka/secret has no key nobody"),
        ("${file:/etc/kafka/bad:x}", "file /etc/kafka/bad is no properties file"),
        ("${file:/etc/kafka/binary:x}", "file /etc/kafka/binary is not UTF-8 text"),
        ("${dir:/run/secrets:nobody}", "file /run/secrets/nobody cannot be read: No such file or directory"),
        ("${dir:/run:secrets/password}", "secrets/password is not the name of a file in /run"),
    ],
)
def test_a_reference_that_leads_nowhere_says_why(text: str, why: str) -> None:
    with pytest.raises(NotProvided, match=why):
        resolve(text, BUILT_IN, OUTSIDE)


def test_without_an_outside_nothing_is_read() -> None:
    for text in ("${env:HOME}", "${file:/etc/passwd:root}"):
        with pytest.raises(NotProvided):
            resolve(text, BUILT_IN, NOTHING)


def test_a_provider_may_be_called_as_one_likes() -> None:
    found, faults = set_up(
        entries(
            config_providers="a, b, env",
            config_providers_a_class=FILE,
            config_providers_b_class=ENV,
            config_providers_a_param_allowed_paths="/etc/kafka, /opt",
            config_providers_b_param_allowlist_pattern="W.*",
        )
    )
    assert faults == []
    assert found == BUILT_IN | {"a": Provider("file", ("/etc/kafka", "/opt")), "b": Provider("env", (), "W.*")}
    assert resolve("${a:/etc/kafka/secret:user} ${b:WHO}", found, OUTSIDE) == "alice bob"


def test_a_name_of_ours_may_get_another_meaning() -> None:
    found, _ = set_up(entries(config_providers="file", config_providers_file_class=DIR))
    assert resolve("${file:/run/secrets:password}", found, OUTSIDE) == "hunter2"


def test_providers_of_other_classes_and_of_none_are_faults() -> None:
    _, faults = set_up(entries(config_providers="a, vault", config_providers_vault_class="com.example.Vault"))
    assert [(entry.line, fault.partition(": expected")[0]) for entry, fault in faults] == [
        (1, "config.providers.a.class is missing"),
        (2, "config.providers.vault.class = com.example.Vault"),
    ]


@pytest.mark.parametrize(
    ("provider", "text", "why"),
    [
        (Provider("file", ("/opt",)), "${x:/etc/kafka/secret:user}", "outside the provider's allowed.paths"),
        (Provider("file", ("/etc/kaf",)), "${x:/etc/kafka/secret:user}", "outside the provider's allowed.paths"),
        (Provider("file", ("/opt",)), "${x:/opt/../etc/kafka/secret:user}", "outside the provider's allowed.paths"),
        (Provider("env", (), "X.*"), "${x:WHO}", "WHO is not allowed by the provider's allowlist.pattern"),
        (Provider("env", (), "("), "${x:WHO}", "allowlist.pattern is not a regular expression of Java"),
    ],
)
def test_a_providers_limits_hold(provider: Provider, text: str, why: str) -> None:
    with pytest.raises(NotProvided, match=why):
        resolve(text, {"x": provider}, OUTSIDE)


@pytest.mark.parametrize("root", ["/etc", "/etc/kafka/", "/etc/kafka/secret", "/"])
def test_what_lies_below_an_allowed_path_is_given(root: str) -> None:
    assert resolve("${x:/etc/kafka/secret:user}", {"x": Provider("file", (root,))}, OUTSIDE) == "alice"


def test_strangers_are_named() -> None:
    assert list(strangers("${vault:a:b} ${env:WHO} ${x:y}", BUILT_IN)) == ["vault", "x"]


def test_an_outside_shows_no_variable() -> None:
    hide: Callable[[Outside], str] = repr
    assert "bob" not in hide(OUTSIDE)
