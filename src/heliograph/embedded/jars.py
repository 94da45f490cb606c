"""Kafka's jars: fetched once by Maven into a cache outside the repository.

The folder appears whole or not at all (built aside, marked, renamed), and two processes that want it at the same moment
fetch it once. Must not know who runs the jars.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

from heliograph.embedded.java import find_java, find_maven
from heliograph.errors import SetupError

KAFKA_VERSION = "4.3.1"

_POM = f"kafka-{KAFKA_VERSION}.pom.xml"
_BROKER_POM = "broker.pom.xml"
"""For any other version: a broker alone, without Connect and MirrorMaker."""
_MARKER = ".complete"

Progress = Callable[[str], None]


def cache_directory(environ: Mapping[str, str] = os.environ) -> Path:
    """`$HELIOGRAPH_CACHE`, else `~/.cache/heliograph`."""
    chosen = environ.get("HELIOGRAPH_CACHE")
    return Path(chosen).expanduser() if chosen else Path.home() / ".cache" / "heliograph"


def ensure_kafka_jars(
    progress: Progress | None = None, cache: Path | None = None, version: str = KAFKA_VERSION
) -> Path:
    """The folder with Kafka's jars, fetched now if it is not there yet. A failure leaves no half-filled folder."""
    cache = cache or cache_directory()
    jars = cache / f"kafka-{version}"
    if (jars / _MARKER).exists():
        return jars
    find_java()
    maven = find_maven()
    cache.mkdir(parents=True, exist_ok=True)
    with _only_one(cache / f"kafka-{version}.lock"):
        if not (jars / _MARKER).exists():
            if progress:
                progress(f"Fetching Kafka {version} by Maven into {jars} (once, about 50 MB) ...")
            _fetch(maven, jars, version)
    return jars


@contextmanager
def _only_one(lock: Path) -> Iterator[None]:
    # The lock file stays: removing it would let two processes hold locks on two files of the same name.
    with lock.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _fetch(maven: Path, jars: Path, version: str) -> None:
    with tempfile.TemporaryDirectory(prefix=f".{jars.name}-", dir=jars.parent) as folder:
        aside = Path(folder)
        pom = aside / "pom.xml"
        name = _POM if version == KAFKA_VERSION else _BROKER_POM
        pom.write_bytes(resources.files("heliograph.embedded").joinpath(name).read_bytes())
        _copy_dependencies(maven, pom, aside / "jars", version)
        (aside / "jars" / _MARKER).touch()
        shutil.rmtree(jars, ignore_errors=True)
        (aside / "jars").rename(jars)


def _copy_dependencies(maven: Path, pom: Path, into: Path, version: str) -> None:
    command = [str(maven), "-q", "-B", "-f", str(pom), "dependency:copy-dependencies"]
    command += [f"-DoutputDirectory={into}", f"-Dkafka.version={version}"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0 or not any(into.glob("kafka_2.13-*.jar")):
        faults = [line for line in done.stdout.splitlines() if line.startswith("[ERROR]")]
        reason = faults[0].removeprefix("[ERROR]").strip() if faults else f"exit status {done.returncode}"
        raise SetupError(f"Maven could not fetch Kafka {version}: {reason}")


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def main() -> int:
    """`make jars`: fetch them, say where they are."""
    try:
        jars = ensure_kafka_jars(progress=_say)
    except SetupError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"Kafka {KAFKA_VERSION}: {jars}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
