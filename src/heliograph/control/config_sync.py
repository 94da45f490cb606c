"""The job that keeps topic configs in step. What is changed and why: replication/config_sync.py."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence

from heliograph.config.flows import FlowSettings
from heliograph.control.clock import Clock
from heliograph.control.jobs import Found
from heliograph.control.planner import FlowPlan
from heliograph.errors import BrokerRefused
from heliograph.kafka.admin import ClusterAdmin
from heliograph.kafka.config_changes import ConfigChange
from heliograph.kafka.ledger import Ledger
from heliograph.model.clusters import Cluster
from heliograph.model.topics import Topic
from heliograph.replication.config_sync import NOTE_KIND, ChangeConfigs, decode_note, encode_note, plan_configs
from heliograph.replication.ledger_keys import NoteKey
from heliograph.replication.topic_plan import TopicRules

_MISSING = {3, 100}


class ConfigSyncJob:
    """`plan` is asked at every look: topics come and go. `on_change` is called when configs were changed: lanes heed some."""

    def __init__(
        self,
        settings: FlowSettings,
        plan: Callable[[], FlowPlan | None],
        ledger: Ledger,
        clock: Clock,
        on_change: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._plan = plan
        self._ledger = ledger
        self._clock = clock
        self._on_change = on_change
        self._rules = TopicRules(settings.replication_factor, settings.leaves_out_config, settings.use_defaults_from)

    @property
    def name(self) -> str:
        return "topic configs"

    @property
    def interval_s(self) -> float:
        return float(self._settings.jobs.sync_configs_interval_s)

    async def look(self) -> Found[ChangeConfigs]:
        plan = self._plan()
        if plan is None or not plan.topics:
            return Found(())
        refused: dict[str, str] = {}
        here = await asyncio.to_thread(_read, self._settings.source_admin, plan.topics, refused)
        wanted = [plan.remote[name] for name in here]
        there = await asyncio.to_thread(_read, self._settings.target_admin, wanted, refused)
        changes = plan_configs(here, there, plan.remote.__getitem__, self._rules, await self._notes())
        return Found(changes, sorted(refused.values()))

    async def _notes(self) -> Mapping[str, Mapping[str, str]]:
        try:
            book = await self._ledger.refresh()
        except BrokerRefused as error:
            if error.code not in _MISSING:
                raise
            return {}  # nothing was ever copied
        return {topic: decode_note(value) for topic, value in book.notes(self._settings.flow.name, NOTE_KIND).items()}

    async def apply(self, actions: Sequence[ChangeConfigs]) -> Sequence[str]:
        """What will be set is remembered before, what was removed is forgotten after: a crash between loses neither."""
        both = [(change, {**change.before, **change.after}) for change in actions]
        await self._remember((change, note) for change, note in both if note != change.before)
        wanted = {change.remote: ConfigChange(change.sets, change.removes) for change in actions if not change.routine}
        refused = await asyncio.to_thread(_alter, self._settings.target_admin, wanted) if wanted else {}
        done = [change for change in actions if change.remote not in refused]
        await self._remember((change, change.after) for change in done if change.before.keys() - change.after.keys())
        if len(wanted) > len(refused):
            self._on_change()
        return sorted(refused.values())

    async def _remember(self, notes: Iterable[tuple[ChangeConfigs, Mapping[str, str]]]) -> None:
        flow = self._settings.flow.name
        records = [(NoteKey(flow, NOTE_KIND, change.source), encode_note(note)) for change, note in notes]
        if records:
            await self._ledger.write(records, self._clock.now_ms())


def _read(cluster: Cluster, topics: Iterable[str], refused: dict[str, str]) -> dict[str, Topic]:
    with ClusterAdmin(cluster) as admin:
        found = admin.topic_configs(topics, refused)
    return {name: Topic(name, "", 0, configs) for name, configs in found.items()}


def _alter(cluster: Cluster, changes: Mapping[str, ConfigChange]) -> dict[str, str]:
    with ClusterAdmin(cluster) as admin:
        return admin.alter_configs(changes)
