"""Who reads while faults are made: groups on the source that move, and two who look at the target. Through confluent-kafka."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.histories.history import Place, Recorder
from tests.histories.logs import row_of

_ANSWER_SECONDS = 10.0
_COMMIT_SECONDS = 1.0
_SILENCE_SECONDS = 5.0


class _Looping:
    """A thread that takes turns until it is stopped; brokers that do not answer are no fault of its own."""

    def __init__(self, name: str) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(_ANSWER_SECONDS * 6)

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                try:
                    self.turn()
                except KafkaException:
                    self._stop.wait(0.5)
        finally:
            self.close()

    def turn(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


class Group(_Looping):
    """An application's group on the source: reads at its pace, commits once a second what it got."""

    def __init__(self, recorder: Recorder, bootstrap: str, name: str, topics: list[str], rate: int) -> None:
        super().__init__(name)
        self.name = name
        self._recorder, self._rate = recorder, rate
        self._client = _consumer(bootstrap, name)
        self._client.subscribe(topics)
        self._got: dict[Place, int] = {}

    def turn(self) -> None:
        for message in self._client.consume(self._rate, _COMMIT_SECONDS):
            if message.error() is None:
                self._got[str(message.topic()), int(message.partition() or 0)] = int(message.offset() or 0) + 1
        self._commit()
        self._stop.wait(0.2)

    def _commit(self) -> None:
        places = [TopicPartition(topic, partition, offset) for (topic, partition), offset in self._got.items()]
        if not places:
            return
        for place in places:
            # Before it is sent: nobody can see it earlier than this.
            self._recorder.note(
                "commit", group=self.name, topic=place.topic, partition=place.partition, offset=place.offset
            )
        self._got = {}
        self._client.commit(offsets=places, asynchronous=False)

    def close(self) -> None:
        self._client.close()


class GroupWatch(_Looping):
    """Looks every second where the groups were set on the target."""

    def __init__(self, recorder: Recorder, bootstrap: str, groups: list[str], remote: Mapping[Place, Place]) -> None:
        super().__init__("watch of groups")
        self._recorder, self._remote = recorder, remote
        self._clients = {group: _consumer(bootstrap, group) for group in groups}
        self._told: dict[tuple[str, Place], int] = {}

    def turn(self) -> None:
        self._stop.wait(1.0)
        for group, client in self._clients.items():
            places = [TopicPartition(topic, partition) for topic, partition in self._remote]
            for found in client.committed(places, _ANSWER_SECONDS):
                place = self._remote[found.topic, found.partition]
                if found.error is None and found.offset >= 0 and self._told.get((group, place)) != found.offset:
                    self._told[group, place] = found.offset
                    topic, partition = place
                    self._recorder.note("group", group=group, topic=topic, partition=partition, offset=found.offset)

    def close(self) -> None:
        for client in self._clients.values():
            client.close()


class Arrivals(_Looping):
    """Reads the target as records come, to know when each arrived. What is on the target is judged from another reading."""

    def __init__(self, recorder: Recorder, bootstrap: str, remote: Mapping[Place, Place]) -> None:
        super().__init__("watch of arrivals")
        self._recorder, self._remote = recorder, remote
        self._client = _consumer(bootstrap, "chaos-arrivals")
        self._next = dict.fromkeys(remote, 0)
        self._quiet_since = recorder.now() - _SILENCE_SECONDS
        self.count = 0
        self.labels: set[str] = set()
        """Of last records, by which it is known that everything is there."""

    def turn(self) -> None:
        if self._recorder.now() - self._quiet_since > _SILENCE_SECONDS:
            # It may have met a topic that not every broker knew yet, or have given up a broker that was gone.
            self._client.assign([TopicPartition(*place, offset) for place, offset in self._next.items()])
            self._quiet_since = self._recorder.now()
        furthest: dict[Place, int] = {}
        for message in self._client.consume(1_000, 0.2):
            if message.error() is not None:
                continue
            self._quiet_since = self._recorder.now()
            row = row_of(message)
            furthest[str(message.topic()), int(message.partition() or 0)] = row.offset
            self.count += 1
            if "#end-" in row.label:
                self.labels.add(row.label)
        for place, offset in furthest.items():
            self._next[place] = offset + 1
            topic, partition = self._remote[place]
            self._recorder.note("arrived", topic=topic, partition=partition, offset=offset)

    def close(self) -> None:
        self._client.close()


def _consumer(bootstrap: str, group: str) -> Consumer:
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
        "topic.metadata.refresh.interval.ms": 2_000,
        "log_level": 2,
    }
    return Consumer(settings)
