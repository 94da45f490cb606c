"""How often the slots of this process ask for what many lanes can share."""

from __future__ import annotations

from collections import Counter
from functools import wraps
from typing import Any, Self

from heliograph.kafka.client import ClusterClient
from heliograph.kafka.ledger import Ledger
from heliograph.kafka.topic_writer import TopicWriter

IDS, APPENDS, READINGS = "producer ids", "appends to the ledger", "readings of the ledger"


class Asked:
    """Counts, inside `with`, what the slots of this process ask for."""

    _WATCHED = (
        (ClusterClient, "new_identity", IDS),
        (TopicWriter, "_request", APPENDS),
        (Ledger, "_refresh", READINGS),
        (ClusterClient, "producers", "DescribeProducers"),
        (ClusterClient, "offsets", "ListOffsets"),
        (ClusterClient, "metadata", "Metadata"),
    )

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._kept: list[tuple[type, str, Any]] = []

    def __enter__(self) -> Self:
        for owner, name, label in self._WATCHED:
            inner = owner.__dict__[name]
            self._kept.append((owner, name, inner))
            setattr(owner, name, self._counting(inner, label))
        return self

    def __exit__(self, *about: object) -> None:
        for owner, name, inner in self._kept:
            setattr(owner, name, inner)

    def _counting(self, inner: Any, label: str) -> Any:
        @wraps(inner)
        async def counted(*args: Any, **named: Any) -> Any:
            self.counts[label] += 1
            return await inner(*args, **named)

        return counted
