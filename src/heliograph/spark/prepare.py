"""Makes the class archive that a faster start of Spark needs: `python -m heliograph.spark.prepare`, once per environment."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from heliograph.errors import SetupError
from heliograph.spark.class_archive import PREFIX, archive_option, archive_path
from heliograph.spark.java import QUIET, java_environment
from heliograph.spark.session import end_session, start_session


def make_archive(folder: Path = Path(sys.prefix)) -> Path:
    """Start Spark, run one job, and let the JVM write what it has loaded as it ends. Appears whole or not at all."""
    with tempfile.TemporaryDirectory(prefix=f".{PREFIX}", dir=folder) as aside:
        made = Path(aside) / "archive"
        options = {"spark.driver.extraJavaOptions": f"{QUIET} -XX:ArchiveClassesAtExit={made}"}
        context = start_session("local[2,4]", options, Path(aside) / "log")
        context.parallelize([1, 2], 2).map(str).collect()
        end_session(context)
        if not made.is_file():
            raise SetupError("Spark's JVM wrote no class archive; it starts as ever, two seconds later")
        for old in folder.glob(f"{PREFIX}*.jsa"):
            old.unlink()
        return made.rename(archive_path(os.environ, folder))


def _main() -> int:
    try:
        if archive_option({**os.environ, **java_environment(os.environ)}):
            return 0
        sys.stderr.write("Preparing a faster start of Spark (once, about 15 s) ...\n")
        make_archive()
    except (SetupError, OSError) as error:
        sys.stderr.write(f"not prepared: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_main())
