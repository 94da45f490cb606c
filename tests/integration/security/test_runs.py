"""`heliograph run` with TLS and SASL on one side: exact copies, logins renewed on the way, and no secret anywhere."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import psutil
import pytest

from heliograph.operations.compare import compare_topics
from tests.support.certificates import PASSWORD
from tests.support.clusters import TwoClusters
from tests.support.heliograph_run import HeliographRun
from tests.support.mirror import command, flow_file, run_to_the_end, status, status_when_following, word
from tests.support.secured import LOGIN_PASSWORD, RELOGIN_MS, SECRETS, Secured, in_file, prefixed, quoted
from tests.support.topics import create_topic, ends
from tests.support.waiting import wait_until
from tests.support.writers import samples, write

TRIES = 4
"""At the end of an epoch lanes are handed over: then it is looked again."""


def hidden_keys(secured: Secured, folder: Path) -> dict[str, str]:
    """A SCRAM login over TLS with a PKCS12 trust store, whose passwords stand in files beside the main one."""
    folder.mkdir()
    (folder / "trust").write_text(f"{PASSWORD}\n")
    (folder / "more.properties").write_text(f"login = {in_file(quoted(LOGIN_PASSWORD))}\n")
    keys = secured.keys("SAFE", secured.login("SCRAM-SHA-512"))
    jaas = keys["sasl.jaas.config"].replace(quoted(LOGIN_PASSWORD), f"${{file:{folder}/more.properties:login}}")
    return keys | {
        "sasl.jaas.config": jaas,
        "ssl.truststore.location": secured.certificates.trust_store("PKCS12"),
        "ssl.truststore.password": f"${{dir:{folder}:trust}}",
    }


def places(run: HeliographRun, *folders: Path) -> Iterator[tuple[str, bytes]]:
    """Everything that another person could see: command lines, environments, and all files in these folders."""
    for process in [psutil.Process(run.pid), *psutil.Process(run.pid).children(recursive=True)]:
        for name in ("cmdline", "environ"):
            path = Path(f"/proc/{process.pid}/{name}")
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended
                yield str(path), path.read_bytes()
    yield from files(*folders)


def files(*folders: Path) -> Iterator[tuple[str, bytes]]:
    """Those that are still there when they are read: others work in the same folders."""
    for folder in folders:
        for where, _, names in os.walk(folder):
            for path in (Path(where, name) for name in names):
                with contextlib.suppress(
                    FileNotFoundError
                ):  # anything else that keeps it from being read is a fault here
                    if path.is_file():
                        yield str(path), path.read_bytes()


def tellers(found: Iterator[tuple[str, bytes]]) -> list[str]:
    return [place for place, content in found if any(secret.encode() in content for secret in SECRETS)]


def test_a_copy_out_of_a_safe_cluster_is_exact_and_tells_no_secret(
    secured: Secured, two_clusters: TwoClusters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own"  # other processes keep such files in the common folder, for a moment
    own.mkdir()
    monkeypatch.setenv("TMPDIR", str(own))
    source, target, topic = word(), word(), word()
    here, there = secured.cluster.bootstrap, two_clusters.b.bootstrap
    create_topic(here, topic, partitions=2)
    write(here, topic, samples(20_000, size=500, partitions=2), "lz4")
    seen = tmp_path / "seen"
    (seen / "events").mkdir(parents=True)
    properties = flow_file(
        seen / "mm2.properties",
        {source: secured.cluster.bootstrap_of("SAFE"), target: there},
        {f"{source}->{target}": topic},
        prefixed(source, hidden_keys(secured, tmp_path / "hidden"))
        | {"spark.eventLog.enabled": "true", "spark.eventLog.dir": (seen / "events").as_uri()},
    )
    spark = ("--spark-log", str(seen / "spark.log"), "--log-level", "debug")
    with HeliographRun(properties, *spark) as run:
        wait_until(lambda: sum(ends(there, f"{source}.{topic}").values()) == 20_000, "it copies", every=0.2)
        (seen / "status.json").write_text(json.dumps(status(properties)))
        (seen / "status.txt").write_text(command("status", str(properties)).out)
        (seen / "config.json").write_text(command("config", str(properties), "--json").out)
        scratch = [path for pattern in ("spark-*", "blockmgr-*") for path in Path(gettempdir()).glob(pattern)]
        assert tellers(places(run, seen, own, *scratch)) == []
        assert run.workers()
        assert run.terminate() == 0, run.output
    brokers = two_clusters.b.log(1).parent
    assert tellers(files(seen, brokers, own)) == []
    assert list((seen / "events").rglob("*"))
    assert not list(own.rglob("heliograph-*.pem"))
    comparison = compare_topics(here, there, {topic: f"{source}.{topic}"})
    assert (comparison.differences, comparison.records) == ([], 20_000)


def test_a_copy_into_a_safe_cluster_is_exact_though_logins_end_and_another_flow_is_refused(
    secured: Secured, two_clusters: TwoClusters, tmp_path: Path
) -> None:
    source, target, refused, topic = word(), word(), word(), word()
    here, there = two_clusters.a.bootstrap, secured.cluster.bootstrap
    create_topic(here, topic, partitions=2)
    write(here, topic, samples(2_000, partitions=2))
    safe = secured.cluster.bootstrap_of("SAFE")
    tls = secured.tls()
    properties = flow_file(
        tmp_path / "mm2.properties",
        {source: here, target: safe, refused: safe},
        {f"{source}->{target}": topic, f"{refused}->{source}": "nothing"},
        prefixed(target, secured.keys("SAFE", tls, secured.login("PLAIN")))
        | prefixed(refused, secured.keys("SAFE", tls, secured.login("PLAIN", SECRETS[0]))),
    )
    with HeliographRun(properties) as run:
        remote = f"{source}.{topic}"
        wait_until(lambda: sum(ends(there, remote).values()) == 2_000, "it copies", every=0.2)
        written, is_shown = 2_000, False
        for _ in range(TRIES):
            before = status_when_following(properties, f"{source}->{target}")
            begun = time.monotonic()
            while time.monotonic() - begun < 2.5 * RELOGIN_MS / 1000:  # every login ends twice
                written += write(here, topic, samples(500, partitions=2, seed=written), linger_ms=400)
            wait_until(lambda: sum(ends(there, remote).values()) == written, "it follows", every=0.2)  # noqa: B023  at once
            after = status_when_following(properties, f"{source}->{target}")
            if is_shown := before["epoch"] == after["epoch"]:  # else other tasks have the lanes now
                assert following_since(after) == following_since(before), "no lane lost its connection"
                break
        assert is_shown, "an epoch began each time"
        assert run.terminate() == 0, run.output
    assert "it refuses the login of mirror, the first=1 by PLAIN" in run.output
    assert f"flow {refused}->{source}: waiting: cluster {refused}: " in run.output
    assert "another attempt" not in run.output
    comparison = compare_topics(here, there, {topic: remote})
    assert (comparison.differences, comparison.records) == ([], written)


def following_since(flow: dict[str, Any]) -> list[int]:
    """Since when each lane follows."""
    return [lane["since_ms"] for lane in flow["lanes"]]


@pytest.mark.parametrize("options", [(), ("--dry-run",), ("--until-caught-up",)], ids=" ".join)
def test_a_refused_login_ends_the_run_with_one_sentence(
    secured: Secured, two_clusters: TwoClusters, tmp_path: Path, options: tuple[str, ...]
) -> None:
    source, target = word(), word()
    properties = flow_file(
        tmp_path / "mm2.properties",
        {source: secured.cluster.bootstrap_of("SASL"), target: two_clusters.b.bootstrap},
        {f"{source}->{target}": "x"},
        prefixed(source, secured.keys("SASL", secured.login("SCRAM-SHA-256", SECRETS[0]))),
    )
    said = command("run", str(properties), *options)
    assert said.code == 1
    (line,) = said.err.splitlines()
    assert said.out == ""
    assert line.startswith(
        f"heliograph: cluster {source}: {secured.cluster.bootstrap_of('SASL')}: it refuses the login of "
    )
    assert SECRETS[0] not in said.out + said.err


def test_a_store_that_is_missing_ends_the_run_with_one_sentence(
    secured: Secured, two_clusters: TwoClusters, tmp_path: Path
) -> None:
    source, target = word(), word()
    properties = flow_file(
        tmp_path / "mm2.properties",
        {source: two_clusters.a.bootstrap, target: secured.cluster.bootstrap_of("TLS")},
        {f"{source}->{target}": "x"},
        prefixed(target, secured.keys("TLS", secured.tls(ssl_keystore_location=str(tmp_path / "none")))),
    )
    output = run_to_the_end(properties, code=1)
    assert output == (
        f"heliograph: cluster {target}: ssl.keystore.location: file {tmp_path}/none does not exist: correct the path, "
        "or put the file there\n"
    )
