from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from heliograph.config.manual import place, text
from heliograph.config.options import BY_NAME, OPTIONS

MANUAL = Path(__file__).parents[3] / "docs" / "configuration.md"


def test_the_manual_is_the_generated_one() -> None:
    assert MANUAL.read_text(encoding="utf-8") == text(), (
        "run: python -m heliograph.config.manual > docs/configuration.md"
    )


def test_every_option_is_in_the_manual() -> None:
    written = text()
    assert [option.name for option in OPTIONS if f"| `{option.name}` |" not in written] == []


def test_unserved_options_are_marked_with_what_happens_instead() -> None:
    (line,) = [line for line in text().splitlines() if line.startswith("| `admin.timeout.ms` |")]
    assert "**Not served in this version**: request.timeout.ms limits each." in line


def test_a_row_is_one_table_line_of_five_cells() -> None:
    rows = [line for line in text().splitlines() if line.startswith("| `")]
    assert {line.replace("\\|", "").count("|") for line in rows} == {6}


def test_places_have_words() -> None:
    assert place(BY_NAME["topics"]) == "flow"
    assert place(BY_NAME["epoch.seconds"]) == "file"
    assert place(BY_NAME["consumer.*"]) == "client"


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_module_prints_the_manual(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_module("heliograph.config.manual", run_name="__main__")
    assert capsys.readouterr().out == text()
