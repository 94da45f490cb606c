"""`python -m tests.bench.before TREE [--case NAME ...] [--rounds 3] [--scale 1] [--out build/before.json]`: this tree against another.

TREE is a checkout of an earlier commit with a virtual environment of its own (`make setup` there). Both copy the same data on the same
brokers, one after the other; who goes first alternates. For a change near the data path: do its figures fall?
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.bench import facts
from tests.bench.cases import CASES, Copy
from tests.bench.copying import Wanted, measure_copy
from tests.bench.data import fill, warm_up
from tests.bench.figures import HELIOGRAPH, medians
from tests.bench.lab import Lab
from tests.bench.mirrors import PROGRAM, Task, mirror, remote_topic
from tests.bench.report import before_and_after, number

_SHOWN = ("records_per_second", "copy_cpu_us_per_record", "total_cpu_seconds", "start_seconds")


def main() -> int:
    args = _arguments()
    programs = {"before": args.tree / ".venv/bin/heliograph", "after": PROGRAM}
    if not programs["before"].is_file():
        sys.stderr.write(f"{programs['before']} is missing: run `make setup` in {args.tree}\n")
        return 2
    commit, changed = facts.commit()
    result: dict[str, Any] = {"machine": facts.machine(), "commit": commit, "changed": changed, "cases": {}}
    result["before"], _ = facts.commit(args.tree)
    folder = tempfile.TemporaryDirectory(prefix="heliograph-before-", ignore_cleanup_errors=True)
    with folder as directory, Lab(Path(directory)) as lab:
        warm_up(lab, args.scale)
        for case in CASES:
            if isinstance(case, Copy) and case.name in (args.case or [case.name]):
                result["cases"][case.name] = {"what": case.what} | _compare(lab, case, programs, args)
                facts.keep(result, args.out)
    print(before_and_after(result))
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.before", description="This tree against another one.")
    names = [case.name for case in CASES if isinstance(case, Copy)]
    parser.add_argument("tree", type=Path, help="a checkout of an earlier commit, with its .venv")
    parser.add_argument("--case", nargs="+", choices=names, default=[], help="only these (default: all)")
    parser.add_argument("--rounds", type=int, default=3, help="default: %(default)s")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the data (default: 1)")
    parser.add_argument("--out", type=Path, default=Path("build/before.json"), help="default: %(default)s")
    return parser.parse_args()


def _compare(lab: Lab, case: Copy, programs: dict[str, Path], args: argparse.Namespace) -> dict[str, Any]:
    lab.clear()
    load = case.load.scaled(args.scale)
    topic = lab.create(f"bench-{case.name}", load.partitions)
    wanted = Wanted(remote_topic(HELIOGRAPH, topic), load.records, fill(lab.source.bootstrap, topic, load))
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in programs}
    for turn in range(-1, args.rounds):
        for name, program in list(programs.items())[:: -1 if turn % 2 else 1]:
            lab.clear(keep=topic)
            found = measure_copy(lab, mirror(HELIOGRAPH, lab, Task(topic, load.codec), program), wanted)
            shown = ", ".join(f"{figure} {number(found[figure])}" for figure in _SHOWN)
            sys.stderr.write(f"{case.name} {'rehearsal' if turn < 0 else turn + 1} {name}: {shown}\n")
            if turn >= 0:  # brokers compile anew what a load of another kind taught them
                rounds[name].append(found)
    return {name: medians(found) for name, found in rounds.items()}


if __name__ == "__main__":
    sys.exit(main())
