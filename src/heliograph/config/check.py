"""All faults and warnings of a file's single entries, each with its line and the allowed values.

Looks at one entry at a time; what must fit together is checked in load.py. Values of secrets are never repeated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from heliograph.config.keys import Key, locate, meant, split_flow, stranger
from heliograph.config.old_names import renewed
from heliograph.config.option import Option, is_secret
from heliograph.config.properties import Malformed, Property, scan
from heliograph.config.providers import NOTHING, NotProvided, Outside, Provider, resolve, set_up, strangers
from heliograph.config.worker_file import as_driver, is_worker_file

NO_OVERLAY: Mapping[str, str] = MappingProxyType({})


@dataclass
class Checked:
    """What is left of a file once its entries were looked at. `entries` holds those that are valid and take effect."""

    path: str
    entries: dict[str, Property] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()
    faults: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    known: list[tuple[Property, Option]] = field(default_factory=list)
    """Valid entries that take effect or are not served."""
    faulty: set[str] = field(default_factory=set)
    """Names whose value is at fault: they are not missing."""
    is_worker: bool = False
    """It is the file of a Connect worker."""

    def fault(self, line: int, sentence: str) -> None:
        self.faults.append(f"{self._where(line)}: {sentence}")

    def warn(self, line: int, sentence: str) -> None:
        self.warnings.append(f"{self._where(line)}: {sentence}")

    def _where(self, line: int) -> str:
        return f"{self.path}:{line}" if line else "REST"


def check(text: str, path: str, outside: Outside = NOTHING, overlay: Mapping[str, str] = NO_OVERLAY) -> Checked:
    """Every entry of the file, looked at by itself, once config providers have given their values.

    `overlay` holds entries that came by REST, which count instead of the file's.
    """
    checked = Checked(path)
    over = {name: Property(name, value.strip(), 0) for name, value in overlay.items()}
    file = _last_of_each(text, checked)
    checked.is_worker = is_worker_file(file)
    last = _provided({**as_driver(file, overlay), **over}, checked, outside)
    unknown_is_fault = _unknown_is_fault(last)
    checked.aliases = _aliases(last)
    last, said = renewed(last, checked.aliases)
    for line, sentence in said:
        checked.warn(line, sentence)
    for entry in last.values():
        _entry(entry, unknown_is_fault, checked)
    return checked


def _last_of_each(text: str, checked: Checked) -> Mapping[str, Property]:
    """As in Java the last of several entries with one name counts; values lose the blanks around them."""
    last: dict[str, Property] = {}
    for entry in scan(text):
        if isinstance(entry, Malformed):
            checked.fault(entry.line, entry.reason)
            continue
        if entry.name in last:
            checked.warn(entry.line, f"{entry.name} was already set in line {last[entry.name].line}; this one counts")
        last[entry.name] = Property(entry.name, entry.value.strip(), entry.line)
    return last


def _provided(entries: Mapping[str, Property], checked: Checked, outside: Outside) -> Mapping[str, Property]:
    known, faults = set_up(entries)
    for entry, fault in faults:
        checked.fault(entry.line, fault)
    given = {entry.name: _given(entry, known, checked, outside) for entry in entries.values()}
    return {name: entry for name, entry in given.items() if entry is not None}


def _given(entry: Property, known: Mapping[str, Provider], checked: Checked, outside: Outside) -> Property | None:
    for name in strangers(entry.value, known):
        checked.warn(entry.line, f"{entry.name}: {name} is not one of config.providers, so the value is left as it is")
    try:
        value = resolve(entry.value, known, outside).strip()
    except NotProvided as error:
        checked.fault(entry.line, f"{entry.name}: {error}")
        checked.faulty.add(entry.name)
        return None
    return entry if value == entry.value else Property(entry.name, value, entry.line, entry.value)


def _unknown_is_fault(entries: Mapping[str, Property]) -> bool:
    entry = entries.get("unknown.options")
    return entry is not None and entry.value == "error"


def _aliases(entries: Mapping[str, Property]) -> tuple[str, ...]:
    """The aliases, also where some are malformed: the others' options are then still recognised."""
    entry = entries.get("clusters")
    return tuple(dict.fromkeys(a.strip() for a in entry.value.split(",") if a.strip())) if entry else ()


def _entry(entry: Property, unknown_is_fault: bool, checked: Checked) -> None:
    key = locate(entry.name, checked.aliases)
    if _is_broken_flow(entry, key, checked):
        return
    option = key.option
    misspelt = meant(key.rest)
    if misspelt is not None:
        prefix = entry.name.removesuffix(key.rest)
        checked.fault(entry.line, f"{entry.name} is not an option; did you mean {prefix}{misspelt}?")
    elif option is None:
        _unknown(entry, unknown_is_fault, checked)
    else:
        _known(entry, key, option, checked)


def _is_broken_flow(entry: Property, key: Key, checked: Checked) -> bool:
    """A flow whose aliases are wrong, or written with blanks, which end a name in this grammar."""
    if entry.value.startswith("->") and "->" not in entry.name:
        checked.fault(
            entry.line, f"{entry.name} {entry.value}: write the flow without blanks, as in A->B.enabled = true"
        )
        return True
    if key.owner:
        source, _, target = key.owner.partition("->")
        if source == target:
            checked.fault(entry.line, f"{entry.name}: a flow needs two different clusters")
        return source == target
    pair = split_flow(entry.name)
    if pair is None or not checked.aliases:
        return pair is not None
    strangers = [alias for alias in pair if alias not in checked.aliases]
    for alias in strangers:
        checked.fault(entry.line, f"{entry.name}: {alias} is not one of clusters ({', '.join(checked.aliases)})")
    if not strangers:
        checked.fault(entry.line, f"{entry.name}: expected an option behind the flow, as in A->B.enabled = true")
    return True


def _unknown(entry: Property, is_fault: bool, checked: Checked) -> None:
    alias = stranger(entry.name)
    hint = f"; {alias} is not one of clusters" if alias else ""
    if is_fault:
        checked.fault(entry.line, f"{entry.name} is not an option{hint} (unknown.options = error)")
    else:
        checked.warn(entry.line, f"{entry.name} is not an option and is not read{hint}")


def _known(entry: Property, key: Key, option: Option, checked: Checked) -> None:
    try:
        option.kind.parse(entry.value)
    except ValueError as error:
        shown = "***" if is_secret(entry.name) else entry.shown
        checked.fault(entry.line, f"{entry.name} = {shown}: expected {error}")
        checked.faulty.add(entry.name)
        return
    if not option.served:
        checked.warn(entry.line, f"{entry.name} is not served in this version: {option.instead}")
    elif not key.takes_effect:
        checked.warn(entry.line, f"{entry.name} has no effect here; {_where(option, checked.aliases)}")
        return
    checked.entries[entry.name] = entry
    checked.known.append((entry, option))


def _where(option: Option, aliases: Sequence[str]) -> str:
    one, other = (*aliases, "A", "B")[:2] if len(aliases) != 1 else (aliases[0], "B")
    forms = (form.format(name=option.name, cluster=one, flow=f"{one}->{other}") for form in option.scope)
    return f"it is read as {' or '.join(forms)}"
