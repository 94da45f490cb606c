"""A policy and a situation to what the lane does, with the reason and what a person can do: one pure function, `decide`.

The situations are those of the options `on.*` (P9, P10 of the protocol). A step that changes what "record n" means always
opens a new generation (P7). Carried out by kafka/policy_steps.py in a task, and by control/planner.py in the driver.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from heliograph.model.events import EventKind
from heliograph.model.policies import Policies

TOO_LARGE, LARGER_THAN_A_SEGMENT, INVALID_TIMESTAMP, INVALID_RECORD = 10, 18, 32, 87
RECORD_CODES = frozenset({TOO_LARGE, LARGER_THAN_A_SEGMENT, INVALID_TIMESTAMP, INVALID_RECORD})
"""Refusals that may be about one record of the batch."""
DEAD_LETTER_PREFIX = "__heliograph-dead-letter."
"""No mirror copies on what begins with `__`: every MirrorMaker 2 and Heliograph take it for internal."""
_LONGEST_TOPIC = 249


class Step(StrEnum):
    """What the lane does."""

    PARK = "park"
    CONTINUE = "continue"
    NEW_GENERATION = "new generation"
    """From `start` of the decision, under a fresh identity."""
    SKIP = "skip"
    """As NEW_GENERATION, after the record."""
    DEAD_LETTER = "dead-letter"
    """As SKIP, once the record is in the dead-letter topic."""
    LEAVE_TO_DRIVER = "leave to the driver"
    """Park; the driver's next plan knows the new topic and opens the generation."""


@dataclass(frozen=True)
class Decision:
    step: Step
    kind: EventKind
    reason: str
    what_to_do: str = ""
    start: int = -1
    """The source offset at which a new generation begins; -1 where none does."""

    @property
    def parks(self) -> bool:
        return self.step in (Step.PARK, Step.LEAVE_TO_DRIVER)


@dataclass(frozen=True)
class SourceReplaced:
    """The source topic was deleted and created again."""

    partition: str


@dataclass(frozen=True)
class SourceCut:
    """The source lost records that were copied: its log now agrees with the copy only up to `agrees_to`."""

    partition: str
    position: int
    """Up to where it was copied."""
    ends_at: int
    """Where the source ends what the copy has, as its leader says."""
    agrees_to: int
    """Up to where both are shown to be the same: `ends_at`, or the log's start where that cannot be shown."""


@dataclass(frozen=True)
class DataLost:
    """The source deleted records before they were copied."""

    partition: str
    position: int
    begins: int
    exact: bool = True
    """Without it some of them may have been copied."""


@dataclass(frozen=True)
class TargetReplaced:
    """The remote topic was deleted and created again, or the flow's target is another cluster."""

    remote: str
    other_cluster: bool = False


@dataclass(frozen=True)
class TargetWentBack:
    """The target lost the last `records`; where they begin on the source is known."""

    remote: str
    records: int


@dataclass(frozen=True)
class TargetLost:
    """The target has less than it acknowledged, and no count tells where to go on."""

    remote: str
    finding: str
    start: int
    """Where the source is copied again from."""


@dataclass(frozen=True)
class ForeignRecords:
    """Records that this flow did not write lie where its own were expected."""

    remote: str
    offset: int
    count: int = 0
    """0: not counted."""
    producer_id: int = -1


@dataclass(frozen=True)
class Facts:
    """What can be wrong with a record, of one record."""

    offset: int
    timestamp: int
    size: int
    has_key: bool


@dataclass(frozen=True)
class BadRecord:
    """The target refuses the records `offset` to `last`."""

    topic: str
    partition: int
    remote: str
    offset: int
    last: int
    cause: str
    cure: str

    @property
    def name(self) -> str:
        records = f"record {self.offset}" if self.offset == self.last else f"records {self.offset} to {self.last}"
        return f"{records} of {self.topic}-{self.partition}"


Situation = (
    SourceReplaced | SourceCut | DataLost | TargetReplaced | TargetWentBack | TargetLost | ForeignRecords | BadRecord
)


def decide(policies: Policies, situation: Situation) -> Decision:
    """What the flow's policies make of it."""
    match situation:
        case SourceReplaced() | SourceCut():
            return _source_reset(policies.source_reset, situation)
        case DataLost():
            return _data_loss(policies.data_loss, situation)
        case TargetReplaced() | TargetWentBack() | TargetLost():
            return _target_loss(policies.target_loss, situation)
        case ForeignRecords():
            return _foreign_writer(policies.foreign_writer, situation)
    return _bad_record(policies.bad_record, situation)


def _source_reset(policy: str, found: SourceReplaced | SourceCut) -> Decision:
    kind, option = EventKind.SOURCE_RESET, f"(on.source.reset = {policy})"
    todo = "set on.source.reset = restart to copy what the source has now after what the target has"
    if isinstance(found, SourceReplaced):
        what = f"{found.partition} was deleted and created again on the source"
        if policy == "fail":
            return Decision(Step.PARK, kind, f"{what} {option}", todo)
        return Decision(Step.LEAVE_TO_DRIVER, kind, f"{what}: copied from its start, after what was copied {option}")
    what = (
        f"the source lost records of {found.partition} that were copied: its log agrees with the copy up to "
        f"{found.ends_at}, the copy goes up to {found.position}"
    )
    if policy == "fail":
        return Decision(Step.PARK, kind, f"{what} {option}", todo)
    how = f"copying goes on from {found.agrees_to}"
    if found.agrees_to < found.ends_at:
        how = f"how far they agree could not be shown, so everything is copied again from {found.agrees_to}"
    keeps = "the target keeps what it has"
    return Decision(Step.NEW_GENERATION, kind, f"{what}; {how} {option}", keeps, found.agrees_to)


def _data_loss(policy: str, lost: DataLost) -> Decision:
    number = lost.begins - lost.position
    count = str(number) if lost.exact else f"up to {number}"
    what = (
        f"{count} offsets of {lost.partition} ({lost.position} to {lost.begins - 1}) were deleted on the source before "
        "they were copied"
    )
    if policy == "fail":
        todo = f"set on.data.loss = continue to go on at {lost.begins}; raise retention on the source"
        return Decision(Step.PARK, EventKind.DATA_LOSS, f"{what} (on.data.loss = fail)", todo)
    reason = f"{what}; copying goes on at {lost.begins} (on.data.loss = continue)"
    return Decision(
        Step.NEW_GENERATION, EventKind.DATA_LOSS, reason, "raise retention on the source, or copy faster", lost.begins
    )


def _target_loss(policy: str, found: TargetReplaced | TargetWentBack | TargetLost) -> Decision:
    what, then, step, start = _lost_and_then(found)
    if policy == "fail":
        todo = "set on.target.loss = recopy to copy them again, or restore the remote topic"
        return Decision(Step.PARK, EventKind.TARGET_LOSS, f"{what} (on.target.loss = fail)", todo)
    reason = f"{what}: {then} (on.target.loss = recopy)"
    return Decision(step, EventKind.TARGET_LOSS, reason, "consumers may read them twice", start)


def _lost_and_then(found: TargetReplaced | TargetWentBack | TargetLost) -> tuple[str, str, Step, int]:
    """What is lost, how it is copied again, by which step, and from where."""
    if isinstance(found, TargetReplaced):
        happened = "is on another cluster now" if found.other_cluster else "was deleted and created again on the target"
        return f"{found.remote} {happened}", "copied again from the source's start", Step.LEAVE_TO_DRIVER, -1
    if isinstance(found, TargetWentBack):
        what = f"{found.remote} lost the last {found.records} records that it had acknowledged"
        return what, "they are copied again", Step.CONTINUE, -1
    what = f"{found.remote}: {found.finding}"
    return what, f"copied again from source offset {found.start}", Step.NEW_GENERATION, found.start


def _foreign_writer(policy: str, found: ForeignRecords) -> Decision:
    count = f"{found.count} records" if found.count else "records"
    writer = f" (producer {found.producer_id})" if found.producer_id >= 0 else ""
    what = f"somebody else{writer} wrote {count} into {found.remote}, from offset {found.offset}"
    if policy == "fail":
        todo = "stop that writer, then set on.foreign.writer = continue to go on after its records"
        return Decision(Step.PARK, EventKind.FOREIGN_WRITER, f"{what} (on.foreign.writer = fail)", todo)
    reason = f"{what}; the copy is exact, its offsets shift (on.foreign.writer = continue)"
    return Decision(Step.CONTINUE, EventKind.FOREIGN_WRITER, reason, "stop that writer")


def _bad_record(policy: str, bad: BadRecord) -> Decision:
    what = f"{bad.remote} does not take {bad.name}: {bad.cause}"
    option = f"(on.bad.record = {policy})"
    dead_letter = dead_letter_topic(bad.remote)
    if policy == "skip":
        return Decision(Step.SKIP, EventKind.BAD_RECORD, f"{what}; not copied {option}", bad.cure, bad.last + 1)
    if policy == "dead-letter" and dead_letter:
        reason = f"{what}; kept in {dead_letter} {option}"
        return Decision(Step.DEAD_LETTER, EventKind.BAD_RECORD, reason, bad.cure, bad.last + 1)
    if policy == "dead-letter":
        what += f"; {DEAD_LETTER_PREFIX}{bad.remote} is longer than {_LONGEST_TOPIC} characters, so it cannot be kept"
    return Decision(
        Step.PARK, EventKind.BAD_RECORD, f"{what} {option}", f"{bad.cure}, or set on.bad.record = skip or dead-letter"
    )


def dead_letter_topic(remote: str) -> str:
    """Where records go that a remote topic does not take; empty where the name would be too long for Kafka."""
    name = f"{DEAD_LETTER_PREFIX}{remote}"
    return name if len(name) <= _LONGEST_TOPIC else ""


def cause_of(code: int, message: str, record: Facts, remote: str, now_ms: int) -> tuple[str, str]:
    """Why the target refuses a record, and which option cures it."""
    if code == TOO_LARGE:
        return message or f"it has {record.size} bytes", f"raise max.message.bytes of {remote}"
    if code == LARGER_THAN_A_SEGMENT:
        return f"its {record.size} bytes are more than a segment may have", f"raise segment.bytes of {remote}"
    if code == INVALID_TIMESTAMP:
        moment = _moment(record.timestamp)
        if record.timestamp < now_ms:
            return f"its timestamp {moment} is too old", f"raise message.timestamp.before.max.ms of {remote}"
        return (
            f"its timestamp {moment} is too far in the future",
            f"raise message.timestamp.after.max.ms of {remote}",
        )
    if not record.has_key:
        return "it has no key, and the remote topic is compacted", f"set cleanup.policy = delete on {remote}"
    return message, "see the target broker's log"


def _moment(timestamp_ms: int) -> str:
    try:
        return datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat(timespec="seconds")
    except (OverflowError, ValueError):
        return str(timestamp_ms)  # beyond the calendar


def is_as_bad(code: int, first: Facts, other: Facts, now_ms: int) -> bool:
    """Whether a neighbour surely has what got the first record refused.

    Never by size: a larger record may be smaller once it is compressed, and the target would take it.
    """
    if code == INVALID_TIMESTAMP and first.timestamp < now_ms:
        return other.timestamp <= first.timestamp
    if code == INVALID_TIMESTAMP:
        return other.timestamp >= first.timestamp
    return code == INVALID_RECORD and not first.has_key and not other.has_key
