"""A data folder after the example of one that Kafka's tool has formatted."""

from __future__ import annotations

from pathlib import Path

from heliograph.embedded.formatting import example_of, is_formatted, named

META = "#\n#Mon Nov 16 12:26:45 UTC 2026\nnode.id=1\ndirectory.id=Ax\nversion=1\ncluster.id=Ay\n"
CHECKPOINT = b"\x00\x01\xff"


def lines(folder: Path) -> dict[str, str]:
    text = (folder / "meta.properties").read_text()
    return dict(line.split("=", 1) for line in text.splitlines() if not line.startswith("#"))


def test_another_node_gets_the_same_files_under_its_own_names(tmp_path: Path) -> None:
    made = tmp_path / "made"
    made.mkdir()
    (made / "meta.properties").write_text(META)
    (made / "bootstrap.checkpoint").write_bytes(CHECKPOINT)
    one, two = tmp_path / "one" / "data", tmp_path / "two" / "data"
    example = example_of(made)
    assert not is_formatted(one)
    example.write(one, "Ab", 1)
    example.write(two, "Ab", 100)
    assert is_formatted(one) and is_formatted(two)
    assert (one / "bootstrap.checkpoint").read_bytes() == (two / "bootstrap.checkpoint").read_bytes() == CHECKPOINT
    assert lines(one) == {
        "node.id": "1",
        "version": "1",
        "cluster.id": "Ab",
        "directory.id": lines(one)["directory.id"],
    }
    assert (lines(two)["node.id"], lines(two)["cluster.id"]) == ("100", "Ab")
    assert len({"Ax", lines(one)["directory.id"], lines(two)["directory.id"]}) == 3


def test_folders_of_a_release_without_ids_get_none() -> None:
    assert named("version=1\nnode.id=7\ncluster.id=Ay\n", "Ab", 3, "Ac") == "version=1\nnode.id=3\ncluster.id=Ab\n"
