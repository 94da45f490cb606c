"""docs/footprint.md lists exactly the permissions of the table in the code, on the side where they belong."""

from __future__ import annotations

from pathlib import Path

from heliograph.kafka.admin import internal_topics
from heliograph.replication.findings import Level
from heliograph.replication.permissions import NEEDS

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


def in_code(is_on_source: bool) -> list[tuple[str, ...]]:
    return [
        (str(need.on), need.operation, "needed" if need.level is Level.FAIL else "advised", need.why)
        for need in NEEDS
        if need.is_on_source is is_on_source
    ]


def test_the_sources_permissions_are_those_of_the_code() -> None:
    assert rows_below("On the source:") == in_code(is_on_source=True)


def test_the_targets_permissions_are_those_of_the_code() -> None:
    assert rows_below("On the target:") == in_code(is_on_source=False)


def test_every_topic_that_is_made_is_listed() -> None:
    listed = {row[0] for row in rows_below("On the target of a flow:")}
    assert {f"`{topic.name}`" for topic in internal_topics(1)} <= listed
