"""P8 on brokers: a compacted lane keeps its position, whoever waits beside it, whatever fails, and whoever claimed it before."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import replace

from heliograph.kafka.claims import Opening, Openings, transactional_id
from heliograph.model.lanes import Identity, LaneState, LedgerEntry
from heliograph.replication.generations import encode_entry
from heliograph.replication.ledger_keys import ClaimKey
from tests.integration.protocol.harness import SILENT, Attempt, Mirror, now_ms, with_client
from tests.support.asked import APPENDS, IDS, READINGS, Asked
from tests.support.clusters import ClusterFactory
from tests.support.compaction import NEVER_CLEANED
from tests.support.topics import ends
from tests.support.waiting import wait_until
from tests.support.writers import Sample, samples, write


def keyed(first: int, count: int) -> list[Sample]:
    return [Sample(b"v%d" % number, b"k%d" % number) for number in range(first, first + count)]


def entry_of(mirror: Mirror) -> LedgerEntry:
    found = mirror.book().latest(mirror.open().entries[0].lane)
    assert found is not None
    return found


def test_an_attempt_that_only_waits_moves_no_lane_back_and_leaves_nothing_in_the_ledger(mirror: Mirror) -> None:
    """H1, H2: the task of a second run waits beside the one that carries the lane, then takes over."""
    mirror.make_topic(config=NEVER_CLEANED)
    write(mirror.source, mirror.topic, keyed(0, 1000))
    opened = mirror.open()
    lane = opened.entries[0].lane
    with Attempt(opened) as one:
        one.wait_for_position(1000)
        with Attempt(opened, alone=False) as two:
            two.wait_reason("waiting until the last attempt")
            before = mirror.book().generations(lane)
            epoch = next(iter(mirror.producers().values())).epoch
            time.sleep(6)  # it looks again every five seconds
            write(mirror.source, mirror.topic, keyed(1000, 5000))
            one.wait_for_position(6000)
            assert max(mirror.book().generations(lane)) == max(before), "who only waits opened generations"
            one.stop()
            two.tell_alone()
            two.wait_for_position(6000)
            write(mirror.source, mirror.topic, keyed(6000, 10))
            two.wait_for_position(6010)
            two.stop()
    assert ends(mirror.target, mirror.remote)[0] == 6010
    mirror.assert_identical(6010)
    assert max(state.epoch for state in mirror.producers().values()) == epoch + 1, "waiting used up producer epochs"


def test_a_lane_whose_source_failed_continues_in_its_generation_and_repeats_nothing(
    new_cluster: ClusterFactory, mirror: Mirror
) -> None:
    """H1b, H2, M1: source brokers restart under load; every batch was answered, so the position is exact."""
    source = new_cluster("S")
    mirror = Mirror(source.bootstrap, mirror.target, mirror.topic)
    mirror.make_topic(config=NEVER_CLEANED)
    write(mirror.source, mirror.topic, keyed(0, 1000))
    opened = mirror.open()
    lane = opened.entries[0].lane
    with Attempt(opened) as attempt:
        attempt.wait_for_position(1000)
        before = mirror.book().generations(lane)
        source.kill(1)
        attempt.wait_for(lambda: attempt.life.run.state is not LaneState.FOLLOWING, "the lane lost its source")
        time.sleep(3)
        assert max(mirror.book().generations(lane)) == max(before), "an outage opened generations"
        source.restart(1)
        write(mirror.source, mirror.topic, keyed(1000, 1000))
        attempt.wait_for_position(2000)
        assert max(mirror.book().generations(lane)) == max(before)
        attempt.stop()
        word = attempt.life.run.entry(0)
    with Attempt(opened, handed={mirror.lane_key: word}) as successor:
        write(mirror.source, mirror.topic, keyed(2000, 500))
        successor.wait_for_position(2500)
        successor.stop()
    with Attempt(opened) as next_run:  # nobody handed it anything: it opens its own generation
        write(mirror.source, mirror.topic, keyed(2500, 10))
        next_run.wait_for_position(2510)
        next_run.stop()
    mirror.assert_identical(2510)


def test_lanes_that_open_generations_at_the_same_moment_share_what_they_ask_for(mirror: Mirror) -> None:
    """H2: the number of requests does not grow with the number of lanes. Here a task was killed, and another takes its lanes."""
    few, many = (_asked_by_take_over(Mirror(mirror.source, mirror.target, f"{mirror.topic}{n}"), n) for n in (2, 100))
    assert few[IDS] == many[IDS] == 1
    assert many[APPENDS] < 100 / 4, "each lane for itself: four appends"
    assert many[READINGS] < 100 / 4, "each lane for itself: three readings"


def _asked_by_take_over(mirror: Mirror, lanes: int) -> Counter[str]:
    mirror.make_topic(lanes, NEVER_CLEANED)
    opened = mirror.open()
    write(mirror.source, mirror.topic, samples(3 * lanes, partitions=lanes))
    with Attempt(opened, SILENT) as one:
        one.wait_for_records(3 * lanes)
    with Asked() as asked, Attempt(opened, SILENT) as two:
        two.wait_for(
            lambda: all(life.run.state is LaneState.FOLLOWING for life in two.lives), "every lane follows again"
        )
        generations = [life.run.acked.generation for life in two.lives]
    assert generations == [2] * lanes, "one of the driver's, one of each attempt"
    return asked.counts


def test_a_claim_whose_entry_was_never_written_is_not_adopted_later(mirror: Mirror) -> None:
    """H3: an attempt died between its claim and its entry; the lane was carried on since, by the generation before."""
    mirror.make_topic()
    write(mirror.source, mirror.topic, samples(10))
    opened = mirror.open()
    with Attempt(opened) as attempt:
        attempt.wait_for_position(10)
        attempt.stop()
    early = replace(entry_of(mirror), generation=1, source_start=1, source_next=1, follows=1, identity=Identity(999, 9))
    lane = early.lane
    mirror.with_ledger(lambda ledger: ledger.write([(ClaimKey(lane, 1, "early"), encode_entry(early))], now_ms()))
    write(mirror.source, mirror.topic, samples(1000, seed=2))
    with Attempt(opened) as attempt:
        attempt.wait_for_position(1010)
        attempt.stop()
    identity = with_client(mirror.target, lambda client: client.new_identity(transactional_id(mirror.flow)))
    now = Opening(entry_of(mirror), identity, 1010)
    won = mirror.with_ledger(lambda ledger: Openings(ledger, now_ms).open(now))
    assert (won.generation, won.source_start, won.identity) == (2, 1010, identity)
    write(mirror.source, mirror.topic, samples(10, seed=3))
    with Attempt(opened) as attempt:
        attempt.wait_for_position(1020)
        wait_until(lambda: mirror.book().generations(lane) == (2,), "older generations leave the ledger")
        wait_until(lambda: mirror.book().claims(lane, 1) == (), "and their claims with them")
        attempt.stop()
    mirror.assert_identical(1020)


def test_a_lane_leaves_at_once_while_it_attaches(mirror: Mirror) -> None:
    """H4: neither a release nor a deadline waits for an attach that cannot end."""
    mirror.make_topic(config=NEVER_CLEANED)
    write(mirror.source, mirror.topic, keyed(0, 10))
    opened = mirror.open()
    with Attempt(opened, alone=False) as attempt:
        attempt.wait_for(lambda: attempt.slot is not None, "the slot began")

        async def never(*_: object) -> None:
            await forever.wait()

        forever = asyncio.Event()
        attempt.life.slot.attacher(attempt.life.rules).take_over = never
        attempt.wait_for(lambda: attempt.life.run.state is LaneState.ATTACHING, "it attaches")
        attempt.stop()
    assert ends(mirror.target, mirror.remote)[0] == 0
