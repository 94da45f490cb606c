"""Options that contradict each other are refused, with the value that is needed."""

from __future__ import annotations

import pytest

from heliograph.config.load import load
from heliograph.errors import ConfigError

FLOW = "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\n"


def faults(*lines: str) -> list[str]:
    try:
        load(FLOW + "\n".join(lines), "mm2.properties")
    except ConfigError as error:
        return list(error.faults)
    return []


@pytest.mark.parametrize(
    ("wait", "request_ms", "needed"),
    [("0", "30000", 53), ("52", "30000", 53), ("90", "300000", 330), ("18", "10000", 19), ("5", "1", 6)],
)
def test_a_takeover_wait_below_what_requests_may_take_is_refused(wait: str, request_ms: str, needed: int) -> None:
    """Which value is needed, and why, is in `model/takeover.py`."""
    [fault] = faults(f"takeover.wait.seconds = {wait}", f"request.timeout.ms = {request_ms}")
    assert fault == (
        f"mm2.properties: takeover.wait.seconds = {wait} is shorter than an attempt that is not heard any more may still write "
        f"(request.timeout.ms = {request_ms}): expected {needed} or more"
    )


@pytest.mark.parametrize(("wait", "request_ms"), [("53", "30000"), ("19", "10000"), ("15", "8000"), ("6", "3200")])
def test_one_that_is_as_long_is_not(wait: str, request_ms: str) -> None:
    assert faults(f"takeover.wait.seconds = {wait}", f"request.timeout.ms = {request_ms}") == []


def test_the_defaults_fit_together() -> None:
    assert faults() == []


@pytest.mark.parametrize("value", ["true", "TRUE"])
def test_speculation_is_refused(value: str) -> None:
    [fault] = faults(f"spark.speculation = {value}")
    assert fault.startswith("mm2.properties: spark.speculation = true would let a second copy of a task take the lanes")
    assert "expected false" in fault


def test_speculation_that_is_off_is_not() -> None:
    assert faults("spark.speculation = false", "spark.speculation.interval = 1s") == []
