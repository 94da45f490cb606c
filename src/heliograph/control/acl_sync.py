"""The job that keeps ACLs in step. What is written and why: replication/acl_sync.py."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence

from heliograph.config.flows import FlowSettings
from heliograph.control.clock import Clock
from heliograph.control.jobs import Found
from heliograph.control.planner import FlowPlan, FlowPlanner
from heliograph.errors import BrokerRefused
from heliograph.kafka.acls import AclRefusal, create_acls, delete_acls, list_acls
from heliograph.kafka.grants import TOPIC_REFUSED
from heliograph.kafka.ledger import Ledger
from heliograph.kafka.slot import Warm
from heliograph.model.acls import Access, Acl, Resource
from heliograph.model.clusters import Flow
from heliograph.replication.acl_sync import (
    NOTE_KIND,
    AclRules,
    ChangeAcls,
    Note,
    Sides,
    decode_note,
    encode_note,
    note_subject,
    noted_resource,
    plan_acls,
)
from heliograph.replication.ledger_keys import NoteKey

_log = logging.getLogger(__name__)
_MISSING = {3, 100}
_CHANGES_AT_ONCE = 200


class AclSyncJob:
    """`plan` is asked at every look: topics come and go; `names` says how they are chosen and called."""

    def __init__(
        self,
        settings: FlowSettings,
        plan: Callable[[], FlowPlan | None],
        names: FlowPlanner,
        warm: Warm,
        clock: Clock,
    ) -> None:
        self._settings = settings
        self._plan = plan
        self._ledger = warm.ledger(settings.target)
        self._ledger_there = warm.ledger(settings.source)
        self._source = warm.client(settings.source_admin)
        self._target = warm.client(settings.target_admin)
        self._clock = clock
        self._rules = acl_rules(settings, names)
        self._without: set[str] = set()

    @property
    def name(self) -> str:
        return "ACLs"

    @property
    def interval_s(self) -> float:
        return float(self._settings.jobs.sync_acls_interval_s)

    async def look(self) -> Found[ChangeAcls]:
        plan = self._plan()
        if plan is None:
            return Found(())
        here = await list_acls(self._source, self._rules.kinds)
        there = await list_acls(self._target, self._rules.kinds)
        if here is None or there is None:
            flow = self._settings.flow
            self._tell_once(flow.source if here is None else flow.target)
            return Found(())
        sides = Sides(here, there, plan.topics.keys(), await self._came_home() if self._rules.full else ())
        notes = await self._notes(self._ledger, self._settings.flow.name, plan.source_cluster_id)
        return Found(plan_acls(sides, self._rules, notes))

    def _tell_once(self, alias: str) -> None:
        if alias not in self._without:
            self._without.add(alias)
            _log.info("%s: cluster %s has no authorizer: no ACLs are copied", self._settings.flow.name, alias)

    async def _came_home(self) -> set[Acl]:
        """What the flow back set on our source. Copied again, an ACL that goes on one side would come back from the other."""
        flow = self._settings.flow
        try:
            notes = await self._notes(self._ledger_there, Flow(flow.target, flow.source).name, None)
        except BrokerRefused as error:
            if error.code != TOPIC_REFUSED:
                raise
            return set()  # a ledger that may not be seen cannot be told from none
        return {Acl(resource, access) for resource, note in notes.items() for access in note}

    async def _notes(self, ledger: Ledger, flow: str, source_cluster_id: str | None) -> Mapping[Resource, Note]:
        try:
            book = await ledger.refresh()
        except BrokerRefused as error:
            if error.code not in _MISSING:
                raise
            return {}  # nothing was ever copied there
        return {
            resource: note
            for subject, value in book.notes(flow, NOTE_KIND).items()
            if (resource := noted_resource(subject)) and (note := decode_note(value, source_cluster_id))
        }

    async def apply(self, actions: Sequence[ChangeAcls]) -> Sequence[str]:
        """What will be added is remembered before, what was removed is forgotten after: a crash between loses neither."""
        troubles: list[str] = []
        for first in range(0, len(actions), _CHANGES_AT_ONCE):
            refused = await self._apply(actions[first : first + _CHANGES_AT_ONCE])
            troubles += dict.fromkeys(refusal.reason for refusal in refused.values())
            if any(refusal.everywhere for refusal in refused.values()):
                break  # the others would be refused too
        return troubles

    async def _apply(self, changes: Sequence[ChangeAcls]) -> dict[Acl, AclRefusal]:
        noted = {change.resource: {**change.before, **change.adds} for change in changes}
        await self._remember((change, note) for change in changes if (note := noted[change.resource]) != change.before)
        refused = await create_acls(self._target, [acl for change in changes for acl in _acls(change, change.adds)])
        gone = [acl for change in changes for acl in _acls(change, change.removes)]
        refused |= await delete_acls(self._target, gone)
        done = [
            (change, _after(change, {acl.access for acl in refused if acl.resource == change.resource}))
            for change in changes
        ]
        await self._remember((change, note) for change, note in done if note != noted[change.resource])
        return refused

    async def _remember(self, notes: Iterable[tuple[ChangeAcls, Note]]) -> None:
        plan = self._plan()
        source = plan.source_cluster_id if plan is not None else ""
        flow = self._settings.flow.name
        records = [
            (NoteKey(flow, NOTE_KIND, note_subject(change.resource)), encode_note(note, source))
            for change, note in notes
        ]
        if records:
            await self._ledger.write(records, self._clock.now_ms())


def acl_rules(settings: FlowSettings, names: FlowPlanner) -> AclRules:
    """The rules of a flow."""
    full = settings.jobs.sync_acls_scope == "full"
    return AclRules(full, names.is_chosen, settings.group_names.accepts, names.remote_name, names.remote_prefix)


def _acls(change: ChangeAcls, accesses: Iterable[Access]) -> list[Acl]:
    return [Acl(change.resource, access) for access in accesses]


def _after(change: ChangeAcls, refused: set[Access]) -> Note:
    """What is ours once the changes were made, but for those that were refused."""
    made = {
        access: origin for access, origin in change.after.items() if access not in refused or access in change.before
    }
    left = {access: origin for access, origin in change.before.items() if access in refused}
    return {**made, **left}
