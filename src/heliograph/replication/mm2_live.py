"""Does a MirrorMaker 2 copy this flow at this moment? From what the target's Connect groups say of their members.

A member alone proves nothing: MirrorMaker 2 also runs a herder for every flow that only emits heartbeats. What counts is a
member that runs a task of the flow's source connector. Neither does a name: without a Connect cluster the source connector
of every flow is called the same, so the group says whose it is, and in a Connect cluster the connector's configuration.
Reads nothing: `kafka.groups` and `kafka.mm2_store` do.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from heliograph.replication.mm2_progress import SOURCE_CONNECTOR, is_mirror_of

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
    strangers: Collection[str] = ()
    """Connectors of Connect clusters that have such a name and copy another source."""
    configured: Collection[str] = ()
    """Connectors that copy the flow by their configuration, whether or not anybody runs them."""


def is_dedicated(group: str) -> bool:
    """A MirrorMaker 2 without a Connect cluster: its group is named after its source, so it carries no other flow."""
    return group.endswith(_DEDICATED)


def is_sharing_out(group: ConnectGroup) -> bool:
    """A Connect cluster whose members join: until they are told what to run, nobody can see what they run."""
    return group.state not in (STABLE, HIDDEN) and not is_dedicated(group.name)


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
    if is_sharing_out(group) and sought.configured:
        return f"may copy it (connector '{min(sought.configured)}'): its Connect cluster is sharing out tasks"
    for connector, tasks in (member.tasks or {}).items():
        if not _is_the_flows(sought, group, connector):
            continue
        if any(task != _CONNECTOR_ITSELF for task in tasks):
            return f"copies it (connector '{connector}')"
        if own and not sought.may_be_disabled:
            return f"is about to copy it (connector '{connector}')"
    return ""


def _is_the_flows(sought: Sought, group: ConnectGroup, connector: str) -> bool:
    if connector not in sought.connectors or group.name == sought.group:
        return connector in sought.connectors
    if is_dedicated(group.name):
        return connector != SOURCE_CONNECTOR
    return connector not in sought.strangers


def connectors_to_look_up(sought: Sought, groups: Sequence[ConnectGroup]) -> frozenset[str]:
    """Connectors with tasks outside the flow's own group: only their configurations tell whether they copy the flow."""
    return frozenset(
        connector
        for group in groups
        if group.name != sought.group
        for connector in _with_tasks(group)
        if connector not in sought.connectors or _is_the_flows(sought, group, connector)
    )


def strangers(
    names: Collection[str],
    groups: Sequence[ConnectGroup],
    configs: Mapping[str, Sequence[Mapping[str, str]]],
    source: str,
) -> frozenset[str]:
    """Which of these connectors copy another source in every Connect cluster that runs one of that name.

    A configuration does not say which cluster it belongs to, so each that runs the name must have one that can be seen.
    """
    found = set()
    for name in names:
        seen = configs.get(name, ())
        runs = sum(name in _with_tasks(group) for group in groups if not is_dedicated(group.name))
        if len(seen) >= runs and not any(is_mirror_of(config, source) for config in seen):
            found.add(name)
    return frozenset(found)


def _with_tasks(group: ConnectGroup) -> frozenset[str]:
    return frozenset(
        connector
        for member in group.members
        for connector, tasks in (member.tasks or {}).items()
        if any(task != _CONNECTOR_ITSELF for task in tasks)
    )


def lookalikes(sought: Sought, groups: Sequence[ConnectGroup]) -> tuple[str, ...]:
    """Connectors with tasks that are called a mirror, in a Connect cluster, and may be the flow's under another name."""
    return tuple(
        sorted(
            {
                connector
                for group in groups
                if not is_dedicated(group.name)
                for connector in _with_tasks(group)
                if "mirror" in connector.lower() and connector not in {*sought.connectors, *sought.strangers}
            }
        )
    )
