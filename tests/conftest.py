"""For every test: Hypothesis profiles, the order of the folders, and real brokers for those that ask for them.

The broker fixtures are imported here and not in the folders that use them, so that integration and chaos share one pair.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

from tests.support.clusters import kafka_jars, new_cluster, two_clusters, unique

__all__ = ["kafka_jars", "new_cluster", "two_clusters", "unique"]

FOLDERS = ("src", "unit", "property", "chaos", "integration")
"""Cheap tests first: what is wrong in a pure function should not be found by killing brokers. Chaos before integration: two
workers share the files, and end together if the longest come first."""
LONG = (
    "test_standby",
    "test_histories",
    "test_run_command",
    "test_embedded_cluster",
    "test_check",
    "test_policies",
    "test_attach",
    "test_spark_checkpoint",
    "test_offset_syncs",
    "test_topologies",
    "test_config_sync",
    "test_translation",
    "test_certificates",
    "test_takeover_connect",
    "test_installed",
    "test_metrics",
    "test_page",
    "test_connect_rest",
)
"""Files of a minute and more, first in their folder: a worker that takes one last would work alone."""
UNMEASURED = ("chaos", "integration")
"""Coverage is that of unit and property tests; tracing slows down lanes that run inside a test."""

# No deadline: the machine is shared with brokers. `thorough` is for a longer look: HYPOTHESIS_PROFILE=thorough.
settings.register_profile("default", derandomize=True, deadline=None, max_examples=100)
settings.register_profile("thorough", deadline=None, max_examples=5_000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the random order inside a folder (pytest-randomly shuffles first), put the folders in theirs, long files first."""
    items.sort(key=lambda item: (_folder(item), item.path.stem not in LONG))
    unmeasured = {FOLDERS.index(name) for name in UNMEASURED}
    for item in items:
        if _folder(item) in unmeasured:
            item.add_marker(pytest.mark.no_cover)


def _folder(item: pytest.Item) -> int:
    parts = item.path.relative_to(item.config.rootpath).parts
    return next((place for place, folder in enumerate(FOLDERS) if folder in parts[:2]), len(FOLDERS))
