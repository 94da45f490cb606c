"""One history from beginning to end: parts started, records written, faults made and mended, both logs read, judged."""

from __future__ import annotations

import heapq
import itertools
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.histories.checker import Verdict, judge, report
from tests.histories.faults import Faults
from tests.histories.history import History, Recorder, load
from tests.histories.logs import read
from tests.histories.observers import Arrivals, Group, GroupWatch
from tests.histories.schedule import CLUSTER_KINDS, KINDS, PAUSE_SECONDS, Planned, plan
from tests.histories.stage import COMPACTED, GROUPS, TOPICS, Stage, remote_places
from tests.histories.standstill import by_kind, standstills
from tests.histories.writers import Compacted, Plain, Transactions, Writer, write_ends
from tests.support.waiting import wait_until

START_SECONDS = 300.0
CATCH_UP_SECONDS = 240.0
_PROGRESS_SECONDS = 10.0
Say = Callable[[str], None]


@dataclass(frozen=True)
class Outcome:
    history: History
    verdict: Verdict
    seconds: float
    """How long faults were made."""
    catching_up: float
    """How long after the last record everything was on the target."""


class Chaos:
    """`folder` gets the history, what the mirror printed and, where something is wrong, the brokers' data."""

    def __init__(
        self,
        seed: int,
        seconds: float,
        folder: Path,
        say: Say,
        pause: tuple[float, float] = PAUSE_SECONDS,
        on_spark_cluster: bool | None = None,
    ) -> None:
        """Odd seeds run on a Spark cluster, even ones in the driver's own JVM, unless it is said."""
        shutil.rmtree(folder, ignore_errors=True)
        self._on_spark_cluster = bool(seed % 2) if on_spark_cluster is None else on_spark_cluster
        self._seed, self._seconds, self._folder, self._say = seed, seconds, folder, say
        self._recorder = Recorder(folder / "history.jsonl")
        self._schedule = plan(seed, seconds, CLUSTER_KINDS if self._on_spark_cluster else KINDS, pause)
        self._caught_up = 0.0

    def run(self) -> Outcome:
        """Whatever happens, no process is left."""
        self._recorder.note("begin", seed=self._seed, compacted=sorted(COMPACTED), topics=TOPICS)
        where = "a Spark cluster of two workers" if self._on_spark_cluster else "local Spark"
        self._say(f"seed {self._seed}: {len(self._schedule)} faults in {self._seconds:.0f} s, on {where}")
        for fault in self._schedule:
            self._say(f"  at {fault.at:6.1f} s  {fault.what}")
        brokers = self._folder / "brokers"
        brokers.mkdir()
        try:
            with Stage(brokers, self._recorder, self._on_spark_cluster) as stage:
                self._perform(stage)
                for place in remote_places().values():
                    topic, partition = place
                    self._recorder.log("source", place, read(stage.source.bootstrap, topic, partition))
                    self._recorder.log("target", place, read(stage.target.bootstrap, f"A.{topic}", partition))
        finally:
            self._recorder.close()
            for output in [*brokers.glob("*.out"), *brokers.glob("*.err")]:
                shutil.move(output, self._folder / output.name)
        history = load(self._recorder.path)
        outcome = Outcome(history, judge(history), self._seconds, self._caught_up)
        if outcome.verdict.is_valid:
            shutil.rmtree(brokers)
        return outcome

    def _perform(self, stage: Stage) -> None:
        self._say("starting two clusters of three brokers and the mirror")
        stage.start_mirror()
        wait_until(stage.has_remote_topics, "the mirror made its remote topics", START_SECONDS, every=0.5)
        remote = remote_places()
        arrivals = Arrivals(self._recorder, stage.target.bootstrap, remote)
        watch = GroupWatch(self._recorder, stage.target.bootstrap, list(GROUPS), remote)
        rates = dict(zip(GROUPS, (2_000, 100), strict=True))
        groups = [Group(self._recorder, stage.source.bootstrap, g, list(TOPICS), rate) for g, rate in rates.items()]
        observers = [arrivals, watch, *groups]
        writers = self._writers(stage.source.bootstrap)
        for each in (*observers, *writers):
            each.start()
        try:
            wait_until(lambda: arrivals.count > 100, "records arrive on the target", START_SECONDS, every=0.2)
            self._make_faults(stage, arrivals)
            for writer in writers:
                writer.end()
            for writer in writers:
                writer.stop()
            self._catch_up(stage, arrivals)
            stage.stop_mirror()
        finally:
            for each in (*writers, *observers):
                each.stop()

    def _writers(self, bootstrap: str) -> list[Writer]:
        def made(topic: str, rate: float) -> tuple[Recorder, str, str, int, float]:
            return self._recorder, bootstrap, topic, TOPICS[topic], rate

        return [
            Plain(*made("plain", 150.0), linger_ms=5, compression_type="lz4"),
            Plain(*made("tiny", 60.0), linger_ms=0, batch_num_messages=1),
            Transactions(*made("transactional", 80.0)),
            Compacted(*made("compacted", 80.0), linger_ms=5),
        ]

    def _make_faults(self, stage: Stage, arrivals: Arrivals) -> None:
        faults, began = Faults(stage), time.monotonic()
        order = itertools.count()
        steps: list[tuple[float, int, Callable[[], None] | None, Planned]] = []
        for fault in self._schedule:
            heapq.heappush(steps, (fault.at, next(order), None, fault))
        shown = began
        while (now := time.monotonic() - began) < self._seconds or steps:
            if time.monotonic() - shown > _PROGRESS_SECONDS:
                shown = time.monotonic()
                self._say(f"  {now:6.1f} s, {max(0.0, self._seconds - now):.0f} s left: {arrivals.count:,} arrived")
            if not steps or steps[0][0] > now:
                time.sleep(0.1)
                stage.revive()
                continue
            _, _, mend, fault = heapq.heappop(steps)
            if mend is None and not stage.is_whole(fault.kind.part):
                heapq.heappush(
                    steps, (now + 1.0, next(order), None, fault)
                )  # on a slow machine a broker needs long to start
            elif mend is None:
                self._say(f"  {now:6.1f} s  {fault.what}")
                self._recorder.note("fault", fault=fault.kind.name, what=fault.what, may_repeat=fault.kind.may_repeat)
                heapq.heappush(steps, (now + fault.lasts, next(order), faults.begin(fault), fault))
            else:
                mend()
                assert now < self._seconds + START_SECONDS, f"not whole again after: {fault.what}"
                if stage.is_whole(fault.kind.part):
                    self._recorder.note("mended", what=fault.what)
                else:
                    heapq.heappush(steps, (now + 1.0, next(order), _nothing, fault))

    def _catch_up(self, stage: Stage, arrivals: Arrivals) -> None:
        """Until the last record of every partition has come, or the time for it is over: then the checker says what is missing."""
        labels = write_ends(stage.source.bootstrap, TOPICS)
        self._say("no more faults; waiting until everything is on the target")
        began = time.monotonic()
        while not labels <= arrivals.labels and time.monotonic() - began < CATCH_UP_SECONDS:
            stage.revive()
            time.sleep(0.2)
        self._caught_up = time.monotonic() - began
        self._recorder.note("caught up" if labels <= arrivals.labels else "not caught up")


def _nothing() -> None:
    """Mended already, and not whole yet."""


def summary(outcome: Outcome) -> list[str]:
    """The verdict in words, and one paragraph for docs/reliability.md."""
    history, verdict = outcome.history, outcome.verdict
    still = by_kind(standstills(history.faults, history.arrivals))
    lines = report(history, verdict)
    lines.append("longest standstill of any partition after a fault:")
    for kind, found in sorted(still.items()):
        times = ", ".join(f"{seconds:.1f}" for seconds in found)
        lines.append(f"  {kind}: {times} s")
    counts = ", ".join(f"{count:,} {topic}" for topic, count in verdict.records.items())
    worst = max((seconds for found in still.values() for seconds in found), default=0.0)
    lines.append(
        f"seed {history.seed}: {outcome.seconds:.0f} s, {len(history.faults)} faults of {len(still)} kinds, "
        f"{sum(verdict.records.values()):,} records ({counts}), caught up {outcome.catching_up:.0f} s after the last record, "
        f"longest standstill {worst:.1f} s, {verdict.repeats} repeats on compacted lanes after {verdict.rewinds} crashes, "
        f"{verdict.group_looks} group offsets looked at: {'valid' if verdict.is_valid else 'NOT VALID'}."
    )
    return lines
