"""Records of the ledger that cannot be read: noted by key, so that one of them costs at most one lane.

A foreign key, a value that was cut off, a version of a later release: whoever reads the ledger passes over them and folds in
all others. The lane whose entry or claim is among them must not be carried, because what it says may be the newest.
Must not know who tells a person of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from heliograph.errors import SetupError
from heliograph.model.lanes import LaneId
from heliograph.replication.generations import LedgerBook
from heliograph.replication.ledger_keys import ClaimKey, EntryKey, HolderKey, LedgerKey, parse_key

_CURE = "write a tombstone for that key, or run the release that wrote it"


@dataclass(frozen=True)
class StrangeRecord:
    """A record that was passed over."""

    key: str
    """As text; bytes that are none are written as escapes."""
    reason: str
    parsed: LedgerKey | None = None
    """What its key says, where that can be read."""

    @property
    def flow(self) -> str:
        """The flow that it is about; empty where that cannot be known."""
        if isinstance(self.parsed, EntryKey | ClaimKey):
            return self.parsed.lane.flow
        return self.parsed.flow if self.parsed is not None else ""

    @property
    def lane(self) -> LaneId | None:
        return self.parsed.lane if isinstance(self.parsed, EntryKey | ClaimKey) else None

    @property
    def what_to_do(self) -> str:
        if self.lane is not None:
            return f"the lane waits: {_CURE}"
        if isinstance(self.parsed, HolderKey):
            return "it is passed over: see that no other run of this flow is alive"
        return "it is passed over"

    def __str__(self) -> str:
        return f"the ledger's record '{self.key}' cannot be read: {self.reason}"


class StrangeRecords:
    """Of one ledger, as far as it was read."""

    def __init__(self) -> None:
        self._found: dict[str, StrangeRecord] = {}
        self._untold: dict[str, StrangeRecord] = {}

    def fold(self, book: LedgerBook, key: bytes, value: bytes | None, offset: int) -> str:
        """Fold one record into the book, or note why not; its key as text."""
        name = key.decode(errors="backslashreplace")
        try:
            text = key.decode()
            book.apply(text, value, offset)
        except UnicodeDecodeError:
            self._note(StrangeRecord(name, "its key is not UTF-8"), value)
            return name
        except SetupError as fault:
            self._note(StrangeRecord(name, str(fault), parse_key(text)), value)
            return name
        if text in book.strange_keys:
            self._note(StrangeRecord(name, "its key is of no kind that is known here"), value)
        elif self._found:
            self._forget(name)
        return name

    def note_batch(self, place: str, fault: str) -> None:
        """A batch that cannot be opened; nothing is known of the keys in it."""
        self._note(StrangeRecord(place, fault), b"")

    def fault(self, lane: LaneId, generations: Iterable[int]) -> StrangeRecord | None:
        """What may hide this lane's position: an entry or claim of its newest generation, or of a newer one."""
        if not self._found:
            return None
        newest = max(generations, default=-1)
        for found in self._found.values():
            parsed = found.parsed
            if isinstance(parsed, EntryKey) and parsed.lane == lane and parsed.generation >= newest:
                return found
            if isinstance(parsed, ClaimKey) and parsed.lane == lane and parsed.generation > newest:
                return found
        return None

    def take_untold(self, flow: str) -> list[StrangeRecord]:
        """Those of a flow, and those of which nobody knows whose they are; each is given out once."""
        mine = [found for found in self._untold.values() if found.flow in ("", flow)]
        for found in mine:
            del self._untold[found.key]
        return mine

    def _note(self, found: StrangeRecord, value: bytes | None) -> None:
        if value is None:
            self._forget(found.key)
        elif self._found.get(found.key) != found:
            self._found[found.key] = self._untold[found.key] = found

    def _forget(self, key: str) -> None:
        """It was replaced by one that can be read, or taken out."""
        self._found.pop(key, None)
        self._untold.pop(key, None)
