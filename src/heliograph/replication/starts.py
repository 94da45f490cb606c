"""Where a lane begins that has no position of its own: `start.from`, and when MirrorMaker 2's progress is asked instead.

Knows the words of the option and what they mean for one partition; offsets, times and files are brought by the caller.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from heliograph.errors import ConfigError
from heliograph.model.lanes import LedgerEntry
from heliograph.replication.tail import Stopped, Unlike

Partition = tuple[str, int]

EXPECTED = "earliest, latest, timestamp:ISO (such as timestamp:2026-05-01T12:00:00Z), offsets:FILE or group:NAME"


class From(StrEnum):
    EARLIEST = "earliest"
    LATEST = "latest"
    TIMESTAMP = "timestamp"
    OFFSETS = "offsets"
    GROUP = "group"


@dataclass(frozen=True)
class StartFrom:
    """The option's value; `argument` is what stands behind the colon."""

    kind: From
    argument: str = ""

    @property
    def timestamp_ms(self) -> int:
        """The moment in Kafka's milliseconds; a time without a zone is UTC."""
        moment = datetime.fromisoformat(self.argument)
        return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)

    def __str__(self) -> str:
        return f"{self.kind}:{self.argument}" if self.argument else str(self.kind)


@dataclass(frozen=True)
class Span:
    """The offsets of a source partition, from its first one to its end."""

    start: int
    end: int


@dataclass(frozen=True)
class Place:
    """Where a generation begins on the source, and why there."""

    offset: int
    reason: str
    leader_epoch: int = -1


@dataclass(frozen=True)
class NoPlace:
    """The lane cannot begin: the sentence that status shows."""

    reason: str


class Look(StrEnum):
    """Whether a lane with an entry must be compared with the target before it goes on."""

    NONE = "nothing was written by MirrorMaker 2"
    FOREIGN = "the target ends elsewhere than the ledger says"
    COMPARE = "MirrorMaker 2 stored progress since"


def parse_start(text: str) -> StartFrom:
    """The typed value; ValueError with the allowed values."""
    word, colon, argument = text.strip().partition(":")
    plain = word in (From.EARLIEST, From.LATEST)
    if word not in tuple(From) or plain == bool(colon) or (not plain and not argument.strip()):
        raise ValueError(EXPECTED)
    start = StartFrom(From(word), argument.strip())
    if start.kind is From.TIMESTAMP:
        try:
            _ = start.timestamp_ms
        except (ValueError, OverflowError) as error:
            raise ValueError(EXPECTED) from error
    return start


def place(wish: StartFrom, span: Span, given: int | None, otherwise: StartFrom) -> Place | NoPlace:
    """Where a lane begins by `start.from`.

    `given`: what the source, the file or the group says of this partition; `otherwise` counts where they say nothing, as
    `auto.offset.reset` does for a consumer group without a committed offset.
    """
    why = f"start.from = {wish}"
    if wish.kind is From.EARLIEST:
        return Place(span.start, why)
    if wish.kind is From.LATEST:
        return Place(span.end, why)
    if given is None and wish.kind is From.TIMESTAMP:
        return Place(span.end, f"{why}: no record is that young")
    if given is None:
        fallen = span.end if otherwise.kind is From.LATEST else span.start
        return Place(fallen, f"{why} does not name this partition: consumer.auto.offset.reset = {otherwise}")
    if given > span.end:
        return NoPlace(
            f"{why} gives offset {given}, the source ends at {span.end}: correct it, or use another start.from"
        )
    if given < span.start:
        return Place(span.start, f"{why} gives offset {given}, the source begins at {span.start}")
    return Place(given, why)


def parse_offsets(text: str, path: str) -> Mapping[Partition, int]:
    """Lines of `topic,partition,offset`, as `kafka-consumer-groups.sh --export` prints them; # begins a comment."""
    found: dict[Partition, int] = {}
    faults = []
    for number, line in enumerate(text.splitlines(), start=1):
        fields = [field.strip().strip('"') for field in line.partition("#")[0].split(",")]
        if fields == [""]:
            continue
        if len(fields) == 3 and fields[0] and fields[1].isdecimal() and fields[2].isdecimal():
            found[(fields[0], int(fields[1]))] = int(fields[2])
        else:
            faults.append(f"{path}:{number}: expected topic,partition,offset as in orders,0,1500")
    if faults:
        raise ConfigError(faults)
    return found


def needs_look(entry: LedgerEntry, stored: int | None, target_end: int) -> Look:
    """MirrorMaker 2 may have gone on since this entry: it stored other progress than was known, or records were added."""
    if stored is None:
        return Look.NONE
    if stored != entry.mm2_offset:
        return Look.COMPARE
    return Look.NONE if target_end == entry.target_next else Look.FOREIGN


def taken_over(found: Stopped | Unlike | None, copied: int | None, source: Span, remote: str) -> Place | NoPlace | None:
    """Where a lane goes on that MirrorMaker 2 carried, from the comparison of its tail; None: it carried nothing of it.

    `found` is None where the remote partition is empty, `copied` where nothing is known to be copied.
    """
    if copied is None:
        return _found_by_tail(found, remote)
    known = f"MirrorMaker 2 or the ledger has source offset {copied} as copied"
    if copied >= source.end:
        return NoPlace(
            f"{known}, the source ends at {source.end}: was its topic made again? Begin anew with --reset and start.from"
        )
    if found is None:
        return Place(copied + 1, f"{known}, {remote} is empty")
    if isinstance(found, Unlike):
        if source.start > copied:
            return Place(copied + 1, f"{known}, the source has no record as old as those of {remote}")
        return NoPlace(
            f"{known}, but {remote} ends with no record that the source has around there: were they changed on their way, "
            "or its topic made again? Begin anew with --reset and start.from"
        )
    if found.position <= copied:
        return Place(found.position, f"{known}, {remote} ends with {found.position - 1}", found.leader_epoch)
    return Place(found.position, f"{known}, {remote} has {found.beyond} records more", found.leader_epoch)


def _found_by_tail(found: Stopped | Unlike | None, remote: str) -> Place | None:
    if not isinstance(found, Stopped):
        return None
    return Place(found.position, f"{remote} ends with source record {found.position - 1}", found.leader_epoch)
