"""Every code that a lane may meet has its name and a sentence."""

from __future__ import annotations

import kafka.errors
import pytest

from heliograph.wire.error_codes import ERROR_CODES, describe

LANE_CODES = [-1, 1, 2, 3, 5, 6, 7, 10, 17, 18, 19, 20, 29, 31, 32, 45, 46, 47, 48, 49, 51, 53, 56, 59]
LANE_CODES += [74, 75, 76, 78, 87, 90, 100, 103, 120]

# kafka-python keeps some names that Kafka itself has changed since.
RENAMED = {
    -1: "UNKNOWN",
    0: "NO_ERROR",
    6: "NOT_LEADER_FOR_PARTITION",
    10: "MESSAGE_SIZE_TOO_LARGE",
    17: "INVALID_TOPIC",
}
RENAMED |= {39: "INVALID_REPLICATION_ASSIGNMENT"}


@pytest.mark.parametrize("code", LANE_CODES)
def test_code_of_the_protocol_is_described(code: int) -> None:
    name, meaning = ERROR_CODES[code]
    assert describe(code) == f"{name} ({code}): {meaning}"


def test_description_is_one_sentence_for_a_person() -> None:
    expected = "MESSAGE_TOO_LARGE (10): the batch is larger than the remote topic's max.message.bytes"
    assert describe(10) == expected
    assert all(meaning and not meaning.endswith(".") for _, meaning in ERROR_CODES.values())


def test_names_are_those_of_kafka_python() -> None:
    theirs = {}
    for value in vars(kafka.errors).values():
        if isinstance(value, type) and issubclass(value, Exception) and isinstance(getattr(value, "errno", None), int):
            theirs[value.errno] = value.message
    assert len(theirs) > 100
    assert {code: RENAMED.get(code, ERROR_CODES[code].name) for code in theirs} == theirs


def test_unknown_code_says_so() -> None:
    assert describe(9999) == "error 9999: not in Heliograph's table; see the Errors class of the broker's Kafka version"
