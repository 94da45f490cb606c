"""Why a cluster cannot be reached, in one sentence that names each address once.

Knows the system's errors and ours; asks nobody.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping

from heliograph.errors import ClusterUnreachable

_REFUSED = "connection refused"


def is_refused(fault: BaseException | None) -> bool:
    """Nobody listens there, or the name is nobody's: asking again at once does not help."""
    while fault is not None:
        if isinstance(fault, ConnectionRefusedError | socket.gaierror):
            return True
        fault = fault.__cause__
    return False


def unreachable(alias: str, faults: Mapping[str, BaseException]) -> ClusterUnreachable:
    """What each address of the cluster met, by `host:port`."""
    reasons = {address: _reason(address, fault) for address, fault in faults.items()}
    if len(set(reasons.values())) > 1:
        each = "; ".join(f"{address}: {reason}" for address, reason in reasons.items())
        return ClusterUnreachable(f"cluster {alias} is unreachable: {each}")
    addresses, reason = ", ".join(reasons), next(iter(reasons.values()), "it has no address")
    if reason == _REFUSED:
        return ClusterUnreachable(f"cluster {alias}: {_REFUSED} at {addresses}")
    return ClusterUnreachable(f"cluster {alias} is unreachable at {addresses}: {reason}")


def _reason(address: str, fault: BaseException) -> str:
    cause: BaseException | None = fault
    while cause is not None:
        if isinstance(cause, ConnectionRefusedError):
            return _REFUSED
        if isinstance(cause, socket.gaierror):
            return (cause.strerror or str(cause)).lower()
        cause = cause.__cause__
    return str(fault).removeprefix(f"{address}: ") or "no answer"
