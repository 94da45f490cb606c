"""Who leads, where brokers say different things."""

from __future__ import annotations

from heliograph.kafka.leaders import Leader, Leaders, TopicView, newest, nodes_of

ONE = "11111111-1111-1111-1111-111111111111"
NO_ID = "00000000-0000-0000-0000-000000000000"


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def said(node: int, epoch: int, topic_id: str = ONE) -> dict[str, TopicView]:
    return {"orders": TopicView(topic_id, {0: Leader(node, epoch)})}


def leader_of(views: dict[str, TopicView]) -> Leader:
    return views["orders"].leaders[0]


def test_a_broker_that_names_a_leader_of_the_past_is_not_believed() -> None:
    leaders = Leaders(Clock())
    assert leader_of(leaders.merged(said(2, 5))) == Leader(2, 5)
    assert leaders.is_behind(said(1, 4))
    assert leader_of(leaders.merged(said(1, 4))) == Leader(2, 5)
    assert not leaders.is_behind(said(3, 6))
    assert leader_of(leaders.merged(said(3, 6))) == Leader(3, 6)


def test_a_refusal_that_names_the_new_leader_counts_before_any_metadata_does() -> None:
    leaders = Leaders(Clock())
    leaders.merged(said(1, 4))
    leaders.note(ONE, 0, Leader(2, 5))
    assert leader_of(leaders.merged(said(1, 4))) == Leader(2, 5)
    leaders.note(ONE, 0, Leader(1, 3))
    assert leader_of(leaders.merged(said(1, 4))) == Leader(2, 5)


def test_a_leader_that_nobody_confirms_is_forgotten() -> None:
    clock = Clock()
    leaders = Leaders(clock)
    leaders.note(ONE, 0, Leader(2, 5))
    clock.now = 31.0
    assert not leaders.is_behind(said(1, 4))
    assert leader_of(leaders.merged(said(1, 4))) == Leader(1, 4)
    clock.now = 32.0
    assert leader_of(leaders.merged(said(1, 4))) == Leader(1, 4)


def test_topics_that_were_made_again_and_brokers_without_topic_ids_begin_at_any_epoch() -> None:
    leaders = Leaders(Clock())
    leaders.merged(said(2, 5))
    assert leader_of(leaders.merged(said(1, 0, "22222222-2222-2222-2222-222222222222"))) == Leader(1, 0)
    leaders.merged(said(2, 5, NO_ID))
    assert leader_of(leaders.merged(said(1, 0, NO_ID))) == Leader(1, 0)


def test_of_two_answers_the_higher_epoch_counts_for_each_partition() -> None:
    one = {"orders": TopicView(ONE, {0: Leader(1, 4), 1: Leader(1, 7)})}
    two = {"orders": TopicView(ONE, {0: Leader(2, 5), 1: Leader(2, 6), 2: Leader(3, 1)})}
    for views in (newest(one, two), newest(two, one)):
        assert views["orders"].leaders == {0: Leader(2, 5), 1: Leader(1, 7), 2: Leader(3, 1)}


def test_an_answer_counts_more_than_a_refusal_and_another_topic_not_at_all() -> None:
    refused = {"orders": TopicView(NO_ID, {}, 3)}
    assert newest(refused, said(2, 5)) == said(2, 5)
    assert newest(said(2, 5), refused) == said(2, 5)
    assert newest({}, said(2, 5)) == said(2, 5)
    assert newest(said(2, 5), said(1, 9, NO_ID)) == said(2, 5)


def test_the_brokers_of_partitions_are_those_that_lead_one() -> None:
    views = {"orders": TopicView(ONE, {0: Leader(1, 0), 1: Leader(2, 0), 2: Leader(-1, 0)})}
    assert nodes_of(views, [("orders", 0), ("orders", 2), ("orders", 9), ("gone", 0)]) == {1}
