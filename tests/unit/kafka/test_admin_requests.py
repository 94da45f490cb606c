"""What is made of the answers of the library's admin client."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import kafka.errors as foreign
import pytest

from heliograph.kafka.admin_requests import unfenced_brokers


def client_of(*fenced: bool) -> Any:
    """One that knows brokers 1, 2, ..., of which these are fenced."""
    rows = [{"broker_id": number, "is_fenced": is_fenced} for number, is_fenced in enumerate(fenced, 1)]
    answer = SimpleNamespace(error_code=0, to_dict=lambda: {"brokers": rows})
    return SimpleNamespace(_manager=SimpleNamespace(run=lambda *_: answer, send=None))


def test_fenced_brokers_are_not_counted() -> None:
    assert unfenced_brokers(client_of(False, True, False)) == [1, 3]


def test_a_cluster_whose_brokers_are_all_fenced_is_asked_again() -> None:
    with pytest.raises(foreign.MetadataEmptyBrokerList) as error:
        unfenced_brokers(client_of(True, True))
    assert error.value.retriable
