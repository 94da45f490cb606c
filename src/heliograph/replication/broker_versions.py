"""Which messages Heliograph needs of a broker, and the sentence for one that does not offer them.

Brokers are judged by what they say that they speak, not by a release number: they tell the one and not the other. Knows the
versions that `wire` and `kafka` speak; must not know how a broker is asked (`kafka.versions` does that).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from heliograph.model.topics import Topic

TESTED = "3.3 to 4.3"
"""The Kafka releases that README names and tests/integration/test_broker_versions.py runs."""

Offered = Mapping[int, tuple[int, int]]
"""By message key, the oldest and the newest version that a broker speaks."""

_NO_ID = "00000000-0000-0000-0000-000000000000"


@dataclass(frozen=True)
class Need:
    """A message in the versions that are spoken here; `since` is the first release of Kafka with the oldest of them."""

    key: int
    name: str
    oldest: int
    newest: int
    since: str
    purpose: str


_BOTH = (
    Need(1, "Fetch", 13, 13, "3.1", "topics are read by id, or one that was made again would be taken for the old one"),
    Need(2, "ListOffsets", 1, 7, "0.10.1", "where a partition begins and ends"),
    Need(3, "Metadata", 10, 12, "2.8", "the ids of topics"),
)
_TARGET = (
    Need(0, "Produce", 9, 13, "2.8", "batches are written with it"),
    Need(10, "FindCoordinator", 1, 3, "0.11", "identities come from the coordinator"),
    Need(22, "InitProducerId", 0, 4, "0.11", "identities come from the coordinator"),
    Need(61, "DescribeProducers", 0, 0, "2.8", "the target's memory of a lane is where it goes on"),
)


def named_broker(cluster: str, node: int, address: str) -> str:
    """A broker at the beginning of a sentence."""
    return f"cluster '{cluster}': broker {node} at {address}"


def needs_of(*, is_target: bool) -> tuple[Need, ...]:
    """What is asked of a source, or of a target."""
    return (*_BOTH, *_TARGET) if is_target else _BOTH


def unsupported(broker: str, offered: Offered, *, is_target: bool) -> str | None:
    """The sentence that refuses this broker as a source or as a target; None if it will do."""
    faults = list(_faults(needs_of(is_target=is_target), offered))
    if not faults:
        return None
    return f"{broker} is not supported: {'; '.join(faults)} (tested: Kafka {TESTED})"


def _faults(needs: Iterable[Need], offered: Offered) -> Iterator[str]:
    for need in needs:
        low, high = offered.get(need.key, (0, -1))
        if high < need.oldest:
            yield (
                f"it does not offer {need.name} {need.oldest}, which Kafka has since {need.since} ({need.purpose}): "
                "upgrade the brokers"
            )
        elif low > need.newest:
            yield (
                f"it offers {need.name} only from version {low}, this Heliograph speaks it up to {need.newest}: "
                "upgrade Heliograph"
            )


def without_ids(cluster: str, topics: Mapping[str, Topic]) -> str | None:
    """The sentence for topics that have no id, as in a cluster that was upgraded by half; None if all have one."""
    bare = sorted(topic.name for topic in topics.values() if topic.topic_id == _NO_ID)
    if not bare:
        return None
    return (
        f"topic '{bare[0]}' of cluster '{cluster}' has no id: its inter.broker.protocol.version is below 2.8, raise it"
    )
