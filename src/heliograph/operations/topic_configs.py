"""The configs of one topic on both sides of a flow, beside each other. Reads only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heliograph.config.flows import FlowSettings
from heliograph.kafka.admin import ClusterAdmin
from heliograph.model.clusters import Cluster
from heliograph.model.topics import ConfigValue


def topic_configs(flow: FlowSettings, topic: str) -> list[dict[str, Any]]:
    """Every config, secrets left out; those that a side sets itself are `set`. A topic that is not there has none."""
    source = _read(flow.source_admin, topic)
    target = _read(flow.target_admin, flow.remote_name(topic))
    return [_side_by_side(name, source.get(name), target.get(name), flow) for name in sorted({*source, *target})]


def _side_by_side(name: str, here: ConfigValue | None, there: ConfigValue | None, flow: FlowSettings) -> dict[str, Any]:
    one, other = (None if side is None else side.value for side in (here, there))
    return {
        "name": name,
        "source": one,
        "target": other,
        "differs": one != other,
        "set": any(side is not None and not side.is_default for side in (here, there)),
        "copied": not flow.leaves_out_config(name),
    }


def _read(cluster: Cluster, topic: str) -> Mapping[str, ConfigValue]:
    admin = ClusterAdmin(cluster)
    try:
        found = admin.topic_configs([topic]).get(topic, {})
    finally:
        admin.close()
    return {name: value for name, value in found.items() if not value.sensitive}
