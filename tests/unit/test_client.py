"""The Python client, as far as no broker is asked; the rest is in tests/integration/test_client.py."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from heliograph.client import MirrorClient
from heliograph.errors import ClusterUnreachable, ConfigError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mm2.properties"
    path.write_text(
        "clusters = A, B\nA.bootstrap.servers = localhost:1\nB.bootstrap.servers = localhost:1\nA->B.enabled = true\n"
    )
    return path


def test_a_cluster_that_nothing_leads_into_is_refused(file: Path) -> None:
    with pytest.raises(ConfigError, match="no enabled flow leads into a cluster 'A'"):
        MirrorClient(file, "A")


def test_a_flow_that_does_not_exist_is_named(file: Path) -> None:
    client = MirrorClient(file, "B")
    for ask in (
        lambda: client.translate("C", "orders", 0, 1),
        lambda: client.translate_group("C", "billing"),
        lambda: client.remote_consumer_offsets("billing", "C"),
        lambda: client.remote_consumer_offsets(re.compile("bill.*"), "C"),
    ):
        with pytest.raises(ConfigError, match="no flow C->B; flows come from A"):
            ask()


def test_a_cluster_out_of_reach_is_named(file: Path) -> None:
    with pytest.raises(ClusterUnreachable, match="^cluster B: connection refused at localhost:1$"):
        MirrorClient(file, "B").translate("A", "orders", 0, 1)
