"""Every kind of source data, copied in one run and compared record by record; and which path each batch took, with the reason.

One topic per kind, one `heliograph run --until-caught-up` for all of them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from heliograph.operations.compare import Comparison, compare_topics
from tests.support.batches import read_batches
from tests.support.clusters import TwoClusters
from tests.support.compaction import COMPACTED, write_compacted
from tests.support.mirror import flow_file, lanes_of, reasons, run_to_the_end, status, summed, word
from tests.support.topics import create_topic, delete_records, ends, starts
from tests.support.writers import (
    CODECS,
    OpenTransaction,
    samples,
    write,
    write_dense,
    write_huge_batch,
    write_odd_records,
    write_old_records,
    write_single_record_batches,
    write_transactions,
)

DENSE_RECORDS = 8_000
LONGEST_NAME = 249
SMALL_LIMIT = 100_000
KEEP_FOR_EVER = {"retention.ms": "-1"}


@dataclass
class Copied:
    """What was written, and what the mirror says of it."""

    clusters: TwoClusters
    alias: str
    uncommitted_alias: str
    target: str
    topics: dict[str, str] = field(default_factory=dict)
    written: dict[str, int] = field(default_factory=dict)
    output: str = ""
    flows: dict[str, Any] = field(default_factory=dict)

    def remote(self, kind: str) -> str:
        return f"{self.alias}.{self.topics[kind]}"

    def lanes(self, kind: str) -> list[dict[str, Any]]:
        return lanes_of(self.flows[f"{self.alias}->{self.target}"], self.topics[kind])

    def compare(self, kind: str) -> Comparison:
        here, there = self.clusters.a.bootstrap, self.clusters.b.bootstrap
        return compare_topics(here, there, {self.topics[kind]: self.remote(kind)})

    def assert_identical(self, kind: str) -> None:
        comparison = self.compare(kind)
        assert comparison.differences == []
        assert comparison.records == self.written[kind]


class Source:
    """Writes one topic per kind on A."""

    def __init__(self, copied: Copied) -> None:
        self._copied = copied
        self._word = word()
        self.bootstrap = copied.clusters.a.bootstrap

    def topic(self, kind: str, partitions: int = 1, config: dict[str, str] | None = None, name: str = "") -> str:
        made = create_topic(self.bootstrap, name or f"{self._word}-{kind}", partitions, config=config)
        self._copied.topics[kind] = made
        return made

    def write_all(self) -> dict[str, int]:
        return self._dense() | self._plain() | self._strange() | self._transactions() | self._names()

    def _dense(self) -> dict[str, int]:
        return {
            f"dense-{codec}": write_dense(
                self.bootstrap, self.topic(f"dense-{codec}"), samples(DENSE_RECORDS, size=1_000, seed=place), codec
            )
            for place, codec in enumerate(CODECS)
        }

    def _plain(self) -> dict[str, int]:
        here = self.bootstrap
        stamped = {"message.timestamp.type": "LogAppendTime"}
        return {
            "odd": write_odd_records(here, self.topic("odd")),
            "append-time": write(here, self.topic("append-time", config=stamped), samples(2_000), "lz4"),
            "single": write_single_record_batches(here, self.topic("single", partitions=2), 3_000, partitions=2),
            "huge": write_huge_batch(here, self.topic("huge", config={"max.message.bytes": str(16 << 20)})),
            "empty-partitions": write(
                here, self.topic("empty-partitions", partitions=5), samples(50), partitioner="consistent"
            ),
            "empty": write(here, self.topic("empty", partitions=3), []),
        }

    def _strange(self) -> dict[str, int]:
        here, there = self.bootstrap, self._copied.clusters.b.bootstrap
        compacted = write_compacted(here, self.topic("compacted", config=COMPACTED))
        cut = self.topic("cut")
        write_dense(here, cut, samples(1_000))
        delete_records(here, cut, 0, 333)
        now_ms = time.time_ns() // 1_000_000
        old = self.topic("old", config=KEEP_FOR_EVER)
        large = self.topic("split")
        create_topic(there, self._copied.remote("split"), config={"max.message.bytes": str(SMALL_LIMIT)})
        return {
            "compacted": compacted,
            "cut": 667,
            "old": write_old_records(here, old, samples(5_000), now_ms, timedelta(days=9)),
            "split": write_dense(here, large, samples(2_000, size=1_000), "none"),
        }

    def _transactions(self) -> dict[str, int]:
        here = self.bootstrap
        transactional = self.topic("transactions")
        aborted = self.topic("aborted")
        committed = write_transactions(here, transactional, f"{self._word}-tx", transactions=12, size=50)
        OpenTransaction(here, aborted, f"{self._word}-ab", count=30).abort()
        return {"transactions": committed, "aborted": 0}

    def _names(self) -> dict[str, int]:
        here = self.bootstrap
        longest = self._word.ljust(LONGEST_NAME - len(self._copied.alias) - 1, "x")
        names = {
            "strange-name": f"{self._word}.dots..and-dashes--and_underscores_.",
            "longest-name": longest,
        }
        return {kind: write(here, self.topic(kind, name=name), samples(100)) for kind, name in names.items()}


@pytest.fixture(scope="module")
def copied(two_clusters: TwoClusters, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copied]:
    made = Copied(two_clusters, word(), word(), word())
    made.written = Source(made).write_all()
    here, there = two_clusters.a.bootstrap, two_clusters.b.bootstrap
    flows = {
        f"{made.alias}->{made.target}": ", ".join(name.replace(".", r"\\.") for name in made.topics.values()),
        f"{made.uncommitted_alias}->{made.target}": f"{made.topics['transactions']}, {made.topics['aborted']}",
    }
    properties = flow_file(
        tmp_path_factory.mktemp("kinds") / "kinds.properties",
        {made.alias: here, made.uncommitted_alias: here, made.target: there},
        flows,
        {f"{made.uncommitted_alias}.consumer.isolation.level": "read_uncommitted"},
    )
    made.output = run_to_the_end(properties)
    made.flows = status(properties)
    yield made


@pytest.mark.parametrize("codec", CODECS)
def test_dense_batches_of_every_codec_go_raw(copied: Copied, codec: str) -> None:
    copied.assert_identical(f"dense-{codec}")
    lanes = copied.lanes(f"dense-{codec}")
    raw, rebuilt = summed(lanes, "raw_batches"), summed(lanes, "rebuilt_batches")
    assert raw >= 25
    assert raw / (raw + rebuilt) >= 0.99
    assert summed(lanes, "records") == DENSE_RECORDS


@pytest.mark.parametrize("codec", CODECS)
def test_a_raw_batch_has_the_source_bytes_but_for_the_patched_header(copied: Copied, codec: str) -> None:
    kind = f"dense-{codec}"
    here = read_batches(copied.clusters.a.bootstrap, copied.topics[kind])
    there = read_batches(copied.clusters.b.bootstrap, copied.remote(kind))
    assert len(here) == len(there) >= 25
    lane = copied.lanes(kind)[0]
    sequence = 0
    for ours, theirs in zip(here, there, strict=True):
        for begin, end in ((0, 12), (16, 17), (22, 43), (57, len(ours))):
            assert theirs[begin:end] == ours[begin:end], f"bytes {begin} to {end} differ at offset {ours[:8].hex()}"
        assert int.from_bytes(theirs[43:51], "big") == lane["producer_id"]
        assert int.from_bytes(theirs[51:53], "big") == lane["producer_epoch"]
        assert int.from_bytes(theirs[53:57], "big") == sequence
        sequence += int.from_bytes(ours[57:61], "big")


def test_null_and_empty_keys_values_and_headers_survive(copied: Copied) -> None:
    copied.assert_identical("odd")


def test_log_append_time_survives_by_the_record_path(copied: Copied) -> None:
    copied.assert_identical("append-time")
    lanes = copied.lanes("append-time")
    assert set(reasons(lanes, "rebuilt")) == {"append time"}
    assert summed(lanes, "raw_batches") == 0


def test_single_record_batches_are_merged(copied: Copied) -> None:
    copied.assert_identical("single")
    lanes = copied.lanes("single")
    merged = reasons(lanes, "rebuilt")
    assert set(merged) == {"small"}
    assert 2_900 <= merged["small"] <= 3_000
    assert summed(lanes, "rebuilt_batches") <= 300


def test_a_batch_of_ten_megabytes_goes_raw(copied: Copied) -> None:
    copied.assert_identical("huge")
    sizes = [len(batch) for batch in read_batches(copied.clusters.b.bootstrap, copied.remote("huge"))]
    assert max(sizes) > 9 << 20
    lanes = copied.lanes("huge")
    assert (summed(lanes, "raw_batches"), summed(lanes, "rebuilt_batches")) == (len(sizes), 0)


def test_empty_partitions_and_topics_are_made_and_stay_empty(copied: Copied) -> None:
    copied.assert_identical("empty-partitions")
    copied.assert_identical("empty")
    assert len(copied.lanes("empty")) == 3
    assert [lane["lag"] for lane in copied.lanes("empty")] == [0, 0, 0]


def test_a_cleaned_topic_with_gaps_is_copied_by_the_record_path(copied: Copied) -> None:
    copied.assert_identical("compacted")
    lanes = copied.lanes("compacted")
    assert reasons(lanes, "rebuilt").get("gap", 0) > 0
    assert reasons(lanes, "dropped").get("empty", 0) > 0
    assert ends(copied.clusters.b.bootstrap, copied.remote("compacted"))[0] == copied.written["compacted"]


def test_a_log_that_starts_in_the_middle_of_a_batch_is_copied_from_there(copied: Copied) -> None:
    assert starts(copied.clusters.a.bootstrap, copied.topics["cut"]) == {0: 333}
    copied.assert_identical("cut")
    lanes = copied.lanes("cut")
    assert reasons(lanes, "rebuilt").get("begins earlier") == 1
    assert [lane["delta"] for lane in lanes] == [-333]


def test_records_with_old_timestamps_are_copied_under_the_exclusive_guard(copied: Copied) -> None:
    copied.assert_identical("old")
    assert [lane["guard"] for lane in copied.lanes("old")] == ["exclusive"]


def test_a_batch_over_the_targets_limit_is_split(copied: Copied) -> None:
    copied.assert_identical("split")
    lanes = copied.lanes("split")
    assert reasons(lanes, "rebuilt").get("too large", 0) >= 5
    assert max(map(len, read_batches(copied.clusters.b.bootstrap, copied.remote("split")))) <= SMALL_LIMIT


def test_aborted_transactions_and_markers_are_left_out_and_counted(copied: Copied) -> None:
    copied.assert_identical("transactions")
    copied.assert_identical("aborted")
    dropped = reasons(copied.lanes("transactions"), "dropped")
    assert dropped["control"] == 12
    assert dropped["aborted"] >= 4
    assert set(reasons(copied.lanes("aborted"), "dropped")) == {"control", "aborted"}
    there = copied.clusters.b.bootstrap
    assert ends(there, copied.remote("transactions"))[0] == copied.written["transactions"]
    assert ends(there, copied.remote("aborted"))[0] == 0


def test_read_uncommitted_copies_aborted_records_too(copied: Copied) -> None:
    pairs = {
        copied.topics[kind]: f"{copied.uncommitted_alias}.{copied.topics[kind]}" for kind in ("transactions", "aborted")
    }
    here, there = copied.clusters.a.bootstrap, copied.clusters.b.bootstrap
    comparison = compare_topics(here, there, pairs, isolation="read_uncommitted")
    assert comparison.differences == []
    assert comparison.records == 12 * 50 + 30
    flow = copied.flows[f"{copied.uncommitted_alias}->{copied.target}"]
    assert set(reasons(lanes_of(flow, copied.topics["transactions"]), "dropped")) == {"control"}


@pytest.mark.parametrize("kind", ["strange-name", "longest-name"])
def test_strange_names_are_copied(copied: Copied, kind: str) -> None:
    copied.assert_identical(kind)
    assert [lane["remote_topic"] for lane in copied.lanes(kind)] == [copied.remote(kind)]


def test_the_longest_remote_name_has_249_characters(copied: Copied) -> None:
    assert len(copied.remote("longest-name")) == LONGEST_NAME


def test_every_lane_is_at_its_end_and_says_which_identity_and_delta(copied: Copied) -> None:
    for flow in copied.flows.values():
        assert not flow["running"]
        for lane in flow["lanes"]:
            assert lane["lag"] == 0, lane
            assert lane["position"] == lane["source_end"], lane
            assert lane["producer_id"] >= 0, lane
            assert lane["remote_end"] >= 0, lane


def test_the_summary_counts_every_record(copied: Copied) -> None:
    total = sum(copied.written.values()) + 12 * 50 + 30
    assert f"copied {total:,} records".replace(",", " ") in copied.output.replace(",", " ").replace("\u202f", " ")
