"""Clusters and the flows between them."""

from __future__ import annotations

from dataclasses import dataclass

from heliograph.model.security import PLAINTEXT, Security


@dataclass(frozen=True)
class Cluster:
    """An alias and how to connect. `client` holds the keys of admin connections as (name, value), sorted; none is secret."""

    alias: str
    bootstrap: tuple[str, ...]
    client: tuple[tuple[str, str], ...] = ()
    security: Security = PLAINTEXT
    request_timeout_ms: int = 30_000
    """For how long a broker may be silent that owes an answer."""


@dataclass(frozen=True, order=True)
class Flow:
    """One direction, by alias. A trial has a name, and so a ledger, of its own."""

    source: str
    target: str
    trial: str = ""
    """The prefix of a trial's remote topics; empty for the flow itself."""

    @property
    def name(self) -> str:
        trial = f"@{self.trial}" if self.trial else ""
        return f"{self.source}->{self.target}{trial}"
