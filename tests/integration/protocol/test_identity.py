"""P1: where identities come from, who opens a generation, and what a lost ledger means."""

from __future__ import annotations

import asyncio
import base64
import json
import uuid
from dataclasses import replace
from typing import Any

from confluent_kafka import TopicCollection

from heliograph.kafka.claims import open_generations, transactional_id
from heliograph.kafka.client import ClusterClient
from heliograph.kafka.ledger import Ledger
from heliograph.kafka.slot import now_ms
from heliograph.model.lanes import Identity, LaneId, LedgerEntry, Rule
from tests.integration.protocol.harness import Mirror, carry, with_client
from tests.support.reading import messages
from tests.support.topics import ANSWER_SECONDS, admin, ends, partition_count
from tests.support.writers import samples, write


def wanted(mirror: Mirror, partition: int, start: int, epoch: int) -> LedgerEntry:
    lane = LaneId(mirror.flow, mirror.topic, partition)
    return LedgerEntry(lane, 0, Identity(77, epoch), Rule(), "target", "a", "b", start, 0, start, -1, 0, 0)


def test_eight_parallel_callers_get_different_epochs_of_one_id(mirror: Mirror) -> None:
    """P1.3: the coordinator serialises callers; no epoch is given out twice."""

    async def ask(_: ClusterClient) -> list[Identity]:
        clients = [ClusterClient(mirror.target_cluster) for _ in range(8)]
        try:
            return await asyncio.gather(*(client.new_identity(transactional_id(mirror.flow)) for client in clients))
        finally:
            for client in clients:
                client.close()

    found = with_client(mirror.target, ask)
    assert len({identity.producer_id for identity in found}) == 1
    assert sorted(identity.producer_epoch for identity in found) == list(range(8))


def test_four_drivers_claim_twelve_lanes_and_one_wins_each(mirror: Mirror) -> None:
    """P1.4: the first claim wins with its identity and start, everybody adopts it, it is the entry, claims are taken back."""
    mirror.make_topic()
    mirror.open()  # makes the ledger topic
    other = f"{mirror.topic}x"

    def claims(driver: int) -> list[LedgerEntry]:
        return [replace(wanted(mirror, p, 100 * driver, driver), lane=LaneId(mirror.flow, other, p)) for p in range(12)]

    async def race(_: Ledger) -> list[dict[LaneId, LedgerEntry]]:
        clients = [ClusterClient(mirror.target_cluster) for _ in range(4)]
        try:
            return await asyncio.gather(
                *(open_generations(Ledger(client), claims(n), now_ms()) for n, client in enumerate(clients))
            )
        finally:
            for client in clients:
                client.close()

    won = mirror.with_ledger(race)
    assert won[0] == won[1] == won[2] == won[3]
    assert len(won[0]) == 12
    for entry in won[0].values():
        assert entry.source_next == 100 * entry.identity.producer_epoch, "the start belongs to the identity"
    book = mirror.book()
    for lane, entry in won[0].items():
        assert book.latest(lane) == entry
        assert book.claims(lane, 0) == ()


def test_a_late_claimer_adopts_the_entry_with_the_position_it_has_now(mirror: Mirror) -> None:
    """P1.4c: an entry of the generation exists: adopt it, whatever the claim says."""
    mirror.make_topic()
    first = mirror.open().entries[0]
    moved = replace(first, source_next=40, target_next=40, sequence_next=40)
    mirror.write_entry(moved)
    late = replace(first, identity=Identity(first.identity.producer_id, 9), source_start=7, source_next=7)
    won = mirror.with_ledger(lambda ledger: open_generations(ledger, [late], now_ms()))
    assert won == {first.lane: moved}
    assert mirror.book().claims(first.lane, 0) == ()


def test_a_zombies_write_of_an_older_generation_does_not_win(mirror: Mirror) -> None:
    """P1.1: the generation is in the key, readers take the highest."""
    mirror.make_topic()
    old = mirror.open().entries[0]
    new = replace(old, generation=1, identity=Identity(old.identity.producer_id, 5), source_next=10)
    mirror.write_entry(new)
    mirror.write_entry(replace(old, source_next=1_000_000, sequence_next=1_000_000))
    assert mirror.book().latest(old.lane) == new


def test_a_lower_entry_of_the_same_generation_does_no_harm(mirror: Mirror) -> None:
    """P3.6: a slower racer's position that arrives later does not take the lane back."""
    mirror.make_topic()
    first = mirror.open().entries[0]
    further = replace(first, source_next=50, target_next=50, sequence_next=50)
    mirror.write_entry(further)
    mirror.write_entry(replace(first, source_next=20, target_next=20, sequence_next=20))
    assert mirror.book().latest(first.lane) == further


def ledger_records(mirror: Mirror) -> list[tuple[str, dict[str, Any] | None]]:
    """What the broker holds of the lane, by an independent client: keys, and values as JSON; None for what was taken back."""
    partitions = range(partition_count(mirror.target, "__heliograph-ledger"))
    read = [message for each in partitions for message in messages(mirror.target, "__heliograph-ledger", each)]
    found = [(message.key().decode(), message.value()) for message in read]
    return [(key, value and json.loads(value)) for key, value in found if key.startswith(f"{mirror.lane_key}/")]


def topic_id(bootstrap: str, topic: str) -> str:
    client = admin(bootstrap)
    described = client.describe_topics(TopicCollection([topic]))[topic].result(ANSWER_SECONDS)
    return str(uuid.UUID(bytes=base64.urlsafe_b64decode(f"{described.topic_id}==")))


def test_the_ledgers_bytes_on_the_broker_are_what_was_written(mirror: Mirror) -> None:
    """P1.2: entry and claim hold ids of both topics, the target cluster, identity, positions and rule."""
    mirror.make_topic()
    write(mirror.source, mirror.topic, samples(7))
    carry(mirror.open())
    (claim_key, claim), *between, (last_key, last) = ledger_records(mirror)
    assert claim is not None and last is not None
    (writer,) = mirror.producers()
    wanted = {
        "version": 1,
        "flow": mirror.flow,
        "topic": mirror.topic,
        "partition": 0,
        "generation": 0,
        "producer_id": writer,
        "isolation": "read_committed",
        "target_cluster_id": admin(mirror.target).list_topics(timeout=ANSWER_SECONDS).cluster_id,
        "source_topic_id": topic_id(mirror.source, mirror.topic),
        "target_topic_id": topic_id(mirror.target, mirror.remote),
        "source_start": 0,
        "target_start": 0,
    }
    assert claim_key.startswith(f"{mirror.lane_key}/0#") and (claim_key, None) in between, "the claim is taken back"
    assert wanted.items() <= claim.items()
    assert last_key == f"{mirror.lane_key}/0"
    moved = {"source_next": 7, "target_next": 7, "sequence_next": 7, "producer_epoch": claim["producer_epoch"]}
    assert (wanted | moved).items() <= last.items()


def test_generation_0_begins_at_sequence_0_and_a_new_one_with_a_fresh_epoch_too(mirror: Mirror) -> None:
    """P1.5: never a number chosen by arithmetic; the broker has seen nothing of the new epoch."""
    mirror.make_topic()
    write(mirror.source, mirror.topic, samples(30))
    first = mirror.open()
    carry(first)
    second = mirror.open("read_uncommitted")
    old, new = first.entries[0], second.entries[0]
    assert (old.generation, old.sequence_next) == (0, 0)
    assert (new.generation, new.sequence_next) == (1, 0)
    assert new.identity.producer_id == old.identity.producer_id
    assert new.identity.producer_epoch > old.identity.producer_epoch
    write(mirror.source, mirror.topic, samples(10, seed=2))
    carry(mirror.open("read_uncommitted"))
    state = mirror.producers()[new.identity.producer_id]
    assert (state.epoch, state.last_sequence) == (new.identity.producer_epoch, 9)
    mirror.assert_identical(40)


def test_records_of_the_flow_without_an_entry_are_refused(mirror: Mirror) -> None:
    """P1.6: the ledger was lost; starting over would repeat everything."""
    mirror.make_topic()
    write(mirror.source, mirror.topic, samples(30))
    opened = mirror.open()
    carry(opened)
    mirror.erase(opened)
    again = mirror.open()
    assert again.flow.entries == {}
    assert "the ledger was lost" in again.flow.refused[mirror.lane_key]
    assert ends(mirror.target, mirror.remote) == {0: 30}


def test_old_generations_are_removed_once_the_next_one_has_written(mirror: Mirror) -> None:
    """P1.1: an entry of g is tombstoned after g+1 has an acknowledged append."""
    mirror.make_topic()
    write(mirror.source, mirror.topic, samples(5))
    carry(mirror.open())
    write(mirror.source, mirror.topic, samples(5, seed=2))
    carry(mirror.open("read_uncommitted"))
    lane = mirror.open("read_uncommitted").entries[0].lane
    assert mirror.book().generations(lane) == (1,)
