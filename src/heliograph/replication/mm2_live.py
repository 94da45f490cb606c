"""Does a MirrorMaker 2 copy this flow at this moment? From what the target's Connect groups say of their members.

A member alone proves nothing: MirrorMaker 2 also runs a herder for every flow that only emits heartbeats. What counts is a
member that runs a task of the flow's source connector. Reads nothing: `kafka.groups` does.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

STABLE = "Stable"
HIDDEN = "Hidden"
"""Not one of Kafka's states: the group is listed, its members may not be seen."""
_DEDICATED = "-mm2"
_CONNECTOR_ITSELF = -1
"""Stands among task numbers for the connector, which runs on one member and makes its tasks there."""


@dataclass(frozen=True)
class Member:
    """One worker: where it runs, and its connectors with their task numbers (None: not assigned yet)."""

    host: str
    tasks: Mapping[str, tuple[int, ...]] | None


@dataclass(frozen=True)
class ConnectGroup:
    """A group of Connect workers on the target; one that is HIDDEN shows no members."""

    name: str
    state: str
    members: Sequence[Member]


@dataclass(frozen=True)
class Sought:
    """The flow's own group, and the names that its source connector may have."""

    flow: str
    group: str
    connectors: Collection[str]
    may_be_disabled: bool = False
    """The connector's stored configuration says enabled=false: without tasks it only emits heartbeats."""


def is_dedicated(group: str) -> bool:
    """A MirrorMaker 2 without a Connect cluster: its group is named after its source, so it carries no other flow."""
    return group.endswith(_DEDICATED)


def refusal(sought: Sought, groups: Sequence[ConnectGroup]) -> str:
    """Why the flow must not start; nothing if it may."""
    for group in groups:
        if group.state == HIDDEN and group.name == sought.group:
            return (
                f"flow {sought.flow}: a MirrorMaker 2 that copies it would not be noticed, since DESCRIBE on group "
                f"'{group.name}' of the target is missing: grant DESCRIBE on group {group.name} to Heliograph's principal"
            )
        for member in group.members:
            doing = _doing(sought, group, member)
            if doing:
                return (
                    f"flow {sought.flow}: a MirrorMaker 2 on {member.host} (group '{group.name}') {doing}: stop it first, "
                    "or copy beside it under other names with --trial PREFIX"
                )
    return ""


def _doing(sought: Sought, group: ConnectGroup, member: Member) -> str:
    own = group.name == sought.group
    if own and (member.tasks is None or group.state != STABLE or not any(one.tasks for one in group.members)):
        return "is starting, stopping or was lost a moment ago"
    for connector, tasks in (member.tasks or {}).items():
        if connector not in sought.connectors:
            continue
        if any(task != _CONNECTOR_ITSELF for task in tasks):
            return f"copies it (connector '{connector}')"
        if own and not sought.may_be_disabled:
            return f"is about to copy it (connector '{connector}')"
    return ""


def unknown_connectors(sought: Sought, groups: Sequence[ConnectGroup]) -> frozenset[str]:
    """Connectors with tasks whose names do not tell whether they copy the flow."""
    return frozenset(
        connector
        for group in groups
        for member in group.members
        for connector, tasks in (member.tasks or {}).items()
        if connector not in sought.connectors and any(task != _CONNECTOR_ITSELF for task in tasks)
    )


def lookalikes(sought: Sought, groups: Sequence[ConnectGroup]) -> tuple[str, ...]:
    """Connectors with tasks that are called a mirror, in a Connect cluster, and may be the flow's under another name."""
    return tuple(
        sorted(
            {
                connector
                for group in groups
                if not is_dedicated(group.name)
                for member in group.members
                for connector, tasks in (member.tasks or {}).items()
                if "mirror" in connector.lower() and connector not in sought.connectors
                if any(task != _CONNECTOR_ITSELF for task in tasks)
            }
        )
    )
