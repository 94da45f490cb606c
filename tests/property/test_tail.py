"""However often MirrorMaker 2 was killed, its tail tells the last record that it copied."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from heliograph.replication.tail import LookFurther, SourceRecord, Stopped, Tail, find_end, mark

RECORDS = 60
MARKS = [mark(number, None, b"%d" % number) for number in range(RECORDS)]
SOURCE = [SourceRecord(number, found, 0) for number, found in enumerate(MARKS)]

Life = tuple[int, int]
"""How many records a life copies, and how many of those it stores before it is killed."""
LIVES = st.lists(st.tuples(st.integers(1, 25), st.integers(0, 25)), min_size=1, max_size=6)


def lived(lives: list[Life], strangers: set[int]) -> tuple[list[bytes], int, int]:
    """The remote log, the stored offset and the last offset copied; somebody else writes after some records."""
    log: list[bytes] = []
    stored = furthest = -1
    for length, flushed in lives:
        for number in range(stored + 1, min(stored + 1 + length, RECORDS)):
            log.append(MARKS[number])
            furthest = max(furthest, number)
            if len(log) in strangers:
                log.append(mark(0, b"stranger", b"%d" % len(log)))
        stored = min(stored + min(flushed, length), RECORDS - 1)
    return log, stored, furthest


@given(LIVES, st.sets(st.integers(1, 60), max_size=5), st.integers(1, 8), st.integers(0, 10))
def test_the_position_is_after_the_last_record_that_any_life_copied(
    lives: list[Life], strangers: set[int], look: int, before: int
) -> None:
    """Read back from the end as far as `find_end` asks: never beyond what was copied; all of it where the tail is whole."""
    log, stored, furthest = lived(lives, strangers)
    source = SOURCE[max(0, stored + 1 - before) :]
    while True:
        tail = Tail(log[-look:], look >= len(log))
        found = find_end(tail, source, stored)
        if not isinstance(found, LookFurther):
            break
        look *= 2
    assert isinstance(found, Stopped) or not set(log) & {record.mark for record in source}
    if isinstance(found, Stopped):
        assert stored < found.position <= furthest + 1
        assert not tail.whole or found.position == furthest + 1
