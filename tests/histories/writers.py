"""Applications that write numbered records to the source and note what was acknowledged. They survive what is done to brokers."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from tests.histories.history import Place, Recorder
from tests.histories.logs import LABEL

_PATIENCE_MS = 300_000
_TRANSACTION_MS = 60_000
_ANSWER_SECONDS = 60.0
_UNANSWERED = 300
"""An application that gets no answers does not write on: what it has sent must be answered before a history can end."""


class Acknowledged:
    """What the source acknowledged, passed on to the history once a second."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._rows: dict[Place, list[tuple[str, int]]] = {}
        self._told = 0.0
        self.refused = 0

    def __call__(self, label: str, error: KafkaError | None, message: Any) -> None:
        if error is not None:
            self.refused += 1
        else:
            self.add(label, message)

    def add(self, label: str, message: Any) -> None:
        self._rows.setdefault((message.topic(), message.partition()), []).append((label, message.offset()))
        if self._recorder.now() - self._told > 1.0:
            self.tell()

    def tell(self) -> None:
        self._told = self._recorder.now()
        for (topic, partition), rows in self._rows.items():
            self._recorder.note("acked", topic=topic, partition=partition, rows=rows)
        self._rows = {}


class Writer:
    """One application in a thread. `write` is called until it is stopped; what it raises is a remark in the history."""

    def __init__(self, recorder: Recorder, bootstrap: str, topic: str, partitions: int, rate: float) -> None:
        self.topic, self.partitions = topic, partitions
        self.number = 0
        self._recorder, self._bootstrap, self._rate = recorder, bootstrap, rate
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"writer of {topic}", daemon=True)
        self._chance = random.Random(topic)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Write no more; `stop` waits for the answers."""
        self._stop.set()

    def stop(self) -> None:
        """Everything that was sent is answered when this returns."""
        self.end()
        self._thread.join(_PATIENCE_MS / 1_000)
        if self._thread.is_alive():
            self._recorder.note("remark", text=f"the writer of {self.topic} did not end")

    def _run(self) -> None:
        try:
            self.write()
        except Exception as error:  # noqa: BLE001  whatever it is, the reader of the verdict must know that it wrote no more
            self._recorder.note("remark", text=f"the writer of {self.topic} ended: {error!r}")

    def write(self) -> None:
        raise NotImplementedError

    def _client(self, **settings: Any) -> Producer:
        common = {
            "bootstrap.servers": self._bootstrap,
            "acks": "all",
            "enable.idempotence": True,
            "log_level": 2,
            "message.timeout.ms": _PATIENCE_MS,
        }
        return Producer(common | {name.replace("_", "."): value for name, value in settings.items()})

    def _pace(self) -> None:
        """A little bit of everything: now and then a pause, on average the rate."""
        self._stop.wait(self._chance.uniform(0.0, 2.0) / self._rate)

    def _send(self, client: Producer, label: str, told: Callable[..., None], **more: Any) -> None:
        fields = {"key": label.encode(), "value": f"{label} {'x' * self._chance.randrange(200)}".encode()} | more
        while True:
            try:
                client.produce(self.topic, headers=[(LABEL, label.encode())], on_delivery=told, **fields)
                return
            except BufferError:
                client.poll(0.1)


class Plain(Writer):
    """An idempotent producer; with `settings` for one record a batch."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments)
        self._settings = settings

    def write(self) -> None:
        acked = Acknowledged(self._recorder)
        client = self._client(**self._settings)
        while not self._stop.is_set():
            for _ in range(self._chance.randint(1, 10)):
                label = f"{self.topic}#{self.number}"
                self._send(
                    client, label, partial(acked, label), partition=self.number % self.partitions, **self.fields()
                )
                self.number += 1
                self._pace()
            client.poll(0)
            while len(client) > _UNANSWERED:
                client.poll(0.1)
        self._finish(client, acked)

    def fields(self) -> dict[str, Any]:
        return {}

    def _finish(self, client: Producer, acked: Acknowledged) -> None:
        left = client.flush(_PATIENCE_MS / 1_000)
        acked.tell()
        if left or acked.refused:
            self._recorder.note("remark", text=f"{self.topic}: {left} records unanswered, {acked.refused} refused")


class Compacted(Plain):
    """Few keys, written again and again; now and then a key is deleted."""

    keys = 50

    def fields(self) -> dict[str, Any]:
        key = f"key-{self._chance.randrange(self.keys)}".encode()
        return {"key": key, "value": None} if self._chance.random() < 0.1 else {"key": key}


class Transactions(Writer):
    """Transactions over all partitions, a third of them aborted."""

    def write(self) -> None:
        while not self._stop.is_set():
            limits = {"transaction_timeout_ms": _TRANSACTION_MS, "message_timeout_ms": _TRANSACTION_MS}
            client = self._client(transactional_id=f"{self.topic}-writer", linger_ms=2, **limits)
            try:
                client.init_transactions(_ANSWER_SECONDS)
                self._until_fatal(client)
            except KafkaException:
                self._stop.wait(1.0)  # fenced, or no coordinator for long: begin with a new client

    def _until_fatal(self, client: Producer) -> None:
        while not self._stop.is_set():
            messages: list[tuple[str, Any]] = []
            client.begin_transaction()
            for _ in range(self._chance.randint(1, 40)):
                label = f"{self.topic}#{self.number}"
                told = partial(_keep, messages, label)
                self._send(client, label, told, partition=self._chance.randrange(self.partitions))
                self.number += 1
                self._pace()
            self._end(client, messages, self._chance.random() < 0.3)

    def _end(self, client: Producer, messages: list[tuple[str, Any]], wants_abort: bool) -> None:
        client.flush(_ANSWER_SECONDS)
        if wants_abort or not self._commit(client):
            client.abort_transaction(_ANSWER_SECONDS)
            self._recorder.note("aborted", labels=[label for label, _ in messages])
            return
        acked = Acknowledged(self._recorder)
        for label, message in messages:
            acked.add(label, message)
        acked.tell()

    def _commit(self, client: Producer) -> bool:
        """False: it must be aborted. Raises where the outcome is unknown."""
        deadline = time.monotonic() + _ANSWER_SECONDS * 2
        while True:
            try:
                client.commit_transaction(_ANSWER_SECONDS)
                return True
            except KafkaException as problem:
                error = problem.args[0]
                if error.txn_requires_abort():
                    return False
                if not error.retriable() or time.monotonic() > deadline:
                    raise


def _keep(messages: list[tuple[str, Any]], label: str, error: KafkaError | None, message: Any) -> None:
    if error is None:
        messages.append((label, message))


def write_ends(bootstrap: str, topics: dict[str, int]) -> set[str]:
    """A last record into every partition: who has seen it has seen all before. Returns their labels."""
    client = Producer({"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True, "log_level": 2})
    labels: set[str] = set()
    for topic, partitions in topics.items():
        for partition in range(partitions):
            label = f"{topic}#end-{partition}"
            headers: Any = [(LABEL, label.encode())]
            client.produce(topic, b"end", label.encode(), partition, headers=headers)
            labels.add(label)
    if client.flush(_PATIENCE_MS / 1_000):
        raise TimeoutError("the source did not take the last records")
    return labels
