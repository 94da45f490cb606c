"""What executors outside this process need so that they begin soon: the package, its compiled modules, short-lived JVM options.

Driver only. Between the start of a driver on a Spark cluster and its first record lie the starts of a JVM and of a Python daemon on
every executor; why each line is there: docs/decisions/0071-executors-that-begin-soon.md. Knows no SparkContext.
"""

from __future__ import annotations

import importlib.util
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path

JVM_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""For a JVM through which no record passes: compile little, and no threads for a collector."""
_UNCHECKED = (1).to_bytes(4, "little")
_HEADER_BYTES = 16
_LOOPBACK = ("127.", "localhost", "::1")
_PYTHONPATH = "spark.executorEnv.PYTHONPATH"


def executor_settings(settings: Mapping[str, str], package: str, archive: str) -> dict[str, str]:
    """Settings for a master that is not this process, where the file does not say otherwise.

    `package` is the name of the archive with our modules. Spark puts it into an executor's working directory before the first task
    starts a daemon there, so that the daemon finds it by its name alone. `archive` is the JVM's option for a class archive on this
    machine: executors that reach the driver by the loopback address are on this machine too.
    """
    is_here = settings.get("spark.driver.host", "").startswith(_LOOPBACK)
    path = os.pathsep.join(part for part in (package, settings.get(_PYTHONPATH, "")) if part)
    ours = {
        "spark.executor.extraJavaOptions": f"{JVM_OPTIONS} {archive if is_here else ''}".strip(),
        "spark.python.daemon.module": "heliograph.spark.daemon",
    }
    return {**ours, **settings, _PYTHONPATH: path}


def pack(root: Path, target: Path) -> Path:
    """The package below `root` as an archive, each module with its compiled form where Python has kept one.

    Python compiles a module of an archive each time it is imported. What is compiled here is taken without a look at the time of
    its source, whose zone an archive does not say; another version of Python passes it over and compiles.
    """
    with zipfile.ZipFile(target, "w") as archive:
        for source in root.rglob("*.py"):
            name = source.relative_to(root.parent)
            archive.write(source, name)
            if (compiled := _compiled(source)) is not None:
                archive.writestr(str(name.with_suffix(".pyc")), compiled)
    return target


def _compiled(source: Path) -> bytes | None:
    """As PEP 552 has it: magic number, flags, then size and time of the source, or its hash."""
    kept = Path(importlib.util.cache_from_source(str(source)))
    if not kept.is_file():
        return None
    content, known = kept.read_bytes(), source.stat()
    of_source = [int.from_bytes(content[place : place + 4], "little") for place in (4, 8, 12)]
    if content[:4] != importlib.util.MAGIC_NUMBER or of_source != [0, *_as_kept(known)]:
        return None
    header = importlib.util.MAGIC_NUMBER + _UNCHECKED + importlib.util.source_hash(source.read_bytes())
    return header + content[_HEADER_BYTES:]


def _as_kept(known: os.stat_result) -> tuple[int, int]:
    return int(known.st_mtime) & 0xFFFFFFFF, known.st_size & 0xFFFFFFFF
