"""Where lanes begin: taken over from MirrorMaker 2, by `start.from`, or anew by --reset.

Gathers MirrorMaker 2's stored progress, both logs' ends, times, groups and files; the decisions are in replication/starts,
replication/tail and replication/mm2_live. Writes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from heliograph.config.flows import FlowSettings
from heliograph.errors import ConfigError, HeliographError
from heliograph.kafka.attach import Attacher, NotCountable
from heliograph.kafka.client import ClusterClient
from heliograph.kafka.groups import committed_offsets, connect_groups
from heliograph.kafka.life import now_ms
from heliograph.kafka.log_ends import offsets_of
from heliograph.kafka.mm2_store import connector_configs, read_stored
from heliograph.kafka.slot import Warm
from heliograph.kafka.tails import TailReader
from heliograph.model.lanes import Lane, LedgerEntry
from heliograph.replication.mm2_live import (
    ConnectGroup,
    Sought,
    connectors_to_look_up,
    is_sharing_out,
    lookalikes,
    refusal,
    strangers,
)
from heliograph.replication.mm2_progress import (
    SOURCE_CONNECTOR,
    Progress,
    connector_names,
    default_configs_topic,
    default_group,
    default_topic,
    is_switched_off,
    latest_progress,
    mirrors_of,
)
from heliograph.replication.openings import Continue, New, Opening, Refused, Start
from heliograph.replication.starts import (
    From,
    Look,
    NoPlace,
    Partition,
    Place,
    Span,
    StartFrom,
    needs_look,
    parse_offsets,
    place,
    taken_over,
)

RESET = "reset"
_AT_ONCE = 16
_NOT_ALLOWED = 29
_SETTLE_SECONDS = 5.0
_LOOK_SECONDS = 0.2
_HIDDEN = (
    "{remote}-{partition} has or had records, and where MirrorMaker 2 stopped is not to be seen in them: it may be stored in "
    "topic {topic} of the target, which needs READ on that topic"
)
_HIDDEN_CURE = "grant READ on topic {topic} to Heliograph's principal, or begin anew with --reset and start.from"
_NOT_HELD = "MirrorMaker 2 may have carried this lane since: waiting until no other run holds the flow"


@dataclass(frozen=True)
class Wish:
    """What a run wants of its beginnings. `settled` are lanes that it has opened before: nobody else carries them.

    `begins` are lanes that somebody sets to another place on the source.
    """

    reset: bool = False
    settled: frozenset[str] = frozenset()
    begins: Mapping[str, int | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Ends:
    """The spans of all lanes' partitions at this moment, by name."""

    starts: Mapping[Partition, int]
    ends: Mapping[Partition, int]
    target: Mapping[Partition, int]

    def source(self, lane: Lane) -> Span:
        name = (lane.id.topic, lane.id.partition)
        return Span(self.starts.get(name, 0), self.ends.get(name, 0))

    def target_end(self, lane: Lane) -> int:
        return self.target.get((lane.remote_topic, lane.id.partition), 0)


class Starting:
    """The beginnings of one flow's lanes."""

    def __init__(
        self, settings: FlowSettings, progress: Progress, expiration_ms: int, warm: Warm, home_ledger: str
    ) -> None:
        self._settings = settings
        self._progress = progress
        self._source = warm.client(settings.source)
        target = warm.client(settings.target)
        home = warm.home(settings.source, settings.home, home_ledger) if settings.home else None
        self._tails = TailReader(self._source, target, home)
        self._attacher = Attacher(self._source, target, expiration_ms, home_ledger)
        self._room = asyncio.Semaphore(_AT_ONCE)

    def stored(self, lane: Lane) -> int | None:
        return self._progress.offset((lane.id.topic, lane.id.partition))

    async def revise(
        self, rows: Sequence[tuple[Lane, LedgerEntry | None, Opening]], ends: Ends, wish: Wish, held: bool
    ) -> list[tuple[Lane, Opening]]:
        """The openings as the ledger alone gives them, seen with what MirrorMaker 2 did and what the command line says."""

        async def one(lane: Lane, latest: LedgerEntry | None, opening: Opening) -> tuple[Lane, Opening]:
            if lane.id.key in wish.begins:
                return lane, _set_to(wish.begins[lane.id.key], latest)
            if lane.id.key in wish.settled:
                return lane, opening
            if wish.reset and not held:
                return lane, Refused("--reset waits until no other run holds the flow")
            if wish.reset:
                generation = latest.generation + 1 if latest is not None else 0
                return lane, New(generation, RESET, Start.BY_OPTION, latest)
            try:
                async with self._room:
                    return lane, await self._revised(lane, latest, opening, ends, held)
            except (HeliographError, TimeoutError) as error:
                return lane, Refused(f"where this lane goes on is not known yet: {error}")

        return list(await asyncio.gather(*(one(*row) for row in rows)))

    async def _revised(
        self, lane: Lane, latest: LedgerEntry | None, opening: Opening, ends: Ends, held: bool
    ) -> Opening:
        if self._settings.flow.trial or (latest is not None and latest.filling):
            return opening
        if latest is None and isinstance(opening, New):
            return await self._first(lane, opening, ends)
        at_position = isinstance(opening, New) and opening.start is Start.POSITION
        if latest is not None and (at_position or isinstance(opening, Continue)):
            return await self._again(lane, latest, opening, ends.target_end(lane), held)
        return opening

    async def _first(self, lane: Lane, opening: New, ends: Ends) -> Opening:
        """A lane without an entry: MirrorMaker 2 may have carried it up to now."""
        stored = self.stored(lane)
        # With a flow in the other direction that keeps names, what lies on the target is applications' records, or what that
        # flow took from there: its tail is like the source's, and says nothing of what this lane has copied.
        if stored is None and (ends.target_end(lane) == 0 or self._settings.home):
            return opening
        found = await self._place(lane, stored)
        if isinstance(found, NoPlace):
            return Refused(found.reason)
        topic = self._progress.hidden_in
        if found is None and topic:
            reason = _HIDDEN.format(remote=lane.remote_topic, partition=lane.id.partition, topic=topic)
            return Refused(reason, what_to_do=_HIDDEN_CURE.format(topic=topic))
        return opening if found is None else replace(opening, reason="taken over", start=Start.TAKE_OVER, at=found)

    async def _again(self, lane: Lane, entry: LedgerEntry, opening: Opening, target_end: int, held: bool) -> Opening:
        """A lane with an entry: MirrorMaker 2 may have carried it between our runs, handed back or not."""
        stored = self.stored(lane)
        look = needs_look(entry, stored, target_end)
        if look is Look.NONE or (look is Look.FOREIGN and self._settings.home):
            return opening
        position, alone = await self._reached(lane, entry)
        if look is Look.FOREIGN and alone:
            return opening
        if not held:
            return Refused(_NOT_HELD)
        found = await self._place(lane, max(position - 1, -1 if stored is None else stored))
        if isinstance(found, NoPlace):
            return Refused(found.reason)
        if found is None or found.offset == position:
            return opening
        return New(entry.generation + 1, "taken over again", Start.TAKE_OVER, entry, found)

    async def _reached(self, lane: Lane, entry: LedgerEntry) -> tuple[int, bool]:
        """Our own exact position, and whether nobody else wrote after it."""
        committed = entry.rule.isolation == "read_committed"
        try:
            start = await self._attacher.attach(lane, entry, committed, now_ms())
        except NotCountable:
            return entry.source_next, False
        return start.source_next, start.target_next is not None

    async def _place(self, lane: Lane, copied: int | None) -> Place | NoPlace | None:
        compared = await self._tails.compare(lane, copied)
        span = Span(compared.source_start, compared.source_end)
        return taken_over(compared.found, copied, span, f"{lane.remote_topic}-{lane.id.partition}")

    # -- start.from -------------------------------------------------------------------------------------------------

    async def by_option(self, lanes: Sequence[Lane], ends: Ends) -> dict[Lane, Place | NoPlace]:
        """Where these lanes begin by `start.from`, each resolved at this moment (P1.4a)."""
        otherwise = StartFrom(From(self._settings.start))
        by_wish: dict[StartFrom, list[Lane]] = {}
        for lane in lanes:
            by_wish.setdefault(self._settings.start_of(lane.id.topic), []).append(lane)
        found: dict[Lane, Place | NoPlace] = {}
        for wish, group in by_wish.items():
            given = await self._given(wish, [(lane.id.topic, lane.id.partition) for lane in group])
            for lane in group:
                known = given.get((lane.id.topic, lane.id.partition))
                found[lane] = place(wish, ends.source(lane), known, otherwise)
        return found

    async def _given(self, wish: StartFrom, names: Sequence[Partition]) -> Mapping[Partition, int]:
        match wish.kind:
            case From.TIMESTAMP:
                return await _offsets_at(self._source, names, wish.timestamp_ms)
            case From.GROUP:
                return await committed_offsets(self._source, wish.argument, names)
            case From.OFFSETS:
                return await asyncio.to_thread(read_offsets, wish.argument)
        return {}


def _set_to(offset: int | None, latest: LedgerEntry | None) -> New:
    """The next generation, where somebody wants it; None: where a lane begins that was never copied."""
    generation = latest.generation + 1 if latest is not None else 0
    if offset is None:
        return New(generation, RESET, Start.BY_OPTION, latest)
    return New(generation, RESET, Start.BY_REQUEST, latest, Place(offset, "its offset was set"))


async def _offsets_at(client: ClusterClient, names: Sequence[Partition], time_ms: int) -> dict[Partition, int]:
    """The first offset of each partition whose record is of this moment or later."""
    found = await offsets_of(client, names, time_ms)
    return {name: offset for name, offset in found.items() if offset >= 0}


def read_offsets(path: str) -> Mapping[Partition, int]:
    """The file of `offsets:FILE`; ConfigError with all its faults."""
    try:
        text = Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ConfigError([f"start.from = offsets:{path}: the file cannot be read: {reason}"]) from error
    return parse_offsets(text, path)


def check_files(settings: FlowSettings) -> None:
    """ConfigError for a file of `offsets:FILE` that cannot be used: said at the start, not lane by lane."""
    starts = [start for _, start in settings.topic_starts]
    for start in (settings.start_from, *starts):
        if start is not None and start.kind is From.OFFSETS:
            read_offsets(start.argument)


async def stored_progress(settings: FlowSettings, topics: Collection[str], client: ClusterClient) -> Progress:
    """What MirrorMaker 2 has stored of the flow in these topics of the target, which `client` asks."""
    entries = await read_stored(client, sorted(topics), settings.flow.source)
    progress = latest_progress(entries, settings.mm2.connector)
    if topics:
        return progress
    name = settings.mm2.topic or default_topic(settings.flow.source)
    hidden = (await client.metadata([name]))[name].error == _NOT_ALLOWED
    return replace(progress, hidden_in=name if hidden else "")


@dataclass(frozen=True)
class LiveMirrors:
    """What the target's Connect groups say of a flow: why it must not start, and who may be its mirror as well."""

    refusal: str
    lookalikes: tuple[str, ...]


async def live_mirrormaker(
    settings: FlowSettings, progress: Progress, config_topics: Sequence[str], client: ClusterClient
) -> LiveMirrors:
    """Whether a MirrorMaker 2 carries the flow now; `client` asks the target, whose Connect clusters keep
    configurations in `config_topics`.

    A connector of any name is known by its stored progress, and in a Connect cluster by its configuration, which is read
    only if something runs there: a MirrorMaker 2 of another flow is no obstacle.
    """
    flow, mm2 = settings.flow, settings.mm2
    names = connector_names(flow.source, flow.target, mm2.connector, progress.connectors)
    own_configs = default_configs_topic(flow.source)
    sought = Sought(flow.name, mm2.group or default_group(flow.source), names)
    groups = await _settled_groups(client)
    doubtful = connectors_to_look_up(sought, groups)
    sharing_out = any(map(is_sharing_out, groups))
    configs: Mapping[str, Sequence[Mapping[str, str]]] = {}
    if sharing_out or (doubtful and not mm2.connector):
        configs = await connector_configs(client, [topic for topic in config_topics if topic != own_configs])
    if sharing_out:
        sought = replace(sought, configured=mirrors_of(configs, flow.source))
    if doubtful and not mm2.connector:
        others = strangers(doubtful, groups, configs, flow.source)
        sought = replace(sought, connectors=names | mirrors_of(configs, flow.source), strangers=others)
    reason = refusal(sought, groups)
    if reason:
        own = await connector_configs(client, [own_configs])
        if is_switched_off(own.get(mm2.connector or SOURCE_CONNECTOR, [])):
            reason = refusal(replace(sought, may_be_disabled=True), groups)
    return LiveMirrors(reason, lookalikes(sought, groups))


async def _settled_groups(client: ClusterClient) -> list[ConnectGroup]:
    """Connect's groups once none is sharing out its tasks, for then it does not show them; after a while as they are."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _SETTLE_SECONDS
    groups = await connect_groups(client)
    while any(map(is_sharing_out, groups)) and loop.time() < deadline:
        await asyncio.sleep(_LOOK_SECONDS)
        groups = await connect_groups(client)
    return groups
