"""An answer to a Produce request to what the lane does next: one table (facts/exactly-once.md, P4).

One rule stands above the table: stop sending on the lane, take the answers still due, then act. A batch is never sent
again to a new leader without attach. Knows Kafka's error codes by number and short name, and nothing of connections.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum


class Appended(StrEnum):
    """Is the batch in the target's log?"""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class Action(StrEnum):
    """What the lane does next."""

    ATTACH = "attach"
    """Metadata, leader, attach again."""
    BACKOFF_ATTACH = "back off, attach"
    REFETCH_ONCE = "fetch again"
    """Fetch the same source batch once more and send that."""
    RECORD_PATH = "record path"
    """Open that batch: split or rebuild it."""
    CHECK_LEDGER = "check ledger"
    """A higher generation is there: this attempt is a zombie and leaves. None: park."""
    NO_STATE = "no state"
    """Attach as if the leader knew nothing of the identity; a new generation if it persists."""
    TOPIC_CHANGED = "topic changed"
    """The topic is another one: drain, a named event, a new generation by policy."""
    PARK = "park"


@dataclass(frozen=True)
class Reaction:
    """`tries` is how often in a row the action may be taken before the lane parks with the reason; 0 is without end."""

    code: int | None
    name: str
    appended: Appended
    action: Action
    reason: str
    tries: int = 0

    @property
    def parks(self) -> bool:
        return self.action is Action.PARK


_YES, _NO, _UNKNOWN = Appended.YES, Appended.NO, Appended.UNKNOWN
_ATTACH, _BACKOFF, _RECORDS, _PARK = Action.ATTACH, Action.BACKOFF_ATTACH, Action.RECORD_PATH, Action.PARK

_TABLE: tuple[Reaction, ...] = (
    Reaction(None, "DISCONNECTED", _UNKNOWN, _ATTACH, "the connection ended or no answer came in time"),
    Reaction(-1, "UNKNOWN_SERVER_ERROR", _UNKNOWN, _BACKOFF, "the broker failed without saying why", tries=3),
    Reaction(2, "CORRUPT_MESSAGE", _NO, Action.REFETCH_ONCE, "the batch was damaged on its way", tries=1),
    Reaction(3, "UNKNOWN_TOPIC_OR_PARTITION", _UNKNOWN, _ATTACH, "the broker does not have this partition"),
    Reaction(5, "LEADER_NOT_AVAILABLE", _UNKNOWN, _ATTACH, "the partition has no leader at the moment"),
    Reaction(6, "NOT_LEADER_OR_FOLLOWER", _UNKNOWN, _ATTACH, "the partition has another leader"),
    Reaction(7, "REQUEST_TIMED_OUT", _YES, _BACKOFF, "the leader appended it, its followers were too slow"),
    Reaction(10, "MESSAGE_TOO_LARGE", _NO, _RECORDS, "the batch is over the remote topic's max.message.bytes", tries=1),
    Reaction(17, "INVALID_TOPIC_EXCEPTION", _NO, _PARK, "the target refuses the remote topic's name"),
    Reaction(18, "RECORD_LIST_TOO_LARGE", _NO, _RECORDS, "the batch is over the remote topic's segment.bytes", tries=1),
    Reaction(19, "NOT_ENOUGH_REPLICAS", _NO, _BACKOFF, "fewer replicas are in sync than min.insync.replicas"),
    Reaction(20, "NOT_ENOUGH_REPLICAS_AFTER_APPEND", _YES, _BACKOFF, "the leader appended it, too few are in sync"),
    Reaction(29, "TOPIC_AUTHORIZATION_FAILED", _NO, _PARK, "WRITE on the remote topic is not allowed"),
    Reaction(31, "CLUSTER_AUTHORIZATION_FAILED", _NO, _PARK, "IDEMPOTENT_WRITE on the cluster is not allowed"),
    Reaction(32, "INVALID_TIMESTAMP", _NO, _RECORDS, "the remote topic does not allow a timestamp", tries=1),
    Reaction(45, "OUT_OF_ORDER_SEQUENCE_NUMBER", _NO, _ATTACH, "sequence conflict: another record is due", tries=3),
    Reaction(46, "DUPLICATE_SEQUENCE_NUMBER", _YES, _ATTACH, "the target has these records already"),
    Reaction(47, "INVALID_PRODUCER_EPOCH", _NO, Action.CHECK_LEDGER, "identity conflict: a newer epoch writes here"),
    Reaction(48, "INVALID_TXN_STATE", _NO, _PARK, "the producer id is in use by a transaction"),
    Reaction(49, "INVALID_PRODUCER_ID_MAPPING", _NO, _PARK, "the producer id belongs to another transactional id"),
    Reaction(53, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", _NO, _PARK, "WRITE on the transactional id is not allowed"),
    Reaction(56, "KAFKA_STORAGE_ERROR", _UNKNOWN, _ATTACH, "the leader's disk failed"),
    Reaction(59, "UNKNOWN_PRODUCER_ID", _NO, Action.NO_STATE, "the leader does not remember the lane's identity"),
    Reaction(74, "FENCED_LEADER_EPOCH", _UNKNOWN, _ATTACH, "the partition has a newer leader"),
    Reaction(75, "UNKNOWN_LEADER_EPOCH", _UNKNOWN, _ATTACH, "the broker does not know the newest leader yet"),
    Reaction(76, "UNSUPPORTED_COMPRESSION_TYPE", _NO, _RECORDS, "the target does not take this codec", tries=1),
    Reaction(87, "INVALID_RECORD", _NO, _RECORDS, "the remote topic refuses a record of the batch", tries=1),
    Reaction(90, "PRODUCER_FENCED", _NO, _PARK, "the producer id was fenced by a transaction"),
    Reaction(100, "UNKNOWN_TOPIC_ID", _NO, Action.TOPIC_CHANGED, "the remote topic is gone, or another has its name"),
    Reaction(103, "INCONSISTENT_TOPIC_ID", _NO, Action.TOPIC_CHANGED, "the remote topic is another of the same name"),
)
_BY_CODE = {reaction.code: reaction for reaction in _TABLE}

LISTED: tuple[int | None, ...] = tuple(_BY_CODE)


def react(code: int | None, times: int = 1) -> Reaction:
    """What to do about `code` (None: disconnected or timed out) when it is met for the `times`-th time in a row."""
    if code == 0:
        raise ValueError("0 is success: there is nothing to react to")
    reaction = _BY_CODE.get(code) or _unlisted(code)
    if reaction.tries and times > reaction.tries:
        reason = f"{reaction.reason} ({reaction.name}, {times} times in a row)"
        return replace(reaction, action=Action.PARK, reason=reason)
    return reaction


def _unlisted(code: int | None) -> Reaction:
    """A code the table does not have says as little as -1 does, and is met the same way."""
    return replace(_BY_CODE[-1], code=code, name=f"ERROR_{code}", reason=f"the broker answered with error {code}")
