"""What flows do together, as far as the file alone shows it: topics with two writers, records that would come back.

What regular expressions mean is known only with the topics: the rest is found when a run reads the clusters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations

from heliograph.config.flows import FlowSettings
from heliograph.model.clusters import Flow
from heliograph.replication.filters import NameFilter

_LITERAL = re.compile(r"[A-Za-z0-9._-]+")
_KEEPS_NAMES = "IdentityReplicationPolicy keeps names"

_Place = tuple[str, str]
"""A cluster and a topic."""


def shared_topics(flows: Sequence[FlowSettings]) -> Iterator[str]:
    """Names that two sources would mix in one topic."""
    for one, other in combinations(flows, 2):
        if one.target.alias == other.target.alias:
            for remote in sorted(_known_remotes(one) & _known_remotes(other)):
                kept = one.policy == other.policy == "identity" and not one.routes
                why = f"{_KEEPS_NAMES}, so name" if kept else "name the copies apart, or name"
                yield (
                    f"{one.flow.name} and {other.flow.name} would both write {remote} on {one.target.alias}: "
                    f"{why} it in the topics of one of them"
                )


def _known_remotes(settings: FlowSettings) -> set[str]:
    names = NameFilter(settings.topics, settings.topics_exclude)
    paired = {source for source, _ in _pairs(settings) if names.accepts(source)}
    return {settings.remote_name(topic) for topic in _literals(settings) | paired}


def _literals(settings: FlowSettings) -> set[str]:
    names = NameFilter(settings.topics, settings.topics_exclude)
    return {topic for topic in settings.topics if _LITERAL.fullmatch(topic) and names.accepts(topic)}


def _pairs(settings: FlowSettings) -> tuple[tuple[str, str], ...]:
    return dict(settings.routes)[settings.flow].pairs if settings.flow in dict(settings.routes) else ()


def circles(flows: Sequence[FlowSettings]) -> Iterator[str]:
    """Where names are kept, or led back, nothing in a name stops a record that comes back to where it began."""
    yield from _kept_circles(flows)
    yield from _paired_circles(flows)


def _kept_circles(flows: Sequence[FlowSettings]) -> Iterator[str]:
    for settings in _identity(flows):
        for pattern in settings.topics:
            hops = [s.flow for s in _identity(flows) if _passes_alike(pattern, settings, s)]
            if settings.flow == min(_loop(settings.flow, hops), default=None):
                yield (
                    f"records of {pattern} would circle for ever through {settings.flow.name}: "
                    f"{_KEEPS_NAMES}, so take it out of the topics of one flow of the circle"
                )


def _paired_circles(flows: Sequence[FlowSettings]) -> Iterator[str]:
    steps: dict[_Place, list[_Place]] = {}
    for settings in flows:
        for source, remote in _pairs(settings):
            if source == remote and settings.home:
                continue  # what comes back by the flow in the other direction is known by its producer
            steps.setdefault((settings.flow.source, source), []).append((settings.flow.target, remote))
    told: set[_Place] = set()
    for start in steps:
        circle = _places_after(start, steps)
        if start in circle and not told & circle:
            told |= circle
            yield (
                f"records of {start[1]} would circle for ever through {start[0]}: topic.rename.pairs lead them back, so "
                "take a pair out of one flow of the circle"
            )


def _places_after(start: _Place, steps: dict[_Place, list[_Place]]) -> set[_Place]:
    reached: set[_Place] = set()
    waiting = [start]
    while waiting:
        following = [place for place in steps.get(waiting.pop(), ()) if place not in reached]
        reached.update(following)
        waiting.extend(following)
    return reached


def _passes_alike(pattern: str, one: FlowSettings, other: FlowSettings) -> bool:
    """Whether what the pattern lets through one flow passes the other for certain, whatever the topics are."""
    literal = pattern in _literals(one) and pattern in _literals(other)
    same = pattern in other.topics and set(one.topics_exclude) == set(other.topics_exclude)
    return literal or (same and not _LITERAL.fullmatch(pattern))


def _loop(start: Flow, hops: Sequence[Flow]) -> set[Flow]:
    """The flows that lie on circles with `start`; empty if it is on none."""
    ahead = _reach(start, hops)
    return {hop for hop in ahead if start in _reach(hop, hops)} if start in ahead else set()


def _reach(start: Flow, hops: Sequence[Flow]) -> set[Flow]:
    """The flows that a record can take after `start`."""
    reached: set[Flow] = set()
    waiting = [start]
    while waiting:
        last = waiting.pop()
        # What turns round at once came home, and is not copied (kafka/homecoming.py).
        onwards = [hop for hop in hops if hop.source == last.target and hop.target != last.source]
        following = [hop for hop in onwards if hop not in reached]
        reached.update(following)
        waiting.extend(following)
    return reached


def _identity(flows: Sequence[FlowSettings]) -> list[FlowSettings]:
    return [settings for settings in flows if settings.policy == "identity"]
