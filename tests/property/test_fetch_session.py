"""Fetch sessions: whatever is wanted, lost or forgotten, the broker's memory is what the reader asked for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from heliograph.wire.fetch_codec import FetchPartition, FetchTopic
from heliograph.wire.fetch_session import FetchSession, SessionStep, TopicKey

KEYS: list[tuple[TopicKey, int]] = [((name, name.encode() * 16), part) for name in "abc" for part in range(3)]
wants = st.dictionaries(st.sampled_from(KEYS), st.integers(0, 2), max_size=9)


class Broker:
    """What KIP-227 says a broker does: added and changed partitions first, then those that are to be forgotten."""

    def __init__(self) -> None:
        self.sessions: dict[int, tuple[int, dict[tuple[TopicKey, int], FetchPartition]]] = {}
        self._next_id = 1

    def take(self, step: SessionStep, room: bool) -> int | None:
        """The session id of the answer; None: an error, it does not know the session, or not at this epoch."""
        if step.epoch == 0:
            self.sessions.pop(step.session_id, None)
            if not room:
                return 0
            number, self._next_id = self._next_id, self._next_id + 1
            self.sessions[number] = (1, dict(_flat(step.topics)))
            return number
        expected, known = self.sessions.get(step.session_id, (-1, {}))
        if step.epoch != expected:
            return None
        known.update(_flat(step.topics))
        for key, _ in _flat(step.forgotten):
            del known[key]  # a reader that forgets what was never there is wrong
        self.sessions[step.session_id] = (expected + 1, known)
        return step.session_id


def _flat(topics: list[FetchTopic]) -> list[tuple[tuple[TopicKey, int], FetchPartition]]:
    return [(((topic.name, topic.topic_id), part.partition), part) for topic in topics for part in topic.partitions]


def partitions(wanted: dict[tuple[TopicKey, int], int]) -> dict[tuple[TopicKey, int], FetchPartition]:
    return {key: FetchPartition(key[1], 0, offset, 0, 100) for key, offset in wanted.items()}


@given(st.lists(st.tuples(wants, st.sampled_from(["answered", "answered", "lost answer", "restart", "no room"]))))
def test_the_broker_remembers_what_is_wanted_whatever_happens(
    story: list[tuple[dict[tuple[TopicKey, int], int], str]],
) -> None:
    session, broker = FetchSession(), Broker()
    for wanted, fate in story:
        if fate == "restart":
            broker.sessions.clear()
        step = session.step(partitions(wanted))
        answer = broker.take(step, room=fate != "no room")
        if answer is None:
            session.lost()
            step = session.step(partitions(wanted))
            assert step.epoch == 0
            answer = broker.take(step, room=True)
            assert answer is not None
        if fate == "lost answer":
            session.lost()
            continue
        session.answered(answer)
        if answer:
            assert broker.sessions[answer][1] == partitions(wanted)
            assert all((key in session) == (key in wanted) for key in KEYS)
        else:
            assert dict(_flat(step.topics)) == partitions(wanted)


def test_what_did_not_change_is_not_sent_again() -> None:
    session = FetchSession()
    first = {KEYS[0]: 5, KEYS[1]: 5, KEYS[3]: 5}
    assert len(_flat(session.step(partitions(first)).topics)) == 3
    session.answered(77)
    step = session.step(partitions({KEYS[0]: 5, KEYS[1]: 6}))
    assert (step.session_id, step.epoch) == (77, 1)
    assert dict(_flat(step.topics)) == partitions({KEYS[1]: 6})
    assert [key for key, _ in _flat(step.forgotten)] == [KEYS[3]]
    session.answered(77)
    step = session.step(partitions({KEYS[0]: 5, KEYS[1]: 6}))
    assert (step.epoch, step.topics, step.forgotten) == (2, [], [])
    session.answered(77)
    assert session.change({}, []) == SessionStep(77, 3, [], [])


def test_a_session_begins_anew_in_place_of_the_old_one() -> None:
    session = FetchSession()
    session.step({})
    session.answered(77)
    session.lost()
    assert session.is_new
    step = session.step(partitions({KEYS[0]: 1}))
    assert (step.session_id, step.epoch, len(step.topics)) == (77, 0, 1)
