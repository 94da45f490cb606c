from __future__ import annotations

from heliograph.model.lanes import LaneId
from heliograph.replication.forgetting import LogCut, LogRecord, plan_forgetting
from heliograph.replication.ledger_keys import ClaimKey, EntryKey, HolderKey, NoteKey

FLOW = "A->B"
TOPICS = ("__heliograph-ledger", "__heliograph-telemetry")
LANE = LaneId(FLOW, "orders", 0)
KEYS = (f"{FLOW}/orders/0/1", f"{FLOW}/orders/0/2#abc", f"holder/{FLOW}#run1", f"note/configs/{FLOW}#orders")
TELEMETRY = ("__heliograph-telemetry", 0)


def test_a_flow_alone_has_its_topics_deleted() -> None:
    plan = plan_forgetting(FLOW, KEYS, {TELEMETRY: [LogRecord(0, FLOW)]}, TOPICS)
    assert plan.delete_topics == TOPICS
    assert plan.others == ()
    assert set(plan.ledger_keys) == {
        EntryKey(LANE, 1),
        ClaimKey(LANE, 2, "abc"),
        HolderKey(FLOW, "run1"),
        NoteKey(FLOW, "configs", "orders"),
    }
    assert not plan.is_nothing


def test_another_flows_key_keeps_the_topics_and_is_not_touched() -> None:
    plan = plan_forgetting(FLOW, [*KEYS, "C->B/orders/0/0"], {}, TOPICS)
    assert plan.delete_topics == ()
    assert plan.others == ("C->B",)
    assert len(plan.ledger_keys) == 4


def test_the_names_of_producers_stay_as_long_as_the_ledger_does() -> None:
    notes = (f"note/producer/{FLOW}#41", "note/producer/C->B#42")
    assert len(plan_forgetting(FLOW, [*KEYS, *notes], {}, TOPICS).ledger_keys) == 4
    assert plan_forgetting(FLOW, [*KEYS, *notes], {}, TOPICS).delete_topics == TOPICS
    assert plan_forgetting(FLOW, [*notes, "C->B/orders/0/0"], {}, TOPICS).is_nothing


def test_a_key_of_an_unknown_kind_is_somebody_elses() -> None:
    plan = plan_forgetting(FLOW, [*KEYS, "strange"], {}, TOPICS)
    assert plan.delete_topics == ()
    assert plan.others == ("?",)


def test_a_log_is_cut_off_before_the_first_record_of_another_flow() -> None:
    records = [LogRecord(5, FLOW), LogRecord(6, FLOW), LogRecord(8, "C->B"), LogRecord(9, FLOW)]
    plan = plan_forgetting(FLOW, (), {TELEMETRY: records}, TOPICS)
    assert plan.cuts == (LogCut(*TELEMETRY, cut=7, removed=2, left=1),)
    assert plan.others == ("C->B",)


def test_a_log_that_begins_with_another_flow_is_not_cut() -> None:
    plan = plan_forgetting(FLOW, (), {TELEMETRY: [LogRecord(5, "C->B"), LogRecord(6, FLOW)]}, TOPICS)
    assert plan.cuts == (LogCut(*TELEMETRY, cut=0, removed=0, left=1),)
    assert not plan.is_nothing


def test_a_flow_that_left_no_trace_is_nothing_to_forget() -> None:
    plan = plan_forgetting(FLOW, ["C->B/orders/0/0"], {TELEMETRY: []}, TOPICS)
    assert plan.cuts == (LogCut(*TELEMETRY, cut=0, removed=0, left=0),)
    assert plan.is_nothing
    assert plan_forgetting(FLOW, (), {}, ()).is_nothing
