"""A test run whose worker dies ends, fails, and names the test: with the options that `make test` gives to its workers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

MAKEFILE = Path(__file__).parents[2] / "Makefile"
DIES = "import os\n\n\ndef test_first():\n    pass\n\n\ndef test_dies():\n    os.kill(os.getpid(), 9)\n"
LIVES = "def test_lives():\n    pass\n"


def test_a_worker_that_dies_fails_the_run_instead_of_hanging_it(tmp_path: Path) -> None:
    (options,) = re.findall(r"^WORKERS = (.*)$", MAKEFILE.read_text(), re.MULTILINE)
    (tmp_path / "test_a.py").write_text(DIES)
    for name in "bcd":
        (tmp_path / f"test_{name}.py").write_text(LIVES)
    outer = [name for name in os.environ if name.startswith(("PYTEST", "COV"))]
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *options.split(), "-q", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name not in outer},
        capture_output=True,
        text=True,
        timeout=500,  # it never ended
        check=False,
    )
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert re.search(r"worker 'gw\d' crashed while running 'test_a.py::test_dies'", ended.stdout), ended.stdout
