"""The checker on histories made up here: valid ones pass, and a planted anomaly of each kind is found and shown."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.histories.checker import EFFECT_SECONDS, LEDGER_SECONDS, Kind, Verdict, judge, main, report
from tests.histories.history import Arrival, Commit, Fault, History, Recorder, Row, load

ROOT = Path(__file__).parents[3]
LANE = ("orders", 0)


def rows(*numbers: int, first: int = 0) -> list[Row]:
    """Records by their numbers, one offset after the other."""
    return [Row(first + place, f"r{number}", f"content {number}") for place, number in enumerate(numbers)]


def a_history(source: list[Row], target: list[Row], *, compacted: bool = False) -> History:
    history = History(seed=1, source={LANE: source}, target={LANE: target})
    history.compacted = frozenset({LANE[0]}) if compacted else frozenset()
    history.acked = {LANE: {row.label: row.offset for row in source}}
    history.arrivals = [Arrival(float(row.offset), LANE, row.offset) for row in target]
    return history


def kinds(history: History) -> list[Kind]:
    return [anomaly.kind for anomaly in judge(history).shortest()]


def crash(at: float) -> Fault:
    return Fault(at, "kill -9 of a Python worker", "kill -9 of a Python worker", True)


def test_an_identical_copy_is_valid_also_at_other_offsets() -> None:
    verdict = judge(a_history(rows(*range(10)), rows(*range(10), first=40)))
    assert verdict.is_valid
    assert verdict.records == {"orders": 10}


def test_a_record_that_the_application_wrote_twice_is_there_twice() -> None:
    twice = rows(0, 1, 2, 1, 2, 3)
    assert kinds(a_history(twice, twice)) == []


def test_a_lost_record_is_found_between_its_neighbours() -> None:
    verdict = judge(a_history(rows(*range(6)), rows(0, 1, 2, 4, 5)))
    (found,) = verdict.anomalies
    assert (found.kind, found.records, found.place) == (Kind.LOST, 1, LANE)
    assert "r3 to r3" in found.sentence
    assert found.near == ("source: 0=r0, 1=r1, 2=r2, 3=r3, 4=r4, 5=r5", "target: 0=r0, 1=r1, 2=r2, 3=r4, 4=r5")


def test_the_one_of_two_equal_records_that_is_missing_is_lost() -> None:
    assert kinds(a_history(rows(0, 1, 0, 2), rows(0, 1, 2))) == [Kind.LOST]


def test_an_end_that_is_missing_was_not_delivered() -> None:
    verdict = judge(a_history(rows(*range(6)), rows(0, 1, 2)))
    (found,) = verdict.anomalies
    assert (found.kind, found.records) == (Kind.LATE, 3)


def test_a_target_without_any_record_was_not_delivered() -> None:
    history = a_history(rows(*range(6)), [])
    del history.target[LANE]
    assert kinds(history) == [Kind.LATE]


def test_a_repeated_record_is_found() -> None:
    verdict = judge(a_history(rows(*range(6)), rows(0, 1, 2, 2, 3, 4, 5)))
    (found,) = verdict.anomalies
    assert (found.kind, found.records) == (Kind.REPEATED, 1)


def test_a_repeated_stretch_is_one_anomaly_with_its_length() -> None:
    verdict = judge(a_history(rows(*range(8)), rows(0, 1, 2, 3, 4, 1, 2, 3, 4, 5, 6, 7)))
    (found,) = verdict.anomalies
    assert (found.kind, found.records) == (Kind.REPEATED, 4)
    assert "r1 and 3 after it are there twice" in found.sentence


def test_a_record_that_is_there_more_often_than_on_the_source_is_repeated() -> None:
    assert kinds(a_history(rows(0, 1, 0), rows(0, 1, 0, 0))) == [Kind.REPEATED]


def test_two_records_in_the_other_order_are_found() -> None:
    verdict = judge(a_history(rows(*range(6)), rows(0, 2, 1, 3, 4, 5)))
    assert Kind.REORDERED in {anomaly.kind for anomaly in verdict.anomalies}
    assert not {Kind.LOST, Kind.LATE, Kind.PHANTOM} & {anomaly.kind for anomaly in verdict.anomalies}


def test_a_changed_record_is_not_taken_for_a_lost_and_a_strange_one() -> None:
    target = rows(*range(6))
    target[3] = target[3]._replace(content="another")
    assert kinds(a_history(rows(*range(6)), target)) == [Kind.CHANGED]


def test_a_record_that_nobody_wrote_is_a_phantom() -> None:
    assert kinds(a_history(rows(*range(3)), rows(0, 1, 99, 2))) == [Kind.PHANTOM]


def test_an_aborted_record_is_a_phantom_and_is_called_aborted() -> None:
    history = a_history(rows(*range(3)), rows(0, 1, 99, 2))
    history.aborted = {"r99"}
    (found,) = judge(history).anomalies
    assert found.kind is Kind.PHANTOM
    assert "was aborted on the source" in found.sentence


def test_of_each_kind_the_shortest_is_shown() -> None:
    verdict = judge(a_history(rows(*range(20)), rows(0, 1, 6, 7, 9, *range(10, 20))))
    assert [anomaly.records for anomaly in verdict.anomalies] == [4, 1]
    (shown,) = verdict.shortest()
    assert shown.records == 1


def rewound(*crashes: float) -> History:
    history = a_history(rows(*range(8)), rows(0, 1, 2, 3, 4, 3, 4, 5, 6, 7), compacted=True)
    history.faults = [crash(at) for at in crashes]
    return history


def test_a_compacted_lane_may_repeat_in_order_after_a_crash() -> None:
    verdict = judge(rewound(4.5))
    assert verdict.is_valid
    assert (verdict.rewinds, verdict.repeats) == (1, 2)


@pytest.mark.parametrize("crashes", [(), (6.5,)])
def test_a_compacted_lane_must_not_repeat_before_a_crash(crashes: tuple[float, ...]) -> None:
    assert kinds(rewound(*crashes)) == [Kind.REPEATED]


def test_a_fault_that_ends_no_attempt_is_no_excuse() -> None:
    history = rewound()
    history.faults = [Fault(4.5, "clean restart of the mirror", "clean restart of the mirror", False)]
    assert kinds(history) == [Kind.REPEATED]


def test_one_crash_excuses_one_repeat() -> None:
    history = a_history(rows(*range(6)), rows(0, 1, 2, 1, 2, 3, 2, 3, 4, 5), compacted=True)
    history.faults = [crash(0.5)]
    assert kinds(history) == [Kind.REPEATED]
    history.faults = [crash(0.5), crash(1.5)]
    assert kinds(history) == []


def repeated(first: float, again: float, *faults: Fault) -> History:
    """Of ten records, two that arrived from `first` on are there once more from `again` on."""
    history = a_history(rows(*range(10)), rows(*range(8), 6, 7, 8, 9), compacted=True)
    moments = [first - 6 + number for number in range(8)] + [again + number for number in range(4)]
    history.arrivals = [Arrival(at, LANE, offset) for offset, at in enumerate(moments)]
    history.faults = list(faults)
    return history


def test_a_crash_of_long_ago_excuses_no_repeat_after_a_clean_restart() -> None:
    clean = Fault(100.0, "clean restart of the mirror", "clean restart of the mirror", False, 100.5)
    history = repeated(98.0, 101.0, crash(1.0), clean)
    assert kinds(history) == [Kind.REPEATED]
    assert "no crash that is left explains it" in judge(history).anomalies[0].sentence


def test_a_crash_of_long_ago_excuses_no_repeat_after_a_fault_of_the_source() -> None:
    source = Fault(100.0, "kill -9 of a source broker", "kill -9 of source broker 1", False, 101.0)
    assert kinds(repeated(98.0, 101.0, crash(1.0), source)) == [Kind.REPEATED]


def test_a_repeat_may_come_long_after_its_crash_when_the_lane_had_to_wait() -> None:
    assert kinds(repeated(98.0, 160.0, crash(100.0))) == []


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        (100.0 - LEDGER_SECONDS - 0.1, [Kind.REPEATED]),
        (100.0 - LEDGER_SECONDS, []),
        (115.0 + EFFECT_SECONDS, []),
        (115.0 + EFFECT_SECONDS + 0.1, [Kind.REPEATED]),
    ],
)
def test_what_is_repeated_was_copied_from_shortly_before_the_crash_until_its_effect_ended(
    first: float, expected: list[Kind]
) -> None:
    frozen = crash(100.0)._replace(mended=115.0)
    assert kinds(repeated(first, 200.0, frozen)) == expected


def test_what_was_written_during_a_crash_and_seen_late_may_be_repeated() -> None:
    history = repeated(180.0, 200.0, crash(100.0))
    assert kinds(history) == [Kind.REPEATED]
    history.acked_at = {"r6": 101.0, "r7": 102.0}
    assert kinds(history) == []


def twice_repeated(*crashes: Fault) -> History:
    """Two records from second 10 on are there again at 20, two from 110 on at 120."""
    history = a_history(rows(*range(6)), rows(0, 1, 2, 1, 2, 3, 4, 3, 4, 5), compacted=True)
    moments = [9.0, 10.0, 11.0, 20.0, 21.0, 110.0, 111.0, 120.0, 121.0, 122.0]
    history.arrivals = [Arrival(at, LANE, offset) for offset, at in enumerate(moments)]
    history.faults = list(crashes)
    return history


def test_two_crashes_excuse_two_repeats_each_its_own() -> None:
    verdict = judge(twice_repeated(crash(12.0), crash(112.0)))
    assert verdict.is_valid
    assert (verdict.rewinds, verdict.repeats) == (2, 4)


@pytest.mark.parametrize("crashes", [(12.0,), (112.0,), (11.0, 12.0), (112.0, 113.0)])
def test_a_crash_excuses_no_repeat_of_another_one(crashes: tuple[float, ...]) -> None:
    (found,) = judge(twice_repeated(*(crash(at) for at in crashes))).anomalies
    assert (found.kind, found.records) == (Kind.REPEATED, 2)


def test_of_two_crashes_that_fit_the_one_is_used_whose_effect_ends_first() -> None:
    long, short = crash(5.0)._replace(mended=100.0), crash(12.0)
    assert kinds(twice_repeated(long, short)) == []


def test_a_compacted_lane_must_not_repeat_more_than_the_ledger_may_be_behind() -> None:
    history = rewound(4.5)
    slow = [Arrival(each.at * (LEDGER_SECONDS + 1), *each[1:]) for each in history.arrivals]
    history.arrivals = slow
    assert kinds(history) == [Kind.REPEATED]
    history.acked_at = {f"r{number}": number * (LEDGER_SECONDS + 1) for number in range(8)}
    assert kinds(history) == [Kind.REPEATED], "written as slowly as it arrived"


def test_what_was_copied_quickly_and_seen_late_is_not_much_copying() -> None:
    history = rewound(4.5)
    history.arrivals = [Arrival(each.at * (LEDGER_SECONDS + 1), *each[1:]) for each in history.arrivals]
    history.acked_at = {f"r{number}": float(number) for number in range(8)}
    assert kinds(history) == []


def test_a_repeat_that_leaves_something_out_is_not_in_order() -> None:
    history = a_history(rows(*range(8)), rows(0, 1, 2, 3, 4, 1, 3, 4, 5, 6, 7), compacted=True)
    history.faults = [crash(4.5)]
    assert kinds(history) == [Kind.REORDERED]


def test_a_repeat_that_is_broken_off_is_not_in_order() -> None:
    history = a_history(rows(*range(8)), rows(0, 1, 2, 3, 4, 1, 2, 5, 6, 7), compacted=True)
    history.faults = [crash(4.5)]
    assert kinds(history) == [Kind.REORDERED]


def test_a_compacted_lane_loses_nothing() -> None:
    assert kinds(a_history(rows(*range(6)), rows(0, 1, 3, 4, 5), compacted=True)) == [Kind.LOST]


def with_group(source_offset: int, target_offset: int) -> History:
    history = a_history(rows(*range(10)), rows(*range(10), first=100))
    history.commits = [Commit(1.0, "g", LANE, source_offset)]
    history.groups = [Commit(2.0, "g", LANE, target_offset)]
    return history


@pytest.mark.parametrize("target_offset", [0, 100, 103, 104])
def test_a_group_may_be_set_up_to_what_it_got(target_offset: int) -> None:
    assert kinds(with_group(4, target_offset)) == []


def test_a_group_that_is_set_past_a_record_it_never_got_is_found() -> None:
    history = with_group(4, 106)
    (found,) = judge(history).anomalies
    assert (found.kind, found.records) == (Kind.GROUP, 2)
    assert "past r4 at 104, when its commit on the source was 4" in found.sentence


def test_what_a_group_committed_later_does_not_count() -> None:
    history = with_group(4, 106)
    history.commits.append(Commit(3.0, "g", LANE, 10))
    assert kinds(history) == [Kind.GROUP]


def test_a_group_that_nobody_saw_commit_must_not_be_set() -> None:
    history = with_group(4, 104)
    history.commits = []
    assert kinds(history) == [Kind.GROUP]


def test_what_the_source_lost_is_told_and_is_no_anomaly() -> None:
    history = a_history(rows(0, 1, 3), rows(0, 1, 3))
    history.acked[LANE]["r2"] = 2
    verdict = judge(history)
    assert verdict.is_valid
    assert verdict.source_lost == ["r2"]
    assert any("the source lost 1 records" in line for line in report(history, verdict))


def test_the_report_ends_with_the_verdict() -> None:
    good = a_history(rows(0), rows(0))
    assert report(good, judge(good))[-1] == "VALID"
    bad = a_history(rows(0, 1, 2), rows(0, 2))
    assert report(bad, judge(bad))[-1] == "NOT VALID: 1 anomalies"


def test_a_mirror_that_failed_beside_a_good_copy_makes_the_history_invalid_with_a_line_of_its_own() -> None:
    history = a_history(rows(0), rows(0))
    history.failures = ["the mirror ended by itself with 1: no more memory"]
    verdict = judge(history)
    assert not verdict.is_valid
    assert report(history, verdict)[-1] == "NOT VALID: the mirror ended by itself with 1: no more memory"
    history.target = {LANE: []}
    assert report(history, judge(history))[-2:] == [
        "NOT VALID: the mirror ended by itself with 1: no more memory",
        "NOT VALID: 1 anomalies",
    ]


def test_a_remark_that_is_not_about_the_mirror_leaves_the_history_valid() -> None:
    history = a_history(rows(0), rows(0))
    history.remarks = ["the writer of plain ended: TimeoutError()"]
    lines = report(history, judge(history))
    assert (lines[0], lines[-1]) == ("remark: the writer of plain ended: TimeoutError()", "VALID")


def recorded(path: Path, source: list[Row], target: list[Row]) -> Path:
    recorder = Recorder(path)
    recorder.note("begin", seed=5, compacted=["keys"])
    recorder.note("acked", topic="orders", partition=0, rows=[(row.label, row.offset) for row in source])
    recorder.note("aborted", labels=["r99"])
    recorder.note("fault", fault="kill -9 of the JVM", what="kill -9 of the JVM", may_repeat=True)
    recorder.note("mended", what="kill -9 of the JVM")
    recorder.note("commit", group="g", topic="orders", partition=0, offset=1)
    recorder.note("group", group="g", topic="orders", partition=0, offset=1)
    recorder.note("arrived", topic="orders", partition=0, offset=2)
    recorder.note("remark", text="something")
    recorder.log("source", LANE, source)
    recorder.log("target", LANE, target)
    recorder.close()
    return path


def test_a_history_is_judged_again_from_its_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = recorded(tmp_path / "good.jsonl", rows(0, 1, 2), rows(0, 1, 2))
    assert main([str(good)]) == 0
    assert "VALID" in capsys.readouterr().out
    bad = recorded(tmp_path / "bad.jsonl", rows(0, 1, 2), rows(0, 1, 1, 2))
    assert main([str(bad)]) == 1
    assert "ANOMALY repeated (1 of this kind), orders-0" in capsys.readouterr().out
    assert main([str(tmp_path / "none.jsonl")]) == 2


def test_a_failure_of_the_mirror_is_judged_from_the_file_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = recorded(tmp_path / "history.jsonl", rows(0, 1, 2), rows(0, 1, 2))
    failed = {"kind": "remark", "at": 1.0, "text": "the mirror did not end after SIGTERM", "by_mirror": True}
    with path.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(failed) + "\n")
    assert main([str(path)]) == 1
    printed = capsys.readouterr().out.splitlines()
    assert "remark: something" in printed
    assert printed[-1] == "NOT VALID: the mirror did not end after SIGTERM"


def test_each_fault_knows_when_it_was_mended(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "history.jsonl")
    for _ in range(2):
        recorder.note("fault", fault="the JVM frozen", what="the JVM frozen for 3 s", may_repeat=True)
        recorder.note("mended", what="the JVM frozen for 3 s")
    recorder.note("fault", fault="kill -9 of the JVM", what="kill -9 of the JVM", may_repeat=True)
    recorder.close()
    first, second, last = load(recorder.path).faults
    assert first.mended is not None and second.mended is not None
    assert first.at <= first.mended <= second.at <= second.mended
    assert last.mended is None


def test_the_checker_shares_no_code_with_heliograph() -> None:
    program = (
        "import sys, tests.histories.checker, tests.histories.logs, tests.histories.history;"
        "print([name for name in sys.modules if name.split('.')[0] == 'heliograph' or name.startswith('tests.support')])"
    )
    found = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_an_empty_verdict_is_valid() -> None:
    assert Verdict().is_valid
