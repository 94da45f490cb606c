"""Where and what was measured: the machine, the versions, the commit."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

from heliograph.embedded.jars import KAFKA_VERSION
from heliograph.embedded.java import find_java


def machine() -> dict[str, Any]:
    return {
        "cpu": _cpu_model(Path("/proc/cpuinfo").read_text()),
        "cores": os.cpu_count(),
        "memory_gb": psutil.virtual_memory().total / 1e9,
        "load": os.getloadavg()[0],
    }


def _cpu_model(cpuinfo: str) -> str:
    found = re.search(r"^model name\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    return found[1] if found else platform.machine()


def versions() -> dict[str, str]:
    said = subprocess.run([str(find_java()), "-version"], capture_output=True, text=True, check=True).stderr
    java = re.search(r'version "([^"]+)"', said)
    return {
        "Heliograph": version("heliograph"),
        "Kafka and MirrorMaker": KAFKA_VERSION,
        "Spark": version("pyspark"),
        "Java": java[1] if java else "unknown",
        "Python": platform.python_version(),
    }


def commit(tree: Path | None = None) -> tuple[str, bool]:
    """The commit, and whether files that are tracked differ from it; of this tree, or of another."""
    place = ("-C", str(tree)) if tree is not None else ()
    return _git(*place, "rev-parse", "HEAD"), bool(_git(*place, "status", "--porcelain", "--untracked-files=no"))


def keep(found: Mapping[str, Any], out: Path) -> None:
    """Into the file that the report reads, and for whoever watches."""
    text = json.dumps(found, indent=2) + "\n"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text)
    print(text, end="")


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)  # noqa: S607  git of PATH
    return done.stdout.strip() if done.returncode == 0 else ""
