"""`heliograph events`: order, both forms, and a target that cannot be read."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import cast

import pytest

from heliograph.cli import events, main
from heliograph.config.load import load
from heliograph.control.events import EventReader
from heliograph.errors import ClusterUnreachable
from heliograph.model.events import Event, EventKind

NOW = 1_700_000_000_000
LOST = Event(NOW, "A->B", "orders-3", EventKind.DATA_LOSS, "13 offsets were lost", "raise retention")
TAKEN = Event(NOW - 1_000, "B->A", "B->A", EventKind.TAKEN_OVER, "another run took the flow over")


class Reader:
    """The events of one target, or why there are none."""

    def __init__(self, *found: Event | Exception) -> None:
        self._found = found

    async def read(self) -> list[Event]:
        for item in self._found:
            if isinstance(item, Exception):
                raise item
        return [item for item in self._found if isinstance(item, Event)]


def show(*readers: Reader, known: str = "") -> tuple[list[Event], str]:
    shown: list[Event] = []
    trouble = asyncio.run(events._show_new([cast(EventReader, reader) for reader in readers], shown.append, known))
    return shown, trouble


def test_events_of_all_targets_come_in_the_order_of_time() -> None:
    assert show(Reader(LOST), Reader(TAKEN)) == ([TAKEN, LOST], "")


def test_a_target_out_of_reach_is_said_once_and_hides_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    gone = Reader(ClusterUnreachable("cluster C is unreachable"))
    assert show(gone, Reader(LOST)) == ([LOST], "cluster C is unreachable")
    assert capsys.readouterr().err == "heliograph: cluster C is unreachable\n"
    assert show(gone, known="cluster C is unreachable") == ([], "cluster C is unreachable")
    assert show(Reader(TimeoutError())) == ([], "a cluster did not answer in time")
    assert "unreachable" not in capsys.readouterr().err


def test_a_fault_of_ours_is_not_hidden() -> None:
    with pytest.raises(KeyError):
        show(Reader(KeyError("x")))


def test_text_has_what_to_do_on_a_line_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    events._write_text(LOST)
    events._write_text(TAKEN)
    assert capsys.readouterr().out.splitlines() == [
        "2023-11-14 22:13:20 UTC data-loss A->B orders-3: 13 offsets were lost",
        "    raise retention",
        "2023-11-14 22:13:19 UTC taken-over B->A B->A: another run took the flow over",
    ]


def test_json_is_one_object_per_line(capsys: pytest.CaptureFixture[str]) -> None:
    events._write_json(LOST)
    assert json.loads(capsys.readouterr().out) == LOST.as_fields()


def test_a_target_that_is_not_there_is_exit_1_and_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(
        "clusters = A, B\nA.bootstrap.servers = 127.0.0.1:1\nB.bootstrap.servers = 127.0.0.1:1\nA->B.enabled = true\n"
    )
    assert main.main(["events", str(file)]) == 1
    assert "cluster B: connection refused at" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("found", "said"),
    [(LOST, ""), (None, "no events in the last 30 days\n"), (ClusterUnreachable("gone"), "heliograph: gone\n")],
)
def test_where_there_is_none_that_is_said_and_not_where_none_could_be_read(
    found: Event | Exception | None, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reader = Reader(*([] if found is None else [found]))
    monkeypatch.setattr(events, "EventReader", lambda *_: reader)
    settings = load(
        "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\n", "f.properties"
    )
    monkeypatch.setattr(events, "load_effective", lambda _: settings)
    assert main.main(["events", "f.properties"]) == int(isinstance(found, Exception))
    assert capsys.readouterr().err == said
