"""A package whose `__init__` is put off: submodules as ever, the rest with its first use. In processes that import nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from heliograph.packages import put_off_init, without_archives


def _python(program: str, *path: Path) -> str:
    before = "".join(f"import sys; sys.path.insert(0, {str(folder)!r})\n" for folder in path)
    ended = subprocess.run([sys.executable, "-c", before + program], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.fixture
def library(tmp_path: Path) -> Path:
    package = tmp_path / "slowlib"
    package.mkdir()
    (package / "__init__.py").write_text("print('init')\nfrom slowlib.part import value\nother = value + 1\n")
    (package / "part.py").write_text("print('part')\nvalue = 1\n")
    (package / "broken.py").write_text("import slowlib_needs_this\n")
    return tmp_path


PUT_OFF = "from heliograph.packages import put_off_init; put_off_init('slowlib')\n"


def test_submodules_come_without_init_and_the_rest_with_it_once(library: Path) -> None:
    program = PUT_OFF + "from slowlib import part\nprint('then')\nimport slowlib\nprint(slowlib.other, slowlib.value)\n"
    assert _python(program, library).split("\n")[:-1] == ["part", "then", "init", "2 1"]


def test_init_runs_for_a_name_and_leaves_its_own_error_for_an_unknown_one(library: Path) -> None:
    program = (
        PUT_OFF
        + "from slowlib import other\ntry:\n    from slowlib import nothing\nexcept ImportError as e:\n    print(e)\n"
    )
    assert "cannot import name 'nothing' from 'slowlib'" in _python(program, library)


def test_a_submodule_that_cannot_be_imported_says_what_it_misses(library: Path) -> None:
    program = PUT_OFF + "try:\n    from slowlib import broken\nexcept ImportError as e:\n    print(e.name)\n"
    assert _python(program, library) == "slowlib_needs_this\n"


def test_a_package_that_is_imported_or_missing_is_left_alone() -> None:
    put_off_init("json")
    put_off_init("heliograph_has_no_such_package")
    assert "heliograph_has_no_such_package" not in sys.modules
    assert "__getattr__" not in vars(sys.modules["json"])


def test_a_task_imports_no_client_of_the_library_and_a_driver_no_sql() -> None:
    program = "import sys, heliograph.spark.carry\nprint([n for n in sys.modules if n in {'kafka.consumer', 'kafka.admin', 'pyspark'}])"
    assert _python(program) == "[]\n"
    program = (
        "import sys, heliograph.cli.run\nprint([n for n in sys.modules if n in {'kafka.consumer', 'pyspark.sql'}])"
    )
    assert _python(program) == "[]\n"


def test_what_was_put_off_is_whole_for_whoever_asks() -> None:
    program = (
        "import heliograph.cli.run, kafka, kafka.net, pyspark.sql, pyspark\n"
        "from pyspark.context import SparkContext\n"
        "print(kafka.KafkaConsumer.__name__, kafka.net.KafkaConnection.__name__, pyspark.sql.SparkSession.__name__)\n"
        "print(pyspark.SparkContext is SparkContext, pyspark.Row.__name__)"
    )
    assert _python(program) == "KafkaConsumer KafkaConnection SparkSession\nTrue Row\n"


def _site(folder: Path, *packages: str) -> tuple[str, str]:
    """A folder with these packages, and the path of Spark's zip in it."""
    for name in packages:
        (folder / name).mkdir()
        (folder / name / "__init__.py").touch()
    return str(folder), str(folder / "pyspark" / "python" / "lib" / "pyspark.zip")


def test_the_zip_of_an_installed_spark_is_taken_off_the_path(tmp_path: Path) -> None:
    site, archive = _site(tmp_path, "pyspark", "py4j")
    other = "/opt/mine/python/lib/pyspark.zip"
    py4j = archive.replace("pyspark.zip", "py4j-src.zip")
    assert without_archives(["", archive, py4j, other, site]) == ["", other, site]


def test_the_zip_stays_where_it_is_the_only_one(tmp_path: Path) -> None:
    site, archive = _site(tmp_path, "pyspark")
    assert without_archives([archive, site]) == [archive, site], "py4j is not installed there"
    (tmp_path / "py4j").mkdir()
    (tmp_path / "py4j" / "__init__.py").touch()
    assert without_archives([archive]) == [archive], "the folder is not on the path"
    assert without_archives([archive, site]) == [site]
