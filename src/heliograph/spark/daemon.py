"""PySpark's daemon with the task code imported before it forks: every worker would import it again, a second of CPU each.

Started by Spark as `python -m heliograph.spark.daemon` (`spark.python.daemon.module`), on masters of this machine only:
elsewhere the package reaches an executor with the first task, after its daemon has started.
"""

from __future__ import annotations

from pyspark import daemon

from heliograph.spark import carry

__all__ = ["carry"]

if __name__ == "__main__":
    daemon.manager()
