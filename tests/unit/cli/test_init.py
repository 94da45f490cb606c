from __future__ import annotations

import stat
import sys
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


class Person:
    """Answers one line after the other, and keeps what was asked and told."""

    def __init__(self, *lines: str) -> None:
        self._lines = iter(lines)
        self.heard: list[str] = []

    def ask(self, question: str) -> str:
        self.heard.append(question)
        return next(self._lines)

    def asked(self, **said: str) -> dict[str, str]:
        answers = _asked(dict(said), self.ask, self.heard.append)
        assert next(self._lines, None) is None, "every line was asked for"
        return answers


def test_what_flags_do_not_say_is_asked_again_until_there_is_an_answer() -> None:
    person = Person("", "h1:9092", "west", "", "h2:9092", "orders")
    assert person.asked(source_alias="east", topics="") == {
        "source_alias": "east",
        "source_bootstrap": "h1:9092",
        "target_alias": "west",
        "target_bootstrap": "h2:9092",
        "topics": "orders",
    }
    assert len(person.heard) == 6
    assert person.heard[2] == "Name of the cluster to write to [B]: "


def test_a_wrong_answer_is_asked_for_again_at_once_with_the_reason() -> None:
    person = Person("my cluster", "east", "kafka-a", "kafka-a:9092", "east", "west", "b:1,b:x", "b:1,b:2", "a(b", "")
    assert person.asked() == {
        "source_alias": "east",
        "source_bootstrap": "kafka-a:9092",
        "target_alias": "west",
        "target_bootstrap": "b:1,b:2",
        "topics": ".*",
    }
    reasons = [said for said in person.heard if said.endswith("\n")]
    expected = (
        "clusters = my cluster, B: expected a list of aliases",
        "east.bootstrap.servers = kafka-a: expected a list of host:port",
        "east->east.enabled: a flow needs two different clusters",
        "west.bootstrap.servers = b:1,b:x: expected a list of host:port",
        "east->west.topics = a(b: expected a list of names or Java regular expressions",
    )
    assert [given.startswith(reason) for given, reason in zip(reasons, expected, strict=True)] == [True] * 5
    assert person.heard.index(reasons[1]) == person.heard.index("Its address, host:port: ") + 1
    assert person.heard.count("Its address, host:port: ") == 4


@pytest.mark.parametrize(("said", "taken", "left"), [("source_alias", "B", "A"), ("target_alias", "A", "B")])
def test_the_name_that_is_taken_is_not_the_other_clusters_default(said: str, taken: str, left: str) -> None:
    person = Person("", "h1:1", "h2:2", "") if said == "target_alias" else Person("h1:1", "", "h2:2", "")
    answers = person.asked(**{said: taken})
    assert {answers["source_alias"], answers["target_alias"]} == {taken, left}


def test_nobody_is_asked_while_a_flag_is_wrong(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    assert main(["init", str(file), "--topics", "a(b"]) == 2
    shown = capsys.readouterr()
    assert (shown.out, file.exists()) == ("", False)
    assert shown.err.startswith("heliograph: A->B.topics = a(b: expected")
