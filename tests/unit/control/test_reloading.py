"""When the file of a run is read again."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from heliograph.control.reloading import FileWatch
from heliograph.control.steering import Steering
from heliograph.errors import ConfigError

TEXT = "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\n"


class Hand:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_file_is_due_once_for_each_time_it_is_saved(tmp_path: Path) -> None:
    path, clock = tmp_path / "mm2.properties", Hand()
    path.write_text(TEXT)
    watch = FileWatch(str(path), 10, clock)
    os.utime(path, ns=(1, 1))
    assert not watch.is_due()
    clock.now = 10
    assert watch.is_due()
    assert not watch.is_due()
    clock.now = 20
    assert not watch.is_due()
    path.unlink()
    clock.now = 30
    assert not watch.is_due()
    path.write_text(TEXT)
    os.utime(path, ns=(2, 2))
    clock.now = 40
    assert watch.is_due()


def test_whoever_asks_has_it_read_at_once_saved_or_not(tmp_path: Path) -> None:
    path, clock = tmp_path / "mm2.properties", Hand()
    path.write_text(TEXT)
    watch = FileWatch(str(path), 0, clock)
    os.utime(path, ns=(1, 1))
    clock.now = 1_000
    assert not watch.is_due(), "interval 0"
    watch.ask()
    assert watch.is_due()
    assert not watch.is_due()
    watch.interval_s = 10
    assert not watch.is_due(), "what was read because somebody asked is not read for its date"


def test_it_is_read_with_all_faults(tmp_path: Path) -> None:
    path = tmp_path / "mm2.properties"
    path.write_text(TEXT)
    steering = Steering(str(path), None)
    assert [flow.flow.name for flow in asyncio.run(steering.settings()).flows] == ["A->B"]
    path.write_text(TEXT + "tasks.max = none\nreplication.factor = x\n")
    with pytest.raises(ConfigError) as raised:
        asyncio.run(steering.settings())
    assert len(raised.value.faults) == 2
