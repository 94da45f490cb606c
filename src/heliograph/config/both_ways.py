"""Two flows between the same clusters that keep names: what each of them must know of the other.

Records of one are not copied back by the other (`home`), and what belongs to a topic as a whole goes one way only: from the
cluster that stands first in the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from heliograph.config.flows import FlowSettings, JobSettings
from heliograph.config.properties import Property
from heliograph.model.clusters import Flow

_CONFIGS = "sync.topic.configs.enabled"
_DELETES = "sync.topic.deletes.enabled"
_OF_GROUPS = ("sync.group.offsets.enabled", "emit.checkpoints.enabled")
NO_GROUPS = (
    "both clusters write these topics, each has the records in another order, and what a group has read of one side tells nothing "
    "of the other"
)


def paired(flows: Sequence[FlowSettings]) -> tuple[FlowSettings, ...]:
    """The flows, each with the one in the other direction whose records come home over it."""
    by_flow = {settings.flow: settings for settings in flows}
    found = []
    for settings in flows:
        back = by_flow.get(_back(settings.flow))
        if back is not None and keeps_names(back):
            settings = replace(settings, home=back.flow.name)
            if shares_topics(settings):
                settings = replace(settings, jobs=_jobs(settings, back, _is_second(settings, flows)))
        found.append(settings)
    return tuple(found)


def _jobs(settings: FlowSettings, back: FlowSettings, is_second: bool) -> JobSettings:
    mine, other = settings.jobs, back.jobs
    both_full = (mine.sync_acls_scope, other.sync_acls_scope) == ("full", "full")
    return replace(
        mine,
        sync_configs=mine.sync_configs and not (is_second and other.sync_configs),
        # Each would find again at the other what was removed here.
        sync_acls=mine.sync_acls and not (is_second and other.sync_acls and both_full),
        groups=replace(mine.groups, checkpoints=False, sync=False),
    )


def unheeded(entries: Mapping[str, Property], flows: Sequence[FlowSettings]) -> Iterator[tuple[int, str]]:
    """Lines that say something of such a pair which cannot be."""
    for settings in flows:
        if not shares_topics(settings):
            continue
        for option in _OF_GROUPS:
            asked = entries.get(f"{settings.flow.name}.{option}") or entries.get(option)
            if asked is not None and asked.value.lower() == "true":
                yield asked.line, f"{asked.name} has no effect on {settings.flow.name}: {NO_GROUPS}"
        asked = entries.get(f"{settings.flow.name}.{_CONFIGS}")
        if asked is not None and asked.value.lower() == "true" and not settings.jobs.sync_configs:
            back = settings.home
            yield asked.line, f"{asked.name} has no effect: {back} keeps names too, and the configs of both go its way"
        asked = entries.get(f"{settings.flow.name}.{_DELETES}") or entries.get(_DELETES)
        if asked is not None and settings.jobs.sync_deletes:
            yield (
                asked.line,
                f"{asked.name} has no effect on {settings.flow.name}: {settings.home} makes the topic again",
            )


def shares_topics(settings: FlowSettings) -> bool:
    """Whether the flow and the one in the other direction write topics of the same names."""
    return bool(settings.home) and keeps_names(settings)


def keeps_names(settings: FlowSettings) -> bool:
    """Whether the flow may write a topic under the name that it has on the source."""
    renames = dict(settings.routes).get(settings.flow)
    if renames is None:
        return settings.policy == "identity"
    kept = any(source == remote for source, remote in renames.pairs)
    return kept or renames.rewrite is not None or (settings.policy == "identity" and not renames.form)


def _back(flow: Flow) -> Flow:
    return Flow(flow.target, flow.source)


def _is_second(settings: FlowSettings, flows: Sequence[FlowSettings]) -> bool:
    order = [other.flow for other in flows]
    return order.index(settings.flow) > order.index(_back(settings.flow))
