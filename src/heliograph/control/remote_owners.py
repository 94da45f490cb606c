"""Which flow of a run writes which remote topic: the first one has it. A topic that comes later under the same name waits.

At the start of a run such a file is refused whole; while it runs, a new topic must not stop what is copied already.
"""

from __future__ import annotations

from dataclasses import replace

from heliograph.control.planner import FlowPlan
from heliograph.replication.topic_plan import AddPartitions, CreateTopic, Unnameable

Owner = tuple[str, str]
"""A flow and its source topic."""


class RemoteOwners:
    """Shared by the flows of a run. By cluster id: two aliases of one cluster are one target."""

    def __init__(self) -> None:
        self._owners: dict[tuple[str, str], Owner] = {}

    def release(self, flow: str) -> None:
        """A flow has ended: what it wrote is free."""
        self._owners = {place: owner for place, owner in self._owners.items() if owner[0] != flow}

    def settle(self, plan: FlowPlan) -> FlowPlan:
        """The plan without topics whose remote topic another flow writes; they are left out with that reason."""
        kept = self._owners = {
            place: owner
            for place, owner in self._owners.items()
            if owner[0] != plan.name or not plan.within([owner[1]])
        }
        refused = [
            _refused(topic, remote, kept[plan.target_cluster_id, remote])
            for topic, remote in plan.remote.items()
            if (plan.target_cluster_id, remote) in kept
        ]
        left = _without(plan, refused) if refused else plan
        mine = {(plan.target_cluster_id, remote): (plan.name, topic) for topic, remote in left.remote.items()}
        self._owners = kept | mine
        return left


def _refused(topic: str, remote: str, owner: Owner) -> Unnameable:
    flow, theirs = owner
    return Unnameable(topic, remote, f"'{remote}' is already the remote topic of '{theirs}' of flow {flow}")


def _without(plan: FlowPlan, refused: list[Unnameable]) -> FlowPlan:
    names = {action.topic for action in refused}
    remotes = {action.remote for action in refused}
    return replace(
        plan,
        topics={name: topic for name, topic in plan.topics.items() if name not in names},
        remote={name: remote for name, remote in plan.remote.items() if name not in names},
        actions=(
            *(
                action
                for action in plan.actions
                if not (isinstance(action, CreateTopic | AddPartitions) and action.name in remotes)
            ),
            *refused,
        ),
        lanes=tuple(lane for lane in plan.lanes if lane.id.topic not in names),
        starts={name: offset for name, offset in plan.starts.items() if name[0] not in names},
        ends={name: offset for name, offset in plan.ends.items() if name[0] not in names},
    )
