"""The batch-level abort filter against a model that keeps read_committed record by record."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from heliograph.wire.aborted import CommittedView
from heliograph.wire.record_batch import walk
from tests.unit.wire.batches import TRANSACTIONAL, Rec, Shape, write_batch, write_marker


@dataclass
class Log:
    """A partition as the model knows it: a record's fate is decided when its transaction ends, perhaps long after it."""

    end: int = 0
    batches: list[bytearray] = field(default_factory=list)
    visible: dict[int, bool] = field(default_factory=dict)
    open: dict[int, list[int]] = field(default_factory=dict)
    aborted: list[tuple[int, int, int]] = field(default_factory=list)  # producer, first offset, offset of the marker

    def write(self, count: int, identity: tuple[int, int, int], *, transactional: bool) -> None:
        offsets = list(range(self.end, self.end + count))
        shape = Shape(attributes=TRANSACTIONAL if transactional else 0, producer=identity)
        self.batches.append(write_batch([Rec(offset) for offset in offsets], shape))
        if transactional:
            self.open.setdefault(identity[0], []).extend(offsets)
        else:
            self.visible |= dict.fromkeys(offsets, True)
        self.end += count

    def finish(self, producer: int, *, commit: bool) -> None:
        offsets = self.open.pop(producer)
        self.visible |= dict.fromkeys(offsets, commit)
        if not commit:
            self.aborted.append((producer, offsets[0], self.end))
        self.batches.append(write_marker(self.end, producer, commit=commit))
        self.end += 1


@st.composite
def logs(draw: st.DrawFn) -> Log:
    """Three transactional producers and a plain one write between each other; every transaction ends."""
    log = Log()
    for _ in range(draw(st.integers(1, 25))):
        producer = draw(st.integers(0, 3))
        if producer in log.open and draw(st.booleans()):
            log.finish(producer, commit=draw(st.booleans()))
        elif producer:
            log.write(draw(st.integers(1, 3)), (producer, 0, 0), transactional=True)
        else:
            log.write(draw(st.integers(1, 3)), (draw(st.sampled_from([-1, 1])), 0, 0), transactional=False)
    for producer in list(log.open):
        log.finish(producer, commit=draw(st.booleans()))
    return log


@given(log=logs(), start=st.integers(0, 30), count=st.integers(1, 30), order=st.randoms(use_true_random=False))
def test_copied_records_are_those_a_committed_reader_sees(log: Log, start: int, count: int, order) -> None:  # type: ignore[no-untyped-def]
    """The answer to a fetch may begin and end anywhere; the broker lists the aborted transactions that overlap it."""
    batches = log.batches[start % len(log.batches) :][:count]
    buffer = b"".join(batches)
    headers = [header for _, header in walk(buffer, 0, len(buffer))]
    first, end = headers[0].base_offset, headers[-1].next_offset
    listed = [(producer, begin) for producer, begin, marker in log.aborted if begin < end and marker >= first]
    order.shuffle(listed)
    view = CommittedView(listed)
    copied: set[int] = set()
    for at, header in walk(buffer, 0, len(buffer)):
        reason = view.dropped_because(buffer, at, header)
        assert (reason == "control") == header.is_control
        if reason is None:
            copied |= set(range(header.base_offset, header.next_offset))
    assert copied == {offset for offset, visible in log.visible.items() if visible and first <= offset < end}


@given(log=logs())
def test_uncommitted_reader_gets_every_record_and_no_marker(log: Log) -> None:
    buffer = b"".join(log.batches)
    view = CommittedView([(producer, begin) for producer, begin, _ in log.aborted], read_committed=False)
    copied: set[int] = set()
    for at, header in walk(buffer, 0, len(buffer)):
        if view.dropped_because(buffer, at, header) is None:
            copied |= set(range(header.base_offset, header.next_offset))
    assert copied == set(log.visible)
