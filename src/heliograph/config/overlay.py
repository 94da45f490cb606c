"""What REST changed, as entries that count instead of the file's: topics added to a flow or taken out, options set anew.

Knows the flows as the file has them. What the entries do together with the file is decided by load.py as for any file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from heliograph.config.flows import FlowSettings


@dataclass(frozen=True)
class TopicChange:
    """A topic that somebody added to a flow (`chosen`) or took out of it."""

    flow: str
    topic: str
    chosen: bool
    reason: str
    who: str
    since_ms: int

    def as_fields(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class OptionChange:
    """An option that somebody set: `A->B.throttle.bytes.per.second`."""

    name: str
    value: str
    reason: str
    who: str
    since_ms: int

    def as_fields(self) -> dict[str, Any]:
        return asdict(self)


def overlay(
    flows: Sequence[FlowSettings], topics: Iterable[TopicChange], options: Iterable[OptionChange]
) -> dict[str, str]:
    """Entries over the file's. Changes of flows that the file no longer has wait until it has them again."""
    changed = list(topics)
    entries: dict[str, str] = {}
    for flow in flows:
        name = flow.flow.name
        added = [literal(change.topic) for change in changed if change.flow == name and change.chosen]
        removed = [literal(change.topic) for change in changed if change.flow == name and not change.chosen]
        if added:
            entries[f"{name}.topics"] = ",".join(dict.fromkeys((*flow.topics, *added)))
        if removed:
            entries[f"{name}.topics.exclude"] = ",".join(dict.fromkeys((*flow.topics_exclude, *removed)))
    names = {flow.flow.name for flow in flows}
    return entries | {change.name: change.value for change in options if _flow_in(change.name, names)}


def _flow_in(option: str, flows: Iterable[str]) -> bool:
    return any(option.startswith(f"{flow}.") for flow in flows)


def literal(topic: str) -> str:
    """A topic's name as the regular expression that matches it alone: of all that a name may hold, only dots mean more."""
    return topic.replace(".", "\\.")


def topic_change_of(fields: Mapping[str, Any]) -> TopicChange:
    """What `as_fields` wrote; KeyError, TypeError or ValueError where it is none."""
    return TopicChange(
        flow=str(fields["flow"]),
        topic=str(fields["topic"]),
        chosen=bool(fields["chosen"]),
        reason=str(fields["reason"]),
        who=str(fields["who"]),
        since_ms=int(fields["since_ms"]),
    )


def option_change_of(fields: Mapping[str, Any]) -> OptionChange:
    """What `as_fields` wrote; KeyError, TypeError or ValueError where it is none."""
    return OptionChange(
        name=str(fields["name"]),
        value=str(fields["value"]),
        reason=str(fields["reason"]),
        who=str(fields["who"]),
        since_ms=int(fields["since_ms"]),
    )
