"""The job that sets the offsets of the source's groups on the target. Which, and why: replication/group_offsets.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from heliograph.config.flows import FlowSettings
from heliograph.control.clock import Clock
from heliograph.control.group_positions import GroupPositions
from heliograph.control.jobs import Found
from heliograph.kafka.client import Partition
from heliograph.kafka.consumer_groups import Commits, Committed, ConsumerGroups, list_groups
from heliograph.kafka.share_groups import ShareGroups
from heliograph.kafka.slot import Warm
from heliograph.replication.group_offsets import (
    NOTE_KIND,
    GroupState,
    Note,
    SetOffsets,
    Standing,
    decode_note,
    encode_note,
    group_of,
    note_subject,
    plan_group_offsets,
    summary,
    unread_group,
)
from heliograph.replication.ledger_keys import NoteKey
from heliograph.replication.permissions import missing_on_topic

_JOINED = {22, 25, 27, 68, 110, 113}
"""What a coordinator answers for a group that has members: it was not there when we looked, and is left alone."""


class GroupOffsetsJob:
    """`positions` is shared with the job of checkpoints. `states` is what the last look found."""

    def __init__(self, settings: FlowSettings, positions: GroupPositions, warm: Warm, clock: Clock) -> None:
        self._settings = settings
        self._positions = positions
        self._ledger = warm.ledger(settings.target)
        self._groups = ConsumerGroups(warm.client(settings.target_admin))
        self._shares = ShareGroups(warm.client(settings.target_admin))
        self._clock = clock
        self.states: Sequence[GroupState] = ()

    @property
    def name(self) -> str:
        return "group offsets"

    @property
    def interval_s(self) -> float:
        return float(self._settings.jobs.groups.sync_interval_s)

    async def look(self) -> Found[SetOffsets]:
        found = await self._positions.look()
        kinds = {place.group: place.is_share for place in found.placed}
        target, refused = await self._standing(kinds)
        enabled = self._settings.jobs.groups.sync
        states, actions = plan_group_offsets(found.placed, target, self._notes(), enabled)
        self.states = [*states, *(unread_group(group, reason) for group, reason in found.unread.items())]
        return Found(actions, [*found.troubles, *refused], summary(self.states))

    async def _standing(self, groups: Mapping[str, bool]) -> tuple[dict[str, Standing], Sequence[str]]:
        """How the groups (True: share groups) stand on the target; offsets are read of those that nobody reads with."""
        listed = {group.name: group for group in await list_groups(self._groups.client)}
        standing = {name: Standing() for name in groups}
        for name in standing.keys() & listed.keys():
            group = listed[name]
            standing[name] = Standing(group.state, group.protocol, group.kind)
        idle = [name for name, there in standing.items() if not there.is_live]
        commits = await self._groups.committed(name for name in idle if not groups[name])
        await self._add_shares(commits, [name for name in idle if groups[name]])
        for name, offsets in commits.offsets.items():
            at = {place: committed.offset for place, committed in offsets.items()}
            standing[name] = replace(standing[name], offsets=at)
        for name, sentence in (commits.refused | commits.unread).items():
            standing[name] = replace(standing[name], refusal=sentence)
        return standing, list(commits.refused.values())

    async def _add_shares(self, commits: Commits, groups: Sequence[str]) -> None:
        if not groups:
            return
        why_not = await self._shares.can_set()
        if why_not:
            commits.unread |= dict.fromkeys(groups, why_not)
            return
        starts = await self._shares.committed(groups)
        commits.offsets |= starts.offsets
        commits.refused |= starts.refused

    def _notes(self) -> Mapping[str, Note]:
        """From the ledger as the look at the positions has just read it."""
        values = self._ledger.book.notes(self._settings.flow.name, NOTE_KIND)
        return {group_of(subject): decode_note(value) for subject, value in values.items()}

    async def apply(self, actions: Sequence[SetOffsets]) -> Sequence[str]:
        """What will be written is noted before: a crash between leaves an offset that is still known as ours."""
        flow = self._settings.flow.name
        notes = [(NoteKey(flow, NOTE_KIND, note_subject(act.group)), encode_note(act.after)) for act in actions]
        await self._ledger.write(notes, self._clock.now_ms())
        troubles: list[str] = []
        for action in actions:
            wanted = {(move.remote, move.partition): Committed(move.to, move.metadata) for move in action.moves}
            door = self._shares if action.is_share else self._groups
            refused = await door.commit(action.group, wanted)
            troubles += {
                self._refusal(action.group, place, code) for place, code in refused.items() if code not in _JOINED
            }
        return sorted(troubles)

    def _refusal(self, group: str, place: Partition, code: int) -> str:
        missing = missing_on_topic(code, "READ", place[0], self._settings.flow.target)
        needed = f" (this needs {missing})" if missing else ""
        return f"{self._groups.refusal(group, code, 'READ')}{needed}"
