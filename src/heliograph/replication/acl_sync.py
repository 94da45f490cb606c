"""ACLs in step: which of the source's belong on the target, in which words, and what must be taken away, with reasons.

MirrorMaker 2's rules: of topics, by their literal names, under their remote names; ALLOW WRITE is left out and ALLOW ALL becomes
READ, because only the mirror writes to remote topics; nothing is removed. The full scope adds prefixes, wildcards and groups,
and takes away what the source no longer has, if the ledger says that it is our doing. What the target has already is never
written again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import quote, unquote

from heliograph.model.acls import GROUP, TOPIC, WILDCARD, Access, Acl, Resource

NOTE_KIND = "acls"
_NOTE_VERSION = 1
_ANY_REST = "x"


@dataclass(frozen=True)
class AclRules:
    """`remote_prefix` is what remote names of all topics with a prefix begin with; None if nothing."""

    full: bool
    takes_topic: Callable[[str], bool]
    takes_group: Callable[[str], bool]
    remote_name: Callable[[str], str]
    remote_prefix: Callable[[str], str | None]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of resources that are looked at."""
        return (TOPIC, GROUP) if self.full else (TOPIC,)


@dataclass(frozen=True)
class Sides:
    """`topics` are the flow's, by their names on the source; `came_home` are ACLs that the flow back set on the source."""

    source: Collection[Acl]
    target: Collection[Acl]
    topics: Collection[str]
    came_home: Collection[Acl] = ()


Note = Mapping[Access, Resource]
"""What we set on one resource of the target, and the source's resource that had it."""


@dataclass(frozen=True)
class ChangeAcls:
    """Changes of one resource of the target. With neither `adds` nor `removes` only the note changes."""

    resource: Resource
    adds: Mapping[Access, Resource]
    removes: tuple[Access, ...]
    before: Note
    after: Note

    @property
    def routine(self) -> bool:
        return not self.adds and not self.removes

    @property
    def subject(self) -> str:
        return f"ACLs of {self.resource}"

    @property
    def what(self) -> str:
        parts = [f"add {', '.join(map(str, self.adds))}"] if self.adds else []
        parts += [f"remove {', '.join(map(str, self.removes))}"] if self.removes else []
        return "; ".join(parts) or "remember the"

    @property
    def why(self) -> str:
        origins = ", ".join(dict.fromkeys(str(origin) for origin in self.adds.values()))
        reasons = [f"the source has it for {origins}"] if self.adds else []
        reasons += ["the source no longer has what was copied from it"] if self.removes else []
        return "; ".join(reasons) or "the source has other ones"


def plan_acls(sides: Sides, rules: AclRules, notes: Mapping[Resource, Note]) -> list[ChangeAcls]:
    """The changes by resource of the target; `notes` are what was remembered."""
    taken = set(sides.source) - set(sides.came_home)
    wanted = wanted_acls(sides, rules)
    there = _by_resource((acl.resource, acl.access) for acl in sides.target)
    # What a filter leaves out is not removed: the source has it still.
    origins = _by_resource((acl.resource, access) for acl in taken if (access := _remote_access(acl)) is not None)
    changes = []
    for resource in sorted(wanted.keys() | notes.keys()):
        want, note, has = wanted.get(resource, {}), notes.get(resource, {}), there.get(resource, set())
        gone = {access for access, origin in note.items() if access not in origins.get(origin, ())} - want.keys()
        change = _change(resource, want, note, has, gone if rules.full else set())
        if not change.routine or change.before != change.after:
            changes.append(change)
    return changes


def _by_resource(acls: Iterable[tuple[Resource, Access]]) -> dict[Resource, set[Access]]:
    found: dict[Resource, set[Access]] = {}
    for resource, access in acls:
        found.setdefault(resource, set()).add(access)
    return found


def _change(resource: Resource, want: Note, note: Note, has: set[Access], gone: set[Access]) -> ChangeAcls:
    adds = {access: want[access] for access in sorted(want.keys() - has)}
    kept = {access: want.get(access, origin) for access, origin in note.items() if access in has and access not in gone}
    return ChangeAcls(resource, adds, tuple(sorted(gone & has)), dict(note), {**kept, **adds})


def wanted_acls(sides: Sides, rules: AclRules) -> dict[Resource, dict[Access, Resource]]:
    """By resource of the target: what belongs there, and the source's resource that has it."""
    found: dict[Resource, dict[Access, Resource]] = {}
    for acl in sorted(set(sides.source) - set(sides.came_home)):
        access = _remote_access(acl)
        if access is not None:
            for resource in _remote_resources(acl.resource, sides.topics, rules):
                found.setdefault(resource, {}).setdefault(access, acl.resource)
    return found


def _remote_access(acl: Acl) -> Access | None:
    """On remote topics only the mirror writes: who may do all may read there."""
    access = acl.access
    if acl.resource.kind != TOPIC or access.permission != "ALLOW":
        return access
    if access.operation == "WRITE":
        return None
    return Access(access.principal, access.host, "READ", "ALLOW") if access.operation == "ALL" else access


def _remote_resources(here: Resource, topics: Collection[str], rules: AclRules) -> Iterator[Resource]:
    if here.kind == GROUP:
        if rules.full and rules.takes_group(here.name):
            yield here
    elif here.prefixed:
        if rules.full:
            yield from _remote_prefixes(here.name, topics, rules)
    elif rules.takes_topic(here.name):
        yield from _wildcard(topics, rules) if rules.full and here.name == WILDCARD else _literal(here.name, rules)


def _literal(name: str, rules: AclRules) -> Iterator[Resource]:
    # MirrorMaker 2 renames the wildcard too; under a name such as `A.*` it is about no topic.
    yield Resource(TOPIC, rules.remote_name(name))


def _wildcard(topics: Collection[str], rules: AclRules) -> Iterator[Resource]:
    """All topics of the source are those that begin as its remote topics do."""
    prefix = rules.remote_prefix("")
    if prefix == "":
        yield Resource(TOPIC, WILDCARD)
    else:
        yield from _prefixes("", prefix, topics, rules)


def _remote_prefixes(prefix: str, topics: Collection[str], rules: AclRules) -> Iterator[Resource]:
    """A prefix is taken if the flow has such topics, or would take one that comes."""
    if rules.takes_topic(prefix + _ANY_REST) or any(name.startswith(prefix) for name in topics):
        yield from _prefixes(prefix, rules.remote_prefix(prefix), topics, rules)


def _prefixes(here: str, there: str | None, topics: Collection[str], rules: AclRules) -> Iterator[Resource]:
    """Names that have no beginning in common are named one by one."""
    if there is not None:
        yield Resource(TOPIC, there, prefixed=True)
    else:
        yield from (Resource(TOPIC, rules.remote_name(name)) for name in sorted(topics) if name.startswith(here))


def note_subject(resource: Resource) -> str:
    """A resource as the subject of a note: a group's name may hold any sign."""
    return f"{resource.kind}:{'prefixed' if resource.prefixed else 'literal'}:{quote(resource.name, safe='')}"


def noted_resource(subject: str) -> Resource | None:
    """The way back; None for what is no such subject."""
    kind, _, rest = subject.partition(":")
    pattern, colon, name = rest.partition(":")
    return Resource(kind, unquote(name), pattern == "prefixed") if colon else None


def encode_note(note: Note, source_cluster_id: str) -> bytes | None:
    """Versioned JSON; nothing to remember is no note."""
    if not note:
        return None
    rows = [
        [*(access.principal, access.host, access.operation, access.permission), note_subject(origin)]
        for access, origin in sorted(note.items())
    ]
    fields = {"version": _NOTE_VERSION, "cluster": source_cluster_id, "set": rows}
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()


def decode_note(value: bytes, source_cluster_id: str | None) -> dict[Access, Resource]:
    """What cannot be read, or was copied from another cluster, is not remembered: then nothing is removed.

    Without a cluster id it is read whichever the source was.
    """
    found: dict[Access, Resource] = {}
    try:
        fields = json.loads(value)
        if fields["version"] != _NOTE_VERSION or source_cluster_id not in (None, fields["cluster"]):
            return {}
        for principal, host, operation, permission, subject in fields["set"]:
            origin = noted_resource(subject)
            if origin is not None:
                found[Access(str(principal), str(host), str(operation), str(permission))] = origin
    except (ValueError, TypeError, KeyError, AttributeError):
        return {}
    return found
