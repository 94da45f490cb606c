"""The comparison itself: identical copies pass, and each planted fault is found and named, on real brokers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from heliograph.operations.compare import Comparison, compare_topics
from tests.support.clusters import TwoClusters
from tests.support.topics import create_topic, ends
from tests.support.writers import (
    ODD_HEADERS,
    OpenTransaction,
    Sample,
    samples,
    write,
    write_huge_batch,
    write_odd_records,
    write_transactions,
)

NOW_MS = 1_700_000_000_000


def stamped(count: int) -> list[Sample]:
    """Records with fixed timestamps, so that two writers write the same."""
    return [
        Sample(sample.value, sample.key, ODD_HEADERS, 0, NOW_MS + place) for place, sample in enumerate(samples(count))
    ]


def drop(records: list[Sample]) -> None:
    del records[170]


def repeat(records: list[Sample]) -> None:
    records.insert(170, records[169])


def swap(records: list[Sample]) -> None:
    records[170], records[171] = records[171], records[170]


def lose_a_header(records: list[Sample]) -> None:
    old = records[170]
    records[170] = Sample(old.value, old.key, ODD_HEADERS[:-1], old.partition, old.timestamp_ms)


def compare_copy(clusters: TwoClusters, name: str, target: list[Sample]) -> Comparison:
    for cluster, records in ((clusters.a, stamped(500)), (clusters.b, target)):
        create_topic(cluster.bootstrap, name)
        write(cluster.bootstrap, name, records, "lz4")
    return compare_topics(clusters.a.bootstrap, clusters.b.bootstrap, {name: name})


def test_an_identical_copy_is_identical(two_clusters: TwoClusters, unique: str) -> None:
    comparison = compare_copy(two_clusters, unique, stamped(500))
    assert comparison.differences == []
    assert comparison.identical
    assert comparison.records == 500


@pytest.mark.parametrize(
    ("fault", "what"),
    [
        (drop, "source record 170 (offset 170) is missing on the target"),
        (repeat, "source record 169 (offset 169) is repeated on the target at offset 170"),
        (swap, "source records 170 (offset 170) and 171 (offset 171) are swapped on the target"),
        (lose_a_header, "source record 170 (offset 170) has another headers on the target (offset 170 there)"),
    ],
)
def test_one_planted_fault_is_found_and_named(
    two_clusters: TwoClusters, unique: str, fault: Callable[[list[Sample]], None], what: str
) -> None:
    target = stamped(500)
    fault(target)
    comparison = compare_copy(two_clusters, unique, target)
    assert not comparison.identical
    assert [difference.what for difference in comparison.differences] == [what]
    assert str(comparison.differences[0]) == f"{unique}-0: {what}"


def test_a_record_in_the_wrong_partition_is_found(two_clusters: TwoClusters, unique: str) -> None:
    for cluster, partition in ((two_clusters.a, 0), (two_clusters.b, 1)):
        create_topic(cluster.bootstrap, unique, partitions=2)
        write(cluster.bootstrap, unique, [Sample(b"v", partition=partition, timestamp_ms=NOW_MS)])
    comparison = compare_topics(two_clusters.a.bootstrap, two_clusters.b.bootstrap, {unique: unique})
    assert [(difference.partition, difference.index) for difference in comparison.differences] == [(0, 0), (1, 0)]


def test_a_missing_remote_topic_and_another_partition_count_are_differences(
    two_clusters: TwoClusters, unique: str
) -> None:
    create_topic(two_clusters.a.bootstrap, unique, partitions=2)
    create_topic(two_clusters.b.bootstrap, f"{unique}.three", partitions=3)
    pairs = {unique: f"{unique}.three", f"{unique}.none": unique}
    found = compare_topics(two_clusters.a.bootstrap, two_clusters.b.bootstrap, pairs).differences
    assert [difference.what for difference in found] == [
        f"the source topic has 2 partitions, the remote topic {unique}.three has 3",
        f"the source has no topic {unique}.none",
    ]


def test_aborted_records_are_not_compared_and_an_open_transaction_ends_the_comparison(
    two_clusters: TwoClusters, unique: str
) -> None:
    here = two_clusters.a.bootstrap
    create_topic(here, unique)
    committed = write_transactions(here, unique, unique, transactions=6, size=20)
    hanging = OpenTransaction(here, unique, f"{unique}-open")
    try:
        comparison = compare_topics(here, here, {unique: unique})
    finally:
        hanging.abort()
    assert (comparison.identical, comparison.records) == (True, committed)
    everything = compare_topics(here, here, {unique: unique}, isolation="read_uncommitted")
    assert everything.records == 6 * 20 + 10


def test_odd_and_huge_records_are_read_whole(two_clusters: TwoClusters, unique: str) -> None:
    here = two_clusters.a.bootstrap
    create_topic(here, unique, config={"max.message.bytes": str(16 << 20)})
    written = write_odd_records(here, unique) + write_huge_batch(here, unique)
    comparison = compare_topics(here, here, {unique: unique})
    assert (comparison.identical, comparison.records) == (True, written)


def test_with_ends_the_target_may_be_ahead(two_clusters: TwoClusters, unique: str) -> None:
    create_topic(two_clusters.a.bootstrap, unique)
    create_topic(two_clusters.b.bootstrap, unique)
    write(two_clusters.a.bootstrap, unique, stamped(300))
    seen: list[int] = []
    write(two_clusters.b.bootstrap, unique, stamped(400))
    comparison = compare_topics(
        two_clusters.a.bootstrap,
        two_clusters.b.bootstrap,
        {unique: unique},
        ends={(unique, 0): 250},
        progress=lambda _topic, _partition, records: seen.append(records),
    )
    assert (comparison.identical, comparison.records, seen[-1]) == (True, 250, 250)
    assert ends(two_clusters.b.bootstrap, unique) == {0: 400}
