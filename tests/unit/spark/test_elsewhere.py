"""What executors outside this process get: settings that a file may override, and a package that need not be compiled there."""

from __future__ import annotations

import importlib.util
import py_compile
import zipfile
import zipimport
from pathlib import Path

import pytest

from heliograph.spark.elsewhere import JVM_OPTIONS, executor_settings, pack

_OPTIONS = "spark.executor.extraJavaOptions"
_PATH = "spark.executorEnv.PYTHONPATH"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    root = tmp_path / "there" / "parcel"
    root.mkdir(parents=True)
    for name in ("__init__", "compiled", "plain"):
        (root / f"{name}.py").write_text(f"NAME = {name!r}\n")
    py_compile.compile(str(root / "compiled.py"))
    return root


def test_a_daemon_finds_the_package_by_its_name_and_imports_it_once() -> None:
    found = executor_settings({}, "parcel.zip", "")
    assert found[_PATH] == "parcel.zip"
    assert found["spark.python.daemon.module"] == "heliograph.spark.daemon"
    assert found[_OPTIONS] == JVM_OPTIONS


def test_what_the_file_says_wins() -> None:
    said = {_OPTIONS: "-XX:+UseG1GC", "spark.python.daemon.module": "pyspark.daemon", "spark.cores.max": "4"}
    assert executor_settings(said, "parcel.zip", "-XX:SharedArchiveFile=a") == {**said, _PATH: "parcel.zip"}


def test_a_search_path_of_the_file_comes_after_the_package() -> None:
    assert executor_settings({_PATH: "/libs"}, "parcel.zip", "")[_PATH] == "parcel.zip:/libs"


@pytest.mark.parametrize(
    ("host", "is_here"), [("127.0.0.1", True), ("localhost", True), ("10.0.0.7", False), ("", False)]
)
def test_only_executors_of_this_machine_are_given_its_class_archive(host: str, is_here: bool) -> None:
    settings = {"spark.driver.host": host} if host else {}
    found = executor_settings(settings, "parcel.zip", "-XX:SharedArchiveFile=a")
    assert ("SharedArchiveFile" in found[_OPTIONS]) is is_here


def test_modules_travel_with_their_compiled_form(package: Path, tmp_path: Path) -> None:
    made = pack(package, tmp_path / "parcel.zip")
    assert sorted(zipfile.ZipFile(made).namelist()) == [
        "parcel/__init__.py",
        "parcel/compiled.py",
        "parcel/compiled.pyc",
        "parcel/plain.py",
    ]
    inside = zipimport.zipimporter(f"{made}/parcel")
    assert inside.get_filename("compiled").endswith("compiled.pyc"), "taken as it is, whatever the archive's times are"
    assert inside.get_filename("plain").endswith("plain.py")
    names: dict[str, str] = {}
    exec(inside.get_code("compiled"), names)  # noqa: S102  our own module
    assert names["NAME"] == "compiled"


def test_another_version_of_python_compiles_the_source(package: Path, tmp_path: Path) -> None:
    made = pack(package, tmp_path / "parcel.zip")
    other = tmp_path / "other.zip"
    with zipfile.ZipFile(made) as source, zipfile.ZipFile(other, "w") as target:
        for name in source.namelist():
            content = source.read(name)
            target.writestr(name, b"\0\0\0\0" + content[4:] if name.endswith(".pyc") else content)
    assert zipimport.zipimporter(f"{other}/parcel").get_filename("compiled").endswith("compiled.py")


def test_a_source_that_was_changed_since_travels_alone(package: Path, tmp_path: Path) -> None:
    (package / "compiled.py").write_text("NAME = 'another, and longer'\n")
    assert "parcel/compiled.pyc" not in zipfile.ZipFile(pack(package, tmp_path / "parcel.zip")).namelist()


def test_what_another_python_compiled_stays_here(package: Path, tmp_path: Path) -> None:
    kept = Path(importlib.util.cache_from_source(str(package / "compiled.py")))
    kept.write_bytes(b"\0\0\0\0" + kept.read_bytes()[4:])
    assert "parcel/compiled.pyc" not in zipfile.ZipFile(pack(package, tmp_path / "parcel.zip")).namelist()
