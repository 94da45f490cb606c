"""A process that writes records at a steady rate until SIGTERM: `python -m tests.bench.emitter BOOTSTRAP TOPIC PARTITIONS RATE`.

Each value begins with the moment it was given to the producer, on the clock that all processes of the machine share, and
its number.
"""

from __future__ import annotations

import signal
import struct
import sys
import threading
import time

from tests.support.writers import producer

STAMP = struct.Struct(">qq")
_PADDING = b"x" * 200
_TICK_SECONDS = 0.002


def emit(bootstrap: str, topic: str, partitions: int, rate: int) -> None:
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    client = producer(bootstrap, linger_ms=0, acks=1)
    start = time.monotonic()
    sent = 0
    while not over.is_set():
        due = int((time.monotonic() - start) * rate)
        for number in range(sent, due):
            client.produce(topic, STAMP.pack(time.monotonic_ns(), number) + _PADDING, partition=number % partitions)
        sent = max(sent, due)
        client.poll(0)
        time.sleep(_TICK_SECONDS)
    client.flush()


if __name__ == "__main__":
    emit(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
