"""Spark's own Kafka source, for queries that tests run: its jars, fetched once by Maven into the cache."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from heliograph.embedded.jars import cache_directory
from heliograph.embedded.java import find_maven

_SPARK_VERSION = "4.2.0"
_JARS = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", _SPARK_VERSION),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
    ("org.apache.kafka", "kafka-clients", "3.9.2"),
    ("org.apache.commons", "commons-pool2", "2.13.1"),
    ("org.scala-lang.modules", "scala-parallel-collections_2.13", "1.2.0"),
)
_ALONE = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
_DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>{}</dependency>"
_POM = (
    "<project><modelVersion>4.0.0</modelVersion><groupId>heliograph</groupId><artifactId>spark-kafka</artifactId>"
    "<version>1</version><packaging>pom</packaging><dependencies>{}</dependencies></project>"
)


def ensure_spark_kafka_jars() -> list[Path]:
    """The jars to give to `spark.jars`; the folder appears whole or not at all."""
    folder = cache_directory() / f"spark-kafka-{_SPARK_VERSION}"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as aside:
            pom, jars = Path(aside) / "pom.xml", Path(aside) / "jars"
            pom.write_text(_POM.format("".join(_DEPENDENCY.format(*jar, _ALONE) for jar in _JARS)))
            command = [str(find_maven()), "-q", "-B", "-f", str(pom), "dependency:copy-dependencies"]
            done = subprocess.run([*command, f"-DoutputDirectory={jars}"], capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout
            jars.rename(folder)
    found = sorted(folder.glob("*.jar"))
    assert len(found) == len(_JARS), f"{folder} has {len(found)} jars"
    return found
