"""`python -m tests.histories [--seconds 600] [--seed N]`: chaos on real parts, and its verdict.

Exit 0: valid. 1: an anomaly. 2: it could not run.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
from pathlib import Path

from heliograph.errors import HeliographError
from tests.histories.chaos import Chaos, summary


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.histories", description="Faults by a seed, and a verdict.")
    parser.add_argument("--seconds", type=float, default=600.0, help="how long faults are made (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=None, help="the same seed, the same faults (default: any)")
    parser.add_argument(
        "--spark",
        choices=["local", "cluster"],
        default=None,
        help="in the driver's JVM, or on a master with two workers (default: by the seed, odd ones on a cluster)",
    )
    parser.add_argument("--out", type=Path, default=Path("build/chaos"), help="default: %(default)s")
    args = parser.parse_args()
    seed = random.SystemRandom().randrange(1_000_000) if args.seed is None else args.seed
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = args.out / str(seed)
    try:
        on_cluster = None if args.spark is None else args.spark == "cluster"
        outcome = Chaos(seed, args.seconds, folder, _say, on_spark_cluster=on_cluster).run()
    except (HeliographError, AssertionError, OSError, RuntimeError) as error:
        _say(f"COULD NOT RUN: {error} (see {folder})")
        return 2
    except KeyboardInterrupt:
        _say("interrupted: no verdict")
        return 2
    for line in summary(outcome):
        _say(line)
    _say(f"history: {folder / 'history.jsonl'}")
    return 0 if outcome.verdict.is_valid else 1


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
