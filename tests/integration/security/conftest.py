from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.secured import Secured, secured_cluster


@pytest.fixture(scope="session")
def secured(kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """Cluster S with its many doors, started once."""
    del kafka_jars
    with secured_cluster(tmp_path_factory.mktemp("secured")) as cluster:
        yield cluster
