"""The empty data folder that a node starts from: made by Kafka's own tool once per release, after its example from then on.

The tool is a JVM, nearly a CPU second and a second of waiting for every node. What it writes depends on the release alone,
but for the names of cluster, node and folder. Must not know what the node is for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from heliograph.embedded.settings import new_cluster_id

TOOL = "kafka.tools.StorageTool"
_META = "meta.properties"


@dataclass(frozen=True)
class Example:
    """The files of a folder that the tool has formatted, by name."""

    files: Mapping[str, bytes]

    def write(self, data: Path, cluster_id: str, node: int) -> None:
        """As the tool would leave `data` for this node."""
        data.mkdir(parents=True, exist_ok=True)
        for name, content in self.files.items():
            if name != _META:
                (data / name).write_bytes(content)
        # Last, as in the tool: a folder that has it counts as formatted.
        (data / _META).write_text(named(self.files[_META].decode(), cluster_id, node, new_cluster_id()))


def is_formatted(data: Path) -> bool:
    return (data / _META).exists()


def example_of(data: Path) -> Example:
    return Example({path.name: path.read_bytes() for path in data.iterdir() if path.is_file()})


def named(meta: str, cluster_id: str, node: int, directory_id: str) -> str:
    """`meta.properties` with other names; a release whose folders have no id of their own gets none.

    >>> named("node.id=1\\nversion=1\\ncluster.id=Aa\\n", "Ab", 2, "Ac")
    'node.id=2\\nversion=1\\ncluster.id=Ab\\n'
    """
    names = {"cluster.id": cluster_id, "node.id": str(node), "directory.id": directory_id}
    lines = (line.partition("=") for line in meta.splitlines())
    return "".join(f"{key}{equals}{names.get(key, value)}\n" for key, equals, value in lines)
