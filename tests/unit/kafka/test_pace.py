"""How much is asked for at a time."""

from __future__ import annotations

import pytest

from heliograph.kafka.pace import Pace

KIB = 1 << 10
MIB = 1 << 20


def after(*answers: tuple[int, float]) -> int:
    pace = Pace()
    for size, seconds in answers:
        pace.took(size, seconds)
    return pace.size


def test_full_answers_that_come_quickly_double_it() -> None:
    assert after() == MIB
    assert after((MIB, 0.01), (2 * MIB, 0.01), (4 * MIB, 0.01)) == 8 * MIB
    assert after(*[(64 * MIB, 0.1)] * 20) == 64 * MIB


def test_a_slow_answer_brings_it_to_what_comes_in_a_second() -> None:
    assert after((MIB, 20.0)) == MIB // 20
    assert after((60 * MIB, 12.0)) == MIB
    assert after((MIB, 10_000.0)) == 32 * KIB


@pytest.mark.parametrize(("size", "seconds"), [(MIB, 1.5), (MIB // 4, 0.0)])
def test_neither_slow_nor_full_leaves_it(size: int, seconds: float) -> None:
    assert after((size, seconds)) == MIB


def test_a_reader_at_rest_asks_for_little() -> None:
    pace = Pace()
    for _ in range(10):
        pace.rest(100)
    assert pace.size == 256 * KIB
    pace.took(KIB, 10.0)
    pace.rest(100)
    assert pace.size == 32 * KIB, "what a slow line showed is less"


def test_one_who_sends_little_now_and_then_may_send_much_at_once() -> None:
    assert after(*[(100, 0.0)] * 10) == MIB
