"""The command line: an error is a sentence and an exit code, never a stack trace."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

import pytest

from heliograph.cli import config, main
from heliograph.errors import ClusterUnreachable, ConfigError, SetupError


def raising(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def run(_: argparse.Namespace) -> int:
        raise error

    monkeypatch.setattr(config, "run", run)


def test_a_wrong_file_exits_with_two_and_every_fault_on_its_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    raising(monkeypatch, ConfigError(["a:1: first", "a:2: second"]))
    assert main.main(["config"]) == 2
    captured = capsys.readouterr()
    assert captured.err == "heliograph: a:1: first\nheliograph: a:2: second\n"
    assert captured.out == ""


@pytest.mark.parametrize(
    "error", [SetupError("Java 17 is missing"), ClusterUnreachable("cluster B: no broker answers")]
)
def test_what_could_not_be_done_exits_with_one_and_a_sentence(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    raising(monkeypatch, error)
    assert main.main(["config"]) == 1
    assert capsys.readouterr().err == f"heliograph: {error}\n"


def test_an_interrupt_is_no_stack_trace(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    raising(monkeypatch, KeyboardInterrupt())
    assert main.main(["config"]) == 130
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("command", ["run", "status", "check", "config"])
def test_a_malformed_file_is_refused_by_every_command_before_anything_is_touched(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mm2.properties"
    path.write_text("clusters = A, B\nA->B.enabled = perhaps\nreplication.factor = many\n")
    assert main.main([command, str(path)]) == 2
    faults = capsys.readouterr().err.splitlines()
    assert any(f"{path}:2" in fault and "A->B.enabled" in fault for fault in faults)
    assert any(f"{path}:3" in fault and "replication.factor" in fault for fault in faults)


@pytest.mark.parametrize("command", ["run", "status", "check", "config"])
def test_a_file_that_is_not_there_exits_with_two(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main([command, str(tmp_path / "missing.properties")]) == 2
    assert "missing.properties" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [[], ["fly"], ["run"], ["status"], ["demo", "--seconds", "0"], ["run", "f", "--x"]]
)
def test_a_wrong_command_line_exits_with_two(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main.main(arguments)
    assert left.value.code == 2
    assert "usage: heliograph" in capsys.readouterr().err


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main.main(["--version"])
    assert left.value.code == 0
    assert capsys.readouterr().out.startswith("heliograph ")


def test_every_command_is_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    """And every module that has a parser is a command."""
    folder = Path(main.__file__).parent
    modules = {path.stem for path in folder.glob("*.py") if "\ndef add_parser(" in path.read_text(encoding="utf-8")}
    assert modules == {main.module_of(command).__name__.rpartition(".")[2] for command in main.COMMANDS}
    with pytest.raises(SystemExit):
        main.main(["--help"])
    shown = capsys.readouterr().out
    assert set(re.findall(r"^  heliograph ([a-z-]+)", shown, re.MULTILINE)) == set(main.COMMANDS)


def test_help_is_there_at_once_because_nothing_large_is_loaded_for_it() -> None:
    code = (
        "import sys\n"
        "from heliograph.cli.main import main\n"
        "try:\n    main(['--help'])\n"
        "except SystemExit:\n    print(sorted({'pyspark', 'kafka'} & sys.modules.keys()))\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.rstrip().endswith("[]")


FILE = "clusters = A, B\nA.bootstrap.servers = {a}\nB.bootstrap.servers = {a}\nA->B.enabled = true\n"


def test_a_flow_without_quotes_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mm2.properties"
    path.write_text(FILE.format(a="a:1"))
    for command in (["pause", str(path)], ["lag", str(path)], ["translate", str(path), "--group", "g"]):
        assert main.main([*command, "--flow", "A-"]) == 2
        assert capsys.readouterr().err == (
            "heliograph: --flow A-: quote it, as 'A->B': the shell took >B for a redirect\n"
        )
