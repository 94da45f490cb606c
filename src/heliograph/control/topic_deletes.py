"""The job that deletes remote topics of deleted source topics. When that is: replication/topic_deletes.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from heliograph.config.flows import FlowSettings
from heliograph.control.clock import Clock
from heliograph.control.jobs import Found
from heliograph.control.planner import FlowPlan
from heliograph.errors import BrokerRefused
from heliograph.kafka.own_topics import delete_topic
from heliograph.kafka.slot import Warm
from heliograph.model.events import Event, EventKind
from heliograph.replication.ledger_keys import NoteKey
from heliograph.replication.topic_deletes import (
    NOTE_KIND,
    Answer,
    DeleteAction,
    DeleteTopic,
    Facts,
    Grace,
    Seen,
    decode_seen,
    encode_seen,
    plan_deletes,
)

_MISSING = {3, 100}
_LONGEST_INTERVAL_SECONDS = 600.0
_LOOKS_IN_A_GRACE = 4


class TopicDeletesJob:
    """`plan` is asked at every look; `tell` gets the events."""

    def __init__(
        self,
        settings: FlowSettings,
        plan: Callable[[], FlowPlan | None],
        warm: Warm,
        clock: Clock,
        tell: Callable[[Event], None],
    ) -> None:
        self._settings = settings
        self._plan = plan
        self._ledger = warm.ledger(settings.target)
        self._source = warm.client(settings.source_admin)
        self._target = warm.client(settings.target_admin)
        self._clock = clock
        self._tell = tell

    @property
    def name(self) -> str:
        return "topic deletes"

    @property
    def interval_s(self) -> float:
        grace_s = self._settings.jobs.deletes_grace_s
        return min(_LONGEST_INTERVAL_SECONDS, max(1.0, grace_s / _LOOKS_IN_A_GRACE))

    async def look(self) -> Found[DeleteAction]:
        plan = self._plan()
        if plan is None:
            return Found(())
        notes = await self._notes()
        present = {lane.id.topic: (lane.remote_topic, lane.target_topic_id) for lane in plan.lanes}
        missed = sorted(notes.keys() - plan.topics.keys())
        # Asked also when nothing is missed: the answer names the cluster.
        views = await self._source.metadata(missed)
        answers = {name: _answer(views[name].error) for name in missed if name in views}
        gone = {notes[name].remote for name, answer in answers.items() if answer is Answer.GONE}
        remotes = await self._target.metadata(gone) if gone else {}
        remote_ids = {name: view.topic_id for name, view in remotes.items() if not view.error}
        # A topic that the plan has without lanes is neither present nor missed.
        asked = {name: note for name, note in notes.items() if name in present or name in missed}
        facts = Facts(self._clock.now_ms(), self._source.cluster_id, present, answers, remote_ids)
        grace = Grace(self._settings.jobs.deletes_grace_s * 1000, int(self.interval_s * 1000))
        return Found(plan_deletes(asked, facts, grace))

    async def _notes(self) -> Mapping[str, Seen]:
        try:
            book = await self._ledger.refresh()
        except BrokerRefused as error:
            if error.code not in _MISSING:
                raise
            return {}  # nothing was ever copied
        values = book.notes(self._settings.flow.name, NOTE_KIND)
        return {topic: seen for topic, value in values.items() if (seen := decode_seen(value)) is not None}

    async def apply(self, actions: Sequence[DeleteAction]) -> Sequence[str]:
        """A topic is deleted before its note goes: a crash between finds it gone, and takes the note out then."""
        troubles: list[str] = []
        records: list[tuple[NoteKey, bytes | None]] = []
        flow = self._settings.flow.name
        for action in actions:
            key = NoteKey(flow, NOTE_KIND, action.topic)
            if isinstance(action, DeleteTopic):
                try:
                    await delete_topic(self._target, action.remote)
                except BrokerRefused as error:
                    troubles.append(f"cluster {self._settings.flow.target}: {error}")
                    continue
                self._say(action.remote, EventKind.TOPIC_DELETED, f"it was deleted: {action.why}")
                records.append((key, None))
                continue
            if action.notice:
                advice = "make it again, or set sync.topic.deletes.enabled = false, to keep the copy"
                self._say(action.topic, EventKind.TOPIC_GONE, action.notice, advice)
            records.append((key, None if action.seen is None else encode_seen(action.seen)))
        if records:
            await self._ledger.write(records, self._clock.now_ms())
        return troubles

    def _say(self, topic: str, kind: EventKind, reason: str, what_to_do: str = "") -> None:
        self._tell(Event(self._clock.now_ms(), self._settings.flow.name, topic, kind, reason, what_to_do))


def _answer(error: int) -> Answer:
    if error in _MISSING:
        return Answer.GONE
    return Answer.UNKNOWN if error else Answer.EXISTS
