"""`python -m tests.bench.restart [--rounds 3] [--out build/restart.json]`: the driver is killed with -9 and started again at once.

On this machine's own Spark and on a standalone one with two workers. A record is written to every partition twenty times a second, and
the target's broker stamps what it appends: the longest gap is how long delivery stood still. The lanes are guarded by the target.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from tests.bench import facts
from tests.bench.lab import Ends, Lab
from tests.bench.mirrors import Heliograph
from tests.support.heliograph_run import two_cluster_settings, write_properties
from tests.support.reading import messages
from tests.support.spark_cluster import HERE, SparkCluster
from tests.support.topics import create_topic
from tests.support.waiting import wait_until

PARTITIONS = 6
_BROKERS_TIME = {"message.timestamp.type": "LogAppendTime"}
_BEAT_SECONDS = 0.05
_CALM_SECONDS = 10.0
_PATIENCE_SECONDS = 300.0
_STANDALONE = {"spark.executor.memory": "512m", "spark.driver.host": HERE}


def main() -> int:
    args = _arguments()
    with (
        tempfile.TemporaryDirectory(prefix="heliograph-restart-", ignore_cleanup_errors=True) as directory,
        Lab(Path(directory)) as lab,
    ):
        found = _measure(lab, args.rounds)
    facts.keep(found, args.out)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.restart", description="A driver that is killed.")
    parser.add_argument("--rounds", type=int, default=3, help="default: %(default)s")
    parser.add_argument("--out", type=Path, default=Path("build/restart.json"), help="default: %(default)s")
    return parser.parse_args()


def _measure(lab: Lab, rounds: int) -> dict[str, Any]:
    commit, changed = facts.commit()
    heading = {"commit": commit, "changed": changed, "machine": facts.machine(), "partitions": PARTITIONS}
    heading["local"] = _killed(lab, "local", {}, rounds)
    with SparkCluster(lab.directory, workers=2) as spark:
        heading["standalone"] = _killed(lab, "standalone", {"master": spark.address, **_STANDALONE}, rounds)
    return heading


def _killed(lab: Lab, name: str, more: dict[str, str], rounds: int) -> dict[str, Any]:
    topic, remote = f"beat-{name}", f"A.beat-{name}"
    for cluster, beats in ((lab.source, topic), (lab.target, remote)):
        create_topic(cluster.bootstrap, beats, PARTITIONS, config=_BROKERS_TIME)
    lines = two_cluster_settings(lab.source.bootstrap, lab.target.bootstrap, topic, slots="2") | more
    mirror = Heliograph(write_properties(lab.directory / f"{name}.properties", lines), lab.directory / f"{name}.log")
    with _beats(lab.source.bootstrap, topic):
        try:
            mirror.start()
            _wait_for_records(lab, remote)
            stood = [_stood_still(lab, mirror, remote) for _ in range(rounds)]
        finally:
            mirror.stop()
    print(f"{name}: {', '.join(f'{seconds:.1f}' for seconds, _ in stood)} s", flush=True)
    seconds = [one for one, _ in stood]
    return {"seconds": seconds, "median": statistics.median(seconds), "loads": [load for _, load in stood]}


def _stood_still(lab: Lab, mirror: Heliograph, remote: str) -> tuple[float, float]:
    """Seconds, and the machine's load when the driver was killed."""
    time.sleep(_CALM_SECONDS)
    load, killed_ms = os.getloadavg()[0], time.time_ns() // 1_000_000
    mirror.kill()
    mirror.start()
    time.sleep(2)  # what was on its way has arrived
    _wait_for_records(lab, remote)
    return max(_gap(lab.target.bootstrap, remote, number, killed_ms) for number in range(PARTITIONS)) / 1000, load


def _gap(bootstrap: str, topic: str, partition: int, since_ms: int) -> int:
    stamps = [message.timestamp()[1] for message in messages(bootstrap, topic, partition)]
    begin = max((stamp for stamp in stamps if stamp < since_ms), default=since_ms)
    return max(later - earlier for earlier, later in pairwise(stamp for stamp in stamps if stamp >= begin))


def _wait_for_records(lab: Lab, topic: str) -> None:
    """Until more of them arrive than could come from before."""
    ends = Ends(lab.target.bootstrap, topic)
    before = ends.total()
    wait_until(
        lambda: ends.total() > before + 20 * PARTITIONS, f"records arrive in {topic}", _PATIENCE_SECONDS, every=0.2
    )


@contextmanager
def _beats(bootstrap: str, topic: str) -> Iterator[None]:
    stop = threading.Event()

    def write() -> None:
        client = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
        while not stop.wait(_BEAT_SECONDS):
            for partition in range(PARTITIONS):
                client.produce(topic, b"beat", partition=partition)
            client.poll(0)
        client.flush()

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


if __name__ == "__main__":
    sys.exit(main())
