"""When the file of a run is read again."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from heliograph.control import reloading
from heliograph.control.amendments import amendments
from heliograph.control.events import EventLog
from heliograph.control.flow_set import FlowSet, Manner
from heliograph.control.flow_watch import Runner
from heliograph.control.reloading import FileWatch, Reloader
from heliograph.control.steering import Steering
from heliograph.errors import ConfigError
from heliograph.kafka.slot import Warm

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


def test_a_connector_that_does_not_fit_is_tried_again_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it refers to is not there, and then it is: nobody saves the file or asks for anything."""
    monkeypatch.setattr(reloading, "_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(reloading, "_RETRY_SECONDS", 0.01)
    path, told = tmp_path / "mm2.properties", tmp_path / "told.properties"
    path.write_text("clusters = A\nA.bootstrap.servers = 127.0.0.1:1\nlisteners = http://127.0.0.1:0\n")
    config = {
        "connector.class": "MirrorSource",
        "source.cluster.alias": "A",
        "source.cluster.bootstrap.servers": "127.0.0.1:1",
        "target.cluster.alias": "B",
        "target.cluster.bootstrap.servers": "127.0.0.1:1",
        "topics": f"${{file:{told}:topics}}",
    }

    async def scenario() -> None:
        steering = Steering(str(path), None)
        steering.amended = amendments(
            {"connector/x": {"version": 1, "name": "x", "config": config, "who": "", "since_ms": 1}}
        )
        settings = await steering.settings()
        assert "told.properties" in steering.unfit["x"]
        warm = Warm()
        events = EventLog(warm, {}, lambda: 0)
        manner = Manner(settings.engine, Runner("here", 1, "run", 0), reset=False, until_caught_up=False)
        flows = FlowSet((), manner, warm, events, lambda: None)
        reloader = Reloader(settings, FileWatch(str(path), 0, Hand()), steering, flows, events)
        keeping = asyncio.create_task(reloader.keep())
        await asyncio.sleep(0.2)
        assert (flows.watches, "x" in steering.unfit) == ([], True)
        told.write_text("topics = orders\n")
        while not flows.watches:
            await asyncio.sleep(0.01)
        assert (steering.unfit, [flow.flow.name for flow in reloader.read.flows]) == ({}, ["A->B"])
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        await flows.tasks.end_all()
        for watch in flows.watches:
            watch.close()
        warm.close()

    asyncio.run(scenario())
