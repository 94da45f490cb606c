"""`python -m tests.bench.joining [--joins 10] [--out build/joining.json]`: new topics join a flow, and a lane that runs is watched.

A join is a new epoch: every lane passes to its next task. Measured is the longest gap that a consumer of the lane's copy sees
around each join, beside that of a consumer of the source at the same time, and that of the copy in as long a time without a join.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.bench import facts
from tests.bench.lab import Ends, Lab
from tests.support.arrivals import Arrivals, SteadyWriter
from tests.support.heliograph_run import PROGRAM, HeliographRun, two_cluster_settings, write_properties
from tests.support.waiting import wait_until
from tests.support.writers import samples, write

INTERVAL_SECONDS = 2
RECORDS_PER_SECOND = 200
_RECORDS = 100
_PARTITIONS = 2
_AFTERWARDS_SECONDS = 0.5
_WARM = 500


class Stage:
    """A flow with one lane under load."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        lab.create("steady", 1)
        settings = two_cluster_settings(lab.source.bootstrap, lab.target.bootstrap, "steady, joins-.*")
        settings |= {"refresh.topics.interval.seconds": str(INTERVAL_SECONDS)}
        self._file = write_properties(lab.directory / "joining.properties", settings)

    def measure(self, joins: int) -> dict[str, Any]:
        source, target = self._lab.source.bootstrap, self._lab.target.bootstrap
        copied = Ends(target, "A.steady")
        with HeliographRun(self._file, program=PROGRAM) as run:
            writer = SteadyWriter(source, "steady", every_s=1 / RECORDS_PER_SECOND)
            wait_until(lambda: copied.total() > _WARM, "records flow")
            at_source, at_target = Arrivals(source, "steady"), Arrivals(target, "A.steady")
            wait_until(lambda: len(at_target.times) > 2 * _WARM, "they arrive")
            rows = [self._join(number, at_source, at_target) for number in range(joins)]
            for part in (writer, at_source, at_target):
                part.stop()
            run.terminate()
        return {"joins": rows}

    def _join(self, number: int, at_source: Arrivals, at_target: Arrivals) -> dict[str, float]:
        topic = f"joins-{number}"
        self._lab.create(topic, _PARTITIONS)
        write(self._lab.source.bootstrap, topic, samples(_RECORDS, partitions=_PARTITIONS))
        began = time.monotonic()
        copied = Ends(self._lab.target.bootstrap, f"A.{topic}")
        wait_until(lambda: copied.total() == _RECORDS, f"{topic} joined", every=0.02)
        joined = time.monotonic()
        time.sleep(_AFTERWARDS_SECONDS)
        until = time.monotonic()
        time.sleep(until - began)
        found = {
            "copied_seconds": joined - began,
            "gap_ms": 1_000 * at_target.longest_gap(began, until),
            "source_gap_ms": 1_000 * at_source.longest_gap(began, until),
            "usual_gap_ms": 1_000 * at_target.longest_gap(until, until + until - began),
        }
        print(", ".join(f"{name} {value:,.1f}" for name, value in found.items()), flush=True)
        return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.joining", description="Topics that join a flow.")
    parser.add_argument("--joins", type=int, default=10, help="how many (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("build/joining.json"), help="default: %(default)s")
    args = parser.parse_args()
    commit, changed = facts.commit()
    found: dict[str, Any] = {"commit": commit, "changed": changed, "machine": facts.machine()}
    found |= {"interval_seconds": INTERVAL_SECONDS, "records_per_second": RECORDS_PER_SECOND}
    with (
        tempfile.TemporaryDirectory(prefix="heliograph-joining-", ignore_cleanup_errors=True) as directory,
        Lab(Path(directory)) as lab,
    ):
        found |= Stage(lab).measure(args.joins)
    facts.keep(found, args.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
