"""MirrorMaker 2's stored progress: whose counts, where it is looked for, and what is handed back."""

from __future__ import annotations

from heliograph.replication.mm2_progress import (
    HandBack,
    Progress,
    Stored,
    configs_to_read,
    connector_names,
    default_group,
    default_topic,
    hand_back,
    is_switched_off,
    latest_progress,
    mirrors_of,
    offsets_topic,
    topics_to_read,
)

T0, T1 = ("t", 0), ("t", 1)
STRIMZI = "A->B.MirrorSourceConnector"


def stored(
    offset: int | None, connector: str = "MirrorSourceConnector", time_ms: int = 1, kept_in: str = "o"
) -> Stored:
    return Stored(connector, T0, offset, time_ms, kept_in)


def test_the_last_entry_of_a_connector_counts() -> None:
    progress = latest_progress([stored(5, time_ms=3), stored(9, time_ms=2)])
    assert (progress.offset(T0), progress.offset(T1)) == (9, None)
    assert progress.connectors == {"MirrorSourceConnector"}


def test_an_entry_that_was_removed_counts_no_more() -> None:
    assert latest_progress([stored(5), stored(None)]) == Progress()


def test_of_several_connectors_the_one_that_stored_last_counts_unless_one_is_named() -> None:
    entries = [stored(5, STRIMZI, time_ms=9), stored(700, time_ms=2)]
    assert latest_progress(entries).offset(T0) == 5
    assert latest_progress(entries).connectors == {STRIMZI, "MirrorSourceConnector"}
    assert latest_progress(entries, "MirrorSourceConnector").offset(T0) == 700
    assert latest_progress(entries, "other") == Progress()


def test_the_dedicated_modes_topic_is_read_if_it_is_there() -> None:
    names = ["mm2-offsets.A.internal", "connect-offsets", "__consumer_offsets", "orders", "__x-offsets"]
    assert topics_to_read(names, "A", "") == ["mm2-offsets.A.internal"]
    assert topics_to_read(names, "C", "") == ["connect-offsets"]
    assert topics_to_read([*names, "mirrormaker2-cluster-offsets"], "C", "") == [
        "connect-offsets",
        "mirrormaker2-cluster-offsets",
    ]


def test_a_topic_that_was_named_is_the_only_one() -> None:
    names = ["mm2-offsets.A.internal", "mine"]
    assert topics_to_read(names, "A", "mine") == ["mine"]
    assert topics_to_read(names, "A", "gone") == []


def test_the_names_of_a_flows_connector() -> None:
    assert connector_names("A", "B", "", ["seen"]) == {"MirrorSourceConnector", STRIMZI, "seen"}
    assert connector_names("A", "B", "chosen", ["seen"]) == {"chosen"}
    assert (default_group("A"), default_topic("A")) == ("A-mm2", "mm2-offsets.A.internal")


def test_what_is_handed_back_is_the_last_record_copied() -> None:
    assert hand_back({T0: 10, T1: 0}, Progress(), "A") == [
        HandBack("MirrorSourceConnector", T0, 9, "mm2-offsets.A.internal")
    ]


def test_a_lane_goes_back_to_where_its_progress_was_found() -> None:
    progress = latest_progress([stored(5, STRIMZI, kept_in="strimzi-offsets")])
    assert hand_back({T0: 10, T1: 20}, progress, "A") == [
        HandBack(STRIMZI, T0, 9, "strimzi-offsets"),
        HandBack(STRIMZI, T1, 19, "strimzi-offsets"),
    ]
    assert hand_back({T0: 10}, progress, "A", "mine", "here") == [HandBack("mine", T0, 9, "here")]


def test_configurations_are_looked_for_where_connect_and_strimzi_keep_them() -> None:
    partitions = {
        "mm2-configs.A.internal": 1,
        "mm2-configs.C.internal": 1,
        "connect-configs": 1,
        "app-configs": 12,
        "__own-configs": 1,
        "orders": 1,
    }
    assert configs_to_read(partitions, "A") == ["connect-configs", "mm2-configs.A.internal"]
    assert configs_to_read(partitions, "B") == ["connect-configs"]


def test_a_mirror_is_known_by_its_class_and_its_source() -> None:
    configs = {
        "orders": [{"connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector"}],
        "short": [{"connector.class": "jdbc"}, {"connector.class": "MirrorSource", "source.cluster.alias": "A"}],
        "other source": [{"connector.class": "MirrorSourceConnector", "source.cluster.alias": "C"}],
        "checkpoints": [{"connector.class": "MirrorCheckpointConnector", "source.cluster.alias": "A"}],
    }
    assert mirrors_of(configs, "A") == {"short"}
    assert mirrors_of(configs, "source") == {"orders"}


def test_a_connector_is_switched_off_only_if_its_configuration_says_so() -> None:
    assert is_switched_off([{"enabled": "False"}])
    assert not is_switched_off([{"enabled": "true"}])
    assert not is_switched_off([{}])
    assert not is_switched_off([])


def test_the_topic_for_progress_is_made_compacted() -> None:
    wish = offsets_topic("mm2-offsets.A.internal", 25, 3)
    assert (wish.name, wish.partitions, wish.replication_factor) == ("mm2-offsets.A.internal", 25, 3)
    assert wish.configs == {"cleanup.policy": "compact"}
