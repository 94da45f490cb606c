"""A broker's refusal as an error: what was asked, the code, and the permission that is missing if it is one."""

from __future__ import annotations

from heliograph.errors import BrokerRefused
from heliograph.replication.permissions import missing_on_topic


def topic_refused(code: int, what: str, operation: str, topic: str, cluster: str) -> BrokerRefused:
    """`operation` is what `what` needs on `topic` of `cluster`, an alias."""
    missing = missing_on_topic(code, operation, topic, cluster)
    if missing is None:
        return BrokerRefused(code, what)
    return BrokerRefused(code, f"{what} (this needs {missing})", missing.advice)
