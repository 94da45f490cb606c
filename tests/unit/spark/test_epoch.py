"""An epoch as a Spark job, with a context that only pretends."""

from __future__ import annotations

import json
from typing import Any, cast

from pyspark import SparkContext

from heliograph.kafka.slot import SlotPlan, SlotSettings
from heliograph.spark.carry import Order
from heliograph.spark.epoch import EpochRunner
from heliograph.spark.session import local_master


class PretendedContext:
    """Collects what it is told to, or fails as told."""

    def __init__(self, rows: list[str] | None = None, failure: Exception | None = None) -> None:
        self.rows = rows or []
        self.failure = failure
        self.groups: list[str] = []
        self.slices: list[int] = []

    def setJobGroup(self, group: str, description: str) -> None:  # noqa: N802  Spark's name
        self.groups.append(f"{group}: {description}")

    def parallelize(self, items: list[bytes], slices: int) -> PretendedContext:
        self.slices.append(slices)
        return self

    def mapPartitions(self, _: Any) -> PretendedContext:  # noqa: N802  Spark's name
        return self

    def collect(self) -> list[str]:
        if self.failure is not None:
            raise self.failure
        return self.rows


ORDERS = [Order(3, slot, 51.0, "127.0.0.1", 1, "token", SlotPlan((), {}, {}, {}, SlotSettings())) for slot in range(2)]


def outcome_of(context: PretendedContext) -> Any:
    runner = EpochRunner(cast(SparkContext, context))
    try:
        return runner.submit(3, ORDERS).result(10)
    finally:
        runner.close()


def test_an_epoch_is_one_job_with_a_task_for_each_order() -> None:
    rows = [json.dumps({"epoch": 3, "slot": slot, "lanes": slot + 1}) for slot in range(2)]
    context = PretendedContext(rows)
    outcome = outcome_of(context)
    assert context.slices == [2]
    assert context.groups == ["heliograph-epoch-3: heliograph epoch 3: 0 lanes in 2 slots"]
    assert outcome.failure == ""
    assert outcome.lanes == 3
    assert outcome.epoch == 3


def test_a_failed_job_is_an_outcome_with_the_line_that_says_why() -> None:
    error = RuntimeError(
        "An error occurred while calling o12.collect.\n: org.apache.spark.SparkException: Job aborted: lost\n\tat x.Y"
    )
    assert outcome_of(PretendedContext(failure=error)).failure == (
        ": org.apache.spark.SparkException: Job aborted: lost"
    )


def test_a_failure_without_words_has_its_kind_as_reason() -> None:
    assert outcome_of(PretendedContext(failure=ConnectionRefusedError())).failure == "ConnectionRefusedError"


def test_a_long_reason_is_cut() -> None:
    assert len(outcome_of(PretendedContext(failure=RuntimeError("x" * 9000))).failure) == 300


def test_this_machine_has_room_for_two_epochs_and_for_retries() -> None:
    assert local_master(3) == "local[6,4]"
