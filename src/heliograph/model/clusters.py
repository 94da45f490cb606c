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


@dataclass(frozen=True, order=True)
class Flow:
    """One direction, by alias."""

    source: str
    target: str

    @property
    def name(self) -> str:
        return f"{self.source}->{self.target}"
