"""Files that are no properties files say what they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from heliograph.config.foreign_file import mistaken_for
from heliograph.config.load import load_file
from heliograph.errors import ConfigError

STRIMZI = b"""# ours
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaMirrorMaker2
metadata:
  name: mirror
"""


@pytest.mark.parametrize(
    ("content", "beginning"),
    [
        (b"", "is empty: `heliograph init FILE` writes"),
        (b" \n\t\n", "is empty: "),
        (b"\x7fELF\0\1", "is not a text file: "),
        (b'{"name": "source", "config": {}}', "is JSON, not a properties file: the JSON of a connector"),
        (b'\n[{"name": 1}]\n', "is JSON, "),
        (STRIMZI, "is YAML (KafkaMirrorMaker2), not a properties file: write its clusters and mirrors as properties"),
        (b"---\nclusters:\n  - A\n", "is YAML, not a properties file: "),
    ],
)
def test_what_a_file_is_instead_is_said(content: bytes, beginning: str, tmp_path: Path) -> None:
    assert mistaken_for(content).startswith(beginning)
    path = tmp_path / "mm2.properties"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as refused:
        load_file(str(path))
    assert len(refused.value.faults) == 1 and refused.value.faults[0].startswith(f"{path} {beginning}")


@pytest.mark.parametrize("content", [b"clusters: A, B\n", b"# only a comment\n", b"{not json\n", b"kind: x\n"])
def test_what_may_be_properties_is_read_as_such(content: bytes) -> None:
    assert mistaken_for(content) == ""
