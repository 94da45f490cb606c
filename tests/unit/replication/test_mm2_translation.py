"""MirrorMaker 2's 64 slots, with the figures of its own tests (OffsetSyncStoreTest)."""

from __future__ import annotations

import random
from itertools import combinations, pairwise

import pytest

from heliograph.replication.mm2_translation import TOO_OLD, OffsetSyncStore, Sync

PLACE = ("topic1", 2)


def sync(upstream: int, downstream: int) -> Sync:
    return Sync(upstream, downstream)


def asked(store: OffsetSyncStore, upstream: int) -> int | None:
    return store.translate(PLACE, upstream)


def filled(must_read_to_end: bool, until: int) -> OffsetSyncStore:
    """Syncs 0 to 1000 while loading, then up to `until`, ten apart, with delta 0."""
    store = OffsetSyncStore(must_read_to_end)
    for offset in range(0, 1_001, 10):
        store.add(PLACE, sync(offset, offset))
    store.loaded()
    for offset in range(1_010, until + 1, 10):
        store.add(PLACE, sync(offset, offset))
    return store


def assert_sparse(store: OffsetSyncStore, oldest: int, points: list[int]) -> None:
    """Each point is known, the offset before it only as the one after the point before."""
    for before, point in pairwise([oldest, *points]):
        assert asked(store, point - 1) == (before + 1 if before >= 0 else TOO_OLD), point
        assert [asked(store, point + more) for more in range(3)] == [point, point + 1, point + 1]


def test_golden_a_only_the_last_sync_of_the_load_is_kept() -> None:
    store = filled(True, 1_000)
    assert_sparse(store, -1, [1_000])
    store = filled(True, 10_000)
    assert_sparse(store, -1, [1_000, 4_840, 6_760, 8_680, 9_160, 9_640, 9_880, 9_940, 9_970, 9_990, 10_000])
    store.add(PLACE, sync(1_500, 11_000))
    assert [asked(store, offset) for offset in (1_499, 1_500, 2_000)] == [TOO_OLD, 11_000, 11_001]


def test_golden_b_with_checkpoints_loaded_all_syncs_count() -> None:
    store = filled(False, 1_000)
    assert [asked(store, offset) for offset in (479, 719, 999, 1_000)] == [1, 481, 991, 1_000]
    store = filled(False, 10_000)
    assert asked(store, 3_839) == 1
    assert_sparse(store, 0, [3_840, 7_680, 8_640, 9_120, 9_600, 9_840, 9_900, 9_960, 9_990, 10_000])


def test_golden_c_a_sync_at_a_time() -> None:
    store = OffsetSyncStore()
    store.loaded()
    store.add(PLACE, sync(100, 200))
    assert asked(store, 150) == 201
    store.add(PLACE, sync(150, 251))
    assert [asked(store, offset) for offset in (150, 5)] == [251, TOO_OLD]
    store.add(PLACE, sync(200, 10))
    assert asked(store, 200) == 10
    store.add(PLACE, sync(20, 20))
    assert asked(store, 20) == 20


def test_nothing_is_said_before_the_load_or_without_a_sync() -> None:
    store = OffsetSyncStore()
    store.add(PLACE, sync(100, 200))
    assert asked(store, 100) is None
    store.loaded()
    assert asked(store, 100) == 200
    assert store.translate(("topic1", 3), 100) is None


def distinct(store: OffsetSyncStore) -> set[int]:
    return {kept.upstream for kept in store._slots[PLACE]}


@pytest.mark.parametrize("step", [1, 7, 100, 4_096])
def test_evenly_spaced_syncs_push_out_one_at_a_time(step: int) -> None:
    store = OffsetSyncStore(must_read_to_end=False)
    store.loaded()
    store.add(PLACE, sync(0, 0))
    for offset in range(step, 2_000 * step, step):
        before = distinct(store)
        store.add(PLACE, sync(offset, offset))
        after = distinct(store)
        assert len(before - after) <= 1
        assert {0, offset} <= after


@pytest.mark.parametrize(
    ("bits", "least"), [*((bits, 1) for bits in range(1, 12)), (30, 1), (1, 1 << 16), (53, 1 << 16)]
)
def test_randomly_spaced_syncs_push_out_few(bits: int, least: int) -> None:
    chance = random.Random(bits)
    steps = [least + chance.randrange(1 << bits) for _ in range(1_000)]
    assert_few_are_pushed_out(steps, bits + 2)


def test_syncs_of_which_every_other_one_was_lost_push_out_two_at_most() -> None:
    chance = random.Random(0)
    assert_few_are_pushed_out([chance.choice((100, 200)) for _ in range(10_000)], 2)


def assert_few_are_pushed_out(steps: list[int], most: int) -> None:
    """The newest and the oldest sync are always there."""
    store = OffsetSyncStore(must_read_to_end=False)
    store.loaded()
    offset = 0
    store.add(PLACE, sync(0, 0))
    for step in steps:
        offset += step
        before = distinct(store)
        store.add(PLACE, sync(offset, offset))
        after = distinct(store)
        assert len(before - after) <= most
        assert {0, offset} <= after


def test_after_every_sync_slots_are_as_far_apart_as_they_may_be_and_must_be() -> None:
    """Its invariants B and C, of each two slots, over the offsets of golden A."""
    store = OffsetSyncStore(must_read_to_end=False)
    for offset in range(0, 10_001, 10):
        store.add(PLACE, sync(offset, offset))
        ups = [kept.upstream for kept in store._slots[PLACE]]
        for i, j in combinations(range(64), 2):
            assert ups[i] == ups[j] or (1 << max(i - 2, 0)) <= ups[i] - ups[j] <= (1 << j) - (1 << i)


def test_a_leap_over_half_of_all_offsets_fills_every_slot() -> None:
    store = OffsetSyncStore(must_read_to_end=False)
    store.loaded()
    store.add(PLACE, sync(0, 0))
    store.add(PLACE, sync((1 << 63) - 1, 5))
    assert asked(store, (1 << 63) - 1) == 5
    assert asked(store, 5) == TOO_OLD
