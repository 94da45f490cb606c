"""The wheel alone, in an environment of its own: no repository, no Maven, and with the extra `java` not even a Java.

The environment is made by the ordinary pip, as a user makes it, with the versions of the lock file. The brokers are this
machine's, with its Java.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from heliograph.operations.compare import compare_topics
from tests.support.clusters import TwoClusters
from tests.support.heliograph_run import HeliographRun
from tests.support.mirror import flow_file, word
from tests.support.topics import create_topic
from tests.support.waiting import wait_until
from tests.support.writers import write_every_codec

ROOT = Path(__file__).parents[2]
HIDDEN = ("java", "javac", "jshell", "mvn")
_PINNED = re.compile(r"^[A-Za-z0-9_.-]+==[^ ;\\]+", re.MULTILINE)


@dataclass(frozen=True)
class Installed:
    """An environment with the wheel, and folders to put on a PATH: all commands but Java and Maven; Java alone."""

    venv: Path
    commands: Path
    java: Path

    @property
    def program(self) -> Path:
        return self.venv / "bin" / "heliograph"

    def environ(self, *, with_java: bool) -> dict[str, str]:
        folders = [self.venv / "bin", self.commands, *([self.java] if with_java else [])]
        kept = {name: os.environ[name] for name in ("HOME", "LANG", "TMPDIR") if name in os.environ}
        return {**kept, "PATH": ":".join(map(str, folders))}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    directory = tmp_path_factory.mktemp("installed")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(directory)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = directory.glob("heliograph-*.whl")
    pins = directory / "constraints.txt"
    pins.write_text("\n".join(_PINNED.findall((ROOT / "requirements.lock").read_text())))
    venv = directory / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True, capture_output=True)
    pip = [str(venv / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run(
        [*pip, "--constraint", str(pins), f"{wheel}[java]"], cwd=directory, text=True, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    yield Installed(venv, commands_in(directory / "commands"), java_in(directory / "java"))
    shutil.rmtree(venv)  # more than half a gigabyte


def commands_in(folder: Path) -> Path:
    """What Spark's own scripts call, and everything else of the system, but no Java and no Maven."""
    folder.mkdir()
    for place in ("/bin", "/usr/bin"):
        for program in Path(place).iterdir():
            link = folder / program.name
            if program.name not in HIDDEN and not link.exists() and not link.is_symlink():
                link.symlink_to(program)
    return folder


def java_in(folder: Path) -> Path:
    folder.mkdir()
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    assert found, "the brokers need a Java too"
    (folder / "java").symlink_to(found)
    return folder


def javas_of(run: HeliographRun) -> list[Path]:
    """The programs of its JVMs; the first of them, which only makes the command line of the other, ends at any time."""
    found = []
    for pid in run.jvms():
        with contextlib.suppress(psutil.NoSuchProcess):
            found.append(Path(psutil.Process(pid).exe()))
    return found


@pytest.mark.parametrize("with_java", [True, False], ids=["the machine's Java", "the bundled Java"])
def test_the_wheel_alone_mirrors_two_clusters(
    installed: Installed, two_clusters: TwoClusters, tmp_path: Path, with_java: bool
) -> None:
    here, there = two_clusters.a.bootstrap, two_clusters.b.bootstrap
    source, target, topic = word(), word(), word()
    create_topic(here, topic, partitions=2)
    records = write_every_codec(here, topic, 100, partitions=2)
    properties = flow_file(
        tmp_path / "installed.properties", {source: here, target: there}, {f"{source}->{target}": topic}
    )
    environ = installed.environ(with_java=with_java)
    assert shutil.which("mvn", path=environ["PATH"]) is None
    assert bool(shutil.which("java", path=environ["PATH"])) is with_java
    options = ("--until-caught-up", "--spark-log", str(tmp_path / "spark.log"))
    with HeliographRun(properties, *options, environ=environ, program=installed.program) as run:
        found: list[Path] = []
        wait_until(lambda: bool(found or found.extend(javas_of(run)) or found), "Spark's JVM runs", every=0.05)
        java = found[0]
        assert run.wait(300) == 0, run.output
    assert (installed.venv in java.parents) is not with_java
    assert f"copied {records} records" in run.output
    comparison = compare_topics(here, there, {topic: f"{source}.{topic}"})
    assert (comparison.differences, comparison.records) == ([], records)


def test_the_installed_package_is_the_wheels(installed: Installed, tmp_path: Path) -> None:
    where = [str(installed.venv / "bin" / "python"), "-c", "import heliograph; print(heliograph.__file__)"]
    done = subprocess.run(
        where, cwd=tmp_path, env=installed.environ(with_java=False), capture_output=True, text=True, check=True
    )
    assert installed.venv in Path(done.stdout.strip()).parents
    said = subprocess.run(
        [str(installed.program), "--version"], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert said.stdout.startswith("heliograph ")
