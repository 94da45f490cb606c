"""Any history of a lane: whatever was left out, put in by others, or cleaned since, an answer that is given is true."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from heliograph.model.lanes import LedgerEntry
from heliograph.replication.anchors import Anchor, keep_anchor
from heliograph.replication.translation import (
    Counted,
    Exact,
    Gone,
    Kept,
    KeptLog,
    NotKnown,
    Runs,
    Window,
    by_count,
    by_key,
    window_of,
)
from tests.support.entries import FRESH

STEPS = st.lists(st.tuples(st.sampled_from(["copy", "copy", "copy", "marker", "foreign", "second"]), st.integers(1, 6)))


@dataclass
class History:
    """A lane's life as the lane itself sees it, with the truth kept beside it."""

    source: int = 0
    target: int = 0
    copies: dict[int, int] = field(default_factory=dict)
    anchors: list[Anchor] = field(default_factory=list)
    now_ms: int = 10_000
    began_ms: int = 0
    sequence: int = 0
    acked: tuple[int, int] = (0, 0)

    def live(self, steps: list[tuple[str, int]]) -> None:
        for what, count in steps:
            if what == "marker":
                self.source += count
            elif what == "foreign":
                self.target += count
            elif what == "second":
                self.now_ms += 1_000 * count
            else:
                self._copy(count)

    def _copy(self, count: int) -> None:
        self._anchor(self.source, self.target)
        for _ in range(count):
            self.copies[self.source] = self.target
            self.source, self.target = self.source + 1, self.target + 1
        self.sequence += count
        self._anchor(self.source, self.target)
        self.acked = (self.source, self.target)

    def _anchor(self, source: int, target: int) -> None:
        self.began_ms = keep_anchor(self.anchors, (source, target), self.now_ms, self.began_ms)

    def entry(self) -> LedgerEntry:
        return replace(
            FRESH,
            source_next=self.acked[0],
            target_next=self.acked[1],
            sequence_next=self.sequence,
            anchors=tuple(self.anchors),
        )


def inside(offsets: list[int], first: int, after: int) -> Runs:
    return Runs((offset, 1) for offset in offsets if first <= offset < after)


@given(STEPS, st.booleans(), st.integers(0, 30), st.integers(0, 30))
def test_counting_finds_every_copy(
    steps: list[tuple[str, int]], reverse: bool, source_start: int, target_start: int
) -> None:
    history = History()
    history.live(steps)
    entry = history.entry()
    truth = {copy: source for source, copy in history.copies.items()} if reverse else history.copies
    starts = (target_start, source_start) if reverse else (source_start, target_start)
    for offset, copy in truth.items():
        window = window_of(entry, offset, reverse)
        assert isinstance(window, Window)
        source = (window.begin.source, window.end.source)
        target = (window.begin.target, window.end.target)
        here, there = (target, source) if reverse else (source, target)
        assert here[0] <= offset < here[1] and there[0] <= copy < there[1], "a window holds both ends of a copy"
        if offset < starts[0]:
            continue  # gone: the translator does not count there
        both = Counted(
            inside(sorted(truth), max(here[0], starts[0]), here[1]),
            inside(sorted(truth.values()), max(there[0], starts[1]), there[1]),
            there[1],
            (starts[0] > here[0], starts[1] > there[0]),
            "other side",
        )
        answer = by_count(offset, both)
        assert isinstance(answer, Gone) if copy < starts[1] else answer == Exact(copy)


@settings(max_examples=500)
@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xy")), min_size=3, max_size=9),
    st.integers(0, 9),
    st.integers(0, 9),
    st.integers(0, 9),
)
def test_keys_find_every_copy_after_any_two_cleanings(
    records: list[tuple[str, str]], source_clean: int, target_clean: int, offset: int
) -> None:
    """Values repeat on purpose: equal records of a key are what could be taken for one another."""

    def cleaned(until: int, shift: int) -> KeptLog:
        last = {key: place for place, (key, _) in enumerate(records[:until])}
        return KeptLog(
            Kept(place + shift, key.encode(), (value,))
            for place, (key, value) in enumerate(records)
            if place >= until or last[key] == place
        )

    here, there = cleaned(source_clean, 0), cleaned(target_clean, 1_000)
    answer = by_key(offset, here, there, 2_000, "target")
    left = {kept.offset for kept in there}
    both = [kept.offset for kept in here if kept.offset >= offset and kept.offset + 1_000 in left]
    resume = both[0] + 1_000 if both else 2_000
    if any(kept.offset == offset for kept in here):
        if offset in both:
            assert answer == Exact(offset + 1_000) or isinstance(answer, NotKnown)
        else:
            assert isinstance(answer, Gone) and answer.resume in (resume, None)
    else:
        assert answer == Exact(resume, is_record=False) or isinstance(answer, NotKnown)
