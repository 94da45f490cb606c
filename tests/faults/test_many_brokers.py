"""Two clusters of three brokers, replicated three times with min.insync.replicas 2, mirrored by `heliograph run` under load.

One pair of clusters and one run for all faults: every test breaks something, asserts what a user is shown meanwhile, and leaves a
healthy pair and an identical copy behind (`Stage.fault`). docs/faults.md has the same faults with the sentences and figures.
"""

from __future__ import annotations

import resource
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from heliograph.embedded.cluster import EmbeddedCluster, start_many
from heliograph.embedded.settings import CONTROLLER_ID
from tests.support.doors import AuthorizedCluster
from tests.support.exposition import read_exposition
from tests.support.fault_stage import PARTITIONS, Load, Stage, Watcher
from tests.support.heliograph_run import PROGRAM, HeliographRun, two_cluster_settings, write_properties
from tests.support.leaders import elect_preferred, leaders, out_of_sync, reassign, wait_until_in_sync
from tests.support.quotas import set_quota
from tests.support.rest import rest_of, wait_for_flow
from tests.support.topics import ANSWER_SECONDS, admin, create_topic, delete_topic, ends, set_configs
from tests.support.waiting import wait_until
from tests.support.writers import samples, write

SAFE = {"min.insync.replicas": "2"}
BROKERS = (1, 2, 3)
BEHIND_MS = 2_000
# Which of them a lane says depends on what it did in that moment: it waited for an answer, it wrote, it connected again, it asked who leads.
LEADER_GONE = (
    "closed by the broker|Connection reset by peer|Connect call failed|the broker no longer leads the partition"
)
TOO_FEW = "fewer replicas are in sync than min.insync.replicas asks|not replicated yet"
COPIED_AGAIN = (
    r"event target-loss: .*A\.tiny(-\d)? was deleted and created again on the target: copied again from the source"
)
"""The lane says it, or the plan, whichever notices first."""


@pytest.fixture(scope="module")
def stage(kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    del kafka_jars
    folder = tmp_path_factory.mktemp("many")
    pair = [AuthorizedCluster(name, folder, len(BROKERS), SAFE) for name in ("A", "B")]
    try:
        start_many(pair)
        yield from _mirrored(pair[0], pair[1], folder)
    finally:
        for cluster in pair:
            cluster.stop()


def _mirrored(source: EmbeddedCluster, target: EmbeddedCluster, folder: Path) -> Iterator[Stage]:
    load = Load(source.bootstrap)
    load.create_topics(target.bootstrap, "A", len(BROKERS), SAFE)
    more = {
        "replication.factor": "3",
        "refresh.topics.interval.seconds": "3",
        "listeners": "http://127.0.0.1:0",
    }
    settings = two_cluster_settings(source.bootstrap, target.bootstrap, ".*") | more
    file = write_properties(folder / "mm2.properties", settings)
    with HeliographRun(file, program=PROGRAM) as run:
        rest = rest_of(run)
        wait_for_flow(rest, "A->B")
        made = Stage(source, target, run, load, Watcher(rest, "A->B"))
        try:
            made.start()
            yield made
            load.stop()
            made.settle("the last fault")
            assert run.terminate() == 0, run.output
        finally:
            made.watcher.stop()
            (folder / "run.log").write_text(run.output)


@pytest.fixture(autouse=True)
def healthy(stage: Stage) -> Iterator[None]:
    """Every replica is in sync again before the next fault."""
    yield
    wait_until_in_sync(stage.source.bootstrap, set(BROKERS), *stage.load.topics)
    wait_until_in_sync(stage.target.bootstrap, set(BROKERS), *map(stage.remote, stage.load.topics))


def sides(stage: Stage) -> tuple[tuple[EmbeddedCluster, str], ...]:
    """Each cluster with the topic that shows who leads there."""
    return (stage.target, "A.plain"), (stage.source, "plain")


def test_a_rolling_restart_of_both_clusters_needs_no_hand(stage: Stage) -> None:
    with stage.fault("rolling restart") as seen:
        for broker in BROKERS:
            for cluster, topic in sides(stage):
                cluster.terminate(broker)
                cluster.restart(broker)
                wait_until_in_sync(cluster.bootstrap, set(BROKERS), topic)
    assert not seen.parked()
    seen.assert_said(LEADER_GONE)


@pytest.mark.parametrize("side", ["target", "source"])
def test_a_leader_killed_with_9_is_left_for_the_next_one(stage: Stage, side: str) -> None:
    cluster, topic = sides(stage)[side == "source"]
    topics = [stage.remote(name) if side == "target" else name for name in stage.load.topics]
    with stage.fault(f"kill -9 on the {side}") as seen:
        # Whoever leads most of them: leaders may move by themselves, and a broker that leads nothing is missed by nobody.
        leading = Counter(node for name in topics for node in leaders(cluster.bootstrap, name).values())
        ((broker, _),) = leading.most_common(1)
        cluster.kill(broker)
        wait_until(lambda: out_of_sync(cluster.bootstrap, topic, broker), "the next one leads", every=0.3)
        cluster.restart(broker)
    assert not seen.parked()
    seen.assert_said(LEADER_GONE)


@pytest.mark.parametrize(("side", "seconds"), [("target", 15), ("source", 6)])
def test_a_frozen_leader_is_waited_for_or_left_and_does_no_harm_when_it_wakes(
    stage: Stage, side: str, seconds: int
) -> None:
    cluster, topic = sides(stage)[side == "source"]
    with stage.fault(f"{side} leader frozen for {seconds} s") as seen:
        broker = leaders(cluster.bootstrap, topic)[0]
        cluster.freeze(broker)
        time.sleep(seconds)
        cluster.thaw(broker)
    assert not seen.parked()


def test_leaders_that_move_every_two_seconds_are_followed(stage: Stage) -> None:
    with stage.fault("leaders moved") as seen:
        for turn in range(5):
            order = [*BROKERS[turn % 3 :], *BROKERS[: turn % 3]]
            for topic in stage.load.topics:
                for cluster, name in ((stage.source, topic), (stage.target, stage.remote(topic))):
                    reassign(cluster.bootstrap, name, {n: order[n:] + order[:n] for n in range(PARTITIONS)})
                    elect_preferred(cluster.bootstrap, name, range(PARTITIONS))
            time.sleep(2)
    assert not seen.parked()


def test_partitions_that_are_reassigned_are_followed_to_their_new_brokers(stage: Stage) -> None:
    with stage.fault("partitions reassigned") as seen:
        for brokers in ([2, 3], [3, 1, 2]):
            for topic in stage.load.topics:
                for cluster, name in ((stage.source, topic), (stage.target, stage.remote(topic))):
                    reassign(cluster.bootstrap, name, dict.fromkeys(range(PARTITIONS), brokers))
            for cluster, name in sides(stage):
                wait_until_in_sync(cluster.bootstrap, set(brokers), name)
    assert not seen.parked()


def test_controllers_that_are_lost_do_not_stop_the_copy(stage: Stage) -> None:
    """Nobody can lead anything new meanwhile; who leads goes on."""
    with stage.fault("controllers lost") as seen:
        for cluster, _ in sides(stage):
            cluster.kill(CONTROLLER_ID)
        stage.go_on("the controllers were lost")
        assert all(CONTROLLER_ID not in cluster.pids for cluster, _ in sides(stage)), "they are still away"
        for cluster, _ in sides(stage):
            cluster.restart(CONTROLLER_ID, wait=False)
    assert not seen.parked()


def flow_of(stage: Stage) -> dict[str, Any]:
    return stage.watcher.rest.flow(stage.watcher.flow)


def held_back_s(stage: Stage) -> float:
    """The longest of the target's brokers, in the mean of the last seconds, as a scraper reads it."""
    _, _, text = stage.watcher.rest.whole("GET", "/metrics")
    family = read_exposition(text.decode()).get("heliograph_produce_throttle_avg_seconds")
    return max(family.samples.values(), default=0.0) if family is not None else 0.0


def test_a_quota_that_throttles_slows_the_copy_and_nothing_else(stage: Stage) -> None:
    with stage.fault("quota") as seen:
        assert held_back_s(stage) == 0
        set_quota(stage.target.address(1), "mirror", "producer_byte_rate", 5_000)
        wait_until(lambda: held_back_s(stage) > 0, "a broker holds answers back", every=0.5)
        wait_until(lambda: (flow_of(stage)["lag_ms"] or 0) > BEHIND_MS, "the copy falls behind", every=0.5)
        set_quota(stage.target.address(1), "mirror", "producer_byte_rate", None)
    assert not seen.parked()


def test_a_full_disk_of_a_target_broker_ends_that_broker_and_the_others_carry_on(stage: Stage) -> None:
    """A limit on the size of its files makes every write fail as a full disk does, and needs no privileges."""
    with stage.fault("full disk") as seen:
        broker = leaders(stage.target.bootstrap, "A.plain")[0]
        resource.prlimit(stage.target.pids[broker], resource.RLIMIT_FSIZE, (4_096, resource.RLIM_INFINITY))
        wait_until(lambda: broker not in stage.target.pids, "the broker gave up")
        # Kafka's own halt, not a signal. It cannot say why: what it prints goes to a file with the same limit.
        assert stage.target._processes[broker].returncode == 1
        wait_until(lambda: out_of_sync(stage.target.bootstrap, "A.plain", broker), "others lead", every=0.3)
        stage.target.restart(broker)
    assert not seen.parked()
    seen.assert_said(LEADER_GONE)


def test_fewer_in_sync_than_min_insync_replicas_is_waited_for(stage: Stage) -> None:
    with stage.fault("min ISR not met") as seen:
        for broker in (2, 3):
            stage.target.kill(broker)
        time.sleep(15)
        wait_until(lambda: seen.is_said(TOO_FEW), "a lane says that too few are in sync", every=0.5)
        for broker in (2, 3):
            stage.target.restart(broker, wait=False)
    assert not seen.parked()


def test_a_remote_topic_that_is_deleted_is_copied_again(stage: Stage) -> None:
    with stage.fault("remote topic deleted") as seen:
        # Not `delete_topic`: it may be there again before anybody saw it gone.
        client = admin(stage.target.bootstrap)
        client.delete_topics(["A.tiny"])["A.tiny"].result(ANSWER_SECONDS)
        # Until this is said, lanes show where they were before.
        wait_until(lambda: seen.is_said(COPIED_AGAIN), "it is copied again", every=0.5)
    assert seen.parked().keys() <= {"tiny"}, seen.parked()


def test_a_source_topic_that_is_created_again_parks_its_lanes_alone(stage: Stage) -> None:
    with stage.fault("source topic created again") as seen:
        for count in (100, 50):
            create_topic(stage.source.bootstrap, "again", 1, 3, SAFE)
            write(stage.source.bootstrap, "again", samples(count))
            if count == 100:
                wait_until(lambda: ends(stage.target.bootstrap, "A.again") == {0: 100}, "it is copied", every=0.5)
                delete_topic(stage.source.bootstrap, "again")
        # While it did not exist the lane may have parked for that.
        wait_until(lambda: seen.is_said("event source-reset: "), "its lane tells of the other topic", every=0.2)
        wait_until(lambda: seen.is_said("^parked: .*created again on the source"), "and parks for it", every=0.2)
        assert ends(stage.target.bootstrap, "A.again") == {0: 100}, "nothing of the other topic is written"
        delete_topic(stage.source.bootstrap, "again")
    assert seen.parked().keys() == {"again"}, seen.parked()


def test_an_unclean_election_on_the_target_is_noticed_and_what_it_lost_is_copied_again(stage: Stage) -> None:
    target = stage.target
    with stage.fault("unclean election") as seen:
        set_configs(target.bootstrap, "A.plain", {"unclean.leader.election.enable": "true"})
        target.kill(3)
        wait_until(lambda: out_of_sync(target.bootstrap, "A.plain", 3), "3 is out", every=0.3)
        before = sum(ends(target.bootstrap, "A.plain").values())
        wait_until(lambda: sum(ends(target.bootstrap, "A.plain").values()) > before + 100, "3 has not all", every=0.2)
        target.kill(1)
        target.kill(2)
        target.restart(3, wait=False)
        wait_until(lambda: _led_by(target.address(3), 3), "3 leads", every=0.5)
        target.restart(1)
        target.restart(2)
        # Until this is said, lanes show where they were before.
        wait_until(lambda: seen.is_said("event target-loss: "), "it is noticed", every=0.5)


def _led_by(bootstrap: str, broker: int) -> bool:
    try:
        return set(leaders(bootstrap, "A.plain").values()) == {broker}
    except Exception:  # noqa: BLE001  it has just been started
        return False
