"""Events from a lane to every place where a person may look, through the whole mirror, with a source made anew under it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from heliograph.kafka.ledger import EVENTS_TOPIC
from heliograph.model.events import EventKind, decode_event
from tests.support.clusters import TwoClusters
from tests.support.heliograph_run import HeliographRun
from tests.support.mirror import command, flow_file, status, word
from tests.support.reading import messages
from tests.support.topics import create_topic, delete_topic, ends, topic_names
from tests.support.waiting import wait_until
from tests.support.writers import Sample, write


def test_events_are_in_the_log_in_the_topic_in_status_and_in_their_command(
    two_clusters: TwoClusters, tmp_path: Path
) -> None:
    """A record without a key into a compacted remote topic is skipped; then the source topic is made anew and restarted."""
    here, there = two_clusters.a.bootstrap, two_clusters.b.bootstrap
    source, target, topic = word(), word(), word()
    flow, remote = f"{source}->{target}", f"{source}.{topic}"
    more = {"on.bad.record": "skip", "on.source.reset": "restart", "epoch.seconds": "5"}
    more |= {"refresh.topics.interval.seconds": "5"}  # a look may fall between the old topic and the new one
    properties = flow_file(tmp_path / "events.properties", {source: here, target: there}, {flow: topic}, more)
    create_topic(here, topic)
    create_topic(there, remote, config={"cleanup.policy": "compact"})
    old = [Sample(b"old %d" % number, b"o%d" % number) for number in range(20)]
    new = [Sample(b"new %d" % number, b"n%d" % number) for number in range(10)]
    write(here, topic, [*old[:10], Sample(b"bad", None), *old[10:]])
    assert command("events", str(properties)).out == ""
    followed = tmp_path / "followed"
    with HeliographRun(properties) as run, _following(properties, followed):
        wait_until(lambda: ends(there, remote).get(0) == 20, "the good records are copied", 180, every=0.2)
        run.wait_for_text("does not take record 10")
        delete_topic(here, topic)
        wait_until(lambda: topic not in topic_names(here), "the topic is gone")
        create_topic(here, topic)
        write(here, topic, new)
        wait_until(lambda: ends(there, remote).get(0) == 30, "the new topic is copied too", 180, every=0.2)
        wait_until(lambda: _of(status(properties)[flow]["events"]) >= {"bad-record", "source-reset"}, "status has them")
        assert run.terminate() == 0
        said = command("events", str(properties), "--json")
        shown = [json.loads(line) for line in said.out.splitlines()]
        assert said.code == 0 and _of(shown) >= {EventKind.BAD_RECORD, EventKind.SOURCE_RESET}
        [bad] = [event for event in shown if event["kind"] == EventKind.BAD_RECORD]
        assert (bad["version"], bad["flow"], bad["subject"]) == (1, flow, f"{topic}-0")
        assert "cleanup.policy" in bad["what_to_do"]
        for kind in ("bad-record", "source-reset"):
            wait_until(lambda kind=kind: kind in followed.read_text(), f"{kind} is followed")
    copied = [message.value() for message in messages(there, remote) if message.key()]
    assert copied == [record.value for record in (*old, *new)]
    kept = [
        decode_event(message.value()) for message in messages(there, EVENTS_TOPIC) if message.key() == flow.encode()
    ]
    assert {event.kind for event in kept if event is not None} == _of(shown)


def _of(events: list[dict[str, Any]]) -> set[str]:
    return {event["kind"] for event in events}


@contextmanager
def _following(properties: Path, into: Path) -> Iterator[None]:
    program = str(Path(sys.executable).with_name("heliograph"))
    with into.open("wb") as out:
        process = subprocess.Popen([program, "events", str(properties), "--follow"], stdout=out)
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)
