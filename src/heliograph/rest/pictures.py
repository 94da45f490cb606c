"""What the stream tells: the scene as one picture a second, made once for all who look, and what is new in it for each of them.

A reader holds the picture that it saw last and gets what changed since: one that is slow skips the pictures between. Nothing is
queued for anybody.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from heliograph.rest.changes import Fields, by_key, changed_fields, changed_rows, newer
from heliograph.rest.lanes_page import LanesPage, LanesQuery, page_of, same_page
from heliograph.rest.summaries import flow_summary

if TYPE_CHECKING:
    from heliograph.rest.scene import Scene

_FIRST_EVENTS = 200
"""A reader's first picture has so many events; `GET /api/v1/events` has all."""
_NEWS_EVENTS = 100
_ORDER_SECONDS = 4.5
"""Views come each second, so lanes change places at every fifth: rows that move each second cannot be clicked."""


@dataclass(frozen=True)
class Picture:
    """The scene at one moment, and of a reader who looks at lanes their page."""

    version: int
    run: Fields
    flows: Mapping[str, Fields]
    last_event: Fields | None
    page: LanesPage | None = None
    rows: Mapping[str, Fields] = field(default_factory=dict)
    """Of the page, and those that its reader wants besides."""

    @property
    def order(self) -> list[str]:
        return [row["lane"] for row in self.page.lanes] if self.page is not None else []


_NOTHING = Picture(-1, {}, {}, None)


class Pictures:
    """Of one server. Work is kept for one version of the scene: a hundred readers of one view cost as much as one."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._version = -1
        self._common = _NOTHING
        self._pictures: dict[LanesQuery | None, Picture] = {}
        self._texts: dict[tuple[int, int], bytes] = {}
        self._pages: dict[LanesQuery, tuple[float, LanesPage]] = {}
        """The pages whose order still stands, and when they were sorted."""

    def look(self, query: LanesQuery | None) -> Picture:
        """The scene as it is."""
        if self._version != self._scene.version:
            self._begin()
        if query not in self._pictures:
            self._pictures[query] = self._with_lanes(query)
        return self._pictures[query]

    def _begin(self) -> None:
        scene = self._scene
        self._version = scene.version
        self._texts.clear()
        flows = {name: flow_summary(scene, name) for name in sorted(scene.flows)}
        last = scene.events[-1] if scene.events else None
        self._common = Picture(scene.version, dict(scene.run), flows, last)
        self._pictures = {None: self._common}
        self._pages = {
            query: (sorted_at, page)
            for query, (sorted_at, page) in self._pages.items()
            if scene.merged_at - sorted_at < _ORDER_SECONDS
        }

    def _with_lanes(self, query: LanesQuery | None) -> Picture:
        common = self._common
        page = self._page(query) if query is not None else None
        rows = by_key((*page.also, *page.lanes), "lane") if page is not None else {}
        return Picture(common.version, common.run, common.flows, common.last_event, page, rows)

    def _page(self, query: LanesQuery) -> LanesPage:
        # Who asks for further lanes beside a page sees it in the order that it had.
        plain = replace(query, also=())
        if plain in self._pages:
            page = same_page(self._scene.lanes, query, self._pages[plain][1])
            if page is not None:
                return page
        page = page_of(self._scene.lanes, query)
        self._pages[plain] = (self._scene.merged_at, page)
        return page

    def text(self, before: Picture | None, now: Picture, age_ms: int) -> bytes:
        """The message for a reader that saw `before`: everything if it saw nothing; only the age if nothing came since."""
        if before is now:
            return message({"time_ms": now.run.get("time_ms", 0), "age_ms": age_ms})
        key = (id(before), id(now))
        if key not in self._texts:
            self._texts[key] = message(self.news(before, now) | {"age_ms": age_ms})
        return self._texts[key]

    def news(self, before: Picture | None, now: Picture) -> dict[str, Any]:
        old = before or _NOTHING
        most = _NEWS_EVENTS if before else _FIRST_EVENTS
        found: dict[str, Any] = {
            "time_ms": now.run.get("time_ms", 0),
            "run": changed_fields(old.run, now.run),
            "flows": [{"flow": name} | fields for name, fields in changed_rows(old.flows, now.flows).items()],
            "gone": [name for name in old.flows if name not in now.flows],
            "events": newer(self._scene.events, old.last_event, most) if old.last_event is not now.last_event else [],
        }
        lanes = _lanes(old, now)
        kept = {name: value for name, value in found.items() if value or name == "time_ms"}
        return kept | ({"lanes": lanes} if lanes else {})


def _lanes(old: Picture, now: Picture) -> dict[str, Any]:
    if now.page is None:
        return {}
    found: dict[str, Any] = {"rows": changed_rows(old.rows, now.rows)}
    for name in ("total", "matched"):
        if old.page is None or getattr(old.page, name) != getattr(now.page, name):
            found[name] = getattr(now.page, name)
    if old.page is None or old.order != now.order:
        found["order"] = now.order
    return found if found["rows"] or len(found) > 1 else {}


def message(view: Mapping[str, Any]) -> bytes:
    """One server-sent event."""
    return b"event: view\ndata: " + json.dumps(view, separators=(",", ":"), ensure_ascii=False).encode() + b"\n\n"
