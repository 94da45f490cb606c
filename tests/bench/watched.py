"""`python -m tests.bench.watched [--scale 0.1] [--out build/watched.json]`: the same copy alone, and with a crowd that looks at it.

Who looks must not slow what is looked at: see `crowd` for who they are. They share the cores with
brokers and mirror, at the lowest priority: in earnest they have machines of their own.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from heliograph.embedded.probe import HOST, free_ports
from heliograph.embedded.tether import Tether
from tests.bench import crowd, facts
from tests.bench.cases import Load
from tests.bench.copying import Wanted, measure_copy
from tests.bench.data import fill, warm_up
from tests.bench.figures import HELIOGRAPH
from tests.bench.lab import Lab
from tests.bench.mirrors import Task, mirror, remote_topic

_LOAD = Load(4_000_000)
_ORDER = (False, True, True, False, False, True)
_TOPIC = "bench-watched"
_KEPT = ("records_per_second", "mb_per_second", "copy_cpu_seconds", "lost", "repeated")


def main() -> int:
    args = _arguments()
    with (
        tempfile.TemporaryDirectory(prefix="heliograph-watched-", ignore_cleanup_errors=True) as directory,
        Lab(Path(directory)) as lab,
    ):
        warm_up(lab, args.scale)
        found = _measure(lab, _LOAD.scaled(args.scale))
    facts.keep(found, args.out)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.watched", description="A copy that many look at.")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the data (default: 1)")
    parser.add_argument("--out", type=Path, default=Path("build/watched.json"), help="default: %(default)s")
    return parser.parse_args()


def _measure(lab: Lab, load: Load) -> dict[str, Any]:
    commit, changed = facts.commit()
    heading = {"commit": commit, "changed": changed, "machine": facts.machine()}
    topic = lab.create(_TOPIC, load.partitions)
    payload_mb = fill(lab.source.bootstrap, topic, load)
    wanted = Wanted(remote_topic(HELIOGRAPH, topic), load.records, payload_mb)
    rounds: dict[bool, list[dict[str, Any]]] = {False: [], True: []}
    _copy(lab, wanted, False)  # the first one meets brokers that are not warm yet
    for watched in _ORDER:
        lab.clear(keep=topic)
        figures = _copy(lab, wanted, watched)
        print(f"{'watched' if watched else 'alone'}: {figures['records_per_second']:,.0f} records/s", flush=True)
        rounds[watched].append({name: figures[name] for name in _KEPT})
    alone, seen = (statistics.median(one["records_per_second"] for one in rounds[kind]) for kind in (False, True))
    return heading | {
        "slow": crowd.SLOW,
        "streams": crowd.STREAMS,
        "payload_mb": payload_mb,
        "alone": rounds[False],
        "watched": rounds[True],
        "ratio": seen / alone,
    }


def _copy(lab: Lab, wanted: Wanted, watched: bool) -> Any:
    (port,) = free_ports(1)
    task = Task(_TOPIC, more={"listeners": f"http://{HOST}:{port}"})
    with _crowd(lab, port) if watched else nullcontext():
        return measure_copy(lab, mirror(HELIOGRAPH, lab, task), wanted)


@contextmanager
def _crowd(lab: Lab, port: int) -> Iterator[None]:
    command = [sys.executable, "-m", "tests.bench.crowd", HOST, str(port)]
    process: subprocess.Popen[bytes] = Tether().start(command, lab.directory / "crowd.log")
    try:
        yield
    finally:
        process.kill()
        process.wait()


if __name__ == "__main__":
    sys.exit(main())
