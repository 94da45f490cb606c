from __future__ import annotations

from pathlib import Path

import pytest

from heliograph.config.flows import Settings
from heliograph.config.load import load
from heliograph.control.epochs import way_to
from heliograph.control.security import read_stores
from heliograph.errors import SetupError
from heliograph.model.clusters import Cluster
from heliograph.model.security import Login, Security
from tests.unit.kafka.test_certificates import KEY
from tests.unit.wire.test_pem import NAMELESS


def settings(folder: Path) -> Settings:
    (folder / "own").write_text(NAMELESS + KEY)
    lines = ["clusters = A, B", "A.bootstrap.servers = 127.0.0.1:1", "B.bootstrap.servers = b:1", "A->B.enabled = true"]
    lines += ["A.security.protocol = SSL", "A.ssl.keystore.type = PEM", f"A.ssl.keystore.location = {folder / 'own'}"]
    return load("\n".join(lines), "mm2.properties")


def test_stores_are_read_once_for_every_connection_of_every_flow(tmp_path: Path) -> None:
    found = read_stores(settings(tmp_path)).flows[0]
    (tmp_path / "own").unlink()
    for cluster in (found.source, found.source_admin):
        assert cluster.security.tls is not None
        assert cluster.security.tls.own is not None
        assert cluster.security.tls.own.text is not None
    assert found.target.security == Security()


def test_a_store_that_is_missing_names_the_cluster(tmp_path: Path) -> None:
    made = settings(tmp_path)
    (tmp_path / "own").unlink()
    with pytest.raises(SetupError, match=r"^cluster A: ssl.keystore.location: file .*/own does not exist"):
        read_stores(made)


def test_ways_to_one_cluster_that_differ_have_names_that_differ() -> None:
    names: dict[Cluster, str] = {}
    one, other = Cluster("A", ("a:1",)), Cluster("A", ("a:1",), security=Security(login=Login("PLAIN", "u")))
    assert [way_to(cluster, names) for cluster in (one, other, one, Cluster("B", ()))] == ["A", "A#2", "A", "B"]
