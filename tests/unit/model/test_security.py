from __future__ import annotations

import copy
import json
import pickle
from dataclasses import asdict

import pytest

from heliograph.model.clusters import Cluster
from heliograph.model.security import Login, Secret, Security, Store, Tls, TokenSource

HIDDEN = Secret("s3cret")
CLUSTER = Cluster(
    "A",
    ("a:1",),
    security=Security(
        Tls(Store("o", "PEM", text=HIDDEN), Store("o", "JKS", "/k", HIDDEN), HIDDEN),
        Login("OAUTHBEARER", "u", HIDDEN, tokens=TokenSource("http://x", "id", HIDDEN)),
    ),
)


def test_a_secret_is_seen_only_by_whom_it_is_revealed_to() -> None:
    assert HIDDEN.reveal() == "s3cret"
    for shown in (repr(HIDDEN), str(HIDDEN), f"{HIDDEN}", f"{HIDDEN!r:>5}", repr(CLUSTER), str(asdict(CLUSTER))):
        assert "s3cret" not in shown
        assert "***" in shown


def test_a_secret_cannot_be_written_as_json_by_chance() -> None:
    with pytest.raises(TypeError):
        json.dumps(asdict(CLUSTER))


def test_a_cluster_travels_whole_and_equal_ones_are_one_key() -> None:
    travelled = pickle.loads(pickle.dumps(CLUSTER))  # noqa: S301  our own
    assert travelled == CLUSTER
    assert len({travelled, CLUSTER, copy.deepcopy(CLUSTER)}) == 1
    assert travelled.security.login.password.reveal() == "s3cret"


def test_secrets_are_compared_by_their_text() -> None:
    assert Secret("a") == Secret("a")
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"
