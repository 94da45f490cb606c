"""Burrow's own published table of windows (core/internal/evaluator/caching_test.go), and what it leaves out."""

from __future__ import annotations

import pytest

from heliograph.replication.group_health import (
    Commit,
    GroupWindows,
    Health,
    HealthRules,
    group_health,
    judge,
    partition_health,
)

Row = tuple[int, int, int | None]
"""Offset, seconds, lag."""

GROWING: tuple[Row, ...] = ((1000, 100, 50), (2000, 200, 100), (3000, 300, 150), (4000, 400, 200), (5000, 500, 250))
FROM_ZERO: tuple[Row, ...] = ((1000, 100, 0), (2000, 200, 50), (3000, 300, 100), (4000, 400, 150), (5000, 500, 200))
AT_THE_END = tuple((792748079 + n, 1512224618 + n, 0) for n in range(15))
WITH_GAPS: tuple[Row, ...] = tuple(
    (1000 + 500 * n, 100 + 50 * n, None if n % 2 else 25 * n) for n in range(10)
)  # 11 of Burrow's table: every other lag is not known


def commits(rows: tuple[Row, ...]) -> list[Commit]:
    return [Commit(offset, seconds * 1000, lag) for offset, seconds, lag in rows]


def stuck(*lags: int) -> tuple[Row, ...]:
    return tuple((1000, 100 * (n + 1), lag) for n, lag in enumerate(lags))


@pytest.mark.parametrize(
    ("rows", "ends", "lag", "now_s", "expected"),
    [
        pytest.param(FROM_ZERO, [5200], 200, 600, Health.OK, id="0: it was at the end once"),
        pytest.param(FROM_ZERO, [5200], 200, 900, Health.OK, id="1: silent for exactly as long as the window spans"),
        pytest.param(
            FROM_ZERO, [5200], 200, 1000, Health.STOP, id="2: silent for longer, though it was at the end once"
        ),
        pytest.param(GROWING, [5250], 250, 1000, Health.STOP, id="3: silent, never at the end"),
        pytest.param(
            stuck(0, 50, 100, 150, 200), [1200], 200, 600, Health.OK, id="4: the same offset, at the end once"
        ),
        pytest.param(stuck(100, 150, 200, 250, 300), [1300], 300, 600, Health.STALL, id="5: the same offset"),
        pytest.param(stuck(100, 100, 100, 100, 100), [1100], 100, 600, Health.STALL, id="6: the same offset and lag"),
        pytest.param(GROWING, [5250], 0, 1000, Health.OK, id="8: no lag now"),
        pytest.param(
            AT_THE_END,
            [792748500, 792748600, 792748800, 792749000, 792749024],
            931,
            1512224650,
            Health.STOP,
            id="9: silent, and the log went on long ago",
        ),
        pytest.param(
            AT_THE_END,
            [792748093, 792748093, 792748093, 792748094],
            1,
            1512224650,
            Health.OK,
            id="10: silent, and there was nothing to read until now",
        ),
        pytest.param(WITH_GAPS, [5700], 200, 600, Health.OK, id="11: lags that are not known change nothing"),
    ],
)
def test_burrows_own_examples(rows: tuple[Row, ...], ends: list[int], lag: int, now_s: int, expected: Health) -> None:
    assert judge(commits(rows), ends, lag, now_s * 1000) is expected


def rewound(*offsets: int) -> tuple[Row, ...]:
    return tuple((offset, 100 * (n + 1), 5000 - offset) for n, offset in enumerate(offsets))


@pytest.mark.parametrize(
    ("offsets", "expected"),
    [
        # 7 of Burrow's table was REWIND until Burrow forgave what was regained.
        pytest.param((1000, 2000, 3000, 2000, 4000), Health.OK, id="it is past where it was"),
        pytest.param((1000, 2000, 3000, 2000, 3000), Health.OK, id="it is where it was"),
        pytest.param((1000, 2000, 3000, 2000, 2500), Health.REWIND, id="it is not yet there"),
        pytest.param((3000, 1000, 3000, 2000, 2500), Health.REWIND, id="it went back twice"),
        pytest.param((5000, 5000, 5000, 0, 100), Health.REWIND, id="though it was at the end before"),
    ],
)
def test_going_back_counts_until_it_is_regained(offsets: tuple[int, ...], expected: Health) -> None:
    assert judge(commits(rewound(*offsets)), [6000], 6000 - offsets[-1], 600_000) is expected


def test_reading_on_without_getting_nearer_is_a_warning() -> None:
    assert judge(commits(GROWING), [5250], 250, 600_000) is Health.WARN
    nearer = (*GROWING[:4], (5000, 500, 199))
    assert judge(commits(nearer), [5199], 199, 600_000) is Health.OK


def test_a_lag_that_is_allowed_is_none() -> None:
    assert judge(commits(GROWING), [5250], 250, 600_000, allowed_lag=250) is Health.OK
    assert judge(commits(GROWING), [5251], 251, 600_000, allowed_lag=49) is Health.WARN
    assert judge(commits(GROWING), [5251], 251, 600_000, allowed_lag=50) is Health.OK, "one commit was near enough"


def test_a_window_that_is_not_filled_enough_is_ok() -> None:
    five = commits(stuck(100, 100, 100, 100, 100))
    told = partition_health(("t", 3), five, [1100], 600_000, HealthRules(10, 0.5))
    assert (told.topic, told.partition, told.status, told.complete) == ("t", 3, Health.STALL, 0.5)
    assert (told.start, told.end, told.current_lag) == (five[0], five[-1], 100)
    assert partition_health(("t", 3), five, [1100], 600_000, HealthRules(10, 0.6)).status is Health.OK


def test_what_nobody_knows_is_ok() -> None:
    empty = partition_health(("t", 0), (), [7], 0, HealthRules())
    assert (empty.status, empty.start, empty.end, empty.current_lag, empty.complete) == (Health.OK, None, None, 0, 0.0)
    assert partition_health(("t", 0), commits(GROWING), (), 0, HealthRules()).current_lag == 0


def test_a_group_is_its_worst_partition() -> None:
    full = HealthRules(5)
    fine = partition_health(("t", 0), commits(FROM_ZERO), [5000], 600_000, full)
    slow = partition_health(("t", 1), commits(GROWING), [5250], 600_000, full)
    stalled = partition_health(("t", 2), commits(stuck(9, 9)), [1009], 210_000, full)
    assert group_health([fine]).status is Health.OK and group_health([fine]).bad_partitions == ()
    assert group_health([fine, slow]).status is Health.WARN
    told = group_health([fine, slow, stalled])
    assert (told.status, told.bad_partitions, told.max_lag) == (Health.ERR, (slow, stalled), slow)
    assert (told.total_lag, told.complete) == (259, 2 / 3)


def test_a_group_without_partitions_is_ok_and_empty() -> None:
    told = group_health([])
    assert (told.status, told.complete, told.partitions, told.max_lag, told.total_lag) == (Health.OK, 0.0, (), None, 0)


def looked(windows: GroupWindows, seconds: int, offset: int, end: int, live: bool) -> None:
    windows.see_ends({("t", 0): end})
    windows.see_groups({"g": {("t", 0): offset}}, ["g"] if live else [], seconds * 1000)


def told(windows: GroupWindows, seconds: int) -> str:
    found = windows.health("g", seconds * 1000)
    assert found is not None
    return str(found.partitions[0].status)


def test_a_member_that_commits_the_same_offset_stalls_and_a_group_that_nobody_is_in_has_stopped() -> None:
    stalls, stops = GroupWindows(HealthRules()), GroupWindows(HealthRules())
    for n in range(8):
        looked(stalls, 10 * n, 5, 20 + n, live=True)
        looked(stops, 10 * n, min(5 + n, 7), 20 + n, live=False)
    assert told(stalls, 75) == "STALL"
    assert [commit.offset for commit in stops.groups["g"][("t", 0)].commits] == [5, 6, 7]
    assert told(stops, 40) == "WARN"
    assert told(stops, 41) == "STOP"


def test_a_window_holds_so_many_commits_and_forgets_who_is_gone() -> None:
    windows = GroupWindows(HealthRules(intervals=3))
    for n in range(5):
        looked(windows, n, n, 10, live=False)
    assert [commit.offset for commit in windows.groups["g"][("t", 0)].commits] == [2, 3, 4]
    assert list(windows.ends[("t", 0)]) == [10, 10, 10]
    windows.see_ends({})
    windows.see_groups({"h": {("t", 0): 4}}, [], 9000)
    assert windows.health("g", 9000) is None
    unknown = windows.health("h", 9000)
    assert unknown is not None and unknown.partitions[0].end == Commit(4, 9000, None)
