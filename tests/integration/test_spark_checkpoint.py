"""A Structured Streaming query of real Spark goes on on the other cluster with its rewritten checkpoint."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from heliograph.cli.main import main
from tests.integration.protocol.harness import Mirror, carry
from tests.support.clusters import TwoClusters
from tests.support.mirror import flow_file
from tests.support.reading import messages
from tests.support.spark_query import SparkQueries, results
from tests.support.topics import stable_ends, wait_until_stable
from tests.support.writers import Sample, producer, write


def write_some(bootstrap: str, topic: str, number: int) -> None:
    """Committed and aborted transactions and plain records, each value once."""
    client = producer(bootstrap, transactional_id=f"{topic}-{number}", linger_ms=0)
    client.init_transactions(30)
    for at in range(3):
        client.begin_transaction()
        for place in range(20):
            client.produce(topic, f"{number}-{at}-{place}{' aborted' if at == 1 else ''}")
        client.flush(30)
        if at == 1:
            client.abort_transaction(30)
        else:
            client.commit_transaction(30)
    wait_until_stable(bootstrap, topic)
    write(bootstrap, topic, [Sample(b"%d-plain-%d" % (number, place)) for place in range(60)])


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


@pytest.fixture
def spark(tmp_path: Path) -> Iterator[SparkQueries]:
    with SparkQueries(tmp_path / "spark.log") as spark:
        yield spark


def test_a_query_goes_on_on_the_other_cluster_and_no_record_is_lost_or_repeated(
    two_clusters: TwoClusters, spark: SparkQueries, unique: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mirror = Mirror(two_clusters.a.bootstrap, two_clusters.b.bootstrap, unique)
    mirror.make_topic(partitions=2)
    file = flow_file(
        tmp_path / "mm2.properties",
        {f"{unique}s": mirror.source, f"{unique}t": mirror.target},
        {mirror.flow: unique},
    )
    here, there, out = tmp_path / "checkpoint-a", tmp_path / "checkpoint-b", tmp_path / "read"
    write_some(mirror.source, unique, 0)
    carry(mirror.open())
    write_some(mirror.source, unique, 1)
    spark.query(mirror.source, unique, here, out)
    newest = max(results(out))
    assert newest >= 2
    (here / "commits" / str(newest)).unlink()  # as if it was killed before it could say that the batch is done
    (here / "commits" / f".{newest}.crc").unlink(missing_ok=True)
    before = files_of(here)

    def rewrite(*more: str) -> tuple[int, str]:
        options = ["--flow", mirror.flow, "--spark-checkpoint", str(here), "--out", str(there), *more]
        code = main(["translate", str(file), *options])
        said = capsys.readouterr()
        return code, said.out + said.err

    code, said = rewrite()
    assert code == 1 and "has no exact place on the other cluster, not yet copied" in said and not there.exists()

    ends = stable_ends(mirror.source, unique)
    carry(mirror.open(), {f"{mirror.flow}/{unique}/{partition}": end for partition, end in ends.items()})
    code, said = rewrite("--json")
    assert code == 0, said
    done = json.loads(said)
    assert (done["batch"], done["committed"], done["left_out"]) == (newest, False, [])
    assert {one["remote_topic"] for one in done["offsets"]} == {mirror.remote} and len(done["offsets"]) == 2
    assert any(one["position"] != one["offset"] for one in done["offsets"]), "markers shift the offsets"
    assert files_of(here) == before
    code, said = rewrite()
    assert code == 1 and "it exists and is not empty" in said

    write_some(mirror.source, unique, 2)
    ends = stable_ends(mirror.source, unique)
    carry(mirror.open(), {f"{mirror.flow}/{unique}/{partition}": end for partition, end in ends.items()})
    undone = set(results(out)[newest])
    spark.query(mirror.target, mirror.remote, there, out)
    read = results(out)
    assert undone and set(read[newest]) == undone and max(read) > newest, (
        "that batch was done again, with the same records"
    )
    copied = [
        message.value().decode()
        for partition in (0, 1)
        for message in messages(mirror.target, mirror.remote, partition)
    ]
    assert Counter(value for batch in read.values() for value in batch) == Counter(copied)
    assert len(copied) == 3 * 100 == len(set(copied))


def test_what_is_no_checkpoint_is_refused_with_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = flow_file(tmp_path / "mm2.properties", {"A": "localhost:1", "B": "localhost:2"}, {"A->B": "t"})
    empty, started, other = tmp_path / "empty", tmp_path / "started", tmp_path / "other"
    for folder in (empty, started, other):
        (folder / "offsets").mkdir(parents=True)
    for folder in (started, other):
        (folder / "metadata").write_text('{"id":"x"}')
    (other / "offsets" / "0").write_text('v1\n{}\n{"logOffset":1}')

    def says(*options: str, code: int = 1) -> str:
        assert main(["translate", str(file), "--flow", "A->B", *options]) == code
        return capsys.readouterr().err

    assert "is no checkpoint of Structured Streaming" in says("--spark-checkpoint", str(empty), "--out", "x")
    assert "has no batch yet" in says("--spark-checkpoint", str(started), "--out", "x")
    assert "has no offsets of a Kafka source" in says("--spark-checkpoint", str(other), "--out", "x")
    assert "go together" in says("--spark-checkpoint", str(other), code=2)
