"""What readers ask for: however lanes come, go, fill and fail, the broker remembers exactly the lanes that want data."""

from __future__ import annotations

import uuid
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from heliograph.kafka.lane import Failure, LaneRun
from heliograph.kafka.wishes import Wishes
from heliograph.model.lanes import LaneId
from heliograph.wire.fetch_codec import FetchTopic
from heliograph.wire.fetch_session import SessionStep
from tests.property.test_fetch_session import Broker
from tests.unit.kafka.lanes import answer, following, lane, push

LANE_BYTES, PARTITION_BYTES = 200, 1000
LANES = 4
DEEDS = ("add", "remove", "read", "send", "fail", "begin", "lose", "forget", "limit", "ask", "ask")


def lanes(count: int = LANES) -> list[LaneRun]:
    found = []
    for number in range(count):
        topic_id = str(uuid.UUID(int=number + 1))
        one = lane(id=LaneId("A->B", f"topic-{number}", number), source_topic_id=topic_id)
        found.append(following(on=one))
    return found


def named(topics: list[FetchTopic]) -> list[str]:
    return [topic.name for topic in topics]


class Stage:
    """A reader's wishes, and a broker as KIP-227 has it."""

    def __init__(self) -> None:
        self.wishes, self.broker = Wishes(LANE_BYTES, PARTITION_BYTES), Broker()
        self.runs = lanes()
        self.added: list[LaneRun] = []

    def ask(self, allowed: dict[LaneRun, float] | None = None) -> SessionStep:
        step = self.wishes.step(allowed)
        found = self.broker.take(step, room=True)
        if found is None:
            self.wishes.session.lost()
            step = self.wishes.step(allowed)
            found = self.broker.take(step, room=True)
            assert found is not None
        self.wishes.session.answered(found)
        return step

    def remembered(self) -> dict[tuple[str, int], tuple[int, int]]:
        (_, known) = next(reversed(self.broker.sessions.values()))
        return {(name, number): (part.offset, part.max_bytes) for ((name, _), number), part in known.items()}

    def do(self, deed: str, run: LaneRun) -> None:
        is_there = run in self.added
        if deed == "add" and not is_there and run.failure is None:
            self.wishes.add(run)
            self.added.append(run)
        elif deed == "remove" and is_there:
            self.wishes.remove(run)
            self.added.remove(run)
        elif deed == "read" and is_there and run.wants_data(LANE_BYTES):
            run.stir()  # as a reader does when an answer comes
            push(run, 1)
        elif deed == "send" and run.queue:
            run.in_flight.append(run.queue.popleft())
            run.answered(answer(run.target_next or 0), "", 0)
        elif deed == "fail":
            run.fail(Failure(None, "gone"))
        elif deed == "begin" and not is_there and run.start is not None:
            run.begin(replace(run.start, source_next=run.fetch_offset - 1), 0)
        elif deed == "lose":
            self.wishes.session.lost()
        elif deed == "forget":
            self.broker.sessions.clear()


@given(st.lists(st.tuples(st.sampled_from(DEEDS), st.integers(0, LANES - 1))))
def test_the_broker_remembers_the_lanes_that_want_data_and_no_others(story: list[tuple[str, int]]) -> None:
    stage = Stage()
    for deed, number in story:
        stage.do(deed, stage.runs[number])
        wanting = {run: run.fetch_offset for run in stage.added if run.wants_data(LANE_BYTES)}
        assert stage.wishes.look() == wanting
        if not wanting or deed not in ("ask", "limit"):
            continue
        limit = {next(iter(wanting)): 7.5} if deed == "limit" else None
        stage.ask(limit)
        most = limit or dict.fromkeys(wanting, PARTITION_BYTES)
        assert stage.remembered() == {
            (run.lane.id.topic, run.lane.id.partition): (wanting[run], int(size)) for run, size in most.items()
        }


def test_of_many_lanes_only_those_are_named_and_looked_at_that_changed() -> None:
    wishes, runs = Wishes(LANE_BYTES, PARTITION_BYTES), lanes(500)
    asked: list[LaneRun] = []
    for run in runs:
        wishes.add(run)
    wishes.look()
    assert len(wishes.step().topics) == 500
    wishes.session.answered(77)
    for run in runs:
        _notice(run, asked)
    runs[3].stir()
    push(runs[3], 1)
    wishes.look()
    assert (named(wishes.step().topics), asked) == (["topic-3"], [runs[3]])
    wishes.session.answered(77)
    wishes.look()
    step = wishes.step()
    assert (step.topics, step.forgotten, asked) == ([], [], [runs[3]])


def _notice(run: LaneRun, asked: list[LaneRun]) -> None:
    wants = run.wants_data

    def noticed(limit_bytes: int) -> bool:
        asked.append(run)
        return wants(limit_bytes)

    run.wants_data = noticed  # type: ignore[method-assign]


def test_without_a_session_another_lane_is_first_in_every_request() -> None:
    wishes, runs = Wishes(LANE_BYTES, PARTITION_BYTES), lanes(3)
    for run in runs:
        wishes.add(run)
    firsts = []
    for _ in range(4):
        wishes.look()
        firsts.append(named(wishes.step().topics)[0])
        wishes.session.answered(0)
    assert len(set(firsts)) == 3


def test_a_lane_that_left_a_reader_tells_it_no_more() -> None:
    wishes, other, (run, *_) = Wishes(LANE_BYTES, PARTITION_BYTES), Wishes(LANE_BYTES, PARTITION_BYTES), lanes()
    before = run.told
    wishes.add(run)
    wishes.remove(run)
    assert run.told == before
    other.add(run)
    assert (dict(wishes.look()), dict(other.look())) == ({}, {run: run.fetch_offset})


def test_a_lane_is_given_what_its_limit_leaves_or_what_lanes_are_given_and_only_a_large_batch_more() -> None:
    wishes, (run, *_) = Wishes(LANE_BYTES, PARTITION_BYTES), lanes(1)
    wishes.add(run)
    asked = []
    for allowed, batch in ((None, 0), ({run: 5e9}, 0), ({run: float("inf")}, 0), ({run: 70.5}, 0), ({run: 9e3}, 9000)):
        wishes.look()
        wishes.session.lost()
        asked.append(wishes.step(allowed, batch).topics[0].partitions[0].max_bytes)
    assert asked == [PARTITION_BYTES, PARTITION_BYTES, PARTITION_BYTES, 70, 9000]
