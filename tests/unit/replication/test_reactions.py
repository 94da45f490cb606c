"""The table P4, row by row, written down a second time as the protocol has it."""

from __future__ import annotations

import pytest

from heliograph.replication.reactions import LISTED, Action, Appended, react

YES, NO, UNKNOWN = Appended.YES, Appended.NO, Appended.UNKNOWN

PROTOCOL: dict[int | None, tuple[Appended, Action]] = {
    **dict.fromkeys([3, 5, 6, 56, 74, 75, None], (UNKNOWN, Action.ATTACH)),
    **dict.fromkeys([7, 20], (YES, Action.BACKOFF_ATTACH)),
    19: (NO, Action.BACKOFF_ATTACH),
    2: (NO, Action.REFETCH_ONCE),
    **dict.fromkeys([10, 18, 32, 76, 87], (NO, Action.RECORD_PATH)),
    45: (NO, Action.ATTACH),
    46: (YES, Action.ATTACH),
    47: (NO, Action.CHECK_LEDGER),
    **dict.fromkeys([48, 49, 90], (NO, Action.PARK)),
    59: (NO, Action.NO_STATE),
    **dict.fromkeys([100, 103], (NO, Action.TOPIC_CHANGED)),
    **dict.fromkeys([17, 29, 31, 53], (NO, Action.PARK)),
    -1: (UNKNOWN, Action.BACKOFF_ATTACH),
}
TRIES: dict[int | None, int] = {2: 1, 10: 1, 18: 1, 32: 1, 76: 1, 87: 1, 45: 3, -1: 3}


@pytest.mark.parametrize("code", PROTOCOL, ids=str)
def test_every_code_of_the_protocol_is_met_as_it_says(code: int | None) -> None:
    reaction = react(code)
    assert (reaction.appended, reaction.action) == PROTOCOL[code]
    assert reaction.code == code and reaction.parks == (reaction.action is Action.PARK)


@pytest.mark.parametrize("code", PROTOCOL, ids=str)
def test_every_reaction_says_why_and_has_the_codes_name(code: int | None) -> None:
    reaction = react(code)
    assert reaction.name.isupper() and " " in reaction.reason and not reaction.reason.endswith(".")


def test_the_table_has_no_row_that_the_protocol_does_not_have() -> None:
    assert set(LISTED) == set(PROTOCOL) and len(LISTED) == len(set(LISTED))


@pytest.mark.parametrize("code", [code for code in PROTOCOL if code not in TRIES], ids=str)
def test_a_reaction_without_a_limit_stays_the_same_however_often_it_is_met(code: int | None) -> None:
    assert react(code, times=1000) == react(code)


@pytest.mark.parametrize(("code", "tries"), TRIES.items(), ids=str)
def test_a_reaction_with_a_limit_parks_after_it_and_says_how_often_it_was_met(code: int, tries: int) -> None:
    assert react(code, times=tries) == react(code)
    parked = react(code, times=tries + 1)
    assert parked.action is Action.PARK and parked.appended == react(code).appended
    assert react(code).reason in parked.reason and f"{tries + 1} times in a row" in parked.reason


def test_three_sequence_conflicts_in_a_row_are_parked_by_that_name() -> None:
    assert "sequence conflict" in react(45, times=4).reason


@pytest.mark.parametrize("code", [1, 35, 42, 89, 9999, -2])
def test_a_code_that_is_not_listed_is_met_like_an_unknown_error(code: int) -> None:
    reaction = react(code)
    assert (reaction.appended, reaction.action) == (UNKNOWN, Action.BACKOFF_ATTACH)
    assert reaction.code == code and str(code) in reaction.reason
    assert react(code, times=4).action is Action.PARK


def test_success_is_nothing_to_react_to() -> None:
    with pytest.raises(ValueError, match="0 is success"):
        react(0)


def test_disconnecting_is_not_mistaken_for_an_unlisted_code() -> None:
    assert react(None).name == "DISCONNECTED"
