"""Where Java and Maven are on this computer, and the one sentence for when they are not.

Needs nothing but the standard library: the Makefile runs it (`python3 -m heliograph.embedded.java`) before there is a
virtual environment. Must not know what Java is wanted for.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from heliograph.errors import SetupError

OLDEST_JAVA = 17

_INSTALL_JAVA = "install a JDK (Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME"
_INSTALL_MAVEN = "install it (Debian: apt-get install maven) or put its bin folder on PATH"
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')


def find_java(environ: Mapping[str, str] = os.environ) -> Path:
    """The `java` of JAVA_HOME, else of PATH, once it has said that it is new enough."""
    home = environ.get("JAVA_HOME")
    found = str(Path(home) / "bin" / "java") if home else shutil.which("java", path=environ.get("PATH"))
    if found is None:
        raise SetupError(f"Java {OLDEST_JAVA} or newer was not found: {_INSTALL_JAVA}.")
    version = java_version(_version_text(found))
    if version is None:
        where = f"JAVA_HOME={home}" if home else found
        raise SetupError(f"Java {OLDEST_JAVA} or newer was not found: {where} does not run; {_INSTALL_JAVA}.")
    if version < OLDEST_JAVA:
        raise SetupError(f"Java {OLDEST_JAVA} or newer was not found: {found} is version {version}; {_INSTALL_JAVA}.")
    return Path(found)


def find_maven(environ: Mapping[str, str] = os.environ) -> Path:
    """Maven's `mvn` of PATH."""
    found = shutil.which("mvn", path=environ.get("PATH"))
    if found is None:
        raise SetupError(f"Maven was not found: {_INSTALL_MAVEN}.")
    return Path(found)


def java_version(text: str) -> int | None:
    """The feature release in what `java -version` prints, `None` where it names none.

    >>> java_version('openjdk version "17.0.15" 2025-04-15')
    17
    >>> java_version('java version "1.8.0_392"')
    8
    """
    match = _VERSION.search(text)
    return int(match[1]) if match else None


def _version_text(java: str) -> str:
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stderr + done.stdout


def main() -> int:
    """Say what is missing, in one sentence, with exit status 1; otherwise nothing."""
    try:
        find_java()
        find_maven()
    except SetupError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
