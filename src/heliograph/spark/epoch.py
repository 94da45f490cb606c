"""On the driver: one epoch is one Spark job; its tasks return their outcomes.

Two epochs may run at the same time. A job that fails is an outcome too: the lanes go on in the next epoch.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from heliograph.spark.carry import Order, run_orders, warm_up
from heliograph.spark.pyspark_core import SparkContext

_GROUP = "heliograph-epoch-{}"


@dataclass(frozen=True)
class EpochOutcome:
    """What the tasks of an epoch brought back, or why the job failed."""

    epoch: int
    failure: str = ""
    lanes: int = 0
    """That its tasks carried to their end."""


class EpochRunner:
    """Submits epochs to one SparkContext, each from a thread of a small pool."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        self._threads = ThreadPoolExecutor(max_workers=4, thread_name_prefix="epoch")

    def warm_up(self, slots: int) -> None:
        """Start a Python worker in every slot before the first epoch counts."""
        self._context.setJobGroup("heliograph-warm-up", "heliograph: start the Python workers")
        self._context.parallelize(range(slots), slots).mapPartitions(warm_up).collect()

    def submit(self, epoch: int, orders: Sequence[Order]) -> Future[EpochOutcome]:
        return self._threads.submit(self._run, epoch, list(orders))

    def _run(self, epoch: int, orders: list[Order]) -> EpochOutcome:
        lanes = sum(len(order.plan.lanes) for order in orders)
        context = self._context
        try:
            context.setJobGroup(_GROUP.format(epoch), f"heliograph epoch {epoch}: {lanes} lanes in {len(orders)} slots")
            blobs = [pickle.dumps(order) for order in orders]
            found = context.parallelize(blobs, len(blobs)).mapPartitions(run_orders).collect()
        except Exception as error:  # noqa: BLE001  a lost JVM, worker or cluster shows as many kinds: all mean "run it again"
            return EpochOutcome(epoch, failure=_reason(error))
        return EpochOutcome(epoch, lanes=sum(json.loads(row)["lanes"] for row in found))

    def status(self) -> dict[str, Any]:
        """What Spark itself says of the running epochs."""
        tracker = self._context.statusTracker()
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        return {
            "application": self._context.applicationId,
            "master": self._context.master,
            "jobs": sorted(tracker.getActiveJobsIds()),
            "active_tasks": sum(stage.numActiveTasks for stage in stages if stage is not None),
            "failed_tasks": sum(stage.numFailedTasks for stage in stages if stage is not None),
        }

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _reason(error: Exception) -> str:
    text = str(error).strip()
    for line in text.splitlines():
        if "Python worker exited" in line or "SparkException" in line or "aborted" in line:
            return line.strip()[:300]
    return (text.splitlines() or [type(error).__name__])[0][:300]
