"""`heliograph demo` as a person starts it: it exits with 0 only if the copy is identical, and says what differs."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import KafkaException, Producer

from heliograph.embedded.tether import Tether
from tests.support.heliograph_run import PROGRAM
from tests.support.topics import ends
from tests.support.waiting import wait_until

END_SECONDS = 240


class Demo:
    """A demo that runs: what it prints, and cluster B, which it names."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process = process
        self._log = log

    @property
    def output(self) -> str:
        return self._log.read_text(errors="replace")

    def target(self) -> str:
        """The address of B, once records are in A.orders there."""

        def copies() -> bool:
            assert self._process.poll() is None, self.output
            found = re.search(r"cluster B at (\S+)", self.output)
            try:
                return found is not None and sum(ends(found[1], "A.orders").values()) > 0
            except KafkaException:
                return False  # it is not made yet

        wait_until(copies, "the demo copies", END_SECONDS, every=0.5)
        (address,) = re.findall(r"cluster B at (\S+)", self.output)
        return str(address)

    def interrupt(self) -> None:
        self._process.send_signal(signal.SIGINT)

    def wait(self) -> int:
        return self._process.wait(END_SECONDS)


@contextmanager
def demo(directory: Path, *options: str) -> Iterator[Demo]:
    log = directory / "demo.log"
    process = Tether().start([str(PROGRAM), "demo", *options], log)
    try:
        yield Demo(process, log)
    finally:
        process.kill()
        process.wait()


def test_a_demo_of_some_seconds_ends_with_zero_for_an_identical_copy(kafka_jars: Path, tmp_path: Path) -> None:
    assert kafka_jars.exists()
    with demo(tmp_path, "--seconds", "5") as shown:
        assert shown.wait() == 0, shown.output
    assert re.search(r"mirrored [1-9][\d,]* records", shown.output), shown.output
    assert re.search(r"compared [1-9][\d,]* records: .* identical", shown.output), shown.output
    assert "B does not have" not in shown.output, "it waited until everything was there"
    assert "\u2026" not in shown.output, "nothing is cut"


def test_a_record_that_is_not_on_the_source_makes_it_end_with_one_after_ctrl_c(
    kafka_jars: Path, tmp_path: Path
) -> None:
    assert kafka_jars.exists()
    with demo(tmp_path) as shown:
        producer = Producer({"bootstrap.servers": shown.target(), "acks": "all"})
        producer.produce("A.orders", b"nobody wrote this on A", partition=0)
        assert producer.flush(30) == 0
        shown.interrupt()
        assert shown.wait() == 1, shown.output
    assert "the copy differs" in shown.output
    assert "identical" not in shown.output
    assert re.search(r"^ +orders-0: ", shown.output, re.MULTILINE), shown.output
