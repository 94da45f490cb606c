"""Certificates that end, seen on real brokers and told by a run that goes on."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from heliograph.config.load import load_file
from heliograph.control.certificate_watch import CertificateWatch
from heliograph.control.clock import Clock
from heliograph.control.security import read_stores
from heliograph.kafka.certificates import certificates_of
from heliograph.kafka.client import ClusterClient
from heliograph.kafka.slot import Warm
from heliograph.model.clusters import Cluster
from heliograph.model.events import EventKind
from heliograph.operations.compare import compare_topics
from heliograph.replication.certificates import Certificate
from tests.support.clusters import TwoClusters
from tests.support.heliograph_run import HeliographRun
from tests.support.mirror import command, flow_file, status, status_when_following, word
from tests.support.secured import Secured, prefixed
from tests.support.topics import create_topic, ends
from tests.support.waiting import wait_until
from tests.support.writers import samples, write


def seen(cluster: Cluster) -> list[Certificate]:
    async def look() -> list[Certificate]:
        client = ClusterClient(cluster)
        try:
            return await certificates_of(client)
        finally:
            client.close()

    return asyncio.run(look())


def own(secured: Secured, name: str) -> dict[str, str]:
    """Keys with which we show the certificate of this name."""
    return secured.tls(ssl_keystore_type="PEM", ssl_keystore_location=secured.certificates.pem(name))


def test_ours_and_the_brokers_are_seen_with_their_ends(secured: Secured) -> None:
    cluster = secured.through("ENDING", own(secured, "client"))
    ours, theirs = seen(cluster)
    # Of the chain in the store the CA ends first, unless both were made in the same second.
    assert ours.owner in ("ca", "client")
    assert ours.kept_in == f"ssl.keystore.location ({secured.certificates.pem('client')})"
    assert (theirs.owner, theirs.kept_in, theirs.brokers) == ("ending", "", cluster.bootstrap)
    now = datetime.now(UTC)
    assert timedelta(days=2) < theirs.ends - now <= timedelta(days=3)
    assert ours.ends - now > timedelta(days=30)


def test_the_certificate_of_a_broker_is_seen_although_it_has_expired(secured: Secured) -> None:
    (theirs,) = seen(secured.through("EXPIRED", secured.tls()))
    assert theirs.owner == "expired"
    assert theirs.ends < datetime.now(UTC)


def test_a_certificate_that_is_not_trusted_is_not_looked_at(secured: Secured) -> None:
    stranger = secured.tls(ssl_truststore_location=secured.certificates.ca("stranger"))
    assert seen(secured.through("ENDING", stranger)) == []


def test_a_renewed_file_is_seen_by_the_run_that_uses_the_old_one(secured: Secured, tmp_path: Path) -> None:
    made, store = secured.certificates, tmp_path / "own.pem"
    shutil.copy(made.pem("ending"), store)
    properties = flow_file(
        tmp_path / "mm2.properties",
        {"A": secured.cluster.bootstrap_of("TLS"), "B": "127.0.0.1:1"},
        {"A->B": "x"},
        prefixed("A", secured.keys("TLS", secured.tls(ssl_keystore_type="PEM", ssl_keystore_location=str(store)))),
    )
    in_use = read_stores(load_file(str(properties))).flows

    async def look() -> list[str]:
        warm = Warm()
        try:
            return await CertificateWatch(in_use, str(properties), warm, Clock().now_ms).look_once()
        finally:
            warm.close()

    (before,) = asyncio.run(look())
    shutil.copy(made.pem("client"), store)
    (after,) = asyncio.run(look())
    assert before.startswith(
        f"cluster A: our certificate in ssl.keystore.location ({store}), issued to ending, expires on"
    )
    assert before.endswith("put a new one there and start the run again before then")
    assert "the file has a new one, until 20" in after


def told(properties: Path, flow: str) -> list[dict[str, Any]]:
    """What `heliograph events` says of a flow's certificates."""
    said = command("events", str(properties), "--json")
    assert said.code == 0, said.err
    events = [json.loads(line) for line in said.out.splitlines()]
    return [event for event in events if (event["flow"], event["kind"]) == (flow, EventKind.CERTIFICATE)]


def test_a_certificate_that_ends_while_running_is_told_and_stops_no_other_flow(
    secured: Secured, two_clusters: TwoClusters, tmp_path: Path
) -> None:
    """Ours ends under the run. Connections hold, so the workers are killed: the new ones must dial."""
    safe, open_, target, topic, other = (word() for _ in range(5))
    there = two_clusters.b.bootstrap
    create_topic(secured.cluster.bootstrap, topic)
    write(secured.cluster.bootstrap, topic, samples(1_000))
    create_topic(two_clusters.a.bootstrap, other)
    write(two_clusters.a.bootstrap, other, samples(1_000))
    brief = secured.certificates.make_brief(word(), seconds=90)  # a run begins within that, also where ten others do
    keys = secured.tls(ssl_keystore_type="PEM", ssl_keystore_location=brief)
    troubled, calm = f"{safe}->{target}", f"{open_}->{target}"
    properties = flow_file(
        tmp_path / "mm2.properties",
        {safe: secured.cluster.bootstrap_of("TLS"), open_: two_clusters.a.bootstrap, target: there},
        {troubled: topic, calm: other},
        prefixed(safe, secured.keys("TLS", keys)),
    )
    with HeliographRun(properties) as run:
        wait_until(lambda: ends(there, f"{safe}.{topic}").get(0) == 1_000, "the first flow copies", every=0.2)
        wait_until(lambda: len(told(properties, troubled)) == 2, "it is told that it ended", 240, every=0.5)
        for worker in run.workers():
            with contextlib.suppress(ProcessLookupError):  # one that was idle
                os.kill(worker, signal.SIGKILL)
        wait_until(lambda: "does not take our certificate" in reason(properties, troubled), "it is refused")
        write(two_clusters.a.bootstrap, other, samples(1_000, seed=2))
        wait_until(lambda: ends(there, f"{open_}.{other}").get(0) == 2_000, "the other flow goes on", every=0.2)
        status_when_following(properties, calm)
        soon, late = told(properties, troubled)
        in_status = status(properties)
        assert run.terminate() == 0, run.output
    assert f"our certificate in ssl.keystore.location ({brief})" in soon["reason"]
    assert "expires on 20" in soon["reason"] and "before then" in soon["what_to_do"]
    assert "expired on 20" in late["reason"] and late["what_to_do"]
    assert soon["subject"] == late["subject"] == f"cluster {safe}"
    assert {soon["reason"], late["reason"]} <= {event["reason"] for event in in_status[troubled]["events"]}
    assert in_status[calm]["events"] == []
    comparison = compare_topics(two_clusters.a.bootstrap, there, {other: f"{open_}.{other}"})
    assert (comparison.differences, comparison.records) == ([], 2_000)


def reason(properties: Path, flow: str) -> str:
    """Why the flow's only lane does not go on."""
    return " ".join(lane["reason"] for lane in status(properties)[flow]["lanes"])
