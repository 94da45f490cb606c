"""Where partitions begin and end, and who leads them: many in a few requests, or one.

What is wrong with a partition is a sentence of its own, so that the others can be used.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from heliograph.errors import SetupError
from heliograph.kafka.client import EARLIEST, LATEST, ClusterClient, Partition, TopicView
from heliograph.kafka.ranges import Log
from heliograph.kafka.refusals import topic_refused
from heliograph.replication.openings import is_another

_MISSING = {3, 100}


@dataclass(frozen=True)
class End:
    """A partition: who has it, under which name, and the span of its log."""

    client: ClusterClient
    log: Log
    start: int
    end: int


async def end_of(client: ClusterClient, topic: str, partition: int, known_id: str) -> End:
    """One partition as it is now; SetupError where the topic is missing, is another one, or has no such partition."""
    found = (await ends_of(client, {(topic, partition): known_id}))[topic, partition]
    if isinstance(found, str):
        raise SetupError(found)
    return found


async def ends_of(client: ClusterClient, wanted: Mapping[Partition, str]) -> dict[Partition, End | str]:
    """Partitions, with the topic id under which each is known, to their ends now, or to what is wrong."""
    views = await client.metadata(topic for topic, _ in wanted) if wanted else {}
    found: dict[Partition, End | str] = {}
    led: dict[int, list[Partition]] = {}
    for place, known_id in wanted.items():
        fault = _fault(client.cluster.alias, place, views[place[0]], known_id)
        if fault:
            found[place] = fault
        else:
            led.setdefault(views[place[0]].leaders[place[1]].node, []).append(place)
    for node, places in led.items():
        starts, ends = await asyncio.gather(
            client.offsets(node, places, EARLIEST), client.offsets(node, places, LATEST)
        )
        for place in places:
            if place not in starts or place not in ends:
                found[place] = (
                    f"{_where(client.cluster.alias, place[0])}: broker {node} does not lead partition {place[1]}"
                )
                continue
            log = Log(place[0], views[place[0]].topic_id, place[1], node)
            found[place] = End(client, log, starts[place], ends[place])
    return found


async def starts_of(client: ClusterClient, wanted: Iterable[Partition]) -> dict[Partition, int]:
    """Where partitions begin; those that cannot be asked about now are left out."""
    return await offsets_of(client, wanted, EARLIEST)


async def offsets_of(
    client: ClusterClient, wanted: Iterable[Partition], which: int, committed: bool = False
) -> dict[Partition, int]:
    """An offset of each partition, asked of its leader (`which` as in ClusterClient.offsets); those without one are left out."""
    places = set(wanted)
    views = await client.metadata(topic for topic, _ in places) if places else {}
    led: dict[int, list[Partition]] = {}
    for topic, partition in places:
        leader = views[topic].leaders.get(partition)
        if leader is not None and leader.node >= 0:
            led.setdefault(leader.node, []).append((topic, partition))
    found: dict[Partition, int] = {}
    for node, here in led.items():
        found |= await client.offsets(node, here, which, committed)
    return found


def _where(alias: str, topic: str) -> str:
    return f"cluster {alias}, {topic}"


def _fault(alias: str, place: Partition, view: TopicView, known_id: str) -> str:
    topic, partition = place
    where = _where(alias, topic)
    if view.error in _MISSING:
        return f"{where}: the topic does not exist"
    if view.error:
        return str(topic_refused(view.error, where, "DESCRIBE", topic, alias))
    if partition not in view.leaders:
        return f"{where}: it has partitions 0 to {len(view.leaders) - 1}, there is no partition {partition}"
    if is_another(known_id, view.topic_id):
        return f"{where}: the topic was deleted and created again since it was copied"
    if view.leaders[partition].node < 0:
        return f"{where}: partition {partition} has no leader"
    return ""
