"""PySpark's daemon with the task code imported before it forks: every worker would import it again, a second of CPU each.

Started by Spark as `python -m heliograph.spark.daemon` (`spark.python.daemon.module`). Elsewhere than on this machine it comes out of
the archive that Spark puts into an executor's working directory before its first task (elsewhere.py).
"""

from __future__ import annotations

import gc
import sys

from heliograph.packages import without_archives

sys.path[:] = without_archives(sys.path)

from pyspark import daemon, worker

from heliograph.spark import carry

__all__ = ["carry", "worker"]

if __name__ == "__main__":
    # A worker collects garbage after each task. What it was forked with is none, and looking at it would copy its memory.
    gc.freeze()
    daemon.manager()
