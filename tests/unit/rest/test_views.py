"""What a reader of the stream gets: everything once, then what changed since it last looked, however long ago that was."""

from __future__ import annotations

import json
from typing import Any

from heliograph.rest.lanes_page import LanesQuery, query_of
from heliograph.rest.scene import Scene
from heliograph.rest.views import Picture, Views
from tests.support.invented_scene import InventedRun


class Reader:
    """Puts messages together as the page does."""

    def __init__(self, views: Views, query: LanesQuery | None = None) -> None:
        self._views = views
        self._query = query
        self._seen: Picture | None = None
        self.flows: dict[str, dict[str, Any]] = {}
        self.rows: dict[str, dict[str, Any]] = {}
        self.order: list[str] = []
        self.events: list[Any] = []
        self.told: dict[str, Any] = {}
        self.length = 0

    def look(self) -> None:
        picture = self._views.look(self._query)
        text = self._views.text(self._seen, picture, 0)
        self._seen = picture
        self.length = len(text)
        assert text.startswith(b"event: view\ndata: ") and text.endswith(b"\n\n") and text.count(b"\n") == 3
        self.told = json.loads(text.split(b"data: ")[1])
        for flow in self.told.get("flows", ()):
            self.flows.setdefault(flow["flow"], {}).update(flow)
        for name in self.told.get("gone", ()):
            del self.flows[name]
        self.events += self.told.get("events", ())
        lanes = self.told.get("lanes", {})
        for key, fields in lanes.get("rows", {}).items():
            self.rows.setdefault(key, {}).update(fields)
        self.order = lanes.get("order", self.order)
        self.rows = {key: self.rows[key] for key in self.order}


def at(scene: Scene, run: InventedRun, second: int) -> None:
    scene.merge(run.step(), 1000.0 + second)


def test_a_reader_who_misses_pictures_knows_the_same_as_one_who_sees_all() -> None:
    scene, run = Scene(), InventedRun("mesh", 1_000_000_000)
    views, query = Views(scene), query_of("A->B", {"sort": "records_per_s", "order": "desc", "limit": "10"})
    patient, slow = Reader(views, query), Reader(views, query)
    for second in range(12):
        at(scene, run, second)
        patient.look()
        if second in (0, 11):
            slow.look()
    fresh = Reader(views, query)
    fresh.look()
    for reader in (patient, slow):
        assert (reader.flows, reader.rows, reader.order) == (fresh.flows, fresh.rows, fresh.order)
    assert len(fresh.flows) == 6
    assert len(fresh.order) == 10
    assert patient.events == slow.events == fresh.events != []


def test_without_news_only_the_age_is_told() -> None:
    scene, run = Scene(), InventedRun("both", 1_000_000_000)
    at(scene, run, 0)
    views = Views(scene)
    picture = views.look(None)
    assert json.loads(views.text(picture, picture, 4321)[len("event: view\ndata: ") :]) == {
        "time_ms": run.now_ms,
        "age_ms": 4321,
    }


def test_a_flow_that_went_is_gone_and_lanes_that_left_the_page_are_not_in_its_order() -> None:
    scene, run = Scene(), InventedRun("both", 1_000_000_000)
    at(scene, run, 0)
    reader = Reader(Views(scene), query_of("east->west", {"limit": "5"}))
    reader.look()
    gone = reader.order[0]
    scene.merge({"flows": {"west->east": None}, "gone": [gone]}, 1001.0)
    reader.look()
    assert list(reader.flows) == ["east->west"]
    assert gone not in reader.order and len(reader.order) == 5
    assert reader.told["lanes"]["total"] == 39


def test_readers_of_one_view_share_its_making() -> None:
    scene, run = Scene(), InventedRun("both", 1_000_000_000)
    at(scene, run, 0)
    views, query = Views(scene), query_of("east->west", {})
    picture = views.look(query)
    assert views.look(query_of("east->west", {})) is picture
    assert views.text(None, picture, 0) is views.text(None, picture, 0)
    at(scene, run, 1)
    assert views.look(query) is not picture


def test_five_thousand_lanes_of_which_every_one_moves_stay_below_fifty_kilobytes_a_second() -> None:
    scene, run = Scene(), InventedRun("load", 1_000_000_000)
    assert len(run.lanes) == 5000
    reader = Reader(Views(scene), query_of("frankfurt->dublin", {"sort": "lag", "order": "desc", "limit": "50"}))
    lengths = []
    for second in range(8):
        at(scene, run, second)
        reader.look()
        lengths.append(reader.length)
    assert max(lengths[1:]) < 50_000
