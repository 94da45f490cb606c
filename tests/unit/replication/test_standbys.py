"""Runs that wait for a flow, as the ledger keeps them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heliograph.replication.standbys import Standby, decode_standby, encode_standby, standbys

ONE = Standby("run-1", "north", 7, 1_000, 5_000)
TWO = Standby("run-2", "south", 9, 500, 5_500, carries=False, machine="m")


def test_what_was_written_is_read() -> None:
    assert decode_standby(encode_standby(ONE)) == ONE


@pytest.mark.parametrize("value", [b"", b"\xff", b"[]", b"null", b"{}", b'{"run":"r","host":"h","process":"x"}'])
def test_what_cannot_be_read_is_nobody(value: bytes) -> None:
    assert decode_standby(value) is None
    assert standbys({"r": value}) == []


def test_the_longest_waiting_comes_first() -> None:
    assert standbys({"run-1": encode_standby(ONE), "run-2": encode_standby(TWO), "bad": b"?"}) == [TWO, ONE]


def test_whoever_carries_already_comes_before_who_waited_longer() -> None:
    assert replace(ONE, carries=True).rank < TWO.rank < ONE.rank


def test_a_note_of_before_says_nothing_of_carrying() -> None:
    value = b'{"run":"r","host":"h","process":1,"since_ms":2,"renewed_ms":3}'
    assert decode_standby(value) == Standby("r", "h", 1, 2, 3)
