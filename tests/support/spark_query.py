"""A Structured Streaming query over one topic, as a process of its own: what it read of each batch is a file named by the batch.

`python -m tests.support.spark_query BOOTSTRAP TOPIC CHECKPOINT OUT` reads all that is there and ends.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.spark_kafka import ensure_spark_kafka_jars

_SECONDS = 150.0
_A_BATCH = "110"


def query(bootstrap: str, topic: str, checkpoint: Path, out: Path) -> None:
    """Fails with what Spark said."""
    arguments = [bootstrap, topic, str(checkpoint), str(out)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.spark_query", *arguments],
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4_000:]


def results(out: Path) -> dict[int, list[str]]:
    """By batch."""
    return {int(file.name): file.read_text().splitlines() for file in out.iterdir()}


def main(bootstrap: str, topic: str, checkpoint: str, out: str) -> None:
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder
    spark = (
        builder.master("local[1]")
        .config("spark.jars", ",".join(map(str, ensure_spark_kafka_jars())))
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "512m")
        .config("spark.sql.shuffle.partitions", "1")
        .getOrCreate()
    )
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
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
