"""Topics as the two clusters show them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class ConfigValue:
    """One topic config. `source` is Kafka's own word: DYNAMIC_TOPIC_CONFIG, DEFAULT_CONFIG, …"""

    value: str | None
    source: str = "DYNAMIC_TOPIC_CONFIG"
    read_only: bool = False
    sensitive: bool = False

    @property
    def is_default(self) -> bool:
        return self.source not in {"DYNAMIC_TOPIC_CONFIG", "TOPIC_CONFIG"}


@dataclass(frozen=True)
class Topic:
    """A topic of one cluster: its name, id (uuid as text), partition count and configs."""

    name: str
    topic_id: str
    partitions: int
    configs: Mapping[str, ConfigValue] = field(default_factory=dict)

    def config(self, name: str, default: str = "") -> str:
        found = self.configs.get(name)
        return default if found is None or found.value is None else found.value
