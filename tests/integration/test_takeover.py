"""Where lanes begin: what MirrorMaker 2 leaves, start.from, --reset and --trial; and what is handed back, to the byte.

Here a plain producer stands for MirrorMaker 2, so that its crashes can be laid out record by record. The real one is in
tests/chaos/test_takeover_kills.py.
"""

from __future__ import annotations

import getpass
import json
import platform
from collections.abc import Iterable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from heliograph.errors import ConfigError, SetupError
from heliograph.kafka.tails import FIRST_LOOK
from tests.integration.protocol.harness import SILENT, Attempt, Opened, carry
from tests.support.clusters import TwoClusters
from tests.support.flows import InProcessFlow
from tests.support.groups import commit
from tests.support.heliograph_run import HeliographRun, write_properties
from tests.support.mirror import command, run_to_the_end, word
from tests.support.topics import ANSWER_SECONDS, create_topic, delete_records, ends
from tests.support.waiting import wait_until
from tests.support.writers import Sample, samples, write

COMPACT = {"cleanup.policy": "compact"}
NOON_MS = 1_777_636_800_000
NOON = "2026-05-01T12:00:00Z"


@pytest.fixture
def flow(two_clusters: TwoClusters) -> InProcessFlow:
    source, target = word(), word()
    lines = {f"{source}->{target}.topics": f"{source}.*"}
    return InProcessFlow(source, target, two_clusters.a.bootstrap, two_clusters.b.bootstrap, lines)


@pytest.fixture
def topic(flow: InProcessFlow) -> str:
    """A source topic with 200 records in one partition."""
    name = create_topic(flow.source, f"{flow.source_alias}-orders")
    write(flow.source, name, samples(200))
    return name


@pytest.fixture
def offsets_topic(flow: InProcessFlow) -> str:
    return create_topic(flow.target, f"mm2-offsets.{flow.source_alias}.internal", 3, config=COMPACT)


def mirror_records(flow: InProcessFlow, topic: str, offsets: Iterable[int]) -> None:
    """Write these source records to the remote topic, as MirrorMaker 2's producer does."""
    reader = Consumer({"bootstrap.servers": flow.source, "group.id": "x", "enable.auto.commit": False})
    reader.assign([TopicPartition(topic, 0, 0)])
    records = {}
    count = ends(flow.source, topic)[0]
    while len(records) < count:
        message = reader.poll(ANSWER_SECONDS)
        assert message is not None and message.error() is None
        records[message.offset()] = message
    reader.close()
    writer = Producer({"bootstrap.servers": flow.target, "log_level": 2})
    for offset in offsets:
        record = records[offset]
        writer.produce(
            flow.remote(topic),
            record.value(),
            record.key(),
            0,
            timestamp=record.timestamp()[1],
            headers=record.headers(),
        )
    assert writer.flush(30) == 0


def begins_at(flow: InProcessFlow, topic: str) -> int:
    opened = flow.open()
    assert opened.flow.refused == {}
    return flow.entry(opened, topic).source_start


# -- taking over --------------------------------------------------------------------------------------------------------


def test_a_lane_begins_after_the_last_record_of_a_mirror_that_was_killed(
    flow: InProcessFlow, topic: str, offsets_topic: str
) -> None:
    create_topic(flow.target, flow.remote(topic))
    flow.store(topic, 99, offsets_topic)
    mirror_records(flow, topic, range(150))
    opened = flow.open()
    entry = flow.entry(opened, topic)
    assert (entry.source_start, entry.target_start, entry.mm2_offset) == (150, 150, 99)
    assert "has 50 records more" in opened.flow.events[0].reason
    carry(opened)
    assert flow.assert_exact(topic) == 200


def test_a_mirror_that_was_killed_twice_has_copied_what_its_first_life_copied(
    flow: InProcessFlow, topic: str, offsets_topic: str
) -> None:
    create_topic(flow.target, flow.remote(topic))
    flow.store(topic, 99, offsets_topic)
    mirror_records(flow, topic, [*range(180), *range(100, 130)])
    assert begins_at(flow, topic) == 180


def test_progress_that_is_long_past_is_looked_for_further_back(
    flow: InProcessFlow, topic: str, offsets_topic: str
) -> None:
    write(flow.source, topic, samples(3 * FIRST_LOOK, seed=2), "lz4")
    create_topic(flow.target, flow.remote(topic))
    flow.store(topic, 99, offsets_topic)
    mirror_records(flow, topic, range(2 * FIRST_LOOK))
    assert begins_at(flow, topic) == 2 * FIRST_LOOK


def test_a_mirror_that_stored_no_progress_is_recognised_by_its_tail(flow: InProcessFlow, topic: str) -> None:
    create_topic(flow.target, flow.remote(topic))
    mirror_records(flow, topic, range(70))
    assert begins_at(flow, topic) == 70


def test_a_remote_topic_that_retention_emptied_goes_on_as_stored(
    flow: InProcessFlow, topic: str, offsets_topic: str
) -> None:
    create_topic(flow.target, flow.remote(topic))
    mirror_records(flow, topic, range(120))
    delete_records(flow.target, flow.remote(topic), 0, 120)
    flow.store(topic, 119, offsets_topic)
    assert begins_at(flow, topic) == 120


def test_a_remote_topic_that_does_not_fit_the_stored_progress_is_refused(
    flow: InProcessFlow, topic: str, offsets_topic: str
) -> None:
    create_topic(flow.target, flow.remote(topic))
    write(flow.target, flow.remote(topic), [Sample(b"of somebody else")])
    flow.store(topic, 99, offsets_topic)
    opened = flow.open()
    assert opened.flow.entries == {}
    (reason,) = opened.flow.refused.values()
    assert "ends with no record that the source has around there" in reason and "--reset" in reason
    assert flow.entry(flow.open(reset=True), topic).source_start == 0


def test_a_remote_topic_of_somebody_else_without_stored_progress_begins_by_option(
    flow: InProcessFlow, topic: str
) -> None:
    create_topic(flow.target, flow.remote(topic))
    write(flow.target, flow.remote(topic), [Sample(b"of somebody else")])
    assert begins_at(flow, topic) == 0


@pytest.mark.parametrize("connector", ["my-mirror", "strimzi"])
def test_any_connector_of_a_connect_cluster_is_found_and_gets_its_progress_back(
    flow: InProcessFlow, topic: str, connector: str
) -> None:
    """Connect and Strimzi: names are chosen by people; one topic holds the progress of all connectors."""
    name = f"{flow.name}.MirrorSourceConnector" if connector == "strimzi" else connector
    kept_in = create_topic(flow.target, f"{word()}-offsets", 3, config=COMPACT)
    write(flow.target, kept_in, [Sample(b'{"x":1}', b'["jdbc",{"table":"t"}]'), Sample(b"no json", b"no json")])
    create_topic(flow.target, flow.remote(topic))
    mirror_records(flow, topic, range(50))
    flow.store(topic, 44, kept_in, name)
    opened = flow.open()
    assert flow.entry(opened, topic).source_start == 50
    carry(opened)
    flow.hand_back()
    last = [entry for entry in flow.stored(kept_in) if entry.connector == name][-1]
    assert (last.partition, last.offset) == ((topic, 0), 199)


# -- handing back -------------------------------------------------------------------------------------------------------


def test_what_is_handed_back_has_mirrormaker_2s_bytes_and_the_next_run_goes_on(flow: InProcessFlow, topic: str) -> None:
    flow.lines.update({"offset.storage.replication.factor": "1", "offset.storage.partitions": "4"})
    opened = flow.open()
    carry(opened)
    kept_in = f"mm2-offsets.{flow.source_alias}.internal"
    assert flow.hand_back(dry_run=True).missing_topics == (kept_in,)
    assert ends(flow.target, kept_in) == {}
    flow.hand_back()
    assert all_records(flow.target, kept_in) == [
        (
            f'["MirrorSourceConnector",{{"cluster":"{flow.source_alias}","partition":0,"topic":"{topic}"}}]'.encode(),
            b'{"offset":199}',
        )
    ]
    again = flow.open()
    assert flow.entry(again, topic).generation == 0
    write(flow.source, topic, samples(50, seed=2))
    carry(flow.open())
    assert flow.assert_exact(topic) == 250


def all_records(bootstrap: str, topic: str) -> list[tuple[bytes | None, bytes | None]]:
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": "x", "enable.auto.commit": False})
    reader.assign([TopicPartition(topic, partition, 0) for partition in ends(bootstrap, topic)])
    found = [reader.poll(ANSWER_SECONDS) for _ in range(sum(ends(bootstrap, topic).values()))]
    reader.close()
    return [(message.key(), message.value()) for message in found if message is not None]


def test_a_mirror_that_went_on_between_two_runs_is_taken_over_again(
    flow: InProcessFlow, topic: str, offsets_topic: str
) -> None:
    """Handed back, gone on, killed before it stored anything: a new generation after its last record."""
    opened = flow.open()
    with Attempt(opened, SILENT, until={f"{flow.name}/{topic}/0": 200}) as attempt:
        attempt.join()
    flow.hand_back()
    write(flow.source, topic, samples(100, seed=2))
    mirror_records(flow, topic, range(200, 260))
    again = flow.open()
    entry = flow.entry(again, topic)
    assert (entry.generation, entry.source_start) == (1, 260)
    carry(again)
    assert flow.assert_exact(topic) == 300
    flow.store(topic, 299, offsets_topic)
    with pytest.raises(SetupError, match="MirrorMaker 2 has stored progress of its own since our last run"):
        flow.hand_back()
    assert flow.entry(flow.open(), topic).generation == 1


def test_a_mirror_that_was_started_without_a_hand_back_is_not_repeated(
    flow: InProcessFlow, topic: str, offsets_topic: str
) -> None:
    """It began again at its own old progress: what it repeated is its own fault, what it copied further is not copied twice."""
    create_topic(flow.target, flow.remote(topic))
    mirror_records(flow, topic, range(100))
    flow.store(topic, 99, offsets_topic)
    carry(flow.open())
    write(flow.source, topic, samples(100, seed=2))
    mirror_records(flow, topic, range(100, 270))
    flow.store(topic, 260, offsets_topic)
    opened = flow.open()
    entry = flow.entry(opened, topic)
    assert (entry.generation, entry.source_start) == (1, 270)


def test_a_killed_run_of_ours_goes_on_in_its_generation(flow: InProcessFlow, topic: str, offsets_topic: str) -> None:
    """Records beyond the ledger's entry are ours: no take-over, although MirrorMaker 2 has stored progress."""
    create_topic(flow.target, flow.remote(topic))
    mirror_records(flow, topic, range(100))
    flow.store(topic, 99, offsets_topic)
    with Attempt(flow.open(), SILENT) as attempt:
        attempt.wait_for_position(200)
        attempt.kill()
    assert flow.entry(flow.open(), topic).generation == 0
    assert flow.hand_back().entries[0].offset == 199


# -- start.from, --reset, --trial ---------------------------------------------------------------------------------------


def test_every_start_begins_where_it_says(flow: InProcessFlow, tmp_path: Path) -> None:
    names = {
        kind: f"{flow.source_alias}-{kind}" for kind in ("earliest", "latest", "time", "late", "file", "group", "x")
    }
    for name in names.values():
        create_topic(flow.source, name, config={"retention.ms": "-1"})
        old = (Sample(b"%d" % n, timestamp_ms=NOON_MS + (n - 50) * 1000) for n in range(100))
        write(flow.source, name, old)
    delete_records(flow.source, names["earliest"], 0, 7)
    commit(flow.source, flow.source_alias, {(names["group"], 0): 42})
    file = tmp_path / "offsets.csv"
    file.write_text(f'"{names["file"]}",0,33\n')
    per_topic = {
        "earliest": "earliest",
        "time": f"timestamp:{NOON}",
        "late": "timestamp:2026-05-02T12:00:00Z",
        "file": f"offsets:{file}",
        "group": f"group:{flow.source_alias}",
        "x": f"group:{flow.source_alias}",
    }
    flow.lines[f"{flow.name}.start.from"] = "latest"
    flow.lines.update({f"{flow.name}.topic.{names[kind]}.start.from": start for kind, start in per_topic.items()})
    opened = flow.open()
    found = {kind: flow.entry(opened, name).source_start for kind, name in names.items()}
    assert found == {"earliest": 7, "latest": 100, "time": 50, "late": 100, "file": 33, "group": 42, "x": 0}
    carry(opened)
    assert flow.copied(names["time"]) == 50


def test_an_offset_after_the_end_is_refused_and_an_unreadable_file_is_a_fault(
    flow: InProcessFlow, topic: str, tmp_path: Path
) -> None:
    file = tmp_path / "offsets.csv"
    file.write_text(f"{topic},0,201\n")
    flow.lines["start.from"] = f"offsets:{file}"
    (reason,) = flow.open().flow.refused.values()
    assert "gives offset 201, the source ends at 200" in reason
    file.unlink()
    with pytest.raises(ConfigError, match="the file cannot be read: No such file"):
        flow.open()


def test_stored_progress_wins_unless_it_is_reset(flow: InProcessFlow, topic: str, offsets_topic: str) -> None:
    flow.lines["start.from"] = "latest"
    create_topic(flow.target, flow.remote(topic))
    mirror_records(flow, topic, range(10))
    flow.store(topic, 9, offsets_topic)
    assert begins_at(flow, topic) == 10
    flow.lines["start.from"] = "earliest"
    assert begins_at(flow, topic) == 10
    opened = flow.open(reset=True)
    entry = flow.entry(opened, topic)
    assert (entry.generation, entry.source_start) == (1, 0)
    said = [event.reason for event in opened.flow.events]
    assert said == ["generation 1 begins (reset) at source offset 0: start.from = earliest"]
    carry(opened)
    assert flow.copied(topic) == 210
    assert flow.entry(flow.open(), topic).generation == 1


def test_a_trial_has_names_and_a_ledger_of_its_own(flow: InProcessFlow, topic: str, offsets_topic: str) -> None:
    flow.store(topic, 99, offsets_topic)
    trial = InProcessFlow(flow.source_alias, flow.target_alias, flow.source, flow.target, flow.lines, trial="__trial.")
    opened: Opened = trial.open()
    assert opened.plan.name == f"{flow.name}@__trial."
    carry(opened)
    assert trial.assert_exact(topic) == 200
    assert ends(flow.target, flow.remote(topic)) == {}


def test_a_person_hands_back_and_resets_from_the_shell(flow: InProcessFlow, topic: str, tmp_path: Path) -> None:
    lines = flow.file() | {"offset.storage.replication.factor": "1", "offset.storage.partitions": "1"}
    properties = write_properties(tmp_path / "shell.properties", lines)
    with HeliographRun(properties) as run:
        wait_until(lambda: flow.copied(topic) == 200, "it is copied")
        refused = command("hand-back", str(properties), "--yes")
        assert (refused.code, f"is carried by process {run.pid} on" in refused.err) == (1, True), refused.err
        assert run.terminate() == 0, run.output
    assert _changed(properties) == [], "what was refused changed nothing"
    said = command("hand-back", str(properties), "--flow", flow.name, "--yes", "--reason", "the old one is wanted")
    assert f"  {topic}-0: MirrorMaker 2 goes on at source offset 200 (MirrorSourceConnector in mm2-offsets." in said.out
    me = f"{getpass.getuser()}@{platform.node()}"
    handed = (flow.name, f"handed back to MirrorMaker 2 by {me}: the old one is wanted")
    assert _changed(properties) == [handed]
    output = run_to_the_end(properties, "--reset", "--yes")
    assert "  every lane begins anew (--reset) at earliest" in output
    assert f"{topic}-0: generation 1 begins (reset) at source offset 0: start.from = earliest" in output
    assert flow.copied(topic) == 400
    assert _changed(properties) == [handed, (flow.name, f"every lane begins anew (--reset) by {me}")]


def _changed(properties: Path) -> list[tuple[str, str]]:
    """What people did, as `heliograph events` tells it."""
    rows = [json.loads(line) for line in command("events", str(properties), "--json").out.splitlines()]
    return [(row["subject"], row["reason"]) for row in rows if row["kind"] == "changed"]
