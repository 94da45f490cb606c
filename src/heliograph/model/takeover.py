"""How long an attempt that is not heard any more may still write, and how long whoever takes over must wait for it (P5).

Only lanes that the target does not guard wait at all. Their last attempt sends nothing any more once it has not heard its driver
for `quiet_s`, or once its run could not say for `hold_s` that it holds the flow. What it sent until then leaves its host within
`answer_limit_s`, or not at all, because its connection is closed then and takes along what the socket still holds. A leader
appends what has arrived; its followers have it, or are left out of its replicas, within `replica.lag.time.max.ms`.
"""

from __future__ import annotations

import math

_QUIET_SECONDS = 10.0
_HOLD_SECONDS = 25.0
_GRACE_SECONDS = 5.0
_LEAST_WAIT_SECONDS = 6
"""A hold on a flow is renewed every two seconds, or an eighth of the wait: a shorter one would run out with each slow answer."""


def quiet_s(wait_s: float) -> float:
    """For how long an attempt that does not hear its driver still sends what the target does not guard.

    >>> quiet_s(90), quiet_s(15)
    (10.0, 5.0)
    """
    return min(_QUIET_SECONDS, wait_s / 3)


def hold_s(wait_s: float) -> float:
    """For how long a run that cannot say that it holds a flow may still count on it.

    >>> hold_s(90), hold_s(15)
    (25.0, 5.0)
    """
    return min(_HOLD_SECONDS, wait_s / 3)


def answer_limit_s(request_timeout_ms: int) -> float:
    """After so long without a byte a produce request is given up: the broker's own limit, and time for its answer.

    >>> answer_limit_s(30_000), answer_limit_s(8_000)
    (35.0, 10.0)
    """
    request_s = request_timeout_ms / 1000
    return request_s + min(_GRACE_SECONDS, request_s / 4)


def needed_wait_s(request_timeout_ms: int, replica_lag_ms: int = 0) -> int:
    """The least `takeover.wait.seconds`. `replica_lag_ms`: the target's, where a partition has followers.

    >>> needed_wait_s(30_000), needed_wait_s(30_000, 30_000), needed_wait_s(8_000)
    (53, 90, 15)
    """
    late_s = answer_limit_s(request_timeout_ms) + replica_lag_ms / 1000
    # The least wait of which that much is left after `hold_s`.
    return max(_LEAST_WAIT_SECONDS, math.ceil(min(late_s * 3 / 2, late_s + _HOLD_SECONDS)))
