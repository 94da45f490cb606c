from __future__ import annotations

import stat
from pathlib import Path

import pytest

from heliograph.cli.init import _asked
from heliograph.cli.main import main

FLAGS = ["--source-bootstrap", "h1:9092", "--target-bootstrap", "h2:9092"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "new.properties"


def test_flags_alone_write_a_file_that_config_accepts(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = [*FLAGS, "--source-alias", "east", "--target-alias", "west", "--topics", r"orders, p\d+"]
    assert main(["init", str(file), *flags, "--replication-factor", "3"]) == 0
    assert "heliograph check" in capsys.readouterr().out
    assert main(["config", str(file)]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert "east->west.topics\torders, p\\d+\t" in shown.out
    assert "east->west.replication.factor\t3\t" in shown.out


def test_only_its_owner_may_read_a_file_that_will_hold_passwords(file: Path) -> None:
    assert main(["init", str(file), *FLAGS]) == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_an_existing_file_is_kept_unless_forced(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text("mine\n" * 1000)
    assert main(["init", str(file), *FLAGS]) == 1
    assert "--force" in capsys.readouterr().err
    assert file.read_text().startswith("mine")
    assert main(["init", str(file), *FLAGS, "--force"]) == 0
    assert "mine" not in file.read_text()


def test_what_nobody_can_be_asked_is_named(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", str(file)]) == 2
    assert "--source-bootstrap and --target-bootstrap" in capsys.readouterr().err
    assert not file.exists()


@pytest.mark.parametrize(
    ("flags", "fault"),
    [
        (["--source-bootstrap", "nonsense", "--target-bootstrap", "h:1"], "A.bootstrap.servers = nonsense"),
        ([*FLAGS, "--topics", "a(b"], "A->B.topics"),
        ([*FLAGS, "--source-alias", "x", "--target-alias", "x"], "x"),
        ([*FLAGS, "--replication-factor", "0"], "replication.factor = 0"),
    ],
)
def test_a_wrong_answer_writes_nothing(
    file: Path, capsys: pytest.CaptureFixture[str], flags: list[str], fault: str
) -> None:
    assert main(["init", str(file), *flags]) == 2
    assert fault in capsys.readouterr().err
    assert not file.exists()


def test_a_folder_that_does_not_exist_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", str(tmp_path / "no" / "new.properties"), *FLAGS]) == 1
    assert "cannot be written" in capsys.readouterr().err


def test_what_flags_do_not_say_is_asked_again_until_there_is_an_answer() -> None:
    given = iter(["", "h1:9092", "west", "", "h2:9092", "orders"])
    questions: list[str] = []

    def ask(question: str) -> str:
        questions.append(question)
        return next(given)

    answers = _asked({"source_alias": "east"}, ask)
    assert answers == {
        "source_alias": "east",
        "source_bootstrap": "h1:9092",
        "target_alias": "west",
        "target_bootstrap": "h2:9092",
        "topics": "orders",
    }
    assert len(questions) == 6
    assert questions[2] == "Name of the cluster to write to [B]: "
