"""A Connect worker's file: known by what it has, read as a driver file whose flows come by REST."""

from __future__ import annotations

from heliograph.config.properties import Property, parse
from heliograph.config.worker_file import as_driver, is_worker_file

WORKER = """
bootstrap.servers = b:1, c:1
group.id = connect-cluster
key.converter = org.apache.kafka.connect.converters.ByteArrayConverter
offset.storage.topic = connect-offsets
security.protocol = SSL
producer.security.protocol = SASL_SSL
consumer.max.poll.records = 5
offset.flush.interval.ms = 10000
"""


def entries(text: str) -> dict[str, Property]:
    return {entry.name: entry for entry in parse(text)}


def values(text: str, overlay: dict[str, str] | None = None) -> dict[str, str]:
    return {name: entry.value for name, entry in as_driver(entries(text), overlay or {}).items()}


def test_a_driver_file_is_left_as_it_is() -> None:
    text = "clusters = A\nbootstrap.servers = a:1\ngroup.id = g\n"
    assert not is_worker_file(entries(text))
    assert values(text) == {"clusters": "A", "bootstrap.servers": "a:1", "group.id": "g"}
    assert not is_worker_file(entries("bootstrap.servers = a:1\n"))


def test_what_is_the_clusters_gets_its_alias_and_the_rest_stays() -> None:
    assert values(WORKER) == {
        "clusters": "worker",
        "worker.bootstrap.servers": "b:1, c:1",
        "worker.group.id": "connect-cluster",
        "worker.security.protocol": "SSL",
        "worker.producer.security.protocol": "SASL_SSL",
        "worker.offset.flush.interval.ms": "10000",
        "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
        "offset.storage.topic": "connect-offsets",
        "consumer.max.poll.records": "5",
    }


def test_the_lines_are_those_of_the_file() -> None:
    found = as_driver(entries(WORKER), {})
    assert (found["worker.group.id"].line, found["clusters"].line) == (3, 2)


def test_a_target_that_is_the_workers_cluster_is_written_to_as_the_worker_says() -> None:
    overlay = {
        "A.bootstrap.servers": "b:1,c:1",
        "A->B.enabled": "true",
        "B.bootstrap.servers": "PLAINTEXT://c:1,b:1",
        "A->C.enabled": "true",
        "C.bootstrap.servers": "z:1",
    }
    found = values(WORKER, overlay)
    assert (found["B.security.protocol"], found["B.group.id"]) == ("SSL", "connect-cluster")
    assert not any(name.startswith(("A.", "C.")) for name in found), "a source, and another cluster"
    by_reference = {"A->B.enabled": "true", "B.bootstrap.servers": "${env:B}"}
    assert "B.group.id" in values(WORKER.replace("b:1, c:1", "${env:B}"), by_reference)
