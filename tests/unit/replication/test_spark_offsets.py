"""The text of a Structured Streaming checkpoint: Kafka offsets are moved, everything else stays."""

from __future__ import annotations

import json

import pytest

from heliograph.errors import SetupError
from heliograph.replication.spark_offsets import Batch, Initial, Place

ABOUT = '{"batchWatermarkMs":0,"batchTimestampMs":1700000000000,"conf":{}}'
TWO = '{"orders":{"1":20,"0":10},"payments":{"0":7}}'
FILES = '{"logOffset":4}'


def there(place: Place) -> Place:
    return f"A.{place[0]}", place[1], place[2] + 100


def test_a_batch_has_its_kafka_offsets_moved_and_all_else_as_it_was() -> None:
    batch = Batch(f"v1\n{ABOUT}\n{TWO}\n{FILES}\n-", "offsets/3")
    assert sorted(batch.places()) == [("orders", 0, 10), ("orders", 1, 20), ("payments", 0, 7)]
    version, about, kafka, files, nothing = batch.moved(there).split("\n")
    assert (version, about, files, nothing) == ("v1", ABOUT, FILES, "-")
    assert json.loads(kafka) == {"A.orders": {"0": 110, "1": 120}, "A.payments": {"0": 107}}


@pytest.mark.parametrize("text", ["", "v2\n{}\n{}", "v1", f"v1\n{ABOUT}", "hello"])
def test_a_file_of_another_kind_is_refused_with_its_name(text: str) -> None:
    with pytest.raises(SetupError, match=r"offsets/3 begins with .*expected Spark's offsets of version v1"):
        Batch(text, "offsets/3")


@pytest.mark.parametrize(
    "line",
    ["-", "{}", "[1]", "5", FILES, '{"a":{"x":1}}', '{"a":{"0":-2}}', '{"a":{"0":true}}', '{"a":5}'],
)
def test_what_is_not_a_kafka_sources_line_stays(line: str) -> None:
    batch = Batch(f"v1\n{ABOUT}\n{line}", "offsets/0")
    assert list(batch.places()) == []
    assert batch.moved(there).split("\n")[2] == line


def test_where_the_query_began_is_moved_with_sparks_first_byte() -> None:
    initial = Initial.read(b"\x00v1\n" + TWO.encode())
    assert initial is not None
    assert sorted(initial.places()) == [("orders", 0, 10), ("orders", 1, 20), ("payments", 0, 7)]
    moved = initial.moved(there)
    assert moved.startswith(b'\x00v1\n{"A.orders"')
    again = Initial.read(moved)
    assert again is not None and min(again.places()) == ("A.orders", 0, 110)


@pytest.mark.parametrize("content", [b"", b"v1", b"v1\n" + FILES.encode(), b"v2\n{}", b"\x00v1\n\xff"])
def test_another_sources_own_file_is_none_of_ours(content: bytes) -> None:
    assert Initial.read(content) is None
