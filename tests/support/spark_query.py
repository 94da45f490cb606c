"""Structured Streaming queries over one topic each, in a process of its own: what a query read of each batch is a file named by the batch.

`python -m tests.support.spark_query` takes a query a line, BOOTSTRAP TOPIC CHECKPOINT OUT; each reads all that is there, ends and
says so with a line.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import IO, Any, Self

from tests.support.spark_kafka import ensure_spark_kafka_jars

_A_BATCH = "110"
_DONE = "the query has ended"


class SparkQueries:
    """A Spark for one query after the other: its start and its first query are the dearest."""

    def __init__(self, log: Path) -> None:
        self._log = log

    def __enter__(self) -> Self:
        with self._log.open("w") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.spark_query"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        return self

    def __exit__(self, *about: object) -> None:
        _pipe(self._process.stdin).close()
        _pipe(self._process.stdout).close()
        self._process.wait(60)

    def query(self, bootstrap: str, topic: str, checkpoint: Path, out: Path) -> None:
        """Fails with what Spark said."""
        asking = _pipe(self._process.stdin)
        asking.write(f"{bootstrap} {topic} {checkpoint} {out}\n")
        asking.flush()
        said = iter(_pipe(self._process.stdout))
        assert any(line.strip() == _DONE for line in said), self._log.read_text()[-4_000:]


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe


def results(out: Path) -> dict[int, list[str]]:
    """By batch."""
    return {int(file.name): file.read_text().splitlines() for file in out.iterdir()}


def main() -> None:
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder
    spark = (
        builder.master("local[1]")
        .config("spark.jars", ",".join(map(str, ensure_spark_kafka_jars())))
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "512m")
        .config("spark.driver.extraJavaOptions", "-XX:+UseSerialGC -XX:TieredStopAtLevel=1")
        .config("spark.sql.shuffle.partitions", "1")
        .getOrCreate()
    )
    for line in sys.stdin:
        _query(spark, *line.split())
        sys.stdout.write(f"{_DONE}\n")
        sys.stdout.flush()
    spark.stop()


def _query(spark: Any, bootstrap: str, topic: str, checkpoint: str, out: str) -> None:
    into = Path(out)
    into.mkdir(exist_ok=True)

    def keep(batch: Any, number: int) -> None:
        values = [bytes(row["value"]).decode() for row in batch.select("value").collect()]
        (into / str(number)).write_text("".join(f"{value}\n" for value in values))

    read = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("kafka.isolation.level", "read_committed")
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", _A_BATCH)
        .load()
    )
    running = (
        read.writeStream.foreachBatch(keep).option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    )
    running.awaitTermination()


if __name__ == "__main__":
    main()
