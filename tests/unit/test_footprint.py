"""docs/footprint.md lists exactly the permissions of the table in the code, on the side where they belong."""

from __future__ import annotations

from pathlib import Path

import pytest

from heliograph.kafka.admin import internal_topics
from heliograph.replication.findings import Level
from heliograph.replication.mm2_progress import default_topic
from heliograph.replication.permissions import NEEDS, Occasion
from heliograph.replication.policies import dead_letter_topic
from heliograph.replication.topic_names import HEARTBEATS, DefaultPolicy

BOTH_WAYS = "With flows in both directions that [keep names](names.md#both-directions-with-the-same-names), besides the above, on the source:"
FORGETTING = "To forget a flow, besides READ and WRITE on topics `__heliograph-*`, and without anything on the source:"
DOCUMENT = (Path(__file__).parents[2] / "docs" / "footprint.md").read_text(encoding="utf-8")


def rows_below(heading: str) -> list[tuple[str, ...]]:
    """The cells of the first table after a line."""
    lines = DOCUMENT[DOCUMENT.index(f"\n{heading}\n") :].splitlines()[2:]
    table = []
    for line in lines[1:]:
        if not line.startswith("|"):
            break
        table.append(tuple(cell.strip() for cell in line.strip("|").split("|")))
    return table[2:]


def in_code(when: Occasion, is_on_source: bool) -> list[tuple[str, ...]]:
    return [
        (str(need.on), need.operation, "needed" if need.level is Level.FAIL else "advised", need.why)
        for need in NEEDS
        if need.when is when and need.is_on_source is is_on_source
    ]


@pytest.mark.parametrize(
    ("heading", "when", "is_on_source"),
    [
        ("On the source:", Occasion.RUN, True),
        ("On the target:", Occasion.RUN, False),
        ("For jobs, on the source:", Occasion.JOBS, True),
        ("For jobs, on the target:", Occasion.JOBS, False),
        (BOTH_WAYS, Occasion.BOTH_WAYS, True),
        ("To take over from MirrorMaker 2, besides the above:", Occasion.TAKE_OVER, False),
        ("To hand back, besides all of the above:", Occasion.HAND_BACK, False),
        (FORGETTING, Occasion.FORGET, False),
    ],
)
def test_the_permissions_are_those_of_the_code(heading: str, when: Occasion, is_on_source: bool) -> None:
    assert rows_below(heading) == in_code(when, is_on_source)


def test_only_a_run_needs_anything_on_the_source() -> None:
    assert {need.when for need in NEEDS if need.is_on_source} == {Occasion.RUN, Occasion.JOBS, Occasion.BOTH_WAYS}


def test_every_topic_that_is_made_is_listed() -> None:
    listed = {row[0] for row in rows_below("On the target of a flow:")}
    made = {topic.name for topic in internal_topics(1)}
    made |= {dead_letter_topic("<remote topic>"), default_topic("<source>"), HEARTBEATS}
    made.add(DefaultPolicy().offset_syncs_topic("<source>"))
    made |= {DefaultPolicy().checkpoints_topic("<source>")}
    assert listed == {f"`{name}`" for name in made} | {"the remote topics"}
