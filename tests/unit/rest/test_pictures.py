"""What a reader of the stream gets: everything once, then what changed since it last looked, however long ago that was."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from heliograph.rest.lanes_page import LanesQuery, query_of
from heliograph.rest.pictures import Picture, Pictures
from heliograph.rest.scene import Scene
from tests.support.invented_scene import InventedRun


class Reader:
    """Puts messages together as the page does."""

    def __init__(self, pictures: Pictures, query: LanesQuery | None = None) -> None:
        self._pictures = pictures
        self._query = query
        self._seen: Picture | None = None
        self.flows: dict[str, dict[str, Any]] = {}
        self.rows: dict[str, dict[str, Any]] = {}
        self.order: list[str] = []
        self.events: list[Any] = []
        self.told: dict[str, Any] = {}
        self.length = 0

    def look(self) -> None:
        picture = self._pictures.look(self._query)
        text = self._pictures.text(self._seen, picture, 0)
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
        wanted = [f"{self._query.flow}/{lane}" for lane in self._query.also] if self._query else []
        self.rows = {key: self.rows[key] for key in (*self.order, *wanted) if key in self.rows}


def at(scene: Scene, run: InventedRun, second: int) -> None:
    scene.merge(run.step(), 1000.0 + second)


def test_a_reader_who_misses_pictures_knows_the_same_as_one_who_sees_all() -> None:
    scene, run = Scene(), InventedRun("mesh", 1_000_000_000)
    pictures, query = Pictures(scene), query_of("A->B", {"sort": "records_per_s", "order": "desc", "limit": "10"})
    patient, slow = Reader(pictures, query), Reader(pictures, query)
    for second in range(12):
        at(scene, run, second)
        patient.look()
        if second in (0, 11):
            slow.look()
    fresh = Reader(pictures, query)
    fresh.look()
    for reader in (patient, slow):
        assert (reader.flows, reader.rows, reader.order) == (fresh.flows, fresh.rows, fresh.order)
    assert len(fresh.flows) == 6
    assert len(fresh.order) == 10
    assert patient.events == slow.events == fresh.events != []


def test_without_news_only_the_age_is_told() -> None:
    scene, run = Scene(), InventedRun("both", 1_000_000_000)
    at(scene, run, 0)
    pictures = Pictures(scene)
    picture = pictures.look(None)
    assert json.loads(pictures.text(picture, picture, 4321)[len("event: view\ndata: ") :]) == {
        "time_ms": run.now_ms,
        "age_ms": 4321,
    }


def test_a_flow_that_went_is_gone_and_lanes_that_left_the_page_are_not_in_its_order() -> None:
    scene, run = Scene(), InventedRun("both", 1_000_000_000)
    at(scene, run, 0)
    reader = Reader(Pictures(scene), query_of("east->west", {"limit": "5"}))
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
    pictures, query = Pictures(scene), query_of("east->west", {})
    picture = pictures.look(query)
    assert pictures.look(query_of("east->west", {})) is picture
    assert pictures.text(None, picture, 0) is pictures.text(None, picture, 0)
    at(scene, run, 1)
    assert pictures.look(query) is not picture


def test_lanes_change_places_every_fifth_second_and_their_values_each_second() -> None:
    scene, run = Scene(), InventedRun("standby", 1_000_000_000)
    reader = Reader(Pictures(scene), query_of("primary->standby", {"sort": "position", "order": "desc", "limit": "10"}))
    orders, positions = [], []
    for second in range(11):
        leader = run.lanes[20 + second].row  # each second another one is ahead of all
        leader["position"] = leader["source_end"] = 1_000_000_000 * (second + 1)
        at(scene, run, second)
        reader.look()
        orders.append(reader.order)
        positions.append([reader.rows[key]["position"] for key in reader.order])
    assert orders[0] == orders[4] != orders[5] == orders[9] != orders[10]
    assert positions[0] != positions[1]
    for second in (0, 5, 10):
        assert positions[second] == sorted(positions[second], reverse=True)


def test_a_page_is_sorted_at_once_when_other_lanes_belong_on_it() -> None:
    scene, run = Scene(), InventedRun("both", 1_000_000_000)
    at(scene, run, 0)
    reader = Reader(Pictures(scene), query_of("east->west", {"state": "parked"}))
    reader.look()
    assert len(reader.order) == 1
    run.lanes[0].row["state"] = "parked"
    at(scene, run, 1)
    reader.look()
    assert len(reader.order) == 2


def test_lanes_that_are_wanted_by_name_come_beside_the_page() -> None:
    scene, run = Scene(), InventedRun("both", 1_000_000_000)
    at(scene, run, 0)
    pictures = Pictures(scene)
    plain = Reader(pictures, query_of("east->west", {"limit": "3"}))
    plain.look()
    other = next(key for key in scene.lanes if key.startswith("east->west/") and key not in plain.order)
    also = (other.removeprefix("east->west/"), "no-such-topic/0", plain.order[0].removeprefix("east->west/"))
    reader = Reader(pictures, replace(query_of("east->west", {"limit": "3"}), also=also))
    for second in (1, 2):
        at(scene, run, second)
        reader.look()
        assert reader.order == plain.order
        assert set(reader.rows) == {*plain.order, other}
        assert reader.rows[other]["position"] == scene.lanes[other]["position"]


def test_five_thousand_lanes_of_which_every_one_moves_stay_below_fifty_kilobytes_a_second() -> None:
    scene, run = Scene(), InventedRun("load", 1_000_000_000)
    assert len(run.lanes) == 5000
    reader = Reader(Pictures(scene), query_of("frankfurt->dublin", {"sort": "lag", "order": "desc", "limit": "50"}))
    lengths = []
    for second in range(8):
        at(scene, run, second)
        reader.look()
        lengths.append(reader.length)
    assert max(lengths[1:]) < 50_000
