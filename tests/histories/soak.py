"""`python -m tests.histories.soak [--seconds 3600]`: steady load, and whether any process of the mirror grows.

Two clusters of one broker, `heliograph run` as a process. Every few seconds the memory, the file descriptors and the sockets of
every process of the run are summed by its part. Exit 0: all flat. 1: something grows. 2: it could not run.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import psutil

from heliograph.embedded.cluster import EmbeddedCluster, start_many
from heliograph.embedded.probe import free_ports
from heliograph.errors import HeliographError
from tests.histories.flatness import TOLERANCES, Sample, Trend, trend
from tests.histories.history import Recorder
from tests.histories.writers import Compacted, Plain, Transactions, Writer
from tests.support.heliograph_run import PROGRAM, HeliographRun, write_properties
from tests.support.topics import create_topic, ends
from tests.support.waiting import wait_until

TOPICS = {"plain": 4, "transactional": 2, "compacted": 2}
_EVERY_SECONDS = 5.0
_MEGABYTE = 1 << 20
Series = dict[tuple[str, str], list[Sample]]
"""By part of the run and measure."""


def measured(run: HeliographRun) -> Counter[tuple[str, str]]:
    """Memory, file descriptors and sockets by part, now."""
    jvms, daemons, workers = set(run.jvms()), set(run.daemons()), set(run.workers())
    found: Counter[tuple[str, str]] = Counter()
    for pid in run.survivors():
        part = "driver"
        for name, pids in (("JVM", jvms), ("daemon", daemons), ("workers", workers)):
            part = name if pid in pids else part
        if part == "driver" and pid != run.pid:
            part = "helpers"
        with contextlib.suppress(psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
            found[part, "memory"] += psutil.Process(pid).memory_info().rss // _MEGABYTE
            files = _files(pid)
            found[part, "files"] += len(files)
            found[part, "sockets"] += sum(1 for file in files if file.startswith("socket:"))
    return found


def _files(pid: int) -> list[str]:
    found = []
    for file in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found.append(os.readlink(file))  # noqa: PTH115  a socket is no path
    return found


def soak(seconds: float, directory: Path) -> tuple[Series, int]:
    """The series, and how many records the target has at the end."""
    source, target = EmbeddedCluster("A", directory), EmbeddedCluster("B", directory)
    recorder = Recorder(directory / "history.jsonl")
    start_many([source, target])
    try:
        for topic, partitions in TOPICS.items():
            config = {"cleanup.policy": "compact"} if topic == "compacted" else None
            create_topic(source.bootstrap, topic, partitions, config=config)
        settings = {
            "clusters": "A, B",
            "A.bootstrap.servers": source.bootstrap,
            "B.bootstrap.servers": target.bootstrap,
            "A->B.enabled": "true",
            "A->B.topics": ", ".join(TOPICS),
            "A->B.sync.group.offsets.enabled": "true",
            "replication.factor": "1",
            "epoch.seconds": "15",
            "listeners": f"http://127.0.0.1:{free_ports(1)[0]}",  # the REST server is one of the processes that must not grow
        }
        file = write_properties(directory / "soak.properties", settings)
        with HeliographRun(file, program=PROGRAM) as run:
            writers = _writers(recorder, source.bootstrap)
            series = _watch(run, target.bootstrap, writers, seconds)
        return series, _records(target.bootstrap)
    finally:
        recorder.close()
        source.stop()
        target.stop()


def _writers(recorder: Recorder, bootstrap: str) -> list[Writer]:
    return [
        Plain(recorder, bootstrap, "plain", TOPICS["plain"], 300.0, linger_ms=5, compression_type="lz4"),
        Transactions(recorder, bootstrap, "transactional", TOPICS["transactional"], 50.0),
        Compacted(recorder, bootstrap, "compacted", TOPICS["compacted"], 50.0, linger_ms=5),
    ]


def _watch(run: HeliographRun, target: str, writers: list[Writer], seconds: float) -> Series:
    for writer in writers:
        writer.start()
    try:
        wait_until(lambda: _records(target) > 100, "records arrive", 300, every=0.5)
        series: Series = {}
        began = shown = time.monotonic()
        while (now := time.monotonic() - began) < seconds:
            if run.exit_status is not None:
                raise RuntimeError(f"the mirror ended with {run.exit_status}: {run.output[-500:]}")
            for key, value in measured(run).items():
                series.setdefault(key, []).append(Sample(now, float(value)))
            if time.monotonic() - shown > 60:
                shown = time.monotonic()
                memory = sum(found[-1].value for (_, measure), found in series.items() if measure == "memory")
                _say(f"  {now:5.0f} s, {seconds - now:.0f} s left: {memory:,.0f} MB in all")
            time.sleep(_EVERY_SECONDS)
        return series
    finally:
        for writer in writers:
            writer.stop()


def _records(bootstrap: str) -> int:
    return sum(sum(ends(bootstrap, f"A.{topic}").values()) for topic in TOPICS)


def told(series: Series) -> tuple[list[str], list[str]]:
    """A table of trends, and the parts that grow."""
    lines = [f"{'part':8} {'measure':8} {'first':>9} {'last':>9} {'per hour':>10}"]
    growing = []
    for (part, measure), samples in sorted(series.items()):
        found: Trend = trend(samples, TOLERANCES[measure])
        word = "GROWS" if found.is_growing else "flat"
        lines.append(f"{part:8} {measure:8} {found.first:9,.1f} {found.last:9,.1f} {found.per_hour:+10,.1f}  {word}")
        growing += [f"{measure} of the {part}"] if found.is_growing else []
    return lines, growing


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.histories.soak", description="Does anything grow?")
    parser.add_argument("--seconds", type=float, default=3_600.0, help="how long to look (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("build/soak.json"), help="default: %(default)s")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = tempfile.TemporaryDirectory(prefix="heliograph-soak-", ignore_cleanup_errors=True)
    try:
        with folder as directory:
            series, records = soak(args.seconds, Path(directory))
        lines, growing = told(series)
    except (HeliographError, AssertionError, OSError, RuntimeError, ValueError) as error:
        _say(f"COULD NOT RUN: {error}")
        return 2
    except KeyboardInterrupt:
        _say("interrupted: no verdict")
        return 2
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps({" ".join(key): samples for key, samples in series.items()}) + "\n")
    for line in [*lines, f"{records:,} records in {args.seconds:.0f} s; samples: {args.out}"]:
        _say(line)
    _say(f"GROWING: {', '.join(growing)}" if growing else "FLAT")
    return 1 if growing else 0


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
