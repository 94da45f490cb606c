"""The flow that most tests of this folder use."""

from __future__ import annotations

import pytest

from tests.integration.protocol.harness import Mirror
from tests.support.clusters import TwoClusters


@pytest.fixture
def mirror(two_clusters: TwoClusters, unique: str) -> Mirror:
    return Mirror(two_clusters.a.bootstrap, two_clusters.b.bootstrap, unique)


@pytest.fixture(scope="session")
def two_clusters():  # DEV ONLY
    from types import SimpleNamespace as N
    a, b = __import__("pathlib").Path("/tmp/lab/keep.txt").read_text().split()
    return N(a=N(bootstrap=a), b=N(bootstrap=b))
