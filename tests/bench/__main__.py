"""`python -m tests.bench [--case NAME ...] [--scale 0.1] [--out build/bench.json]`: run the cases, print, write the file."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from heliograph.errors import HeliographError
from tests.bench import facts
from tests.bench.cases import CASES, Case, Copy, Latency, Start, chosen
from tests.bench.copying import Wanted, measure_copy
from tests.bench.data import fill, warm_up
from tests.bench.figures import FAULTS, SYSTEMS, Figures, judge, medians
from tests.bench.lab import Lab
from tests.bench.mirrors import Task, mirror, remote_topic
from tests.bench.report import NAMES, misses, number, table, troubles
from tests.bench.streaming import measure_latency

Outcome = dict[str, Any]


def main() -> int:
    args = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    cases = chosen(args.case, args.scale)
    result = _heading(args.scale, cases)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    folder = tempfile.TemporaryDirectory(prefix="heliograph-bench-", ignore_cleanup_errors=True)
    with folder as directory, Lab(Path(directory)) as lab:
        _say("warming up the brokers")
        warm_up(lab, args.scale)
        for place, case in enumerate(cases):
            # Who goes first alternates, so that neither always meets the disk or the brokers the other left.
            order = SYSTEMS if place % 2 == 0 else SYSTEMS[::-1]
            result["cases"][case.name] = {"what": case.what, "first": order[0]} | _run(lab, case, order)
            result["aims"] = judge(result["cases"])
            args.out.write_text(json.dumps(result, indent=2) + "\n")
    _conclude(result, args.out)
    return 1 if troubles(result) else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="Heliograph against MirrorMaker 2.")
    names = [case.name for case in CASES]
    parser.add_argument("--case", nargs="+", choices=names, default=[], help="only these (default: all)")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the data and time (default: 1)")
    parser.add_argument("--out", type=Path, default=Path("build/bench.json"), help="default: %(default)s")
    return parser.parse_args()


def _heading(scale: float, cases: list[Case]) -> Outcome:
    commit, changed = facts.commit()
    window = next(((case.lead, case.seconds) for case in cases if isinstance(case, Latency)), (25.0, 40.0))
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit,
        "changed": changed,
        "machine": facts.machine(),
        "versions": facts.versions(),
        "scale": scale,
        "latency_window": window,
        "cases": {},
        "aims": [],
    }


def _run(lab: Lab, case: Case, order: tuple[str, ...]) -> Outcome:
    lab.clear()
    _say(f"{case.name}: {case.what}")
    match case:
        case Copy():
            return _run_copy(lab, case, order)
        case Start():
            return _only_start(_run_copy(lab, Copy(case.name, case.what, case.load, case.rounds, 0), order))
        case Latency():
            return _run_latency(lab, case, order)


def _run_copy(lab: Lab, case: Copy, order: tuple[str, ...]) -> Outcome:
    load = case.load
    topic = lab.create(f"bench-{case.name}", load.partitions)
    payload_mb = fill(lab.source.bootstrap, topic, load)
    rounds: list[Outcome] = []
    for turn in range(-case.rehearsals, case.rounds):
        found: Outcome = {}
        _say(f"  round {turn + 1} of {case.rounds}" if turn >= 0 else "  rehearsal, not measured")
        for system in order if turn % 2 == 0 else order[::-1]:
            lab.clear(keep=topic)
            wanted = Wanted(remote_topic(system, topic), load.records, payload_mb)
            found[system] = _attempt(system, measure_copy, lab, mirror(system, lab, Task(topic, load.codec)), wanted)
        rounds += [found] if turn >= 0 else []
    outcome = {system: medians([found[system] for found in rounds]) for system in order}
    return {"records": load.records, "payload_mb": payload_mb, "rounds": rounds} | outcome


def _run_latency(lab: Lab, case: Latency, order: tuple[str, ...]) -> Outcome:
    rounds: list[Outcome] = []
    for turn in range(case.rounds):
        _say(f"  round {turn + 1} of {case.rounds}")
        turns = order if turn % 2 == 0 else order[::-1]
        rounds.append({system: _attempt(system, _stream, lab, case, system) for system in turns})
    return {"rounds": rounds} | {system: medians([found[system] for found in rounds]) for system in order}


def _only_start(outcome: Outcome) -> Outcome:
    """What a case of a few records tells: how it begins and ends, and nothing of its speed."""
    kept = ("start_seconds", "start_cpu_seconds", "peak_pss_mb", "stop_seconds", "failed", *FAULTS)
    short = {system: {name: outcome[system][name] for name in kept if name in outcome[system]} for system in SYSTEMS}
    return outcome | short


def _stream(lab: Lab, case: Latency, system: str) -> Figures:
    lab.clear()
    topic = lab.create(f"bench-{case.name}", case.partitions)
    # Without linger MirrorMaker 2 sends at once, which is its best here.
    one = mirror(system, lab, Task(topic, linger_ms=0))
    return measure_latency(lab, one, case, topic, remote_topic(system, topic))


def _attempt(system: str, measure: Any, *arguments: Any) -> Outcome:
    """A run that fails is a result too: the other cases are still measured."""
    try:
        outcome: Outcome = measure(*arguments)
    except HeliographError as error:
        outcome = {"failed": str(error)}
    shown = ("records_per_second", "copy_cpu_seconds", "p50_ms", "p99_ms", "start_seconds", "failed")
    found = (f"{name} {_shown(outcome[name])}" for name in shown if name in outcome)
    _say(f"    {NAMES[system]}: {', '.join(found)}")
    return outcome


def _shown(value: float | str) -> str:
    return value if isinstance(value, str) else number(value)


def _conclude(result: Outcome, out: Path) -> None:
    print(f"\n{table(result)}\n")
    for line in misses(result):
        print(f"missed: {line}")
    for line in troubles(result):
        print(f"went wrong: {line}")
    print(f"written: {out}")


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
