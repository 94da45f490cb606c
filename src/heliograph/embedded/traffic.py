"""Sample traffic for the demo and the tests: five topics that between them hold every kind of batch a mirror meets.

Written with confluent-kafka, a client that shares no code with Heliograph. Must not know that anything is mirrored.
"""

from __future__ import annotations

import importlib
import random
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from heliograph.errors import SetupError

PARTITIONS: Mapping[str, int] = {"orders": 4, "payments": 2, "clicks": 2, "images": 1, "audit.log-v2": 3}

_ROUND_SECONDS = 0.1
_CREATE_SECONDS = 30.0
_DRAIN_SECONDS = 60.0
_ROUNDS_PER_TRANSACTION = 3
_ABORTED_OF_TRANSACTIONS = 4
"""One in so many transactions is aborted."""


class Traffic:
    """Writes a steady, modest stream to a cluster until stopped; the same seed writes the same records."""

    def __init__(self, bootstrap: str, seed: int = 1) -> None:
        self._bootstrap = bootstrap
        self._chance = random.Random(seed)  # noqa: S311  sample data, not secrets
        self._seed = seed
        self._round = 0
        self._in_transaction = False
        self._refused = 0
        self._written: Counter[str] = Counter()
        self._failures: list[Exception] = []
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._producers: dict[str, Any] = {}

    @property
    def written(self) -> dict[str, int]:
        """Records handed to the client so far by topic, those of aborted transactions left out."""
        return dict(self._written)

    def create_topics(self) -> None:
        """Create the five topics; those that exist are kept."""
        admin_module = _confluent("confluent_kafka.admin")
        admin = admin_module.AdminClient({"bootstrap.servers": self._bootstrap})
        wanted = [admin_module.NewTopic(topic, count, 1) for topic, count in PARTITIONS.items()]
        kafka = _confluent("confluent_kafka")
        for future in admin.create_topics(wanted).values():
            try:
                future.result(_CREATE_SECONDS)
            except kafka.KafkaException as error:
                if error.args[0].code() != kafka.KafkaError.TOPIC_ALREADY_EXISTS:
                    raise

    def start(self) -> None:
        """Write in a thread of its own until `stop`."""
        self.create_topics()
        self._thread = threading.Thread(target=self._run, name="traffic", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Return when everything written is acknowledged and no transaction is open; raises what the thread met."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._failures:
            raise self._failures[0]

    def write_rounds(self, count: int) -> None:
        """Write so many rounds now, without a thread and without pauses, and drain."""
        for _ in range(count):
            self._write_round()
        self._drain()

    def _run(self) -> None:
        try:
            while not self._stopping.wait(_ROUND_SECONDS):
                self._write_round()
            self._drain()
        except Exception as error:  # noqa: BLE001  outermost loop of the part: `stop` raises it to the caller
            self._failures.append(error)

    def _write_round(self) -> None:
        self._write_orders()
        self._write_payments()
        self._write_clicks()
        self._write_images()
        self._write_audit()
        self._round += 1

    def _write_orders(self) -> None:
        for _ in range(200):
            customer = self._chance.randrange(5_000)
            headers = [("trace", self._chance.randbytes(8)), ("tenant", b"shop-%d" % (customer % 7))]
            value = b'{"customer": %d, "items": %d, "note": "%s"}' % (customer, customer % 9, b"fast " * 12)
            self._put("lz4", "orders", b"customer-%d" % customer, value, headers)

    def _write_payments(self) -> None:
        producer = self._producer("transactional")
        if not self._in_transaction:
            producer.begin_transaction()
            self._in_transaction = True
        for _ in range(10):
            amount = self._chance.randrange(1, 100_000)
            value = b'{"cents": %d, "aborted": %s}' % (amount, b"true" if self._will_abort else b"false")
            producer.produce("payments", key=b"account-%d" % (amount % 300), value=value)
        self._written["payments"] += 0 if self._will_abort else 10
        if (self._round + 1) % _ROUNDS_PER_TRANSACTION == 0:
            self._end_transaction()

    @property
    def _will_abort(self) -> bool:
        return (self._round // _ROUNDS_PER_TRANSACTION + 1) % _ABORTED_OF_TRANSACTIONS == 0

    def _end_transaction(self) -> None:
        producer = self._producer("transactional")
        # Flushed first: an abort would otherwise drop the records before they reach the broker.
        producer.flush(_DRAIN_SECONDS)
        finish: Callable[[float], None] = (
            producer.abort_transaction if self._will_abort else producer.commit_transaction
        )
        finish(_DRAIN_SECONDS)
        self._in_transaction = False

    def _write_clicks(self) -> None:
        for _ in range(30):
            self._put("tiny", "clicks", None, b"%d,%d" % (self._chance.randrange(1920), self._chance.randrange(1080)))

    def _write_images(self) -> None:
        if self._round % 5 == 0:
            size = self._chance.randrange(200_000, 900_000)
            # Half noise, half repetition: it compresses, but not to nothing.
            self._put("zstd", "images", None, self._chance.randbytes(size // 2) + bytes(size // 2))

    def _write_audit(self) -> None:
        odd_headers: list[tuple[str, bytes | None]] = [("", b"empty name"), ("x", None), ("x", b""), ("x", b"again")]
        codec = self._chance.choice(["gzip", "snappy"])
        self._put(codec, "audit.log-v2", None, b"no key, round %d" % self._round, odd_headers)
        self._put(codec, "audit.log-v2", b"user-%d" % (self._round % 50), None, [("reason", b"erased")])
        self._put(codec, "audit.log-v2", None, None)

    def _put(
        self,
        producer: str,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        headers: list[tuple[str, Any]] | None = None,
    ) -> None:
        self._producer(producer).produce(topic, key=key, value=value, headers=headers or [])
        self._producer(producer).poll(0)
        self._written[topic] += 1

    def _drain(self) -> None:
        if self._in_transaction:
            self._end_transaction()
        for name, producer in self._producers.items():
            left = producer.flush(_DRAIN_SECONDS)
            if left or self._refused:
                raise SetupError(f"{left + self._refused} records of the sample traffic ({name}) were not written.")
        self._producers.clear()

    def _delivered(self, error: object, _message: object) -> None:
        self._refused += error is not None

    def _producer(self, name: str) -> Any:
        if name not in self._producers:
            producer = _confluent("confluent_kafka").Producer(self._settings(name))
            if name == "transactional":
                producer.init_transactions(_DRAIN_SECONDS)
            self._producers[name] = producer
        return self._producers[name]

    def _settings(self, name: str) -> dict[str, Any]:
        common = {
            "bootstrap.servers": self._bootstrap,
            # Trouble is raised by `stop`; the client's own log lines would only disturb a live table.
            "log_level": 2,
            "enable.idempotence": True,
            "linger.ms": 20,
            "on_delivery": self._delivered,
        }
        match name:
            case "transactional":
                return common | {"transactional.id": f"heliograph-traffic-{self._seed}"}
            case "tiny":
                return common | {"linger.ms": 0, "batch.num.messages": 1}
            case "zstd":
                return common | {"compression.type": "zstd", "batch.size": 1_000_000}
            case codec:
                return common | {"compression.type": codec}


def _confluent(module: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise SetupError("Sample traffic needs confluent-kafka: pip install 'heliograph[demo]'.") from error
