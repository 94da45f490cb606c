"""Clusters and the flows between them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cluster:
    """An alias and how to connect. `client` holds security and client keys as (name, value), sorted."""

    alias: str
    bootstrap: tuple[str, ...]
    client: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, order=True)
class Flow:
    """One direction, by alias."""

    source: str
    target: str

    @property
    def name(self) -> str:
        return f"{self.source}->{self.target}"
