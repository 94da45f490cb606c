"""`python -m tests.bench.rest [--topics 1000] [--groups 500] [--out build/rest.json]`: many lanes, and what they cost at rest.

One broker pair, five partitions a topic, one record in each, groups that have committed. Measured: until everything is copied,
then CPU and memory of the mirror, its REST server included, while nothing happens but its jobs and the hand-over of every lane
to the next epoch, and how long each job takes.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from heliograph.embedded.cluster import EmbeddedCluster, start_many
from heliograph.embedded.settings import Jvm
from heliograph.errors import SetupError
from heliograph.replication.assignments import epoch_length
from tests.bench import facts
from tests.bench.gauge import Family
from tests.bench.mirrors import Heliograph
from tests.support.heliograph_run import write_properties
from tests.support.topics import ANSWER_SECONDS, admin

PARTITIONS = 5
TOPICS_OF_A_GROUP = 2
_AT_ONCE = 100
_EPOCH_SECONDS = 45.0
_MARGIN_SECONDS = 10.0
_LOOK_SECONDS = 2.0
_SETTLE_SECONDS = 50.0
_COPY_SECONDS = 600.0
_ASK_SECONDS = 5.0
_PATIENCE_SECONDS = 120.0
"""A broker that has just made thousands of partitions takes its time for the first group."""


def main() -> int:
    args = _arguments()
    with tempfile.TemporaryDirectory(prefix="heliograph-rest-", ignore_cleanup_errors=True) as directory:
        found = _measure(Path(directory), args.topics, args.groups, args.seconds)
    facts.keep(found, args.out)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.rest", description="Many lanes at rest.")
    parser.add_argument("--topics", type=int, default=1000, help="default: %(default)s")
    parser.add_argument("--groups", type=int, default=500, help="default: %(default)s")
    parser.add_argument(
        "--seconds",
        type=float,
        default=0.0,
        help="how long it is watched at rest (default: two epochs of 500 lanes, or one)",
    )
    parser.add_argument("--out", type=Path, default=Path("build/rest.json"), help="default: %(default)s")
    return parser.parse_args()


def _measure(directory: Path, topics: int, groups: int, seconds: float) -> dict[str, Any]:
    commit, changed = facts.commit()
    pair = [EmbeddedCluster(name, directory, jvm=Jvm(heap="1g")) for name in ("A", "B")]
    names = [f"topic-{number:04d}" for number in range(topics)]
    try:
        start_many(pair)
        source, target = (cluster.bootstrap for cluster in pair)
        _fill(source, names, groups)
        mirror = Heliograph(_file(directory / "mm2.properties", source, target), directory / "mirror.log")
        began = time.monotonic()
        mirror.start()
        try:
            family = Family(mirror.pid)
            _wait_for_copies(target, names, mirror)
            copied_s = time.monotonic() - began
            family.look()
            copy_cpu = family.cpu_seconds()
            time.sleep(_SETTLE_SECONDS)
            before = _status(directory / "mm2.properties")
            rest = _at_rest(family, seconds or _window(topics * PARTITIONS))
            after = _status(directory / "mm2.properties")
        finally:
            mirror.stop()
    finally:
        for cluster in pair:
            cluster.stop()
    return {
        "commit": commit,
        "changed": changed,
        "machine": facts.machine(),
        "topics": topics,
        "lanes": topics * PARTITIONS,
        "groups": groups,
        "copied_seconds": copied_s,
        "copied_cpu_seconds": copy_cpu,
        **rest,
        "hand_overs": after["epoch"] - before["epoch"],
        "following": sum(lane["state"] == "following" for lane in after["lanes"]),
        "jobs": _jobs(before["jobs"], after["jobs"]),
    }


def _window(lanes: int) -> float:
    """So long that every lane is handed over at least once, and each job of a minute or less has its turn."""
    return max(2 * _EPOCH_SECONDS, epoch_length(_EPOCH_SECONDS, lanes)) + _MARGIN_SECONDS


def _file(path: Path, source: str, target: str) -> Path:
    factors = (
        "replication",
        "heartbeats.topic.replication",
        "checkpoints.topic.replication",
        "offset-syncs.topic.replication",
    )
    return write_properties(
        path,
        {
            "clusters": "A, B",
            "A.bootstrap.servers": source,
            "B.bootstrap.servers": target,
            "A->B.enabled": "true",
            "A->B.topics": "topic-.*",
            "A->B.sync.group.offsets.enabled": "true",
            "listeners": "http://127.0.0.1:0",
            **{f"{name}.factor": "1" for name in factors},
        },
    )


def _fill(bootstrap: str, names: list[str], groups: int) -> None:
    """Topics with a record in each partition, and groups that have read it in two topics each."""
    client = admin(bootstrap)
    for first in range(0, len(names), _AT_ONCE):
        made = client.create_topics([NewTopic(name, PARTITIONS, 1) for name in names[first : first + _AT_ONCE]])
        for future in made.values():
            future.result(ANSWER_SECONDS)
    _write(bootstrap, {(name, partition) for name in names for partition in range(PARTITIONS)})
    for number in range(groups):
        read = [names[(number * TOPICS_OF_A_GROUP + place) % len(names)] for place in range(TOPICS_OF_A_GROUP)]
        offsets = [TopicPartition(name, partition, 1) for name in read for partition in range(PARTITIONS)]
        _commit(client, ConsumerGroupTopicPartitions(f"group-{number:04d}", offsets))


def _write(bootstrap: str, wanted: set[tuple[str, int]]) -> None:
    """A record into each partition. What is refused is tried again: the broker may not know yet what it has just made."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    writer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50})

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is None:
            wanted.discard((message.topic(), message.partition()))

    while wanted:
        if time.monotonic() > deadline:
            raise SetupError(f"{len(wanted)} records were not written")
        for name, partition in sorted(wanted):
            with contextlib.suppress(KafkaException):
                writer.produce(name, b"value", b"key", partition, on_delivery=delivered)
            writer.poll(0)
        writer.flush(_PATIENCE_SECONDS)
        time.sleep(1)


def _commit(client: AdminClient, wanted: ConsumerGroupTopicPartitions) -> None:
    """The first group makes its broker create the topic of offsets; until then librdkafka asks three times and then no more."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        (future,) = client.alter_consumer_group_offsets([wanted], request_timeout=_ASK_SECONDS).values()
        try:
            future.result(_PATIENCE_SECONDS)
            return
        except KafkaException:
            if time.monotonic() > deadline:
                raise


def _wait_for_copies(bootstrap: str, names: list[str], mirror: Heliograph) -> None:
    client = admin(bootstrap)
    deadline = time.monotonic() + _COPY_SECONDS
    missing = {TopicPartition(f"A.{name}", partition) for name in names for partition in range(PARTITIONS)}
    while missing:
        if time.monotonic() > deadline:
            raise SetupError(f"{len(missing)} partitions were not copied within {_COPY_SECONDS:.0f} s")
        _ = mirror.pid  # raises when it ended
        known = client.list_topics(timeout=ANSWER_SECONDS).topics
        asked = {at: OffsetSpec.latest() for at in missing if at.topic in known}
        answers = client.list_offsets(asked, request_timeout=ANSWER_SECONDS) if asked else {}
        missing -= {at for at, future in answers.items() if future.exception() is None and future.result().offset > 0}
        time.sleep(1)


def _at_rest(family: Family, seconds: float) -> dict[str, Any]:
    family.look()
    began, before, parts = time.monotonic(), family.cpu_seconds(), family.by_part()
    while time.monotonic() - began < seconds:
        time.sleep(_LOOK_SECONDS)
        family.look()  # workers come and go
        used = family.cpu_seconds() - before
    passed = time.monotonic() - began
    return {
        "rest_seconds": passed,
        "rest_cpu_percent": 100 * used / passed,
        "rest_cpu_percent_of": {
            part: 100 * (now - parts.get(part, 0.0)) / passed for part, now in family.by_part().items()
        },
        "rest_pss_mb": family.pss_mb(),
    }


def _status(file: Path) -> dict[str, Any]:
    program = Path(sys.executable).with_name("heliograph")
    said = subprocess.run([str(program), "status", str(file), "--json"], capture_output=True, text=True, check=False)
    (flow,) = json.loads(said.stdout)["flows"]
    found: dict[str, Any] = flow
    return found


def _jobs(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each job's last turn, and how many turns took longer than their interval while the mirror was at rest."""
    late = {job["name"]: job["late"] for job in before}
    kept = ("name", "took_ms", "interval_ms", "trouble")
    return [{name: job[name] for name in kept} | {"late": job["late"] - late.get(job["name"], 0)} for job in after]


if __name__ == "__main__":
    sys.exit(main())
