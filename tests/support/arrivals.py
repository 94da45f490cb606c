"""A topic under steady load, and when its records arrive: the gaps that a consumer sees."""

from __future__ import annotations

import threading
import time
from itertools import pairwise

from confluent_kafka import Consumer, TopicPartition

from tests.support.topics import ANSWER_SECONDS
from tests.support.writers import producer


class SteadyWriter:
    """Writes a record every few milliseconds until it is stopped."""

    def __init__(self, bootstrap: str, topic: str, every_s: float = 0.01) -> None:
        self._client = producer(bootstrap, linger_ms=0)
        self._every_s = every_s
        self._topic = topic
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def _write(self) -> None:
        number = 0
        while not self._stop.wait(self._every_s):
            self._client.produce(self._topic, b"%d" % number, partition=0)
            self._client.poll(0)
            number += 1

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        assert self._client.flush(ANSWER_SECONDS) == 0


class Arrivals:
    """When records of a partition arrive at a consumer; the source's own arrivals show what the machine itself delays."""

    def __init__(self, bootstrap: str, topic: str, partition: int = 0) -> None:
        self.times: list[float] = []
        self._client = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "arrivals",
                "fetch.wait.max.ms": 20,
                "auto.offset.reset": "earliest",
            }
        )
        self._client.assign([TopicPartition(topic, partition, 0)])
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while not self._stop.is_set():
            message = self._client.poll(0.1)
            if message is not None and message.error() is None:
                self.times.append(time.monotonic())

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        self._client.close()

    def longest_gap(self, since: float, until: float) -> float:
        within = [since, *(moment for moment in self.times if since <= moment <= until), until]
        return max(after - before for before, after in pairwise(within))
