"""docs/requirements.md is held to the repository: every line once, counts that are counted, tests that exist.

Whether a test shows what its row says is for people to judge; that there is such a test is not.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "requirements.md"
LINES = {"S0": 47, "S1": 116, "S2": 25, "S3": 47, "S4": 157}
"""How many lines each founding document has."""
STATES = ("done", "partly", "not yet", "no task")

_ROW = re.compile(r"^\| (?P<line>S\d-\d+) \| (?P<demand>[^|]+) \| (?P<state>[^|]+) \| (?P<shown>.+) \|$", re.MULTILINE)
_COUNTS = re.compile(r"^\| (?P<title>[^|]+) \| (?P<counts>\d+(?: \| \d+)*) \|$", re.MULTILINE)
_SPAN = re.compile(r"`([^`]+)`")
_FILE = re.compile(r"^(?:(?:src|tests|docs|examples|deploy)/[\w./@-]+|[\w.-]+\.(?:md|lock|toml)|LICENSE)(?:::\w+)?$")
_EVIDENCE = re.compile(r"\]\([\w-]+\.md|`(?:heliograph|make) [a-z]")


@dataclass(frozen=True)
class Row:
    """One line of a founding document, and what became of it."""

    line: str
    state: str
    shown: str

    @property
    def named(self) -> list[str]:
        """Files and tests, as `file` or `file::test`."""
        return [span for span in _SPAN.findall(self.shown) if _FILE.match(span)]

    @property
    def has_evidence(self) -> bool:
        return bool(self.named or _EVIDENCE.search(self.shown))


def rows(text: str) -> list[Row]:
    return [Row(found["line"], found["state"], found["shown"]) for found in _ROW.finditer(text)]


TEXT = PAGE.read_text(encoding="utf-8")
ROWS = rows(TEXT)


def is_there(named: str) -> bool:
    """Whether a file is in the repository, and has the test that is named with it."""
    path, _, test = named.partition("::")
    file = ROOT / path
    return file.is_file() and (not test or f"def {test}(" in file.read_text(encoding="utf-8"))


def test_every_line_of_the_founding_documents_stands_once_and_in_order() -> None:
    wanted = [f"{document}-{number:03}" for document, last in LINES.items() for number in range(1, last + 1)]
    assert [row.line for row in ROWS] == wanted


def test_no_line_escapes_the_pattern_of_a_row() -> None:
    assert len(ROWS) == len(re.findall(r"^\| S\d", TEXT, re.MULTILINE))


def test_every_state_is_one_of_four() -> None:
    assert {row.state for row in ROWS} == set(STATES)


def test_the_head_has_the_counts_of_the_rows() -> None:
    told = {found["title"]: [int(count) for count in found["counts"].split(" | ")] for found in _COUNTS.finditer(TEXT)}
    sections = dict(re.findall(r"^## (.+)\n((?:(?!^## ).*\n?)*)", TEXT, re.MULTILINE))
    assert len(sections) == len(LINES)
    counted = {title: counts(rows(text)) for title, text in [*sections.items(), ("all", TEXT)]}
    assert told == counted


def counts(found: list[Row]) -> list[int]:
    by_state = Counter(row.state for row in found)
    return [len(found), *(by_state[state] for state in STATES)]


def test_every_file_and_every_test_that_is_named_exists() -> None:
    missing = {f"{row.line}: {named}" for row in ROWS for named in row.named if not is_there(named)}
    assert not missing
    assert len({named for row in ROWS for named in row.named if "::" in named}) > 100


@pytest.mark.parametrize("planted", ["tests/unit/test_nothing.py", f"tests/unit/{Path(__file__).name}::test_nothing"])
def test_a_file_or_a_test_that_is_not_there_would_be_found(planted: str) -> None:
    assert _FILE.match(planted) and not is_there(planted)


def test_what_is_done_or_partly_done_is_shown_somewhere() -> None:
    """Or as another line is, whose row says it."""
    by_line = {row.line: row for row in ROWS}
    for row in ROWS:
        as_another = re.match(r"As (S\d-\d+)", row.shown)
        if row.state in ("done", "partly"):
            assert (by_line[as_another[1]] if as_another else row).has_evidence, row


def test_what_is_not_done_says_when_and_what_is_partly_done_says_what_is_missing() -> None:
    for row in ROWS:
        if row.state == "not yet":
            assert re.search(r"\b(?:Issue 6|Later|later)\b|As S\d-\d+", row.shown), row
        elif row.state == "partly":
            assert re.search(r"[.;:] \w|^As S\d-\d+", re.sub(r"`[^`]+`", "x", row.shown)), row
