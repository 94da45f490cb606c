"""The health of consumer groups, for who asks as Burrow is asked. The rules: replication/group_health.py.

Groups are looked at only while somebody asks: a cluster from the first question about its groups on, and until none came for ten
minutes. A monitor that asks every minute has full windows as soon as it would have them of a Burrow that was just started, and a
run that nobody asks does nothing. A look is a few requests for a whole cluster, however many groups it has.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any

from heliograph.config.watching import HealthSettings
from heliograph.control.clock import Clock
from heliograph.errors import HeliographError, Refused
from heliograph.kafka.client import LATEST, ClusterClient
from heliograph.kafka.consumer_groups import ConsumerGroups, list_groups
from heliograph.kafka.grants import visible_topics
from heliograph.kafka.groups import Owner, owners
from heliograph.kafka.log_ends import offsets_of
from heliograph.kafka.slot import Warm
from heliograph.model.clusters import Cluster
from heliograph.replication.group_health import Commit, GroupHealth, GroupWindows, PartitionHealth

_log = logging.getLogger(__name__)
_ASKED_SECONDS = 600.0
_TICK_SECONDS = 0.5
_PROTOCOLS = {"", "consumer"}
_KINDS = {"", "classic", "consumer"}
_DESERTED = {"Empty", "Dead"}
_NOT_FOUND = 404
_NOBODY = Owner("", "")


class Watch:
    """The groups of one cluster."""

    def __init__(self, client: ClusterClient, settings: HealthSettings, clock: Clock) -> None:
        self.client = client
        self.asked_at = self.looked_at = clock.monotonic()
        self.windows = GroupWindows(settings.rules)
        self._groups = ConsumerGroups(client)
        self._clock = clock

    async def look(self) -> None:
        self.looked_at = self._clock.monotonic()
        listed = [
            group for group in await list_groups(self.client) if group.protocol in _PROTOCOLS and group.kind in _KINDS
        ]
        commits = await self._groups.committed(group.name for group in listed)
        offsets = {
            group: {place: committed.offset for place, committed in found.items()}
            for group, found in commits.offsets.items()
            if found
        }
        places = {place for found in offsets.values() for place in found}
        self.windows.see_ends(await offsets_of(self.client, places, LATEST))
        live = (group.name for group in listed if group.protocol and group.state not in _DESERTED)
        self.windows.see_groups(offsets, live, self._clock.now_ms())


class GroupHealthWatch:
    """`clusters` are those of the file, by alias; answers are dicts in Burrow's words."""

    def __init__(
        self, clusters: Callable[[], Mapping[str, Cluster]], settings: HealthSettings, warm: Warm, clock: Clock
    ) -> None:
        self._clusters = clusters
        self._settings = settings
        self._warm = warm
        self._clock = clock
        self._watches: dict[str, Watch] = {}
        self._first_looks: dict[str, asyncio.Lock] = {}
        """By cluster: one that does not answer holds up no other."""

    async def keep(self) -> None:
        """For ever: every cluster that somebody asks about, when its next look is due."""
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            now = self._clock.monotonic()
            known = self._clusters()
            self._watches = {
                alias: watch
                for alias, watch in self._watches.items()
                if alias in known and now - watch.asked_at < _ASKED_SECONDS
            }
            for alias, watch in list(self._watches.items()):
                if now - watch.looked_at >= self._settings.interval_s:
                    try:
                        await watch.look()
                    except (HeliographError, TimeoutError) as error:
                        _log.debug("cluster %s: its groups were not looked at: %s", alias, error)

    async def _windows(self, alias: str) -> GroupWindows:
        cluster = self._cluster(alias)
        async with self._first_looks.setdefault(alias, asyncio.Lock()):
            watch = self._watches.get(alias)
            if watch is None:
                watch = Watch(self._warm.client(cluster), self._settings, self._clock)
                await watch.look()
                self._watches[alias] = watch
        watch.asked_at = self._clock.monotonic()
        return watch.windows

    def _cluster(self, alias: str) -> Cluster:
        known = self._clusters()
        if alias not in known:
            raise Refused(_NOT_FOUND, f"there is no cluster {alias}")
        return known[alias]

    def _client(self, args: Mapping[str, Any]) -> ClusterClient:
        return self._warm.client(self._cluster(args["cluster"]))

    async def _health(self, args: Mapping[str, Any]) -> GroupHealth:
        found = (await self._windows(args["cluster"])).health(args["group"], self._clock.now_ms())
        if found is None:
            raise Refused(_NOT_FOUND, f"there is no group {args['group']}")
        return found

    # -- answers ----------------------------------------------------------------------------------------------------

    async def clusters(self, _: Mapping[str, Any]) -> dict[str, Any]:
        return {"clusters": sorted(self._clusters())}

    async def cluster(self, args: Mapping[str, Any]) -> dict[str, Any]:
        cluster = self._cluster(args["cluster"])
        return {"servers": list(cluster.bootstrap), "offset-refresh": self._settings.interval_s}

    async def topics(self, args: Mapping[str, Any]) -> dict[str, Any]:
        return {"topics": sorted(await visible_topics(self._client(args)))}

    async def topic(self, args: Mapping[str, Any]) -> dict[str, Any]:
        client, topic = self._client(args), args["topic"]
        leaders = (await client.metadata([topic]))[topic].leaders
        if not leaders:
            raise Refused(_NOT_FOUND, f"there is no topic {topic}")
        ends = await offsets_of(client, [(topic, number) for number in leaders], LATEST)
        return {"offsets": [ends[topic, number] for number in sorted(leaders) if (topic, number) in ends]}

    async def readers(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Groups that committed an offset of a topic."""
        windows, topic = await self._windows(args["cluster"]), args["topic"]
        found = [name for name, places in windows.groups.items() if any(place[0] == topic for place in places)]
        return {"consumers": sorted(found)}

    async def groups(self, args: Mapping[str, Any]) -> dict[str, Any]:
        return {"consumers": sorted((await self._windows(args["cluster"])).groups)}

    async def group(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Every window of a group, by topic and partition; what it never committed is empty."""
        health, windows = await self._health(args), await self._windows(args["cluster"])
        held = await self._owners(args)
        topics: dict[str, list[dict[str, Any]]] = {}
        for part in health.partitions:
            rows = topics.setdefault(part.topic, [])
            rows += [_window((), 0, 0, _NOBODY) for _ in range(part.partition - len(rows))]
            commits = windows.groups[args["group"]][part.topic, part.partition].commits
            owner = held.get((part.topic, part.partition), _NOBODY)
            rows.append(_window(tuple(commits), self._settings.rules.intervals, part.current_lag, owner))
        return {"topics": topics}

    async def status(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """A group's health; all partitions, or only those that are not OK."""
        health, held = await self._health(args), await self._owners(args)
        return {
            "status": str(health.status),
            "complete": health.complete,
            "partitions": [
                _partition(part, held) for part in (health.partitions if args["all"] else health.bad_partitions)
            ],
            "partition_count": len(health.partitions),
            "maxlag": None if health.max_lag is None else _partition(health.max_lag, held),
            "totallag": health.total_lag,
        }

    async def _owners(self, args: Mapping[str, Any]) -> Mapping[tuple[str, int], Owner]:
        try:
            return await owners(self._client(args), args["group"])
        except (HeliographError, TimeoutError):
            return {}  # the windows are worth more than who reads


def _partition(part: PartitionHealth, held: Mapping[tuple[str, int], Owner]) -> dict[str, Any]:
    owner = held.get((part.topic, part.partition), _NOBODY)
    return {
        "topic": part.topic,
        "partition": part.partition,
        "owner": owner.host,
        "client_id": owner.client_id,
        "status": str(part.status),
        "start": _commit(part.start),
        "end": _commit(part.end),
        "current_lag": part.current_lag,
        "complete": part.complete,
    }


def _window(commits: tuple[Commit, ...], intervals: int, lag: int, owner: Owner) -> dict[str, Any]:
    missing = max(0, intervals - len(commits))
    return {
        "offsets": [*([None] * missing), *(_commit(commit) for commit in commits)],
        "owner": owner.host,
        "client_id": owner.client_id,
        "current-lag": lag,
    }


def _commit(commit: Commit | None) -> dict[str, Any] | None:
    return None if commit is None else {"offset": commit.offset, "timestamp": commit.time_ms, "lag": commit.lag}
