"""The flow that most tests of this folder use."""

from __future__ import annotations

import pytest

from tests.integration.protocol.harness import Mirror
from tests.support.clusters import TwoClusters


@pytest.fixture
def mirror(two_clusters: TwoClusters, unique: str) -> Mirror:
    return Mirror(two_clusters.a.bootstrap, two_clusters.b.bootstrap, unique)
