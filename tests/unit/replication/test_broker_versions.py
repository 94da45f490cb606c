"""Brokers are judged by the messages they offer; the sentence says which is missing, why it is needed and what to do."""

from __future__ import annotations

from heliograph.model.topics import Topic
from heliograph.replication.broker_versions import unsupported, without_ids

# What real brokers say, as far as it is asked for: by message key, oldest and newest version.
KAFKA_2_3 = {0: (0, 7), 1: (0, 11), 2: (0, 5), 3: (0, 8), 10: (0, 2), 22: (0, 1)}
KAFKA_3_0 = {0: (0, 9), 1: (0, 12), 2: (0, 7), 3: (0, 11), 10: (0, 4), 22: (0, 4), 61: (0, 0)}
KAFKA_3_3 = {0: (0, 9), 1: (0, 13), 2: (0, 7), 3: (0, 12), 10: (0, 4), 22: (0, 4), 61: (0, 0)}
KAFKA_4_3 = {0: (3, 13), 1: (4, 18), 2: (1, 11), 3: (0, 13), 10: (0, 6), 22: (0, 6), 61: (0, 0)}


def test_tested_releases_are_taken_as_source_and_as_target() -> None:
    for offered in (KAFKA_3_3, KAFKA_4_3):
        assert unsupported("broker", offered, is_target=False) is None
        assert unsupported("broker", offered, is_target=True) is None


def test_a_broker_without_reading_by_topic_id_is_refused_on_either_side() -> None:
    sentence = (
        "cluster 'A': broker 1 is not supported: it does not offer Fetch 13, which Kafka has since 3.1 (topics are read by "
        "id, or one that was made again would be taken for the old one): upgrade the brokers (tested: Kafka 3.3 to 4.3)"
    )
    for is_target in (False, True):
        assert unsupported("cluster 'A': broker 1", KAFKA_3_0, is_target=is_target) == sentence


def test_every_message_that_is_missing_is_named() -> None:
    as_source = unsupported("broker 1", KAFKA_2_3, is_target=False)
    as_target = unsupported("broker 1", KAFKA_2_3, is_target=True)
    assert as_source is not None
    assert [name for name in ("Fetch 13", "Metadata 10", "Produce 9") if name in as_source] == [
        "Fetch 13",
        "Metadata 10",
    ]
    assert as_target is not None
    assert "Produce 9, which Kafka has since 2.8" in as_target
    assert "DescribeProducers 0, which Kafka has since 2.8" in as_target


def test_a_source_need_not_offer_what_only_a_target_is_asked() -> None:
    offered = {key: versions for key, versions in KAFKA_3_3.items() if key not in (22, 61)}
    assert unsupported("broker 1", offered, is_target=False) is None
    assert unsupported("broker 1", offered, is_target=True) is not None


def test_a_broker_that_no_longer_speaks_our_versions_asks_for_a_newer_heliograph() -> None:
    sentence = unsupported("broker 1", KAFKA_4_3 | {0: (14, 15)}, is_target=True)
    assert sentence is not None
    assert "it offers Produce only from version 14, this Heliograph speaks it up to 13: upgrade Heliograph" in sentence


def test_a_topic_without_an_id_is_named_with_the_setting_that_withholds_it() -> None:
    bare = Topic("orders", "00000000-0000-0000-0000-000000000000", 1, {})
    fine = Topic("payments", "00000000-0000-0000-0000-000000000001", 1, {})
    assert without_ids("A", {"payments": fine}) is None
    assert without_ids("A", {"payments": fine, "orders": bare}) == (
        "topic 'orders' of cluster 'A' has no id: its inter.broker.protocol.version is below 2.8, raise it"
    )
