"""Lanes as pages: filtered, sorted and cut out of the thousands that a scene holds.

Pure: rows as the driver pushed them in, rows of `/api/v1/flows/{flow}/lanes` out. A page is made from what sorting and searching need;
the other fields only of the rows that it shows, so that 5,000 lanes answer at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from heliograph.metrics.picture import lag_of

Row = Mapping[str, Any]
LaneRow = dict[str, Any]

STATES = ("parked", "attaching", "waiting", "draining", "paused", "following", "done")
"""What needs a look first stands first: also the order of `sort=state`."""
ORDERS = ("asc", "desc")
MOST_ROWS = 1_000


class BadQuery(ValueError):
    """A parameter that cannot be meant so: which, and what it may be."""

    def __init__(self, message: str, field: str, allowed: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.field = field
        self.allowed = tuple(allowed)


@dataclass(frozen=True)
class LanesQuery:
    """Which lanes, in which order, from where. Parse with `query_of`, which refuses what is not known."""

    flow: str
    topic: str = ""
    search: str = ""
    states: tuple[str, ...] = ()
    sort: str = "lane"
    order: str = "asc"
    offset: int = 0
    limit: int = 100
    also: tuple[str, ...] = ()
    """Lanes, as topic/partition, that are wanted whether or not they are on the page: somebody reads them."""


@dataclass(frozen=True)
class LanesPage:
    """`total` lanes of the flow, `matched` of them by search and state, the rows of one page, and those wanted besides."""

    total: int
    matched: int
    lanes: Sequence[LaneRow]
    also: Sequence[LaneRow] = ()

    def as_json(self) -> dict[str, Any]:
        return {"total": self.total, "matched": self.matched, "lanes": list(self.lanes)}


def delta_of(row: Row) -> int | None:
    """Target offset minus source offset; None while one of them is not known."""
    known = row["position"] >= 0 and row["target_next"] >= 0
    return row["target_next"] - row["position"] if known else None


def _total(name: str) -> Callable[[Row], Any]:
    return lambda row: row["totals"][name]


def _number(name: str) -> Callable[[Row], Any]:
    return lambda row: row.get(name) or 0


def _reasons(name: str) -> Callable[[Row], Any]:
    return lambda row: sum(row["totals"][name].values())


_SORTS: dict[str, Callable[[Row], Any]] = {
    "lane": lambda row: 0,
    "topic": lambda row: 0,
    "partition": lambda row: row["partition"],
    "remote_topic": lambda row: row["remote_topic"],
    "state": lambda row: STATES.index(row["state"]) if row["state"] in STATES else len(STATES),
    "reason": lambda row: row["reason"],
    "since_ms": _number("since_ms"),
    "position": lambda row: row["position"],
    "source_end": lambda row: row["source_end"],
    "remote_end": lambda row: row["target_next"],
    "lag": lag_of,
    "lag_ms": _number("lag_ms"),
    "delta": lambda row: delta_of(row) or 0,
    "generation": lambda row: row["generation"],
    "guard": lambda row: row["guard"],
    "records_per_s": _number("records_per_s"),
    "bytes_per_s": _number("bytes_per_s"),
    "records": _total("records"),
    "bytes": _total("bytes"),
    "raw_batches": _total("raw_batches"),
    "rebuilt_batches": _total("rebuilt_batches"),
    "dropped": _reasons("dropped"),
    "rebuilt": _reasons("rebuilt"),
}
SORTS = tuple(_SORTS)


def query_of(flow: str, given: Mapping[str, str]) -> LanesQuery:
    """The query of a request's parameters; `BadQuery` for a value that is not known."""
    states = tuple(state for state in given.get("state", "").split(",") if state)
    for state in states:
        _one_of("state", state, STATES)
    return LanesQuery(
        flow,
        given.get("topic", ""),
        given.get("search", ""),
        states,
        _one_of("sort", given.get("sort") or "lane", SORTS),
        _one_of("order", given.get("order") or "asc", ORDERS),
        _whole("offset", given.get("offset") or "0", 0, 1 << 31),
        _whole("limit", given.get("limit") or "100", 1, MOST_ROWS),
    )


def _one_of(field: str, value: str, allowed: Sequence[str]) -> str:
    if value not in allowed:
        raise BadQuery(f"{field} is '{value}', allowed: {', '.join(allowed)}", field, allowed)
    return value


def _whole(field: str, text: str, least: int, most: int) -> int:
    value = int(text) if text.isascii() and text.isdigit() and len(text) < 12 else -1
    if not least <= value <= most:
        raise BadQuery(f"{field} is '{text}', allowed: a whole number from {least} to {most}", field)
    return value


def page_of(lanes: Mapping[str, Row], query: LanesQuery) -> LanesPage:
    """One page of a flow's lanes. Lanes that are equal by `sort` stand by topic and partition, whatever the order."""
    of_flow = list(_of_flow(lanes, query.flow))
    chosen = list(_chosen(of_flow, query))
    chosen.sort(key=lambda row: (row["topic"], row["partition"]), reverse=_is_name(query) and query.order == "desc")
    if not _is_name(query):
        chosen.sort(key=_SORTS[query.sort], reverse=query.order == "desc")
    rows = [lane_row(query.flow, row) for row in chosen[query.offset : query.offset + query.limit]]
    return LanesPage(len(of_flow), len(chosen), rows, _also(lanes, query))


def same_page(lanes: Mapping[str, Row], query: LanesQuery, before: LanesPage) -> LanesPage | None:
    """The lanes of a page that was made before, in its order, as they are now; None where others would stand on it."""
    of_flow = list(_of_flow(lanes, query.flow))
    matched = sum(1 for _ in _chosen(of_flow, query))
    kept = [lanes.get(row["lane"]) for row in before.lanes]
    if (len(of_flow), matched) != (before.total, before.matched) or None in kept:
        return None
    rows = [lane_row(query.flow, row) for row in kept if row is not None]
    return LanesPage(before.total, before.matched, rows, _also(lanes, query))


def _also(lanes: Mapping[str, Row], query: LanesQuery) -> list[LaneRow]:
    found = (lanes.get(f"{query.flow}/{lane}") for lane in query.also)
    return [lane_row(query.flow, row) for row in found if row is not None]


def _is_name(query: LanesQuery) -> bool:
    return query.sort in ("lane", "topic")


def _of_flow(lanes: Mapping[str, Row], flow: str) -> Iterator[Row]:
    prefix = f"{flow}/"
    return (row for key, row in lanes.items() if key.startswith(prefix))


def _chosen(rows: Sequence[Row], query: LanesQuery) -> Iterator[Row]:
    """Every word of the search stands in the lane's names, its state or its reason."""
    words = query.search.lower().split()
    for row in rows:
        if (query.states and row["state"] not in query.states) or query.topic not in ("", row["topic"]):
            continue
        if words:
            text = f"{row['topic']}-{row['partition']} {row['remote_topic']} {row['state']} {row['reason']}".lower()
            if not all(word in text for word in words):
                continue
        yield row


def lane_row(flow: str, row: Row) -> LaneRow:
    """A lane as the API shows it. Rates are whole numbers: a digit that nobody reads would change every second."""
    totals = row["totals"]
    return {
        "lane": f"{flow}/{row['topic']}/{row['partition']}",
        "flow": flow,
        "topic": row["topic"],
        "partition": row["partition"],
        "remote_topic": row["remote_topic"],
        "state": row["state"],
        "reason": row["reason"],
        "since_ms": row["since_ms"],
        "position": row["position"],
        "source_end": row["source_end"],
        "remote_end": row["target_next"],
        "lag": lag_of(row),
        "lag_ms": round(row.get("lag_ms") or 0),
        "delta": delta_of(row),
        "generation": row["generation"],
        "guard": row["guard"],
        "records_per_s": round(row.get("records_per_s") or 0),
        "bytes_per_s": round(row.get("bytes_per_s") or 0),
        "records": totals["records"],
        "bytes": totals["bytes"],
        "raw_batches": totals["raw_batches"],
        "rebuilt_batches": totals["rebuilt_batches"],
        "dropped": totals["dropped"],
        "rebuilt": totals["rebuilt"],
    }
