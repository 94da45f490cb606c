from __future__ import annotations

import argparse
import io
import json
from pathlib import Path

import pytest

from heliograph.cli import config
from heliograph.config.options import OPTIONS
from heliograph.errors import ConfigError

FILE = """\
clusters = A, B
A.bootstrap.servers = a:1
B.bootstrap.servers = b:1
A->B.enabled = true
A->B.topics = pay[a-z]+, orders
A.ssl.key.password = s3cret
tasks.max = 2
"""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "mm2.properties"
    path.write_text(FILE)
    return str(path)


def run(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    config.add_parser(parser.add_subparsers())
    args = parser.parse_args(["config", *arguments])
    code: int = args.run(args)
    return code


def lines(text: str) -> dict[str, list[str]]:
    return {cells[0]: cells for cells in (line.split("\t") for line in text.splitlines())}


def test_without_a_file_all_options_are_shown_with_their_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 0
    shown = lines(capsys.readouterr().out)
    assert set(shown) == {"option", *(option.name for option in OPTIONS)}
    assert shown["replication.factor"][1:4] == ["2", "default", "int"]


def test_a_file_shows_values_origins_and_what_is_not_served(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(file) == 0
    captured = capsys.readouterr()
    shown = lines(captured.out)
    assert shown["A->B.topics"][1:3] == ["pay[a-z]+, orders", "line 5"]
    assert shown["A->B.replication.factor"][1:3] == ["2", "default"]
    assert "Not served in this version: slots says how many tasks carry all flows." in shown["tasks.max"][4]
    assert captured.err.splitlines()[0] == (
        f"warning: {file}:7: tasks.max is not served in this version: slots says how many tasks carry all flows"
    )


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_secrets_are_never_shown(file: str, flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    run(file, *flags)
    captured = capsys.readouterr()
    assert "s3cret" not in captured.out + captured.err
    assert "***" in captured.out


def test_json_holds_options_and_warnings(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(file, "--json") == 0
    captured = capsys.readouterr()
    answer = json.loads(captured.out)
    options = {option["name"]: option for option in answer["options"]}
    assert options["A->B.topics"] == {
        "name": "A->B.topics",
        "value": "pay[a-z]+, orders",
        "origin": "line 5",
        "type": "regex list",
        "default": ".*",
        "allowed": "a list of names or Java regular expressions, split on commas",
        "place": "flow",
        "served": True,
        "since": "2.4.0",
        "meaning": "Topics to mirror: names or Java regular expressions that match the whole name.",
    }
    assert options["tasks.max"]["served"] is False
    assert len(answer["warnings"]) == 1
    assert captured.err == ""


def test_a_terminal_gets_a_table_with_nothing_cut_off(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setenv("COLUMNS", "400")
    assert run(file) == 0
    assert "pay[a-z]+, orders" in terminal.getvalue()
    assert "\u2502" in terminal.getvalue()
    assert "\u2026" not in terminal.getvalue()


def test_a_value_with_line_ends_stays_on_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mm2.properties"
    path.write_text(FILE + "master = a\\nb\\tc")
    run(str(path))
    assert lines(capsys.readouterr().out)["master"][1] == "a\\nb\\tc"


def test_a_file_with_faults_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mm2.properties"
    path.write_text("clusters = A, B")
    with pytest.raises(ConfigError, match="no flow is enabled"):
        run(str(path))
