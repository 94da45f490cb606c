"""Spark's classes as the JVM keeps them in memory, written to a file once: the next JVM maps it instead of loading them.

Saves 2 of 5 CPU seconds at every start (docs/decisions/0021-class-archive.md). The file lies in the Python environment whose
Spark it is of. `python -m heliograph.spark.prepare` makes it, and `make` calls that; without it Spark starts as ever.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from heliograph.spark.java import QUIET
from heliograph.spark.pyspark_core import HOME, VERSION

PREFIX = "heliograph-spark-"


def archive_path(environ: Mapping[str, str], folder: Path) -> Path:
    """Where the archive of this Spark and of the Java that `environ` finds is, or would be."""
    known = f"{VERSION} {HOME} {_identity(_java(environ))}"
    return folder / f"{PREFIX}{hashlib.sha256(known.encode()).hexdigest()[:12]}.jsa"


def archive_option(environ: Mapping[str, str] = os.environ, folder: Path = Path(sys.prefix)) -> str:
    """The JVM's option; nothing where there is no archive for it."""
    path = archive_path(environ, folder)
    return f"{QUIET} -XX:SharedArchiveFile={path}" if path.is_file() else ""


def _java(environ: Mapping[str, str]) -> Path | None:
    """As Spark's own script looks for it."""
    home = environ.get("JAVA_HOME")
    found = f"{home}/bin/java" if home else shutil.which("java", path=environ.get("PATH", ""))
    return Path(environ.get("HELIOGRAPH_BUNDLED_JAVA") or found).resolve() if found else None


def _identity(java: Path | None) -> str:
    """Changes when Java is updated in its place: a JVM refuses the archive of another build."""
    modules = java.parent.parent / "lib" / "modules" if java else None
    return f"{java} {modules.stat().st_mtime_ns}" if modules and modules.exists() else str(java)
