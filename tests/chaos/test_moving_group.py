"""A consumer group that moves from A to B and back 50 times under load: no record is lost, none is read twice.

Both directions are flows of one file. On A the group reads what is written there, and the copy of what is written on B; on B the
other way round. What it reads at home it goes on with by the offsets that the flow sets on the other side, once status says that it
is in step; what it reads of a copy it takes home by translation in reverse, as docs/groups.md says.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self

from confluent_kafka import Consumer

from heliograph.config.flows import FlowSettings
from heliograph.config.load import load_file
from heliograph.control.clock import Clock
from heliograph.control.group_offsets import GroupOffsetsJob
from heliograph.control.group_positions import GroupPositions
from heliograph.control.jobs import JobRunner
from heliograph.control.opening import open_lanes
from heliograph.control.planner import FlowPlan, FlowPlanner
from heliograph.kafka.slot import Warm
from heliograph.operations.translate import FlowTranslator
from heliograph.replication.group_offsets import State
from tests.integration.protocol.harness import Attempt, Opened, with_warm
from tests.support.clusters import TwoClusters
from tests.support.compaction import COMPACTED
from tests.support.groups import Partition, commit
from tests.support.mirror import flow_file
from tests.support.topics import create_topic
from tests.support.writers import DRAIN_SECONDS, producer

ROUND_TRIPS = 50
KEYS = 20
_PAUSE_SECONDS = 0.02
_STAY_RECORDS = 5


class Load:
    """Writes to topics for as long as it is wanted; what a reader of each must get, in order, is in `sent`."""

    def __init__(self, here: str, there: str, name: str) -> None:
        self.plain, self.transactional, self.compacted, self.back = (
            f"{name}-{kind}" for kind in ("plain", "transactional", "compacted", "back")
        )
        self.sent: dict[str, list[tuple[bytes, bytes]]] = {
            topic: [] for topic in (self.plain, self.transactional, self.compacted, self.back)
        }
        self._here, self._there, self._name = here, there, name
        self._enough = threading.Event()
        self._fault: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._enough.set()
        self._thread.join(DRAIN_SECONDS)
        assert self._fault is None, self._fault

    def _run(self) -> None:
        try:
            self._write()
        except BaseException as fault:  # noqa: BLE001  shown by the test
            self._fault = fault

    def _write(self) -> None:
        here, there = producer(self._here, linger_ms=0), producer(self._there, linger_ms=0)
        steps = producer(self._here, transactional_id=self._name, linger_ms=0)
        steps.init_transactions(DRAIN_SECONDS)
        number = 0
        while not self._enough.is_set():
            number += 1
            pair = (b"key-%d" % (number % KEYS), b"%d" % number)
            for client, topic in ((here, self.plain), (here, self.compacted), (there, self.back)):
                client.produce(topic, key=pair[0], value=pair[1])
                self.sent[topic].append(pair)
            steps.begin_transaction()
            aborts = number % 3 == 0
            steps.produce(self.transactional, key=pair[0], value=b"aborted" if aborts else pair[1])
            steps.flush(DRAIN_SECONDS)
            if aborts:
                steps.abort_transaction(DRAIN_SECONDS)
            else:
                steps.commit_transaction(DRAIN_SECONDS)
                self.sent[self.transactional].append(pair)
            assert not here.flush(DRAIN_SECONDS) and not there.flush(DRAIN_SECONDS)
            time.sleep(_PAUSE_SECONDS)


class Side:
    """One cluster as the group meets it: its address, and the names under which it has the topics."""

    def __init__(self, bootstrap: str, topics: dict[str, str]) -> None:
        self.bootstrap = bootstrap
        self.topics = topics
        """By its name on this cluster, the name under which a topic was written."""


class Group:
    """The application: reads wherever it is started, and remembers all it was given."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.got: dict[str, list[tuple[bytes, bytes]]] = {}

    def stay(self, side: Side, is_enough: Callable[[], bool], reset: str = "error") -> None:
        """Start on a cluster, read on, commit, end."""
        client = Consumer(
            {
                "bootstrap.servers": side.bootstrap,
                "group.id": self.name,
                "enable.auto.commit": False,
                "auto.offset.reset": reset,
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 20,
                "log_level": 2,
            }
        )
        client.subscribe(list(side.topics))
        try:
            while not is_enough():
                message = client.poll(10)
                assert message is not None, f"{self.name} gets nothing on {side.bootstrap}"
                error: Any = message.error()
                assert error is None, error
                key, value = message.key(), message.value()
                assert key is not None and value is not None
                self.got.setdefault(side.topics[str(message.topic())], []).append((key, value))
            client.commit(asynchronous=False)
        finally:
            client.close()

    @property
    def total(self) -> int:
        return sum(len(rows) for rows in self.got.values())


class Operator:
    """Runs the jobs of both flows, and helps the group over, as docs/groups.md says."""

    def __init__(self, plans: list[FlowPlan], group: str) -> None:
        self._group = group
        self._loop = asyncio.Runner()
        self._warm = Warm()
        self._plans = {plan.settings.flow.source: plan for plan in plans}
        self._jobs = {alias: self._job(plan) for alias, plan in self._plans.items()}
        self._homeward = {alias: FlowTranslator(plan.settings) for alias, plan in self._plans.items()}
        self._runner = JobRunner("both", lambda: True, self._told, Clock())

    def _job(self, plan: FlowPlan) -> GroupOffsetsJob:
        positions = GroupPositions(plan.settings, lambda: plan, self._warm, Clock())
        return GroupOffsetsJob(plan.settings, positions, self._warm, Clock())

    def _told(self, event: Any) -> None:
        raise AssertionError(event)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.run(self._closed())
        self._loop.close()

    async def _closed(self) -> None:
        self._warm.close()
        for translator in self._homeward.values():
            await translator.__aexit__()

    def move(self, source: str, there: Side, target: str) -> None:
        """From `source`, where the group has just stopped, to `target`: what was read at home, and what of a copy."""
        commit(there.bootstrap, self._group, self._loop.run(self._both(source, target)))

    async def _both(self, source: str, target: str) -> dict[Partition, int]:
        back = self._runner.once(self._jobs[target])  # the other flow's job has its turns too, and must do no harm
        home, in_step = self._taken_home(self._homeward[target]), self._until_in_step(self._jobs[source])
        found, _, went_well = await asyncio.gather(home, in_step, back)
        assert went_well
        return found

    async def _until_in_step(self, job: GroupOffsetsJob) -> None:
        async with asyncio.timeout(20):
            while True:
                assert await self._runner.once(job)
                states = {row.state for row in job.states if row.group == self._group}
                if states and states <= {State.IN_STEP, State.AHEAD}:
                    return

    async def _taken_home(self, translator: FlowTranslator) -> dict[Partition, int]:
        async with asyncio.timeout(20):
            while True:
                await translator.refresh()
                answers = await translator.group(self._group, reverse=True)
                found = {(row.topic, row.partition): row.position for row in answers}
                if None not in found.values():
                    return {place: offset for place, offset in found.items() if offset is not None}


def followed(flow: FlowSettings, engine: Any) -> tuple[FlowPlan, Attempt]:
    planner = FlowPlanner(flow, engine)
    try:
        plan = planner.apply(planner.discover())
        return plan, Attempt(Opened(plan, with_warm(lambda warm: open_lanes(plan, planner, warm))))
    finally:
        planner.close()


@contextmanager
def mirrors(file: Path) -> Iterator[list[FlowPlan]]:
    """Every flow of a file, carried."""
    settings = load_file(str(file))
    with ExitStack() as stack:
        pairs = [followed(flow, settings.engine) for flow in settings.flows]
        for _, attempt in pairs:
            stack.enter_context(attempt)
        yield [plan for plan, _ in pairs]


def test_a_group_that_moves_there_and_back_loses_no_record_and_reads_none_twice(
    two_clusters: TwoClusters, unique: str, tmp_path: Path
) -> None:
    here, there, group = two_clusters.a.bootstrap, two_clusters.b.bootstrap, Group(f"{unique}-g")
    a, b = f"{unique}a", f"{unique}b"
    load = Load(here, there, unique)
    for topic in (load.plain, load.transactional):
        create_topic(here, topic)
    create_topic(here, load.compacted, config=COMPACTED)
    create_topic(there, load.back)
    at_home = (load.plain, load.transactional, load.compacted)
    on_a = Side(here, {topic: topic for topic in at_home} | {f"{b}.{load.back}": load.back})
    on_b = Side(there, {f"{a}.{topic}": topic for topic in at_home} | {load.back: load.back})
    flows = {f"{a}->{b}": f"{unique}-.*", f"{b}->{a}": f"{unique}-.*"}
    lines = {
        "sync.group.offsets.enabled": "true",
        "groups": f"{unique}-.*",
        "refresh.groups.interval.seconds": "1",
    }
    file = flow_file(tmp_path / "mm2.properties", {a: here, b: there}, flows, lines)
    with mirrors(file) as plans, Operator(plans, group.name) as operator, load:
        group.stay(on_a, lambda: len(group.got) == 4, reset="earliest")
        for _ in range(ROUND_TRIPS):
            for source, target, side in ((a, b, on_b), (b, a, on_a)):
                operator.move(source, side, target)
                goal = group.total + _STAY_RECORDS
                group.stay(side, lambda goal=goal: group.total >= goal)  # type: ignore[misc]
        load.stop()
        rest = {topic: rows[-1] for topic, rows in load.sent.items()}
        group.stay(on_a, lambda: all(group.got[topic][-1] == last for topic, last in rest.items()))
    for topic in (load.plain, load.transactional, load.back):
        assert group.got[topic] == load.sent[topic], f"{topic}: {len(group.got[topic])} of {len(load.sent[topic])}"
    numbers = [int(value) for _, value in group.got[load.compacted]]
    assert numbers == sorted(set(numbers)), "none twice"
    assert dict(group.got[load.compacted]) == dict(load.sent[load.compacted]), "the last of every key"
