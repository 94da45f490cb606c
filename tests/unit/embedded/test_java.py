"""Java and Maven are found, or one sentence says what to install."""

from __future__ import annotations

from pathlib import Path

import pytest

from heliograph.embedded.java import find_java, find_maven
from heliograph.errors import SetupError


def fake_java(folder: Path, version: str) -> Path:
    program = folder / "java"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)
    return program


def test_java_of_the_path_is_found(tmp_path: Path) -> None:
    assert find_java({"PATH": str(fake_java(tmp_path, "21.0.1").parent)}) == tmp_path / "java"


def test_java_home_wins_over_the_path(tmp_path: Path) -> None:
    fake_java(tmp_path / "path", "17.0.1")
    home = fake_java(tmp_path / "home" / "bin", "25")
    assert find_java({"PATH": str(tmp_path / "path"), "JAVA_HOME": str(tmp_path / "home")}) == home


@pytest.mark.parametrize("environ", [{"PATH": "/nowhere"}, {"PATH": "/nowhere", "JAVA_HOME": ""}])
def test_without_java_one_sentence_says_what_to_install(environ: dict[str, str]) -> None:
    with pytest.raises(SetupError) as refused:
        find_java(environ)
    assert str(refused.value) == (
        "Java 17 or newer was not found: install a JDK "
        "(Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME."
    )


@pytest.mark.parametrize("version", ["1.8.0_392", "11.0.2"])
def test_an_old_java_is_refused_with_its_version(tmp_path: Path, version: str) -> None:
    fake_java(tmp_path, version)
    with pytest.raises(SetupError, match=r"Java 17 or newer was not found: .* is version (8|11); install a JDK"):
        find_java({"PATH": str(tmp_path)})


def test_a_java_home_without_java_is_named(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=f"JAVA_HOME={tmp_path} does not run; install a JDK"):
        find_java({"JAVA_HOME": str(tmp_path)})


def test_without_maven_one_sentence_says_what_to_install() -> None:
    with pytest.raises(SetupError, match="^Maven was not found: install it .Debian: apt-get install maven. or put"):
        find_maven({"PATH": "/nowhere"})
