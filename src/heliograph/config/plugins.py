"""A user's classes, found and made: `module:Class` from PYTHONPATH, with the flow's options as one mapping.

The contracts that they keep are in replication/plugins.py.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from heliograph.replication.filters import NameFilter
from heliograph.replication.plugins import METHODS, PluginNames, PluginPolicy
from heliograph.replication.topic_names import Names


@dataclass(frozen=True)
class Plugins:
    """The user's classes of one flow, by the option that names them, and what each is made with. Built-in ones are left out."""

    classes: tuple[tuple[str, str], ...] = ()
    options: tuple[tuple[str, str], ...] = ()

    def faults(self) -> Iterator[tuple[str, str]]:
        """Options whose class cannot be used, each with what is expected."""
        for option, name in self.classes:
            try:
                self._made(option, name)
            except ValueError as error:
                yield option, f"{name}: expected {error}"

    def names(self, option: str, otherwise: NameFilter) -> Names:
        """The filter that an option names: a user's class, or the lists."""
        name = dict(self.classes).get(option)
        if name is None:
            return otherwise
        return PluginNames(f"{option} = {name}", getattr(self._made(option, name), METHODS[option][0]))

    def policy(self, separator: str, internal_separator_enabled: bool) -> PluginPolicy | None:
        option = "replication.policy.class"
        name = dict(self.classes).get(option)
        if name is None:
            return None
        return PluginPolicy(f"{option} = {name}", self._made(option, name), separator, internal_separator_enabled)

    def _made(self, option: str, name: str) -> Any:
        return _make(option, name, dict(self.options))


def _make(option: str, name: str, options: Mapping[str, str]) -> Any:
    """An object of the class; ValueError with what is expected where there is none."""
    module, _, attribute = name.partition(":")
    try:
        made = getattr(importlib.import_module(module), attribute)(options)
    except Exception as error:  # a user's class may raise anything: it is a fault of the file
        raise ValueError(
            f"a class that can be loaded from PYTHONPATH and made with one mapping; {type(error).__name__}: {error}"
        ) from error
    missing = [method for method in METHODS[option] if not callable(getattr(made, method, None))]
    if missing:
        raise ValueError(f"a class with the method {' and '.join(missing)}")
    return made
