"""Settings of what is watched, from entries that were found valid: lag, the canary, the health of consumer groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from heliograph.config.properties import Property
from heliograph.config.resolve import View
from heliograph.model.clusters import Flow
from heliograph.replication.group_health import HealthRules


@dataclass(frozen=True)
class CanarySettings:
    interval_s: int = 1
    limit_ms: int = 0
    """0: none"""


@dataclass(frozen=True)
class WatchSettings:
    """Of one flow."""

    source_group: bool = True
    """Positions are committed on the source."""
    source_group_interval_s: int = 1
    source_readonly: bool = False
    """Why they are not, where the file does not say so itself."""
    lag_limit_s: int = 0
    """0: none"""
    canary: CanarySettings | None = None


@dataclass(frozen=True)
class HealthSettings:
    """Of a run."""

    interval_s: int = 10
    rules: HealthRules = field(default_factory=HealthRules)


def watch_settings(view: View) -> WatchSettings:
    readonly, wanted = view.flag("source.readonly"), view.flag("commit.source.group")
    return WatchSettings(
        source_group=wanted and not readonly,
        source_group_interval_s=view.number("commit.source.group.interval.seconds"),
        source_readonly=wanted and readonly,
        lag_limit_s=view.number("lag.limit.seconds"),
        canary=CanarySettings(view.number("canary.interval.seconds"), view.number("canary.limit.ms"))
        if view.flag("canary.enabled")
        else None,
    )


def health_settings(view: View) -> HealthSettings:
    rules = HealthRules(
        intervals=view.number("group.health.intervals"),
        minimum_complete=view.fraction("group.health.minimum.complete"),
        allowed_lag=view.number("group.health.allowed.lag"),
    )
    return HealthSettings(view.number("group.health.interval.seconds"), rules)


def watch_faults(entries: Mapping[str, Property], flow: Flow) -> Iterator[str]:
    """What would write to a source that must not be written to."""
    view = View(entries, flow=flow.name)
    if not view.flag("source.readonly"):
        return
    for name, what in (
        ("commit.source.group", "positions would be committed on the source"),
        ("canary.enabled", "the canary would write to the source"),
    ):
        found = view.find(name)
        if found.entry is not None and found.text == "true":
            yield f"{flow.name}: {found.entry.name} = true does not go with source.readonly = true: {what}; leave one of them out"
