"""Topic configs in step: what a remote topic must be given, and what must be taken from it, with reasons.

A config that the source topic sets is set on the remote topic. Unlike MirrorMaker 2, which erases every override that only the
remote topic has, a config is taken away only if it is our doing: the ledger remembers what the source had, and an override goes
when the source's went and the remote topic still has that value. Only changes are sent, so planning again gives nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from heliograph.model.topics import ConfigValue, Topic
from heliograph.replication.topic_plan import TopicRules, copyable_configs

NOTE_KIND = "configs"
_NOTE_VERSION = 1


@dataclass(frozen=True)
class ChangeConfigs:
    """Changes of one remote topic. With neither `sets` nor `removes` only the note changes."""

    source: str
    remote: str
    sets: Mapping[str, str]
    removes: tuple[str, ...]
    before: Mapping[str, str]
    """What the note says: it keeps what is removed until that is done."""
    after: Mapping[str, str]

    @property
    def routine(self) -> bool:
        return not self.sets and not self.removes

    @property
    def subject(self) -> str:
        return f"topic {self.remote}"

    @property
    def what(self) -> str:
        parts = [f"set {', '.join(f'{name}={value}' for name, value in self.sets.items())}"] if self.sets else []
        parts += [f"remove {', '.join(self.removes)}"] if self.removes else []
        return "; ".join(parts) or "remember the configs of"

    @property
    def why(self) -> str:
        reasons = [f"source topic '{self.source}' has it so"] if self.sets else []
        reasons += [f"source topic '{self.source}' no longer sets what was copied from it"] if self.removes else []
        return "; ".join(reasons) or f"source topic '{self.source}' sets them"


def plan_configs(
    source: Mapping[str, Topic],
    target: Mapping[str, Topic],
    remote_name: Callable[[str], str],
    rules: TopicRules,
    notes: Mapping[str, Mapping[str, str]],
) -> list[ChangeConfigs]:
    """The changes for topics that are on both sides; `notes` are what was remembered, by source topic."""
    changes = []
    for name in sorted(source):
        there = target.get(remote_name(name))
        if there is not None:
            change = _change(source[name], there, rules, notes.get(name, {}))
            if not change.routine or change.before != change.after:
                changes.append(change)
    return changes


def _change(here: Topic, there: Topic, rules: TopicRules, note: Mapping[str, str]) -> ChangeConfigs:
    # A config that the target's brokers do not know cannot be set there; they list all that they know.
    wanted = {name: value for name, value in copyable_configs(here, rules).items() if name in there.configs}
    sets = {name: value for name, value in wanted.items() if _differs(here.configs[name], there.configs[name])}
    removes = tuple(
        name
        for name, value in sorted(note.items())
        if name not in wanted and not rules.config_exclude(name) and _is_ours(there.configs.get(name), value)
    )
    return ChangeConfigs(here.name, there.name, sets, removes, dict(note), wanted)


def _differs(here: ConfigValue, there: ConfigValue) -> bool:
    """What the source topic sets must be set there too, or a default that changes later would part them."""
    return here.value != there.value or (there.is_default and not here.is_default)


def _is_ours(there: ConfigValue | None, value: str) -> bool:
    return there is not None and not there.is_default and there.value == value


def encode_note(configs: Mapping[str, str]) -> bytes | None:
    """Versioned JSON; nothing to remember is no note."""
    if not configs:
        return None
    fields = {"version": _NOTE_VERSION, "set": dict(configs)}
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()


def decode_note(value: bytes) -> dict[str, str]:
    """What cannot be read is not remembered: then nothing is removed, which does no harm."""
    try:
        fields = json.loads(value)
        if fields["version"] != _NOTE_VERSION:
            return {}
        return {str(name): str(set_to) for name, set_to in fields["set"].items()}
    except (ValueError, TypeError, KeyError, AttributeError):
        return {}
