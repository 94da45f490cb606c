"""The machine's Java goes before the bundled one; without either there is one sentence."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from heliograph.errors import SetupError
from heliograph.spark.java import java_environment


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_a_java_of_the_machine_is_left_alone(tmp_path: Path) -> None:
    script(tmp_path / "bin" / "java", "true")
    bundled = Path("never")
    assert java_environment({"JAVA_HOME": "/anywhere", "PATH": ""}, lambda: bundled) == {}
    assert java_environment({"PATH": str(tmp_path / "bin")}, lambda: bundled) == {}


def test_without_any_java_the_sentence_names_both_cures() -> None:
    with pytest.raises(
        SetupError, match=r"Java 17 or newer was not found: .*JAVA_HOME.*pip install 'heliograph\[java\]'"
    ):
        java_environment({"PATH": "", "JAVA_HOME": ""}, lambda: None)


def test_the_bundled_java_gets_every_word_but_the_module_it_does_not_have(tmp_path: Path) -> None:
    echo = script(tmp_path / "java", 'for word in "$@"; do echo "<$word>"; done')
    environ = dict(java_environment({"PATH": ""}, lambda: echo))
    words = ["-Xmx512m", "--add-modules=jdk.incubator.vector", "-Dx=two words", "", "Main", "*"]
    done = subprocess.run(
        [str(Path(environ["JAVA_HOME"]) / "bin" / "java"), *words],
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == ["<-Xmx512m>", "<-Dx=two words>", "<>", "<Main>", "<*>"]
