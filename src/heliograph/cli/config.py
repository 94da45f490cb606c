"""`heliograph config [FILE] [--json]`: every option with its value, where it came from, and its meaning.

Touches no cluster. Passwords and keys are shown as ***.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from heliograph.config.flows import OptionValue
from heliograph.config.load import load_file
from heliograph.config.manual import place
from heliograph.config.option import is_secret
from heliograph.config.options import OPTIONS

_COLUMNS = ("option", "value", "origin", "type", "meaning")


@dataclass(frozen=True)
class _Shown:
    """What may be shown of an option."""

    name: str
    value: str
    origin: str
    type: str
    default: str | None
    allowed: str
    place: str
    served: bool
    since: str
    meaning: str


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "config",
        help="show every option with its value, where it came from, and its meaning",
        description="Show every option with its value, where it came from, and its meaning. "
        "Without FILE: all options with their defaults.",
    )
    parser.add_argument("file", nargs="?", metavar="FILE", help="a MirrorMaker 2 properties file")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints the table; warnings of the file go to standard error. Faults of the file are raised as ConfigError."""
    warnings: Sequence[str] = ()
    values: Sequence[OptionValue] = [OptionValue(o.name, o.default or "", "default", o) for o in OPTIONS]
    if args.file is not None:
        settings = load_file(args.file)
        warnings, values = settings.warnings, settings.values
    shown = [_shown(value) for value in values]
    if args.json:
        options = [vars(row) for row in shown]
        sys.stdout.write(json.dumps({"options": options, "warnings": list(warnings)}, indent=2) + "\n")
    elif sys.stdout.isatty():
        Console().print(_table(shown))
    else:
        sys.stdout.writelines("\t".join(cells) + "\n" for cells in (_COLUMNS, *map(_cells, shown)))
    if not args.json:
        sys.stderr.writelines(f"warning: {warning}\n" for warning in warnings)
    return 0


def _shown(value: OptionValue) -> _Shown:
    option = value.option
    return _Shown(
        name=value.name,
        value="***" if value.value and is_secret(value.name) else value.value,
        origin=value.origin,
        type=option.type,
        default=option.default,
        allowed=option.allowed,
        place=place(option),
        served=option.served,
        since=option.since,
        meaning=value.meaning,
    )


def _cells(row: _Shown) -> tuple[str, ...]:
    """One option as a line of fields split by tabs: a line end or a tab in a value must not break it."""
    cells = (row.name, row.value, row.origin, row.type, row.meaning)
    return tuple(cell.replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r") for cell in cells)


def _table(rows: Iterable[_Shown]) -> Table:
    table = Table(*_COLUMNS)
    for column in table.columns:
        column.overflow = "fold"
    for row in rows:
        style = None if row.served else "dim"
        # As Text, because rich would take the brackets of a regular expression for its own.
        table.add_row(*(Text(cell) for cell in _cells(row)), style=style)
    return table
