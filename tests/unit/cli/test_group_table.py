"""`heliograph status --groups`: a row for each group and partition, what could not be looked at, and a word where there is none."""

from __future__ import annotations

import io

from rich.console import Console

from heliograph.cli import status
from heliograph.control.status import FlowStatus
from heliograph.operations.group_states import FlowGroups
from heliograph.replication.group_offsets import GroupState, State

FLOW = FlowStatus(
    "A->B", False, 0, "", 0, "", 0, {}, (), jobs=({"name": "group offsets", "summary": "1 in step", "trouble": ""},)
)
IN_STEP = GroupState("billing", "orders", "A.orders", 0, 12, 10, 10, State.IN_STEP, "")
UNKNOWN = GroupState("[b]", "orders", "A.orders", 1, 12, None, None, State.NOT_KNOWN, "sums [differ]")


def shown(groups: FlowGroups) -> list[str]:
    text = io.StringIO()
    status._show(Console(file=text, width=200), FLOW, 0, groups)
    return [" ".join(line.split()) for line in text.getvalue().splitlines()]


def test_a_row_for_each_group_and_partition_and_the_last_turn_of_the_run() -> None:
    assert shown(FlowGroups("A->B", [IN_STEP, UNKNOWN], ["group 'h': no DESCRIBE"])) == [
        "A->B: not running",
        "group partition on A is on B set on B state",
        "billing orders-0 12 10 10 in step",
        "[b] orders-1 12 - - not known: sums [differ]",
        "groups: group 'h': no DESCRIBE",
        "group offsets: 1 in step",
    ]


def test_where_there_is_no_group_it_is_said() -> None:
    assert shown(FlowGroups("A->B", [], []))[1] == "groups: no group has committed an offset for its topics"
    assert shown(FlowGroups("A->B", [], ["cluster B is unreachable"]))[1] == "groups: cluster B is unreachable"
