"""Makes the class archive of Kafka's jars, from which embedded nodes start faster: `python -m heliograph.embedded.prepare`.

A broker of its own is started and stopped once, and its JVM writes what it has loaded. `settings.Jvm` uses the file.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from heliograph.embedded.cluster import EmbeddedCluster
from heliograph.embedded.jars import ensure_kafka_jars
from heliograph.embedded.settings import Jvm, class_archive
from heliograph.errors import SetupError
from heliograph.spark.java import QUIET


@dataclass(frozen=True)
class _Recording(Jvm):
    """Writes its classes to `into` as it ends."""

    into: str = ""

    def command(self, java: Path, jars: Path, main_class: str, *arguments: str) -> list[str]:
        first, *rest = super().command(java, jars, main_class, *arguments)
        return (
            [first, *QUIET.split(), f"-XX:ArchiveClassesAtExit={self.into}", *rest]
            if main_class == "kafka.Kafka"
            else [first, *rest]
        )


def make_archive() -> Path:
    """Appears whole or not at all."""
    path = class_archive(ensure_kafka_jars())
    with tempfile.TemporaryDirectory(prefix=".classes-", dir=path.parent) as folder:
        made = Path(folder) / path.name
        with EmbeddedCluster("prepare", Path(folder), jvm=_Recording(into=str(made))) as cluster:
            cluster.terminate(1)
        if not made.is_file():
            raise SetupError("Kafka's JVM wrote no class archive; brokers start as ever, a second later")
        return made.replace(path)


def main() -> int:
    try:
        if not class_archive(ensure_kafka_jars()).exists():
            sys.stderr.write("Preparing a faster start of Kafka (once, about 15 s) ...\n")
            make_archive()
    except (SetupError, OSError) as error:
        sys.stderr.write(f"not prepared: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
