"""A consumer group that moves from A to B and back under load: no record is lost, none is read twice.

Both directions are flows of one file, carried by `heliograph run FILE`, which is killed with -9 on the way: its workers, its JVM,
its driver. On A the group reads what is written there, and the copy of what is written on B; on B the other way round. What it
reads at home it goes on with by the offsets that the flow sets on the other side, once `heliograph status --groups` says that it is
in step; what it reads of a copy it takes home by `heliograph translate --reverse`, as docs/groups.md says.

Six round trips, every other one with a kill: a move waits for a turn of a real run's job and for two commands, some three seconds
of the suite on a quiet machine, and a killed driver costs twenty more.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import pytest
from confluent_kafka import Consumer

from heliograph.replication.group_offsets import State
from tests.support.clusters import TwoClusters
from tests.support.commands import command
from tests.support.compaction import COMPACTED
from tests.support.groups import Partition, commit
from tests.support.heliograph_run import HeliographRun
from tests.support.mirror import flow_file
from tests.support.topics import create_topic, topic_names
from tests.support.waiting import wait_until
from tests.support.writers import DRAIN_SECONDS, producer

ROUND_TRIPS = 6
KILLS = {1: "worker", 4: "jvm", 8: "driver"}
"""By move: what is killed after the group has stopped and before anything has been looked at, there and back by turns."""
KEYS = 20
_PAUSE_SECONDS = 0.02
_STAY_RECORDS = 5
_SILENCE_SECONDS = 90.0


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

    def is_ready(self) -> bool:
        return set(self.topics) <= topic_names(self.bootstrap)


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
                message = client.poll(_SILENCE_SECONDS)
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
    """Runs both flows of a file, kills what it is told to, and helps the group over with the commands that a person types."""

    def __init__(self, file: Path, group: str) -> None:
        self._file = file
        self._group = group
        self._run = HeliographRun(file)
        self._said = ""

    def __enter__(self) -> Self:
        self._run.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._run.kill_tree()

    def move(self, source: str, there: Side, target: str) -> None:
        """From `source`, where the group has just stopped, to `target`: what was read at home, and what of a copy."""
        try:
            wait_until(lambda: self._is_in_step(f"{source}->{target}"), f"the group is in step on {target}", every=0.5)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self._said}\n{self._run.output}") from error
        found: dict[Partition, int] = {}
        wait_until(lambda: self._is_home(f"{target}->{source}", found), "the way home is known", every=0.2)
        commit(there.bootstrap, self._group, found)

    def _is_in_step(self, flow: str) -> bool:
        said = command("status", str(self._file), "--groups", "--json")
        assert said.code == 0, said.err
        self._said = said.out
        (told,) = (one for one in json.loads(said.out)["flows"] if one["flow"] == flow)
        states = {row["state"] for row in told["groups"] if row["group"] == self._group}
        return bool(states) and states <= {State.IN_STEP, State.AHEAD}

    def _is_home(self, flow: str, found: dict[Partition, int]) -> bool:
        """Exit code 1: an offset has no place yet."""
        said = command("translate", str(self._file), "--flow", flow, "--group", self._group, "--reverse", "--json")
        assert said.code in (0, 1) and said.out, said.err
        found.update({(row["topic"], row["partition"]): row["position"] for row in json.loads(said.out)})
        return said.code == 0 and bool(found)

    def kill(self, victim: str) -> None:
        """kill -9; a driver is started again, as an init system would."""
        carriers: list[int] = []

        def carries() -> bool:
            carriers[:] = self._run.carriers()
            return bool(carriers)

        wait_until(carries, "the run carries")
        if victim == "driver":
            self._run.kill()
            self._run = HeliographRun(self._file).start()
        else:
            os.kill((carriers if victim == "worker" else self._run.jvms())[0], signal.SIGKILL)

    def stop(self) -> None:
        assert self._run.terminate() == 0, self._run.output


@pytest.mark.timeout(600)
def test_a_group_that_moves_there_and_back_loses_no_record_and_reads_none_twice(
    two_clusters: TwoClusters, unique: str, tmp_path: Path
) -> None:
    here, there, group = two_clusters.a.bootstrap, two_clusters.b.bootstrap, Group(f"{unique}-g")
    a, b = f"{unique}a", f"{unique}b"
    load = Load(here, there, unique)
    for topic in (load.plain, load.transactional):
        create_topic(here, topic)
    # Cleaned every ten seconds, not all the time: after each cleaning a group that stands there has to be set again.
    create_topic(here, load.compacted, config=COMPACTED | {"segment.ms": "10000"})
    create_topic(there, load.back)
    at_home = (load.plain, load.transactional, load.compacted)
    on_a = Side(here, {topic: topic for topic in at_home} | {f"{b}.{load.back}": load.back})
    on_b = Side(there, {f"{a}.{topic}": topic for topic in at_home} | {load.back: load.back})
    flows = {f"{a}->{b}": f"{unique}-.*", f"{b}->{a}": f"{unique}-.*"}
    lines = {
        "sync.group.offsets.enabled": "true",
        "groups": f"{unique}-.*",
        "refresh.groups.interval.seconds": "1",
        "sync.group.offsets.interval.seconds": "1",
        "takeover.wait.seconds": "10",
        "request.timeout.ms": "5000",
    }
    file = flow_file(tmp_path / "mm2.properties", {a: here, b: there}, flows, lines)
    moves = itertools.count()
    with Operator(file, group.name) as operator, load:
        for side in (on_a, on_b):
            wait_until(lambda side=side: side.is_ready(), f"every topic is on {side.bootstrap}", every=0.2)  # type: ignore[misc]
        group.stay(on_a, lambda: len(group.got) == 4, reset="earliest")
        for _ in range(ROUND_TRIPS):
            for source, target, side in ((a, b, on_b), (b, a, on_a)):
                if victim := KILLS.get(next(moves)):
                    operator.kill(victim)
                operator.move(source, side, target)
                goal = group.total + _STAY_RECORDS
                group.stay(side, lambda goal=goal: group.total >= goal)  # type: ignore[misc]
        load.stop()
        rest = {topic: rows[-1] for topic, rows in load.sent.items()}
        group.stay(on_a, lambda: all(group.got[topic][-1] == last for topic, last in rest.items()))
        operator.stop()
    for topic in (load.plain, load.transactional, load.back):
        assert group.got[topic] == load.sent[topic], f"{topic}: {len(group.got[topic])} of {len(load.sent[topic])}"
    numbers = [int(value) for _, value in group.got[load.compacted]]
    again = [(before, after) for before, after in itertools.pairwise(numbers) if after <= before]
    # A kill may repeat what the ledger did not know yet, in order: tests/chaos/test_compacted_kills.py has it exactly.
    assert len(again) <= len(KILLS), again
    assert dict(group.got[load.compacted]) == dict(load.sent[load.compacted]), "the last of every key"
