"""The account of a lane on real logs: it closes over every kind of history, and does not when it is made wrong on purpose."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from heliograph.cli.main import main
from tests.integration.protocol.harness import Mirror, carry
from tests.support.compaction import COMPACTED, count_records, write_compacted
from tests.support.topics import create_topic, delete_records, ends
from tests.support.writers import Sample, samples, write, write_transactions


class Audit:
    """Runs the command on the file of a mirror; the fields of its one lane that are not 0."""

    def __init__(self, mirror: Mirror, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._mirror, self._capsys, self._file = mirror, capsys, folder / "mm2.properties"
        self._file.write_text(mirror.lines())

    def text(self) -> tuple[int, str]:
        self._capsys.readouterr()
        return main(["audit", str(self._file), "--flow", self._mirror.flow]), self._capsys.readouterr().out

    def __call__(self) -> tuple[int, dict[str, Any]]:
        self._capsys.readouterr()
        code = main(["audit", str(self._file), "--flow", self._mirror.flow, "--json"])
        (lane,) = json.loads(self._capsys.readouterr().out)
        assert lane["trouble"] == ""
        names = {"flow", "topic", "partition", "remote_topic", "trouble"}
        return code, {name: value for name, value in lane.items() if value and name not in names}


@pytest.fixture
def audit(mirror: Mirror, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Audit:
    return Audit(mirror, tmp_path, capsys)


def test_transactions_aborts_foreign_records_and_what_waits(mirror: Mirror, audit: Audit) -> None:
    mirror.make_topic()
    write(mirror.source, mirror.topic, samples(100))
    committed = write_transactions(mirror.source, mirror.topic, mirror.topic, transactions=9)
    carry(mirror.open())
    write(mirror.target, mirror.remote, [Sample(b"foreign")])
    committed += write_transactions(mirror.source, mirror.topic, mirror.topic, transactions=9)
    carry(mirror.open())
    write(mirror.source, mirror.topic, samples(7))
    end = ends(mirror.source, mirror.topic)[0]
    sums = {"copied": 100 + committed, "control": 18, "aborted": 6 * 20, "not_yet": 7}
    assert sum(sums.values()) == end
    assert audit() == (0, {**sums, "end": end, "closes": True})
    code, text = audit.text()
    assert code == 0
    assert f"{end} offsets from 0 = {100 + committed} copied + 18 control + 120 aborted + 7 not yet copied" in text


def test_an_account_that_is_wrong_on_purpose_does_not_close(mirror: Mirror, audit: Audit) -> None:
    """The ledger says that five records more are copied than are on the target."""
    mirror.make_topic()
    write(mirror.source, mirror.topic, samples(50))
    carry(mirror.open())
    assert audit() == (0, {"copied": 50, "end": 50, "closes": True})
    write(mirror.source, mirror.topic, samples(5))
    lane = next(lane for lane in mirror.book().lanes() if lane.key == mirror.lane_key)
    entry = mirror.book().latest(lane)
    assert entry is not None
    mirror.write_entry(replace(entry, source_next=55))
    assert audit() == (1, {"copied": 50, "missing": 5, "end": 55})
    code, text = audit.text()
    assert code == 1 and "5 MISSING; it does not close" in text


def test_a_record_that_lies_twice_on_the_target_does_not_close(mirror: Mirror, audit: Audit) -> None:
    mirror.make_topic()
    write(mirror.source, mirror.topic, samples(50))
    carry(mirror.open())
    lane = next(lane for lane in mirror.book().lanes() if lane.key == mirror.lane_key)
    entry = mirror.book().latest(lane)
    assert entry is not None
    mirror.write_as(entry.identity, 50, [b"once more"])
    mirror.write_entry(replace(entry, target_next=51))
    code, found = audit()
    assert (code, found["repeated"], found["copied"]) == (1, 1, 50)


def test_skipped_records_and_a_loss_to_retention(mirror: Mirror, audit: Audit) -> None:
    mirror.policies = {"on.bad.record": "skip", "on.data.loss": "continue"}
    mirror.make_topic()
    create_topic(mirror.target, mirror.remote, config={"cleanup.policy": "compact"})
    good = [Sample(b"good %d" % number, b"k%d" % number) for number in range(120)]
    write(mirror.source, mirror.topic, good[:40])
    carry(mirror.open())
    write(mirror.source, mirror.topic, good[40:100])
    delete_records(mirror.source, mirror.topic, 0, 70)
    write(mirror.source, mirror.topic, [*good[100:110], Sample(b"bad", None), *good[110:]])
    carry(mirror.open())
    assert audit() == (0, {"copied": 90, "lost": 30, "skipped": 1, "end": 121, "closes": True})


def test_a_compacted_topic(mirror: Mirror, audit: Audit) -> None:
    mirror.make_topic(config=COMPACTED)
    write_compacted(mirror.source, mirror.topic, rounds=8)
    carry(mirror.open())
    code, found = audit()
    assert code == 0 and found["closes"], found
    assert found["compacted"] > 50
    assert found["copied"] == count_records(mirror.source, mirror.topic), found
    parts = sum(found.get(name, 0) for name in ("copied", "compacted", "deleted", "not_yet"))
    assert found.get("first", 0) + parts == found["end"] == ends(mirror.source, mirror.topic)[0], found
