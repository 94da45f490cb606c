"""What a name in a file is: whose it is (the file's, a cluster's, a flow's), which option it means, or which it missed.

Knows the option table and the aliases; never looks at values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum

from heliograph.config.option import Option
from heliograph.config.options import BY_NAME, client_prefix, find, is_client_key, known_names


class Place(StrEnum):
    TOP = ""
    CLUSTER = "{cluster}."
    FLOW = "{flow}."


@dataclass(frozen=True)
class Key:
    """A name, split: `owner` is the alias or the flow in front (`A`, `A->B`), `rest` what follows it."""

    name: str
    place: Place
    owner: str
    rest: str

    @property
    def option(self) -> Option | None:
        return find(self.rest)

    @property
    def takes_effect(self) -> bool:
        """Whether the option is read where it stands."""
        option = self.option
        if option is None:
            return False
        if option.is_family or option.is_per_topic:
            return any(_place(form) is self.place for form in option.scope)
        return any(
            form.format(name=option.name, cluster="{cluster}", flow="{flow}") == self._form for form in option.scope
        )

    @property
    def _form(self) -> str:
        return f"{self.place}{self.rest}"


def _place(form: str) -> Place:
    return next((place for place in (Place.CLUSTER, Place.FLOW) if form.startswith(place)), Place.TOP)


def locate(name: str, aliases: Sequence[str]) -> Key:
    """Whose a name is. A name that is itself an option is the file's, even if an alias is called like its beginning."""
    if name in BY_NAME:
        return Key(name, Place.TOP, "", name)
    flow = _longest((f"{source}->{target}" for source in aliases for target in aliases), name)
    if flow:
        return Key(name, Place.FLOW, flow, name[len(flow) + 1 :])
    alias = _longest(aliases, name)
    if alias:
        return Key(name, Place.CLUSTER, alias, name[len(alias) + 1 :])
    return Key(name, Place.TOP, "", name)


def _longest(owners: Iterable[str], name: str) -> str:
    """Aliases may hold dots: `A.b.topics` belongs to `A.b` rather than to `A`."""
    return max((owner for owner in owners if name.startswith(owner + ".")), key=len, default="")


def split_flow(name: str) -> tuple[str, str] | None:
    """Source and target of a name like `A->B.topics` whose aliases are not known; None if it holds no arrow."""
    source, arrow, rest = name.partition("->")
    if not arrow:
        return None
    endings = [f".{known}" for known in BY_NAME if rest.endswith(f".{known}")]
    target = rest.removesuffix(max(endings, key=len)) if endings else rest.partition(".")[0]
    return source, target


def stranger(rest: str) -> str:
    """What stands in front of a known name where only an alias could stand; nothing if the name does not end so."""
    endings = [f".{known}" for known in BY_NAME if "." in known and rest.endswith(f".{known}")]
    return rest.removesuffix(max(endings, key=len)) if endings else ""


def meant(rest: str) -> str | None:
    """The known name that a misspelt one comes close to, or None. A name that is known is not misspelt."""
    option = find(rest)
    in_family = option is not None and option.is_family
    if option is not None and not (in_family and client_prefix(rest)):
        return None
    if is_client_key(rest) or stranger(rest):
        return None
    near = [name for name in known_names() if _is_near(rest, name)]
    return max(near, key=lambda name: (SequenceMatcher(None, rest, name).ratio(), name), default=None)


def _is_near(name: str, known: str) -> bool:
    if abs(len(name) - len(known)) > max(2, len(known) // 5):
        return False
    # A short name is near to many: `gate` is two letters from `name`, and was not meant so.
    if _distance(name, known, 2) <= min(2, len(known) // 3):
        return True
    return SequenceMatcher(None, name, known).ratio() >= 0.9


def _distance(left: str, right: str, limit: int) -> int:
    """How many letters must be changed, added or left out; more than `limit` is not counted to the end."""
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, start=1):
        previous, row = row, [i]
        for j, b in enumerate(right, start=1):
            row.append(min(previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (a != b)))
        if min(row) > limit:
            return limit + 1
    return row[-1]
