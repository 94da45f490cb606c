"""A hold that was lost is taken back from lanes that nothing else protects, on real brokers (H6)."""

from __future__ import annotations

from datetime import timedelta

from heliograph.kafka.slot import now_ms
from heliograph.model.lanes import Guard, LaneState
from tests.integration.protocol.harness import QUICK, Attempt, Mirror
from tests.support.topics import ends
from tests.support.writers import samples, write, write_old_records


def write_old(mirror: Mirror) -> None:
    write_old_records(mirror.source, mirror.topic, samples(100), now_ms(), timedelta(days=3))


def test_a_lane_that_the_target_does_not_guard_stops_when_its_run_no_longer_holds_the_flow(mirror: Mirror) -> None:
    mirror.make_topic(config={"retention.ms": "-1"})
    write_old(mirror)
    opened = mirror.open()
    with Attempt(opened, QUICK) as cut_off:
        cut_off.wait_for_position(100)
        assert cut_off.life.guard is Guard.EXCLUSIVE
        cut_off.tell_revoked()
        cut_off.wait_waiting("waiting until the last attempt is known dead")
        write_old(mirror)
        with Attempt(opened, QUICK) as other:  # the run that took the flow over: alone as it was told
            other.wait_for_position(200)
            since_ms = cut_off.life.run.since_ms
            cut_off.wait_for(lambda: cut_off.life.run.since_ms > since_ms, "it looks again")
            cut_off.wait_reason("waiting until the last attempt is known dead")
            assert cut_off.records == 100
            assert ends(mirror.target, mirror.remote)[0] == 200
            other.stop()
        cut_off.tell_alone()
        write_old(mirror)
        cut_off.wait_for_position(300)
        cut_off.stop()
    mirror.assert_identical(300)


def test_a_lane_that_the_target_guards_goes_on_without_the_hold(mirror: Mirror) -> None:
    mirror.make_topic()
    write(mirror.source, mirror.topic, samples(100))
    opened = mirror.open()
    with Attempt(opened, QUICK) as first:
        first.wait_for_position(100)
        first.stop()
    with Attempt(opened, QUICK) as attempt:
        attempt.wait_for(lambda: attempt.life.run.state is LaneState.FOLLOWING, "it follows")
        attempt.tell_revoked()
        write(mirror.source, mirror.topic, samples(100))
        attempt.wait_for_position(200)
        assert attempt.life.guard is Guard.BROKER
        attempt.stop()
    mirror.assert_identical(200)
