"""Whether the target remembers a lane: then it refuses whatever anyone repeats, and several batches may be on their way (P3.2, P6).

A broker forgets a producer by the timestamp of its last batch, not by when it was written; where it sets timestamps itself, by
the time of the append. So one old batch in a live lane takes the guard away, until a fresh one is acknowledged.
"""

from __future__ import annotations

from heliograph.kafka.outgoing import Outgoing
from heliograph.replication.attach import is_guarded


class TargetMemory:
    """Of one lane. `append_time`: the remote topic is LogAppendTime."""

    def __init__(self, expiration_ms: int, append_time: bool) -> None:
        self._expiration_ms = expiration_ms
        self._append_time = append_time
        self._acked_ms = self._sent_ms = 0
        self._has_answered = False

    def begin(self, last_timestamp: int) -> None:
        """Attached: the target remembers the lane by this timestamp, -1: not at all."""
        self._acked_ms, self._sent_ms = last_timestamp, 0
        self._has_answered = False

    def is_kept(self, now_ms: int) -> bool:
        """The target remembers the lane, and refuses whoever else writes its records."""
        return self._is_fresh(self._acked_ms, now_ms)

    def outlives(self, item: Outgoing, now_ms: int) -> bool:
        """The target remembers the lane now, and still does after this batch."""
        return self._is_fresh(self._acked_ms, now_ms) and self._is_fresh(self._time_of(item, now_ms), now_ms)

    def may_pipeline(self, now_ms: int) -> bool:
        """It answered since the attach, and has not been given anything since that makes it forget."""
        return self._has_answered and self._is_fresh(self._sent_ms, now_ms)

    def sent(self, item: Outgoing, now_ms: int, is_first: bool) -> None:
        """`is_first`: nothing else is on its way."""
        item.guarded = self.outlives(item, now_ms)
        if is_first and not self.is_kept(now_ms):
            # It may have forgotten an idle lane: again one at a time until it answers (case 9b).
            self._has_answered = False
        self._sent_ms = self._time_of(item, now_ms)

    def acknowledged(self, item: Outgoing, now_ms: int) -> None:
        self._acked_ms = self._time_of(item, now_ms)
        self._has_answered = True

    def _time_of(self, item: Outgoing, now_ms: int) -> int:
        return now_ms if self._append_time else item.max_timestamp

    def _is_fresh(self, timestamp: int, now_ms: int) -> bool:
        return is_guarded(timestamp, now_ms, self._expiration_ms)
