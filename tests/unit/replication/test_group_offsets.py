"""Offsets of groups on the target: forward, back only what is ours and only with the group, and a reason for everything."""

from __future__ import annotations

import pytest

from heliograph.replication.group_offsets import (
    GroupState,
    Note,
    SetOffsets,
    Standing,
    State,
    Written,
    decode_note,
    encode_note,
    group_of,
    note_subject,
    plan_group_offsets,
    summary,
    unread_group,
)
from heliograph.replication.group_positions import NoPair, Pair, Placed

PLACE = ("A.t", 0)


def placed(pair: Pair | NoPair, committed: int = 100, reach: int = 1_000) -> Placed:
    return Placed("g", "t", "A.t", 0, committed, "noted", pair, reach)


def at(offset: int, state: str = "Empty") -> Standing:
    return Standing(state, offsets={PLACE: offset})


def plan(
    place: Placed, there: Standing | None = None, written: Written | None = None, enabled: bool = True
) -> tuple[GroupState, list[SetOffsets]]:
    notes: dict[str, Note] = {} if written is None else {"g": {PLACE: written}}
    (state,), actions = plan_group_offsets([place], {} if there is None else {"g": there}, notes, enabled)
    return state, actions


def test_a_group_that_is_not_there_gets_its_offset() -> None:
    state, (action,) = plan(placed(Pair(100, 90)))
    assert (state.state, state.reason) == (State.SET, "it has no offset there")
    assert (state.committed, state.translated, state.on_target) == (100, 90, None)
    assert (action.subject, action.why, action.routine) == ("group g", "it has no offset there", False)
    assert action.what == "set its offset on the target: A.t-0 to 90"
    (move,) = action.moves
    assert (move.to, move.metadata, move.committed, move.on_target) == (90, "noted", 100, None)
    assert action.after == {PLACE: Written(90, 100)}


def test_it_goes_forward_whoever_wrote_what_is_there_and_only_our_own_is_remembered() -> None:
    for written, before in ((Written(80, 88), 80), (Written(70, 77), None), (None, None)):
        state, (action,) = plan(placed(Pair(100, 90)), at(80), written)
        assert (state.state, state.reason) == (State.SET, "the group read on, on the source")
        assert action.what == "set its offset on the target: A.t-0 to 90 (from 80)"
        assert action.after == {PLACE: Written(90, 100, before, None if before is None else 88)}


def test_in_step_and_waiting_for_the_copy() -> None:
    state, actions = plan(placed(Pair(100, 90)), at(90))
    assert (state.state, state.reason, actions) == (State.IN_STEP, "", [])
    state, actions = plan(placed(Pair(95, 90, 5)), at(90))
    assert (state.state, actions) == (State.WAITS, [])
    assert state.reason == "the group is 5 offsets ahead of the copy"


@pytest.mark.parametrize("listed", ["Stable", "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"])
def test_a_group_with_members_there_is_never_touched(listed: str) -> None:
    for pair in (Pair(100, 90), NoPair("why")):
        state, actions = plan(placed(pair), Standing(listed))
        assert (state.state, actions) == (State.LIVE, [])
        assert state.reason == f"it has members there ({listed}), which commit for themselves"


def test_it_never_goes_back_behind_what_others_wrote() -> None:
    for written in (None, Written(80, 88), Written(94, 120)):
        state, actions = plan(placed(Pair(100, 90)), at(95), written)
        assert (state.state, actions) == (State.AHEAD, [])
        assert state.reason == "it was read or set there by others, and is not sent back"


def test_it_goes_back_if_the_group_did_and_the_offset_is_ours() -> None:
    for written in (Written(95, 120), Written(99, 120, before=95)):
        state, (action,) = plan(placed(Pair(100, 90)), at(95), written)
        assert state.state is State.SET
        assert state.reason == "the group went back, on the source, and the offset there is ours"
        assert action.after == {PLACE: Written(90, 100, 95, 120)}


def test_after_a_crash_between_note_and_commit_a_group_that_went_back_and_read_on_is_not_left_where_it_was() -> None:
    """It went back from 120 to 50, which was noted and not committed; then it read on to 100."""
    crashed = Written(40, 50, before=95, before_committed=120)
    state, (action,) = plan(placed(Pair(100, 90)), at(95), crashed)
    assert (state.state, action.moves[0].to) == (State.SET, 90)
    assert action.after == {PLACE: Written(90, 100, 95, 120)}
    state, actions = plan(placed(Pair(40, 40, 60)), at(95), Written(95, 100, before=95, before_committed=300))
    assert (state.state, actions) == (State.WAITS, [])


def test_ours_stays_while_the_copy_is_made_again_unless_it_lies_beyond_its_end() -> None:
    state, actions = plan(placed(Pair(40, 40, 60)), at(95), Written(95, 100))
    assert (state.state, state.reason, actions) == (State.WAITS, "what was copied once is copied again", [])
    state, (action,) = plan(placed(Pair(40, 40, 60), reach=40), at(95), Written(95, 100))
    assert (state.state, action.moves[0].to) == (State.SET, 40)
    assert state.reason == "the offset there is ours and lies beyond what is copied"


def test_what_is_not_known_or_refused_is_said() -> None:
    state, actions = plan(placed(NoPair("who knows")), at(5))
    assert (state.state, state.reason, state.translated, actions) == (State.NOT_KNOWN, "who knows", None, [])
    state, actions = plan(placed(Pair(1, 1)), Standing(refusal="no DESCRIBE"))
    assert (state.state, state.reason, actions) == (State.REFUSED, "no DESCRIBE", [])
    state, actions = plan(placed(Pair(1, 1)), Standing("Empty", "share", "share"))
    assert (state.state, state.reason, actions) == (State.REFUSED, "a share group has this name there", [])
    state, _ = plan(placed(Pair(1, 1)), Standing("Empty", "connect"))
    assert state.reason == "a connect group has this name there"


def test_a_share_group_is_set_where_no_other_kind_has_its_name() -> None:
    share = Placed("g", "t", "A.t", 0, 100, "", Pair(100, 90), 1_000, is_share=True)
    for there in (None, Standing("Empty", "share", "share")):
        state, (action,) = plan(share, there)
        assert (state.state, action.is_share) == (State.SET, True)
    state, actions = plan(share, Standing("Empty", "consumer", "classic"))
    assert (state.state, state.reason, actions) == (State.REFUSED, "a classic group has this name there", [])
    assert not plan(placed(Pair(100, 90)))[1][0].is_share


def test_a_group_of_which_nothing_can_be_read_has_a_state_too() -> None:
    row = unread_group("s", "the brokers are too old")
    assert (row.group, row.state, row.reason) == ("s", State.NOT_KNOWN, "the brokers are too old")
    assert (row.topic, row.committed, row.translated) == ("", -1, None)


def test_without_the_option_nothing_is_set_and_the_state_says_so() -> None:
    state, actions = plan(placed(Pair(100, 90)), enabled=False)
    assert (state.state, actions) == (State.OFF, [])
    assert state.reason == "sync.group.offsets.enabled = false; it has no offset there"
    state, _ = plan(placed(Pair(100, 90)), at(90), enabled=False)
    assert state.state is State.IN_STEP


def test_moves_of_one_group_are_one_action_and_its_note_keeps_its_other_places() -> None:
    both = [placed(Pair(100, 90)), Placed("g", "t", "A.t", 1, 7, "", Pair(7, 6), 10)]
    note = {("A.t", 2): Written(1, 2)}
    states, (action,) = plan_group_offsets(both, {}, {"g": note})
    assert action.what == "set its offset on the target: A.t-0 to 90, A.t-1 to 6"
    assert action.why == "it has no offset there"
    assert action.after == {("A.t", 0): Written(90, 100), ("A.t", 1): Written(6, 7), ("A.t", 2): Written(1, 2)}
    assert summary(states) == "2 to be set"


def test_the_summary_counts_states() -> None:
    rows = [plan(placed(Pair(1, 1)), at(1))[0], plan(placed(Pair(1, 1)), at(1))[0], plan(placed(NoPair("?")))[0]]
    assert summary(rows) == "2 in step, 1 not known"
    assert summary([]) == ""


def test_a_note_is_read_as_it_was_written_and_a_strange_one_is_none() -> None:
    note = {("A.t", 0): Written(90, 100), ("A.ü", 12): Written(1 << 40, 2, 3, 4)}
    assert decode_note(encode_note(note)) == note
    earlier = b'{"version":1,"written":{"A.t":{"0":[90,100,null],"1":[90,100,80]}}}'
    assert decode_note(earlier) == {("A.t", 0): Written(90, 100), ("A.t", 1): Written(90, 100, 80)}
    strange = (
        b"",
        b"[]",
        b"{}",
        b'{"version":2,"written":{}}',
        b'{"version":1,"written":{"t":{"0":[1]}}}',
        b'{"version":1,"written":{"t":{"0":[null,1,2]}}}',
        b'{"version":1,"written":{"t":{"0":[1,2,3,4,5]}}}',
        b'{"version":1,"written":3}',
    )
    assert [decode_note(value) for value in strange] == [{}] * len(strange)


@pytest.mark.parametrize("group", ["billing", "a#b", "a/b->c", "50 %", "größe", "#"])
def test_any_group_name_can_be_the_subject_of_a_note(group: str) -> None:
    assert group_of(note_subject(group)) == group
    assert "#" not in note_subject(group) and "/" not in note_subject(group)
