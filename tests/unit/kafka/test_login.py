"""The login against a broker that answers as it is told."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from heliograph.errors import AccessRefused
from heliograph.kafka.login import Ask, library_login, library_settings, log_in
from heliograph.model.security import PLAINTEXT, Login, Secret, Security

ALICE = Login("PLAIN", "alice", Secret("s3cret"))


def broker(
    *answers: dict[str, Any], mechanisms: tuple[str, ...] = ("PLAIN", "GSSAPI", "AWS_MSK_IAM")
) -> tuple[Ask, list[bytes]]:
    """Greets with its mechanisms, then gives these answers; what it was sent is kept."""
    left = list(answers)
    sent: list[bytes] = []

    async def ask(request: Any, response: Any, api_key: int, wanted: int) -> Any:
        del response, wanted
        if api_key == 17:
            return SimpleNamespace(error_code=0 if request.mechanism in mechanisms else 33, mechanisms=list(mechanisms))
        sent.append(request.auth_bytes)
        return SimpleNamespace(**({"error_code": 0, "error_message": None, "auth_bytes": b""} | left.pop(0)))

    return ask, sent


def test_a_login_says_who_we_are_and_learns_for_how_long_it_is_believed() -> None:
    ask, sent = broker({"session_lifetime_ms": 1500})
    assert asyncio.run(log_in(ask, ALICE, "host")) == 1.5
    assert sent == [b"alice\0alice\0s3cret"]


def test_without_a_session_it_is_believed_for_ever() -> None:
    ask, _ = broker({})
    assert asyncio.run(log_in(ask, ALICE, "host")) == 0


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ([{"error_code": 58, "error_message": "no such user"}], "by PLAIN (no such user): check username and password"),
        ([{"error_code": 58}], "by PLAIN (without a word)"),
        ([{"auth_bytes": b"more?"}], "by PLAIN (the exchange did not end)"),
    ],
)
def test_a_refusal_holds_what_the_broker_said_and_not_what_we_sent(answers: list[dict[str, Any]], said: str) -> None:
    ask, _ = broker(*answers)
    with pytest.raises(AccessRefused) as caught:
        asyncio.run(log_in(ask, ALICE, "host"))
    assert f"it refuses the login of alice {said}" in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_an_answer_that_makes_no_sense_is_a_refusal() -> None:
    ask, _ = broker({"auth_bytes": b"nonsense"}, mechanisms=("SCRAM-SHA-256",))
    with pytest.raises(AccessRefused, match="it refuses the login of alice by SCRAM-SHA-256"):
        asyncio.run(log_in(ask, Login("SCRAM-SHA-256", "alice", Secret("s3cret")), "host"))


def test_a_mechanism_that_the_broker_lacks_is_named_with_those_it_has() -> None:
    ask, sent = broker(mechanisms=("SCRAM-SHA-512", "GSSAPI"))
    with pytest.raises(AccessRefused, match="it does not take sasl.mechanism = PLAIN; it takes GSSAPI, SCRAM-SHA-512"):
        asyncio.run(log_in(ask, ALICE, "host"))
    assert sent == []


@pytest.mark.parametrize(
    ("login", "package"), [(Login("GSSAPI", service="kafka"), "gssapi"), (Login("AWS_MSK_IAM"), "botocore")]
)
def test_a_mechanism_whose_package_is_missing_says_which(login: Login, package: str) -> None:
    if importlib.util.find_spec(package):
        pytest.skip(f"{package} is installed")
    ask, _ = broker()
    with pytest.raises(AccessRefused, match=f"sasl.mechanism = {login.mechanism} needs the Python package {package}"):
        asyncio.run(log_in(ask, login, "host"))


def test_the_library_is_told_the_same() -> None:
    assert library_settings(PLAINTEXT) == {"security_protocol": "PLAINTEXT"}
    assert library_settings(Security(login=ALICE)) == {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "alice",
        "sasl_plain_password": "s3cret",
    }
    assert library_login(Login("GSSAPI", service="kafka"))["sasl_kerberos_service_name"] == "kafka"


@pytest.mark.parametrize(("mechanism", "sent"), [("PLAIN", "a=b,c"), ("SCRAM-SHA-512", "a=3Db=2Cc")])
def test_a_name_is_escaped_where_scram_wants_it(mechanism: str, sent: str) -> None:
    told: Callable[[Login], dict[str, Any]] = library_login
    assert told(Login(mechanism, "a=b,c", Secret("x")))["sasl_plain_username"] == sent
