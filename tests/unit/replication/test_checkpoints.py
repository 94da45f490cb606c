"""Which checkpoints are due: MirrorMaker 2's own vectors, and what it does not know."""

from __future__ import annotations

from heliograph.replication.checkpoints import make_checkpoints_topic, plan_checkpoints
from heliograph.replication.group_positions import NoPair, Pair, Placed
from heliograph.replication.mm2_translation import OffsetSyncStore, Sync

KEY = ("g", "A.t", 0)


def placed(pair: Pair | NoPair, reach: int = 10_000, group: str = "g") -> Placed:
    return Placed(group, "t", "A.t", 0, 100, "noted", pair, reach)


def reasons(pair: Pair | NoPair, last: Pair | None, reach: int = 10_000) -> list[str]:
    found = plan_checkpoints([placed(pair, reach)], {} if last is None else {KEY: last})
    return [action.why for action in found]


def test_the_first_one_is_written() -> None:
    (action,) = plan_checkpoints([placed(Pair(100, 90))], {})
    assert (action.subject, action.why) == ("group g", "it has none yet")
    assert action.what == "write a checkpoint: A.t-0 100 -> 90"
    assert not action.routine
    (due,) = action.due
    assert (due.group, due.remote, due.partition, due.pair, due.metadata) == ("g", "A.t", 0, Pair(100, 90), "noted")


def test_a_group_that_read_on_has_a_new_one_and_one_that_stands_still_has_not() -> None:
    assert reasons(Pair(110, 95), Pair(100, 90)) == ["the group read on"]
    assert reasons(Pair(100, 90), Pair(100, 90)) == []
    assert reasons(Pair(100, 91), Pair(100, 90)) == ["it lies further on now"]


def test_a_restart_never_goes_back_but_a_group_that_goes_back_does() -> None:
    assert reasons(Pair(110, 80), Pair(100, 90)) == []
    assert reasons(Pair(100, 80), Pair(100, 90)) == []
    assert reasons(Pair(99, 80), Pair(100, 90)) == ["the group went back"]


def test_the_vector_of_mirrormaker_2s_own_test_of_a_restart() -> None:
    """testCheckpointsTaskRestartUsesExistingCheckpoints: 250 -> 201, then a store that begins later."""
    before = OffsetSyncStore(must_read_to_end=False)
    for offset in (100, 200, 300):
        before.add(("t", 0), Sync(offset, offset))
    before.loaded()
    first = before.translate(("t", 0), 250)
    assert first == 201
    after = OffsetSyncStore(must_read_to_end=False)
    for offset in (175, 375, 475):
        after.add(("t", 0), Sync(offset, offset))
    after.loaded()
    last = Pair(250, first)
    downstreams = {upstream: after.translate(("t", 0), upstream) for upstream in (250, 370, 400)}
    due = [pair for pair in downstreams.items() if reasons(Pair(pair[0], pair[1] or 0), last)]
    assert due == [(400, 376)]


def test_one_that_lies_beyond_a_remote_topic_that_was_made_anew_is_replaced_once() -> None:
    (reason,) = reasons(Pair(100, 50), Pair(100, 90), reach=60)
    assert reason == "the last one, at 90, lies beyond what is copied"
    assert reasons(Pair(100, 50), Pair(100, 50), reach=60) == []
    assert reasons(Pair(100, 90), Pair(100, 90), reach=60) == []


def test_without_a_pair_nothing_is_written_and_groups_are_apart() -> None:
    assert reasons(NoPair("why"), None) == []
    found = plan_checkpoints([placed(Pair(1, 1), group="h"), placed(Pair(1, 1)), placed(Pair(1, 1), group="h")], {})
    assert [(action.group, len(action.due)) for action in found] == [("g", 1), ("h", 2)]
    assert found[1].why == "it has none yet"


def test_the_topic_is_made_as_mirrormaker_2_makes_it() -> None:
    action = make_checkpoints_topic("A.checkpoints.internal", 3)
    assert (action.subject, action.what) == ("topic A.checkpoints.internal", "create")
    made = action.topic
    assert (made.name, made.partitions, made.replication_factor) == ("A.checkpoints.internal", 1, 3)
    assert dict(made.configs) == {"cleanup.policy": "compact"}
    assert made.reason == action.why == "emit.checkpoints.enabled"
