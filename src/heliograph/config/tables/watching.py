"""Options of what is watched: lag, the canary, the health of consumer groups."""

from __future__ import annotations

from heliograph.config.kinds import Flag, Fraction, Kind, Whole
from heliograph.config.option import FLOW, TOP, Option
from heliograph.config.tables.engine import OURS


def _flow(name: str, kind: Kind, default: str, doc: str) -> Option:
    return Option(name, kind, default, doc, FLOW, since=OURS)


def _run(name: str, kind: Kind, default: str, doc: str) -> Option:
    return Option(name, kind, default, doc, TOP, since=OURS)


ROWS = (
    _flow(
        "commit.source.group",
        Flag(),
        "true",
        "Whether a flow's positions are committed on its source as consumer group heliograph-A-B, where any tool that shows lag "
        "sees them. Not with source.readonly = true.",
    ),
    _flow(
        "commit.source.group.interval.seconds",
        Whole(1, unit="seconds"),
        "1",
        "How often positions that moved are committed.",
    ),
    _flow(
        "lag.limit.seconds",
        Whole(0, unit="seconds"),
        "0",
        "An event is told when a record of the flow has waited longer than this to be copied, and another when none does any "
        "more; 0: never.",
    ),
    _flow(
        "canary.enabled",
        Flag(),
        "false",
        "Whether events are sent through the flow and awaited on its target: topic heliograph-canary-A-B of the source, "
        "which is copied whatever topics says.",
    ),
    _flow("canary.interval.seconds", Whole(1, unit="seconds"), "1", "How often the canary sends an event."),
    _flow(
        "canary.limit.ms",
        Whole(0, unit="ms"),
        "0",
        "An event is told when the canary takes longer than this, or does not arrive, and another when it is in time again; 0: "
        "never.",
    ),
    _run(
        "group.health.interval.seconds",
        Whole(1, unit="seconds"),
        "10",
        "How often the groups of a cluster are looked at while somebody asks for their health (Burrow's paths).",
    ),
    _run(
        "group.health.intervals",
        Whole(2),
        "10",
        "Commits in the window by which a group is judged (Burrow: intervals).",
    ),
    _run(
        "group.health.minimum.complete",
        Fraction(0.0, 1.0),
        "0",
        "A partition whose window is filled less than this is OK (Burrow: minimum-complete).",
    ),
    _run("group.health.allowed.lag", Whole(0), "0", "A lag up to this counts as none (Burrow: allowed-lag)."),
)
