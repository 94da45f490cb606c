"""The table of `heliograph status FILE --groups`: where each group stands on both clusters, and what keeps it from moving."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from heliograph.operations.group_states import FlowGroups
from heliograph.replication.group_offsets import GroupState


def show_groups(console: Console, groups: FlowGroups) -> None:
    """The table, and what could not be looked at; a word where there is nothing."""
    if groups.states:
        console.print(_table(groups))
    lines = groups.troubles or ([] if groups.states else ["no group has committed an offset for its topics"])
    for line in lines:
        console.print(f"  groups: {line}", highlight=False, markup=False)


def _table(groups: FlowGroups) -> Table:
    source, _, target = groups.flow.partition("->")
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("group")
    table.add_column("partition")
    for name in (f"on {source}", f"is on {target}", f"set on {target}"):
        table.add_column(name, justify="right")
    table.add_column("state")
    for row in groups.states:
        table.add_row(
            Text(row.group),
            Text(f"{row.topic}-{row.partition}" if row.topic else "-"),
            _number(row.committed if row.topic else None),
            _number(row.translated),
            _number(row.on_target),
            Text(_state(row)),
        )
    return table


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)


def _state(row: GroupState) -> str:
    return f"{row.state}: {row.reason}" if row.reason else str(row.state)
