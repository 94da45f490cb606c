"""The Python client on real clusters: the example of docs/client.md, run as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from heliograph.client import MirrorClient, RemoteOffset
from heliograph.wire.mm2 import Checkpoint, encode_checkpoint
from tests.integration.protocol.harness import Mirror, carry
from tests.support.clusters import TwoClusters
from tests.support.groups import commit
from tests.support.topics import create_topic
from tests.support.writers import Sample, samples, write

PAGE = Path(__file__).parents[2] / "docs" / "client.md"


def test_the_example_of_the_page_runs_and_prints_what_it_says(
    two_clusters: TwoClusters,
    unique: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    mirror = Mirror(two_clusters.a.bootstrap, two_clusters.b.bootstrap, unique)
    alias, here = f"{unique}s", f"{unique}t"
    mirror.make_topic()
    write(mirror.source, mirror.topic, samples(40))
    carry(mirror.open())
    create_topic(mirror.target, f"{alias}.heartbeats")
    checkpoints = create_topic(mirror.target, f"{alias}.checkpoints.internal")
    written = [
        Checkpoint("billing", mirror.remote, 0, 10, 10, "old"),
        Checkpoint("others", mirror.remote, 0, 30, 30),
        Checkpoint("billing", mirror.remote, 0, 20, 20, "new"),
    ]
    pairs = [encode_checkpoint(checkpoint) for checkpoint in written]
    write(mirror.target, checkpoints, [*(Sample(value, key) for key, value in pairs), Sample(b"strange", b"strange")])
    commit(mirror.source, "billing", {(mirror.topic, 0): 25})
    (tmp_path / "mm2.properties").write_text(mirror.lines())
    monkeypatch.chdir(tmp_path)
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    named = example.replace('"A"', f'"{alias}"').replace('"B"', f'"{here}"').replace('"orders"', f'"{mirror.topic}"')
    exec(compile(named, str(PAGE), "exec"), {})  # noqa: S102  what the page tells people to run
    said = capsys.readouterr().out.splitlines()
    clusters, hops, _, checkpoint_topics, remote, by_checkpoint, matching, exact, of_group = said
    assert alias in clusters and hops == "1"
    assert f"{alias}.checkpoints.internal" in checkpoint_topics
    assert mirror.remote in remote and f"{alias}.heartbeats" in remote
    assert by_checkpoint == f"{mirror.remote} 0 20 new"
    assert matching == "['billing']"
    assert exact == "12 Exact(offset=12, is_record=True)"
    assert of_group == f"{mirror.remote} 0 25"
    client = MirrorClient("mm2.properties", here)
    assert client.remote_consumer_offsets("others", alias) == {(mirror.remote, 0): RemoteOffset(30, "")}
    assert client.remote_consumer_offsets("nobody", alias) == {}
    newest = {
        "billing": {(mirror.remote, 0): RemoteOffset(20, "new")},
        "others": {(mirror.remote, 0): RemoteOffset(30, "")},
    }
    assert client.remote_consumer_offsets(re.compile("billing|other."), alias) == newest
    assert client.remote_consumer_offsets(re.compile("other|illing"), alias) == {}, "a whole name must match"
    assert client.replication_hops("nobody") == -1
    assert client.translate(alias, mirror.remote, 0, 7, reverse=True).position == 7
