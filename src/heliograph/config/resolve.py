"""Looks options up in a file: the strongest form that is set, else the default.

Knows MirrorMaker 2's prefix rules only as the ordered forms of a row's scope. Values with a fault count as not set,
so that one fault does not cause others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from heliograph.config.option import Option
from heliograph.config.options import BY_NAME
from heliograph.config.properties import Property
from heliograph.replication.renames import Pair, Rewrite
from heliograph.replication.starts import StartFrom


@dataclass(frozen=True)
class Found:
    """An option's value as text, and the entry it came from (None: the default)."""

    option: Option
    text: str
    entry: Property | None

    @property
    def origin(self) -> str:
        return "default" if self.entry is None else self.entry.origin


@dataclass(frozen=True)
class View:
    """The file as one flow or one cluster sees it: `{cluster}` and `{flow}` of every form are filled in."""

    entries: Mapping[str, Property]
    cluster: str = ""
    flow: str = ""

    def set_form(self, name: str, forms: Sequence[str]) -> Property | None:
        """The entry of the strongest of these forms that is set."""
        names = (form.format(name=name, cluster=self.cluster, flow=self.flow) for form in reversed(forms))
        return next((self.entries[form] for form in names if form in self.entries), None)

    def find(self, name: str) -> Found:
        option = BY_NAME[name]
        entry = self.set_form(name, option.scope)
        return Found(option, entry.value if entry else option.default or "", entry)

    def typed(self, name: str) -> object:
        """The value, as the option's kind reads it."""
        found = self.find(name)
        return found.option.kind.parse(found.text)

    def text(self, name: str) -> str:
        return cast(str, self.typed(name))

    def number(self, name: str) -> int:
        return cast(int, self.typed(name))

    def fraction(self, name: str) -> float:
        return cast(float, self.typed(name))

    def flag(self, name: str) -> bool:
        return cast(bool, self.typed(name))

    def names(self, name: str) -> tuple[str, ...]:
        return cast("tuple[str, ...]", self.typed(name))

    def pairs(self, name: str) -> tuple[Pair, ...]:
        return cast("tuple[Pair, ...]", self.typed(name))

    def rewrite(self, name: str) -> Rewrite | None:
        return cast("Rewrite | None", self.typed(name))

    def start(self, name: str) -> StartFrom | None:
        return cast("StartFrom | None", self.typed(name))

    def per_topic(self, name: str) -> tuple[tuple[str, object], ...]:
        """Topics with the flow's own value of a per-topic option, sorted."""
        option = BY_NAME[name]
        mine = ((entry, entry.name.removeprefix(f"{self.flow}.")) for entry in self.entries.values())
        found = ((option.topic_in(rest), entry) for entry, rest in mine if entry.name != rest)
        return tuple(sorted((topic, option.kind.parse(entry.value)) for topic, entry in found if topic))

    def own(self, family: str) -> list[tuple[str, Property]]:
        """Entries of a family, by their names without the flow: the flow's own win over the file's."""
        prefix = family.removesuffix("*")
        found: dict[str, Property] = {}
        for place in ("", f"{self.flow}."):
            for entry in self.entries.values():
                if entry.name.startswith(place + prefix):
                    found[entry.name.removeprefix(place)] = entry
        return list(found.items())

    def keys(self, names: Sequence[str], forms: Sequence[str]) -> tuple[tuple[str, str], ...]:
        """Those of these keys that are set, with their values, sorted."""
        written = "\n".join(self.entries)  # hundreds of names, of which a file sets a few: every form holds its name
        found = ((name, self.set_form(name, forms)) for name in names if name in written)
        return tuple(sorted((name, entry.value) for name, entry in found if entry is not None))
