"""Topic configs in step, on real brokers, changed and read by another client; and `heliograph plan`, before and after."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from heliograph.config.load import load_file
from heliograph.control.clock import Clock
from heliograph.control.config_sync import ConfigSyncJob
from heliograph.control.jobs import JobRunner
from heliograph.control.planner import FlowPlan, FlowPlanner
from heliograph.kafka.slot import Warm
from heliograph.model.events import Event
from tests.support.clusters import TwoClusters
from tests.support.guarded import Grant, GuardedCluster
from tests.support.mirror import command, flow_file, run_to_the_end
from tests.support.topics import ANSWER_SECONDS, admin, create_topic, overrides, topic_names
from tests.support.waiting import wait_until


def change(bootstrap: str, topic: str, **configs: str | None) -> None:
    """Set configs, or remove them with None."""
    client = admin(bootstrap)
    entries = [
        ConfigEntry(
            name.replace("_", "."),
            value,
            incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET,
        )
        for name, value in configs.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    client.incremental_alter_configs([resource])[resource].result(ANSWER_SECONDS)
    wanted = {name.replace("_", "."): value for name, value in configs.items()}

    def is_known() -> bool:
        """The controller answers before the brokers know of it."""
        found = overrides(bootstrap, topic)
        return all(found.get(name) == value for name, value in wanted.items())

    wait_until(is_known, f"{topic} has {wanted}")


@dataclass
class Syncing:
    """The job of a flow, as a run would do it, without Spark. Every turn has a job of its own: nothing is kept in memory."""

    file: Path

    def __post_init__(self) -> None:
        settings = load_file(str(self.file))
        self.settings = settings.flows[0]
        self.planner = FlowPlanner(self.settings, settings.engine)
        self.plan: FlowPlan = self.planner.apply(self.planner.discover())
        self.events: list[Event] = []
        self.changes = 0

    def turn(self) -> bool:
        async def once() -> bool:
            warm = Warm()
            runner = JobRunner(self.plan.name, lambda: True, self.events.append, Clock())
            try:
                return await runner.once(self._job(warm))
            finally:
                warm.close()

        return asyncio.run(once())

    def is_in_step(self) -> bool:
        """After a turn: the target's brokers know of what its controller has changed a moment later."""
        wait_until(lambda: self.pending() == [], "nothing is pending")
        return True

    def pending(self) -> list[str]:
        async def look() -> list[str]:
            warm = Warm()
            try:
                found = await self._job(warm).look()
                return [f"{each.subject}: {each.what}" for each in found.actions]
            finally:
                warm.close()

        return asyncio.run(look())

    def _job(self, warm: Warm) -> ConfigSyncJob:
        ledger = warm.ledger(self.settings.target)
        return ConfigSyncJob(self.settings, lambda: self.plan, ledger, Clock(), self._changed)

    def _changed(self) -> None:
        self.changes += 1


@contextmanager
def syncing(file: Path) -> Iterator[Syncing]:
    found = Syncing(file)
    try:
        yield found
    finally:
        found.planner.close()


def test_configs_follow_the_source_and_what_only_the_remote_topic_has_stays(
    two_clusters: TwoClusters, unique: str, tmp_path: Path
) -> None:
    here, there = two_clusters.a.bootstrap, two_clusters.b.bootstrap
    source = f"{unique}s"
    remote = f"{source}.{unique}"
    create_topic(here, unique, config={"retention.ms": "1000000", "min.insync.replicas": "1"})
    file = flow_file(tmp_path / "mm2.properties", {source: here, "B": there}, {f"{source}->B": unique})
    with syncing(file) as job:
        assert overrides(there, remote) == {"retention.ms": "1000000"}
        assert job.turn() and job.is_in_step()
        assert job.changes == 0

        change(here, unique, retention_ms="2000000", segment_bytes="2000000")
        change(there, remote, flush_messages="7", min_insync_replicas="1")
        assert job.pending() == [f"topic {remote}: set retention.ms=2000000, segment.bytes=2000000"]
        assert job.turn() and job.is_in_step()
        kept = {"flush.messages": "7", "min.insync.replicas": "1"}
        assert overrides(there, remote) == {"retention.ms": "2000000", "segment.bytes": "2000000", **kept}
        assert job.changes == 1

        change(there, remote, segment_bytes="3000000")
        assert job.turn() and job.is_in_step()
        assert overrides(there, remote)["segment.bytes"] == "2000000"

        change(here, unique, retention_ms=None)
        assert job.pending() == [f"topic {remote}: remove retention.ms"]
        assert job.turn() and job.is_in_step()
        assert overrides(there, remote) == {"segment.bytes": "2000000", **kept}

        change(here, unique, segment_bytes=None)
        change(there, remote, segment_bytes="4000000")
        assert job.turn() and job.is_in_step()
        assert overrides(there, remote)["segment.bytes"] == "4000000", "somebody else set it since"
    assert job.events == []


def test_defaults_of_the_source_count_where_they_are_asked_for(
    two_clusters: TwoClusters, unique: str, tmp_path: Path
) -> None:
    here, there = two_clusters.a.bootstrap, two_clusters.b.bootstrap
    source = f"{unique}s"
    remote = f"{source}.{unique}"
    create_topic(here, unique, config={"retention.ms": "1000000"})
    more = {f"{source}->B.use.defaults.from": "source", "config.properties.exclude": "delete\\\\.retention\\\\..*"}
    file = flow_file(tmp_path / "mm2.properties", {source: here, "B": there}, {f"{source}->B": unique}, more)
    with syncing(file) as job:
        assert job.turn() and job.is_in_step()
        change(there, remote, retention_bytes="1000", delete_retention_ms="2000")
        assert job.pending() == [f"topic {remote}: set retention.bytes=-1"]
        assert job.turn() and job.is_in_step()
        assert overrides(there, remote)["retention.bytes"] == "-1"
        assert overrides(there, remote)["delete.retention.ms"] == "2000", "it is excluded"
        change(here, unique, retention_ms=None)
        assert job.turn() and job.is_in_step()
        assert overrides(there, remote)["retention.ms"] == "604800000", "the source's default"
    assert job.events == []


def test_a_refused_topic_is_named_with_its_permission_and_the_others_are_changed(
    two_clusters: TwoClusters, kafka_jars: Path, unique: str, tmp_path: Path
) -> None:
    del kafka_jars
    here = two_clusters.a.bootstrap
    source, allowed, refused = f"{unique}s", f"{unique}-a", f"{unique}-b"
    guarded = GuardedCluster("G", tmp_path)
    guarded.start()
    try:
        for operation in ("CREATE", "WRITE", "READ", "DESCRIBE_CONFIGS"):
            guarded.grant(Grant("topic", "*", operation))
        guarded.grant(Grant("cluster", "kafka-cluster", "DESCRIBE_CONFIGS"))
        guarded.grant(Grant("topic", f"{source}.{allowed}", "ALTER_CONFIGS"))
        for topic in (allowed, refused):
            create_topic(here, topic)
        topics = f"{allowed}, {refused}"
        file = flow_file(tmp_path / "mm2.properties", {source: here, "G": guarded.bootstrap}, {f"{source}->G": topics})
        with syncing(file) as job:
            for topic in (allowed, refused):
                change(here, topic, retention_ms="5000000")
            assert not job.turn()
            changed = {"retention.ms": "5000000"}
            wait_until(lambda: overrides(guarded.bootstrap, f"{source}.{allowed}") == changed, "one is changed")
            assert overrides(guarded.bootstrap, f"{source}.{refused}") == {}
            [event] = job.events
            assert f"this needs ALTER_CONFIGS on the topic {source}.{refused} of cluster G" in event.reason
            guarded.grant(Grant("topic", f"{source}.{refused}", "ALTER_CONFIGS"))
            assert job.turn() and job.is_in_step()
            assert overrides(guarded.bootstrap, f"{source}.{refused}") == {"retention.ms": "5000000"}
    finally:
        guarded.stop()


def test_plan_names_every_change_makes_none_and_names_none_once_a_run_has_made_them(
    two_clusters: TwoClusters, unique: str, tmp_path: Path
) -> None:
    here, there = two_clusters.a.bootstrap, two_clusters.b.bootstrap
    source = f"{unique}s"
    known, new = f"{unique}-known", f"{unique}-new"
    create_topic(here, known)
    flows = {f"{source}->B": f"{known}, {new}"}
    file = flow_file(tmp_path / "mm2.properties", {source: here, "B": there}, flows)
    run_to_the_end(file)
    create_topic(here, new, partitions=2)
    change(here, known, retention_ms="7000000")

    said = command("plan", str(file), "--json")
    assert said.code == 0, said.err
    [flow] = json.loads(said.out)["flows"]
    assert (flow["flow"], flow["troubles"], flow["left_out"]) == (f"{source}->B", [], [])
    assert flow["actions"] == [
        {
            "job": "topics",
            "subject": f"topic {source}.{new}",
            "what": "create with 2 partitions",
            "why": f"source topic '{new}' has no remote topic",
        },
        {
            "job": "topic configs",
            "subject": f"topic {source}.{known}",
            "what": "set retention.ms=7000000",
            "why": f"source topic '{known}' has it so",
        },
    ]
    assert f"{source}.{new}" not in topic_names(there)
    assert overrides(there, f"{source}.{known}") == {}

    run_to_the_end(file)
    assert overrides(there, f"{source}.{known}") == {"retention.ms": "7000000"}
    assert command("plan", str(file)).out == f"{source}->B: nothing pending\n"
