"""What a file that was saved again means for a run: flows that come and go, what counts at once, what waits for the next start."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace

from heliograph.config.flows import EngineSettings, FlowSettings, Settings
from heliograph.model.clusters import Flow
from heliograph.replication.naming import Route

LIMITS = frozenset({"throttle", "throttle_topics"})
LIVE = LIMITS | {
    "wan_cost_per_gb",
    "topics",
    "topics_exclude",
    "replication_factor",
    "config_properties_exclude",
    "use_defaults_from",
    "refresh_topics_enabled",
    "refresh_topics_interval_s",
    "heartbeats_replication_enabled",
    "fetch_max_bytes",
    "fetch_max_partition_bytes",
    "fetch_max_wait_ms",
    "fetch_min_bytes",
    "codec",
    "policies",
    "align",
    "jobs",
    "routes",
}
"""Of a flow's settings those that a run can change under way. Addresses, logins and names cannot: a lane would go on in another
place than it began. Nor can where lanes begin, for they have begun."""

_REACHED, _NAMED, _BEGUN = "how clusters are reached", "names of remote topics", "where lanes begin"
_WORDS = {
    "source": _REACHED,
    "target": _REACHED,
    "source_admin": _REACHED,
    "target_admin": _REACHED,
    "source_writer": _REACHED,
    "policy": _NAMED,
    "separator": _NAMED,
    "internal_separator_enabled": _NAMED,
    "start": _BEGUN,
    "start_from": _BEGUN,
    "topic_starts": _BEGUN,
    "mm2": "where MirrorMaker 2 keeps its progress",
    "routes": _NAMED,
    "plugins": "classes of your own",
    "home": "the flow in the other direction",
}


@dataclass(frozen=True)
class Changes:
    """`changed` are a flow's settings from now on."""

    added: tuple[FlowSettings, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[FlowSettings, ...] = ()
    said: tuple[str, ...] = ()
    """All of it in sentences, also what has to wait."""


def changes(now: Settings, then: Settings, live: frozenset[str] = LIVE) -> Changes:
    """From the settings that count now to those of the file as it is; unless all of LIVE is, flows neither come nor go."""
    running = {flow.flow.name: flow for flow in now.flows}
    wanted = {flow.flow.name: flow for flow in then.flows}
    late = dict(_unexpected(running, wanted))
    added = [flow for name, flow in wanted.items() if name not in {*running, *late}] if live == LIVE else []
    removed = [name for name in running if name not in wanted] if live == LIVE else []
    kept = {name: _carried_over(running[name], wanted[name], live) for name in running if name in wanted}
    changed = [flow for name, flow in kept.items() if flow != running[name]]
    said = [f"flow {flow.flow.name} is new" for flow in added] + [f"flow {name} ends" for name in removed]
    said += [
        f"flow {name} waits for the next start: it keeps names, and {other} must know from its first record on what not to copy "
        "back"
        for name, other in late.items()
    ]
    said += _new_values(now, then, {flow.flow.name for flow in changed})
    said += [_wait(name, _differing(flow, wanted[name])) for name, flow in kept.items() if flow != wanted[name]]
    if now.engine != then.engine:
        said.append(_wait("of the run", [name.replace("_", ".") for name in _differing(now.engine, then.engine)]))
    if live != LIVE and running.keys() != wanted.keys():
        said.append(_wait("flows", sorted(running.keys() ^ wanted.keys())))
    return Changes(tuple(added), tuple(removed), tuple(changed), tuple(said))


def _unexpected(running: Mapping[str, FlowSettings], wanted: Mapping[str, FlowSettings]) -> Iterator[tuple[str, str]]:
    """New flows whose records would come home over one that runs, and that one, which does not know of them."""
    for name, flow in wanted.items():
        if name in running and flow.home and flow.home != running[name].home and flow.home not in running:
            yield flow.home, name


def only_limits(running: FlowSettings, wanted: FlowSettings) -> bool:
    """Whether nothing but limits changed: lanes, plan and jobs stay as they are."""
    return _carried_over(running, wanted, LIMITS) == wanted


def _carried_over(running: FlowSettings, wanted: FlowSettings, live: frozenset[str]) -> FlowSettings:
    values = {name: getattr(wanted, name) for name in live}
    if "routes" in live:
        values["routes"] = _routes(running, wanted)
    return replace(running, **values)


def _routes(running: FlowSettings, wanted: FlowSettings) -> tuple[Route, ...]:
    """The names that other flows give must be known, or their copies would go on; the flow's own stay as they began."""
    flow = Flow(running.flow.source, running.flow.target)
    own = dict(running.routes).get(flow)
    others = [(other, own if other == flow else names) for other, names in wanted.routes]
    missing = [] if flow in dict(wanted.routes) else [(flow, own)]
    return tuple((other, names) for other, names in [*others, *missing] if names is not None)


def _new_values(now: Settings, then: Settings, flows: set[str]) -> list[str]:
    """The options of these flows that have another value, secrets left out as they are everywhere."""
    before, after = _values(now), _values(then)
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    mine = [name for name in names if any(name.startswith(f"{flow}.") for flow in flows)]
    return [f"{name} = {_shown(after.get(name))}, it was {_shown(before.get(name))}" for name in mine]


def _values(settings: Settings) -> dict[str, str]:
    return {value.name: value.value for value in settings.values}


def _shown(value: str | None) -> str:
    return value or "not set"


def _differing(one: FlowSettings | EngineSettings, other: FlowSettings | EngineSettings) -> list[str]:
    return [field.name for field in fields(one) if getattr(one, field.name) != getattr(other, field.name)]


def _wait(whose: str, names: Iterable[str]) -> str:
    words = dict.fromkeys(_WORDS.get(name, name.replace("_", " ")) for name in names)
    return f"{whose}: {', '.join(words)} changed too, which counts from the next start"
