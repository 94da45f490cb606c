"""What embedded nodes are told."""

from __future__ import annotations

from pathlib import Path

from heliograph.embedded.settings import (
    CONTROLLER_ID,
    Jvm,
    Layout,
    Listener,
    class_archive,
    new_cluster_id,
    node_properties,
)

DATA = Path("data")
ONE = Layout({1: 21_001}, 21_000)
THREE = Layout({1: 21_001, 2: 21_002, 3: 21_003}, 21_000)


def properties(layout: Layout, node: int) -> dict[str, str]:
    return dict(line.split("=", 1) for line in node_properties(layout, node, DATA).splitlines())


def test_a_cluster_id_never_looks_like_an_option() -> None:
    ids = {new_cluster_id() for _ in range(500)}
    assert len(ids) == 500
    assert all(len(cluster_id) == 22 and not cluster_id.startswith("-") for cluster_id in ids)


def test_a_single_broker_is_its_own_controller() -> None:
    assert ONE.nodes == (1,)
    told = properties(ONE, 1)
    assert told["process.roles"] == "broker,controller"
    assert told["controller.quorum.voters"] == "1@127.0.0.1:21000"
    assert told["transaction.state.log.replication.factor"] == "1"


def test_several_brokers_have_a_controller_that_survives_them() -> None:
    assert THREE.nodes == (CONTROLLER_ID, 1, 2, 3)
    assert properties(THREE, CONTROLLER_ID)["listeners"] == "CONTROLLER://127.0.0.1:21000"
    told = properties(THREE, 2)
    assert told["process.roles"] == "broker"
    assert told["advertised.listeners"] == "PLAINTEXT://127.0.0.1:21002"
    assert told["controller.quorum.voters"] == "100@127.0.0.1:21000"
    assert told["offsets.topic.replication.factor"] == "3"


def test_further_listeners_stand_beside_the_open_one() -> None:
    layout = Layout(
        {1: 21_001}, 21_000, {}, {"SAFE": Listener("SASL_SSL", {1: 21_002}), "TLS": Listener("SSL", {1: 21_003})}
    )
    told = properties(layout, 1)
    doors = "PLAINTEXT://127.0.0.1:21001,SAFE://127.0.0.1:21002,TLS://127.0.0.1:21003"
    assert told["advertised.listeners"] == doors
    assert told["listeners"] == f"{doors},CONTROLLER://127.0.0.1:21000"
    assert told["listener.security.protocol.map"] == "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SAFE:SASL_SSL,TLS:SSL"


def test_what_the_caller_sets_wins() -> None:
    layout = Layout({1: 21_001}, 21_000, {"num.io.threads": "8", "x": "y"})
    told = properties(layout, 1)
    assert (told["num.io.threads"], told["x"]) == ("8", "y")


def test_full_jit_leaves_collector_and_compilers_to_the_jvm() -> None:
    quick = Jvm().command(Path("java"), Path("jars"), "Main", "file")
    full = Jvm(heap="2g", full_jit=True).command(Path("java"), Path("jars"), "Main", "file")
    assert {"-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"} <= set(quick)
    assert [word for word in full if word.startswith("-X")] == ["-Xmx2g"]
    assert full[-3:] == ["jars/*", "Main", "file"]


def test_an_archive_of_the_jars_is_used_by_a_quick_jvm_alone(tmp_path: Path) -> None:
    option = f"-XX:SharedArchiveFile={class_archive(tmp_path)}"
    assert option not in Jvm().command(Path("java"), tmp_path, "Main")
    class_archive(tmp_path).touch()
    assert option in Jvm().command(Path("java"), tmp_path, "Main")
    assert option not in Jvm(full_jit=True).command(Path("java"), tmp_path, "Main")
