"""Two flows between the same clusters that keep names: what each of them must know of the other.

Records of one are not copied back by the other (`home`), and what belongs to a topic as a whole goes one way only: from the
cluster that stands first in the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from heliograph.config.flows import FlowSettings
from heliograph.config.properties import Property
from heliograph.model.clusters import Flow

_CONFIGS = "sync.topic.configs.enabled"
_DELETES = "sync.topic.deletes.enabled"


def paired(flows: Sequence[FlowSettings]) -> tuple[FlowSettings, ...]:
    """The flows, each with the one in the other direction whose records come home over it."""
    by_flow = {settings.flow: settings for settings in flows}
    found = []
    for settings in flows:
        back = by_flow.get(_back(settings.flow))
        if back is not None and keeps_names(back):
            settings = replace(settings, home=back.flow.name)
            if keeps_names(settings) and _is_second(settings, flows) and back.jobs.sync_configs:
                settings = replace(settings, jobs=replace(settings.jobs, sync_configs=False))
        found.append(settings)
    return tuple(found)


def unheeded(entries: Mapping[str, Property], flows: Sequence[FlowSettings]) -> Iterator[tuple[int, str]]:
    """Lines that say something of such a pair which cannot be."""
    for settings in flows:
        if not settings.home or not keeps_names(settings):
            continue
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
