"""Every policy with every situation: the step, where the next generation begins, and that the reason has its numbers."""

from __future__ import annotations

import pytest

from heliograph.model.events import EventKind
from heliograph.model.policies import Policies
from heliograph.replication.filters import NameFilter
from heliograph.replication.policies import (
    BadRecord,
    DataLost,
    Facts,
    ForeignRecords,
    Situation,
    SourceCut,
    SourceReplaced,
    Step,
    TargetLost,
    TargetReplaced,
    TargetWentBack,
    cause_of,
    dead_letter_topic,
    decide,
    is_as_bad,
)
from heliograph.replication.topic_names import DefaultPolicy, should_replicate

NOW = 1_700_000_000_000
BAD = BadRecord("orders", 3, "A.orders", 105, 105, "it has no key", "set cleanup.policy = delete on A.orders")


@pytest.mark.parametrize(
    ("policies", "situation", "step", "start"),
    [
        (Policies(), SourceReplaced("orders-3"), Step.PARK, -1),
        (Policies(source_reset="restart"), SourceReplaced("orders-3"), Step.LEAVE_TO_DRIVER, -1),
        (Policies(), SourceCut("orders-3", 70, 30, 30), Step.PARK, -1),
        (Policies(source_reset="restart"), SourceCut("orders-3", 70, 30, 30), Step.NEW_GENERATION, 30),
        (Policies(source_reset="restart"), SourceCut("orders-3", 70, 30, 5), Step.NEW_GENERATION, 5),
        (Policies(), DataLost("orders-3", 10, 23), Step.NEW_GENERATION, 23),
        (Policies(data_loss="fail"), DataLost("orders-3", 10, 23), Step.PARK, -1),
        (Policies(), TargetReplaced("A.orders-3"), Step.LEAVE_TO_DRIVER, -1),
        (Policies(), TargetReplaced("A.orders-3", other_cluster=True), Step.LEAVE_TO_DRIVER, -1),
        (Policies(target_loss="fail"), TargetReplaced("A.orders-3"), Step.PARK, -1),
        (Policies(), TargetWentBack("A.orders-3", 40), Step.CONTINUE, -1),
        (Policies(target_loss="fail"), TargetWentBack("A.orders-3", 40), Step.PARK, -1),
        (Policies(), TargetLost("A.orders-3", "it ends at 0", 7), Step.NEW_GENERATION, 7),
        (Policies(target_loss="fail"), TargetLost("A.orders-3", "it ends at 0", 7), Step.PARK, -1),
        (Policies(), ForeignRecords("A.orders-3", 57, 12), Step.CONTINUE, -1),
        (Policies(foreign_writer="fail"), ForeignRecords("A.orders-3", 57, producer_id=9), Step.PARK, -1),
        (Policies(), BAD, Step.PARK, -1),
        (Policies(bad_record="skip"), BAD, Step.SKIP, 106),
        (Policies(bad_record="dead-letter"), BAD, Step.DEAD_LETTER, 106),
    ],
)
def test_a_policy_and_a_situation_are_one_step(
    policies: Policies, situation: Situation, step: Step, start: int
) -> None:
    decision = decide(policies, situation)
    assert (decision.step, decision.start) == (step, start)
    assert decision.parks == (step in (Step.PARK, Step.LEAVE_TO_DRIVER))
    assert decision.reason.endswith(")") and "(on." in decision.reason
    assert decision.what_to_do or step is Step.LEAVE_TO_DRIVER


def test_a_cut_source_names_both_ends() -> None:
    reason = decide(Policies(), SourceCut("orders-3", 70, 30, 30)).reason
    assert "orders-3" in reason and "up to 30" in reason and "up to 70" in reason


def test_lost_data_is_counted_exactly_or_said_to_be_at_most() -> None:
    assert "13 offsets of orders-3 (10 to 22)" in decide(Policies(), DataLost("orders-3", 10, 23)).reason
    assert "up to 13 offsets" in decide(Policies(), DataLost("orders-3", 10, 23, exact=False)).reason


def test_a_bad_record_is_named_by_its_coordinates_cause_and_cure() -> None:
    decision = decide(Policies(), BAD)
    assert decision.kind is EventKind.BAD_RECORD
    assert decision.reason == "A.orders does not take record 105 of orders-3: it has no key (on.bad.record = park)"
    assert decision.what_to_do.startswith(BAD.cure) and "dead-letter" in decision.what_to_do
    several = BadRecord("orders", 3, "A.orders", 105, 109, "x", "y")
    assert "records 105 to 109 of orders-3" in decide(Policies(), several).reason


def test_a_letter_that_no_topic_name_can_hold_parks() -> None:
    long = BadRecord("o", 3, "A" * 240, 105, 105, "it has no key", "set it")
    decision = decide(Policies(bad_record="dead-letter"), long)
    assert decision.step is Step.PARK and "longer than 249" in decision.reason


def test_no_mirror_copies_a_dead_letter_topic_on() -> None:
    name = dead_letter_topic("A.orders")
    assert name == "__heliograph-dead-letter.A.orders"
    assert not should_replicate(name, NameFilter((".*",)), DefaultPolicy("."), "C", True).replicate


@pytest.mark.parametrize(
    ("code", "record", "cause", "cure"),
    [
        (10, Facts(5, NOW, 9000, True), "9000 bytes", "max.message.bytes"),
        (18, Facts(5, NOW, 9000, True), "segment", "segment.bytes"),
        (32, Facts(5, 0, 1, True), "1970-01-01T00:00:00+00:00 is too old", "message.timestamp.before.max.ms"),
        (32, Facts(5, NOW + 1, 1, True), "future", "message.timestamp.after.max.ms"),
        (32, Facts(5, 2**62, 1, True), str(2**62), "message.timestamp.after.max.ms"),
        (87, Facts(5, NOW, 1, False), "no key", "cleanup.policy"),
        (87, Facts(5, NOW, 1, True), "", "broker's log"),
    ],
)
def test_each_refusal_has_its_cause_and_its_cure(code: int, record: Facts, cause: str, cure: str) -> None:
    found = cause_of(code, "", record, "A.orders", NOW)
    assert cause in found[0] and cure in found[1]


@pytest.mark.parametrize(
    ("code", "first", "other", "same"),
    [
        (87, Facts(5, NOW, 1, False), Facts(6, NOW, 1, False), True),
        (87, Facts(5, NOW, 1, False), Facts(6, NOW, 1, True), False),
        (87, Facts(5, NOW, 1, True), Facts(6, NOW, 1, False), False),
        (32, Facts(5, 1000, 1, True), Facts(6, 1000, 1, True), True),
        (32, Facts(5, 1000, 1, True), Facts(6, 1001, 1, True), False),
        (32, Facts(5, NOW + 9, 1, True), Facts(6, NOW + 9, 1, True), True),
        (32, Facts(5, NOW + 9, 1, True), Facts(6, NOW + 8, 1, True), False),
        (10, Facts(5, NOW, 10, True), Facts(6, NOW, 99, True), False),
    ],
)
def test_a_neighbour_is_left_out_only_where_its_fault_is_certain(
    code: int, first: Facts, other: Facts, same: bool
) -> None:
    assert is_as_bad(code, first, other, NOW) == same
