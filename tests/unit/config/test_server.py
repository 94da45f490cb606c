"""The REST server's settings, and what does not fit together in them."""

from __future__ import annotations

import pytest

from heliograph.config.flows import Settings
from heliograph.config.load import load
from heliograph.errors import ConfigError

BASE = "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\n"


def settings(*lines: str) -> Settings:
    return load(BASE + "\n".join(lines), "mm2.properties")


def faults(*lines: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        settings(*lines)
    return caught.value.faults


def test_by_default_a_run_listens_on_loopback_and_the_first_cluster_keeps_changes() -> None:
    found = settings()
    assert [one.url for one in found.server.listeners] == ["http://127.0.0.1:8083"]
    assert found.state is not None
    assert found.state.alias == "A"


def test_another_cluster_may_keep_changes_if_it_is_one() -> None:
    found = settings("state.cluster = B", "listeners = none")
    assert found.state is not None
    assert (found.state.alias, found.server.listeners) == ("B", ())
    assert faults("state.cluster = C") == ("mm2.properties: state.cluster = C: expected one of clusters (A, B)",)


def test_an_address_that_others_reach_needs_tokens() -> None:
    (fault,) = faults("listeners = http://0.0.0.0:8083")
    assert "rest.auth.tokens.file is not set" in fault
    assert settings("listeners = http://0.0.0.0:8083", "rest.auth.tokens.file = tokens").server.tokens_file == "tokens"


def test_https_needs_certificate_and_key() -> None:
    (fault,) = faults("listeners = https://127.0.0.1:8443", "rest.ssl.certificate.file = c.pem")
    assert "https needs rest.ssl.certificate.file and rest.ssl.key.file" in fault
    found = settings(
        "listeners = https://127.0.0.1:8443", "rest.ssl.certificate.file = c.pem", "rest.ssl.key.file = k.pem"
    )
    assert (found.server.certificate_file, found.server.key_file) == ("c.pem", "k.pem")


def test_a_malformed_listener_is_a_fault_with_its_line() -> None:
    (fault,) = faults("listeners = 8083")
    assert fault.startswith("mm2.properties:5: listeners = 8083: expected none, or a list of http://host:port")


def test_an_option_is_shown_with_its_value_its_origin_its_default_and_whether_it_is_served() -> None:
    shown = {row["name"]: row for row in (value.as_json() for value in settings("state.cluster = B").values)}
    kept = shown["state.cluster"]
    assert (kept["value"], kept["origin"], kept["default"], kept["served"]) == ("B", "line 5", "", True)
    assert (shown["listeners"]["origin"], shown["listeners"]["default"]) == ("default", "http://127.0.0.1:8083")
