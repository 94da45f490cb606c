from __future__ import annotations

import os
from pathlib import Path

import pytest

from heliograph.spark.class_archive import archive_option, archive_path


@pytest.fixture
def java_home(tmp_path: Path) -> Path:
    home = tmp_path / "jdk"
    for path in (home / "bin" / "java", home / "lib" / "modules"):
        path.parent.mkdir(parents=True)
        path.write_text("")
        path.chmod(0o755)
    return home


def test_without_an_archive_there_is_no_option(java_home: Path, tmp_path: Path) -> None:
    assert archive_option({"JAVA_HOME": str(java_home)}, tmp_path) == ""


def test_an_archive_of_this_java_is_used(java_home: Path, tmp_path: Path) -> None:
    environ = {"JAVA_HOME": str(java_home)}
    path = archive_path(environ, tmp_path)
    path.write_bytes(b"")
    assert archive_option(environ, tmp_path).endswith(f"-XX:SharedArchiveFile={path}")


def test_a_java_of_the_path_is_found_as_spark_finds_it(java_home: Path, tmp_path: Path) -> None:
    by_home = archive_path({"JAVA_HOME": str(java_home)}, tmp_path)
    assert archive_path({"PATH": str(java_home / "bin")}, tmp_path) == by_home
    assert archive_path({"PATH": str(tmp_path)}, tmp_path) != by_home


def test_an_updated_java_has_another_archive(java_home: Path, tmp_path: Path) -> None:
    environ = {"JAVA_HOME": str(java_home)}
    before = archive_path(environ, tmp_path)
    os.utime(java_home / "lib" / "modules", (1, 1))
    assert archive_path(environ, tmp_path) != before


def test_the_bundled_java_counts_and_not_the_script_before_it(java_home: Path, tmp_path: Path) -> None:
    script = {"JAVA_HOME": str(tmp_path), "HELIOGRAPH_BUNDLED_JAVA": str(java_home / "bin" / "java")}
    assert archive_path(script, tmp_path) == archive_path({"JAVA_HOME": str(java_home)}, tmp_path)
