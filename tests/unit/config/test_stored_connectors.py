"""Connectors that are kept: one that no longer fits stops no other, and the file's flows are connectors too."""

from __future__ import annotations

import pytest

from heliograph.config.connectors import ConnectorKind
from heliograph.config.flows import Settings
from heliograph.config.load import load
from heliograph.config.stored_connectors import (
    Loader,
    StoredConnector,
    WishedState,
    connector_of,
    file_facts,
    file_name,
    fitted,
    idle_entries,
    kind_in,
    kinds_of,
    state_of,
)

FILE = "clusters = A, C\nA.bootstrap.servers = a:1\nC.bootstrap.servers = c:1\nA->C.enabled = true\n"


def loader(text: str = FILE) -> Loader:
    def with_entries(entries: object) -> Settings:
        assert isinstance(entries, dict)
        lines = "\n".join(f"{name} = {value}" for name, value in entries.items())
        return load(f"{text}\n{lines}\n", "mm2.properties")

    return with_entries


def stored(name: str, target: str = "B", **config: str) -> StoredConnector:
    fields = {
        "connector.class": "MirrorSource",
        "source.cluster.alias": "A",
        "source.cluster.bootstrap.servers": "a:1",
        "target.cluster.alias": target,
        "target.cluster.bootstrap.servers": f"{target.lower()}:1",
    }
    return StoredConnector(name, {**fields, **{key.replace("_", "."): value for key, value in config.items()}}, "me", 5)


def test_what_is_kept_is_read_again() -> None:
    one = stored("x")
    assert connector_of(one.as_fields()) == one
    assert state_of(WishedState("x", "STOPPED").as_fields()) == WishedState("x", "STOPPED")
    with pytest.raises(ValueError, match="BOGUS"):
        state_of({"name": "x", "state": "BOGUS"})


def test_all_that_fit_are_loaded_together() -> None:
    found = fitted([stored("x"), stored("y", "D")], load(FILE, "f"), frozenset(), loader())
    assert found.unfit == {}
    assert {flow.flow.name for flow in loader()(found.entries).flows} == {"A->B", "A->C", "A->D"}
    assert fitted([], load(FILE, "f"), frozenset(), loader()).entries == {}


def test_one_that_does_not_fit_stops_no_other() -> None:
    rows = [
        stored("good"),
        stored("filed", "C"),
        stored("broken", "D", offset_lag_max="x"),
        stored("lost", "E", offset_lag_max="${env:NOWHERE}"),
        stored("other", "F"),
    ]
    found = fitted(rows, load(FILE, "f"), frozenset(), loader())
    assert found.unfit.keys() == {"filed", "broken", "lost"}
    assert "the file has flow A->C" in found.unfit["filed"]
    assert "offset.lag.max" in found.unfit["broken"]
    assert "NOWHERE" in found.unfit["lost"]
    assert {flow.flow.name for flow in loader()(found.entries).flows} == {"A->B", "A->C", "A->F"}


def test_the_files_flows_have_the_connectors_that_mirrormaker_2_would_have() -> None:
    flow = load(FILE, "f").flows[0]
    assert kinds_of(flow) == list(ConnectorKind)
    quiet = load(FILE + "emit.checkpoints.enabled = false\nemit.heartbeats.enabled = false\n", "f").flows[0]
    assert kinds_of(quiet) == [ConnectorKind.SOURCE]
    assert file_name(ConnectorKind.SOURCE, flow) == "MirrorSourceConnector-A-C"
    facts = file_facts(load(FILE, "f"))
    assert (facts.aliases, facts.flows, facts.entries["A.bootstrap.servers"]) == (("A", "C"), {"A->C"}, "a:1")


def test_the_files_checkpoints_and_heartbeats_can_be_stopped() -> None:
    flows = load(FILE, "f").flows
    idle = frozenset({"MirrorCheckpointConnector-A-C", "MirrorHeartbeatConnector-A-C"})
    assert idle_entries(flows, frozenset()) == {}
    (flow,) = loader()(idle_entries(flows, idle)).flows
    assert kinds_of(flow) == [ConnectorKind.SOURCE]


def test_a_class_that_cannot_be_told_counts_as_a_source() -> None:
    assert kind_in({"connector.class": "MirrorHeartbeat"}) is ConnectorKind.HEARTBEAT
    assert kind_in({}) is ConnectorKind.SOURCE
