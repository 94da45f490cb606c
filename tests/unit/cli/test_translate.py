from __future__ import annotations

import json
from pathlib import Path

import pytest

from heliograph.cli.main import main
from heliograph.cli.translate import sentence
from heliograph.operations.translate import Translated
from heliograph.replication.translation import Answer, Exact, Gone, NeverCopied, NotKnown, NotYetCopied


def test_an_offset_below_zero_is_a_wrong_command_line(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["translate", file, "--flow", "A->B", "--topic", "t", "--partition", "0", "--offset", "-5"]
    assert main(words) == 2
    assert capsys.readouterr().err == "heliograph: --offset -5: offsets begin at 0\n"


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "mm2.properties"
    path.write_text(
        "clusters = A, B\nA.bootstrap.servers = localhost:1\nB.bootstrap.servers = localhost:1\nA->B.enabled = true\n"
    )
    return str(path)


def translated(answer: Answer, mm2: int | None = None, reverse: bool = False) -> Translated:
    return Translated("A->B", "orders", "A.orders", 3, 1234, reverse, answer, mm2)


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (translated(Exact(1230)), "orders-3 1234 -> A.orders-3 1230, exact"),
        (translated(Exact(1230), 1201), "orders-3 1234 -> A.orders-3 1230, exact; MirrorMaker 2: 1201"),
        (translated(Exact(1230), -1), "orders-3 1234 -> A.orders-3 1230, exact; MirrorMaker 2: too old for its table"),
        (translated(Exact(1240), reverse=True), "A.orders-3 1234 -> orders-3 1240, exact"),
        (
            translated(NotYetCopied(7)),
            "orders-3 1234 -> A.orders-3 ?, not yet copied: 7 source offsets lie between the lane's position and this one",
        ),
        (
            translated(Gone("source", "the source begins at 2000", 1996)),
            "orders-3 1234 -> A.orders-3 1996, gone from the source: the source begins at 2000",
        ),
        (
            translated(NeverCopied("it is a transaction marker", 1230)),
            "orders-3 1234 -> A.orders-3 1230, never copied: it is a transaction marker",
        ),
        (translated(NotKnown("why")), "orders-3 1234 -> A.orders-3 ?, not known: why"),
    ],
)
def test_an_answer_is_one_line(one: Translated, expected: str) -> None:
    assert sentence(one) == expected


def test_a_position_without_a_record_is_said_to_be_one() -> None:
    assert "no record lies there" in sentence(translated(Exact(1230, is_record=False)))


def test_an_answer_as_json_has_every_field() -> None:
    shown = translated(NotYetCopied(7), 1201).as_json()
    assert json.loads(json.dumps(shown)) == {
        "flow": "A->B",
        "topic": "orders",
        "remote_topic": "A.orders",
        "partition": 3,
        "offset": 1234,
        "reverse": False,
        "answer": "not yet copied",
        "position": None,
        "reason": "7 source offsets lie between the lane's position and this one",
        "distance": 7,
        "mm2_offset": 1201,
    }
    assert translated(Exact(5)).as_json()["distance"] is None


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        (["--flow", "A->B", "--offset", "5"], "--offset needs --topic and --partition"),
        (["--flow", "A->B", "--offset", "5", "--topic", "t"], "--offset needs --topic and --partition"),
        (["--flow", "A->B", "--group", "g", "--partition", "1"], "--partition needs --topic"),
        (["--flow", "A->C", "--group", "g"], "--flow A->C: no such flow"),
    ],
)
def test_what_does_not_go_together_is_refused(
    options: list[str], fault: str, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["translate", file, *options]) == 2
    assert fault in capsys.readouterr().err


def test_a_cluster_out_of_reach_is_one_sentence(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["translate", file, "--flow", "A->B", "--topic", "t", "--partition", "0", "--offset", "1"]) == 1
    error = capsys.readouterr().err
    assert "connection refused at localhost:1" in error and "Traceback" not in error
