"""Both clusters of a flow side by side: what differs, by name, as the source has it and as the target has it.

Names are those of the flow: a source topic is held against its remote topic, an ACL against what the flow's rules make of it.
What the file wants different (excluded configs, ALLOW WRITE on remote topics) is no difference.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from heliograph.model.acls import TOPIC, Access, Resource
from heliograph.model.topics import ConfigValue, Topic
from heliograph.replication.acl_sync import AclRules, Sides, wanted_acls

MISSING = "-"


class About(StrEnum):
    TOPICS = "topics"
    CONFIGS = "configs"
    ACLS = "ACLs"
    QUOTAS = "quotas"
    GROUPS = "groups"


@dataclass(frozen=True)
class Difference:
    """`source` and `target` are what each has, `-` where it has nothing."""

    about: About
    subject: str
    source: str
    target: str


@dataclass(frozen=True)
class TopicPair:
    """A source topic and the one that is its copy by name; None where it is missing."""

    name: str
    remote: str
    here: Topic | None
    there: Topic | None

    @property
    def subject(self) -> str:
        return self.name if self.name == self.remote else f"{self.name} -> {self.remote}"


def compare_topics(pairs: Collection[TopicPair]) -> Iterator[Difference]:
    """Which exist, and how many partitions they have."""
    for pair in pairs:
        here, there = _partitions(pair.here), _partitions(pair.there)
        if here != there:
            yield Difference(About.TOPICS, pair.subject, here, there)


def _partitions(topic: Topic | None) -> str:
    if topic is None:
        return MISSING
    return "1 partition" if topic.partitions == 1 else f"{topic.partitions} partitions"


def compare_configs(pairs: Collection[TopicPair], excluded: Callable[[str], bool]) -> Iterator[Difference]:
    """What either topic sets and the other has otherwise, whoever set it; what the file excludes is not looked at."""
    for pair in pairs:
        if pair.here is None or pair.there is None:
            continue
        here, there = pair.here.configs, pair.there.configs
        either = {name for side in (here, there) for name, value in side.items() if not value.is_default}
        for name in sorted(name for name in either if not excluded(name)):
            values = _config(here.get(name)), _config(there.get(name))
            if values[0] != values[1]:
                yield Difference(About.CONFIGS, f"{pair.subject}: {name}", *values)


def _config(value: ConfigValue | None) -> str:
    if value is None:
        return MISSING
    if value.sensitive:
        return "***"
    return value.value or ""


def compare_acls(sides: Sides, rules: AclRules) -> Iterator[Difference]:
    """What the flow's rules make of the source's ACLs, against those of the same resources on the target.

    Who may write to a remote topic is the mirror's matter and not looked at.
    """
    wanted = wanted_acls(sides, rules)
    resources = wanted.keys() | {Resource(TOPIC, rules.remote_name(name)) for name in sides.topics}
    there: dict[Resource, set[Access]] = {}
    for acl in sides.target:
        if acl.resource in resources and not _is_writing(acl.access):
            there.setdefault(acl.resource, set()).add(acl.access)
    for resource in sorted(resources):
        here, has = wanted.get(resource, {}).keys(), there.get(resource, set())
        for access in sorted(here ^ has):
            shown = str(access)
            ends = (shown, MISSING) if access in here else (MISSING, shown)
            yield Difference(About.ACLS, str(resource), *ends)


def _is_writing(access: Access) -> bool:
    return access.permission == "ALLOW" and access.operation == "WRITE"


Quotas = Mapping[str, Mapping[str, float]]
"""By whom they are for, in words, and by their names."""


def compare_quotas(here: Quotas, there: Quotas) -> Iterator[Difference]:
    for entity in sorted(here.keys() | there.keys()):
        ours, theirs = here.get(entity, {}), there.get(entity, {})
        for name in sorted(ours.keys() | theirs.keys()):
            if ours.get(name) != theirs.get(name):
                subject = f"{entity}: {name}"
                yield Difference(About.QUOTAS, subject, _number(ours.get(name)), _number(theirs.get(name)))


def _number(value: float | None) -> str:
    if value is None:
        return MISSING
    return str(int(value)) if value == int(value) else str(value)


@dataclass(frozen=True)
class GroupPlace:
    """What a group committed for one partition of the source, where that is on the target, and what it committed there."""

    group: str
    remote: str
    """A partition, as `A.orders-0`."""
    committed: int
    expected: int | None
    why_not: str
    """Why there is no place on the target, if there is none."""
    there: int | None
    behind: int = 0
    """Source offsets before `committed` that are not copied yet: `expected` is as far as the copy goes."""


def compare_groups(places: Collection[GroupPlace]) -> Iterator[Difference]:
    """Groups that the target knows nothing of, and those that would go on elsewhere."""
    for group in sorted({place.group for place in places}):
        mine = sorted((place for place in places if place.group == group), key=lambda place: place.remote)
        if all(place.there is None for place in mine):
            what = f"committed for {len(mine)} partition{'' if len(mine) == 1 else 's'}"
            yield Difference(About.GROUPS, group, what, MISSING)
            continue
        for place in mine:
            if place.expected is None or place.expected != place.there:
                there = MISSING if place.there is None else str(place.there)
                yield Difference(About.GROUPS, f"{group}: {place.remote}", _expected(place), there)


def _expected(place: GroupPlace) -> str:
    if place.expected is None:
        return f"{place.committed}: {place.why_not}"
    more = f", {place.behind} not yet copied" if place.behind else ""
    return f"{place.committed}, which is {place.expected} there{more}"
