"""Taking over from a real Kafka Connect worker, with connectors of any name and of Strimzi's, killed with -9; and back."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

from tests.integration.protocol.harness import carry
from tests.support.clusters import ClusterFactory
from tests.support.connect import ConnectWorker, keep_from_settling, mirror_source
from tests.support.flows import InProcessFlow
from tests.support.heliograph_run import write_properties
from tests.support.mirror import command
from tests.support.mirrormaker import QUICK_GROUPS, wait_until_forgotten
from tests.support.topics import create_topic
from tests.support.waiting import wait_until
from tests.support.writers import samples, write

GROUP = "copiers"
PROGRESS = f"{GROUP}-offsets"
CONNECTORS = {"t": "orders", "u": "A->B.MirrorSourceConnector"}
"""By topic: a name that tells nothing, and what Strimzi calls it."""
PARTITIONS = 2


def has(flow: InProcessFlow, topic: str, count: int) -> bool:
    return flow.copied(topic) >= count


def await_copies(flow: InProcessFlow, count: int) -> None:
    for topic in CONNECTORS:
        wait_until(partial(has, flow, topic, count), f"{count} of {topic} are copied")


def test_connectors_of_a_connect_cluster_are_refused_while_they_live_and_then_taken_over_exactly(
    new_cluster: ClusterFactory, tmp_path: Path
) -> None:
    here, there = new_cluster("A").bootstrap, new_cluster("B", config=QUICK_GROUPS).bootstrap
    flow = InProcessFlow("A", "B", here, there, {"A->B.topics": "t, u"})
    file = write_properties(tmp_path / "mm2.properties", flow.file())
    for topic in CONNECTORS:
        create_topic(here, topic, PARTITIONS)
        write(here, topic, samples(300, partitions=PARTITIONS))

    with ConnectWorker(tmp_path, there, GROUP) as worker:
        # Of another flow, though it has the name that the flow's own connector has without a Connect cluster.
        worker.create("MirrorSourceConnector", mirror_source(("M", here), ("B", there), "u"))
        another = replace(flow, source_alias="M")
        wait_until(lambda: another.copied("u") == 300, f"the other flow's connector copies ({worker.log})")
        allowed = command("run", str(file), "--dry-run")
        assert allowed.code == 0, allowed.err
        worker.create(CONNECTORS["t"], mirror_source(("A", here), ("B", there), "t"))
        wait_until(lambda: flow.copied("t") == 300, f"the connector copies ({worker.log})")
        assert flow.stored(PROGRESS) == [], "nothing but its configuration tells what it is"
        refused = command("run", str(file), "--until-caught-up")
        sentence = f"(group '{GROUP}') copies it (connector 'orders'): stop it first"
        assert (refused.code, sentence in refused.err) == (1, True), refused.err
        worker.create(CONNECTORS["u"], mirror_source(("A", here), ("B", there), "u"))
        await_copies(flow, 300)
        for name in CONNECTORS.values():
            worker.restart_task(name)
        wait_until(lambda: len(flow.stored(PROGRESS)) >= 2 * PARTITIONS, "both store their progress", every=0.2)
        for topic in CONNECTORS:
            write(here, topic, samples(3_000, partitions=PARTITIONS, seed=2))
        await_copies(flow, 301)
        worker.kill()
    wait_until_forgotten(there, GROUP)

    for topic in CONNECTORS:
        flow.assert_exact(topic, "Connect")
    opened = flow.open()
    assert opened.flow.refused == {}
    # Its stored progress is behind what it copied, or the test would show nothing.
    assert all(entry.mm2_offset == 149 for entry in opened.entries)
    assert any(entry.source_start > 150 for entry in opened.entries)
    carry(opened)
    for topic in CONNECTORS:
        assert flow.assert_exact(topic, "Heliograph") == 3_300

    flow.hand_back()
    last = {(entry.connector, entry.partition): entry.offset for entry in flow.stored(PROGRESS)}
    assert last == {(CONNECTORS[topic], (topic, part)): 1_649 for topic in CONNECTORS for part in range(PARTITIONS)}
    for topic in CONNECTORS:
        write(here, topic, samples(100, partitions=PARTITIONS, seed=3))
    with ConnectWorker(tmp_path, there, GROUP) as worker:
        await_copies(flow, 3_400)
        refuse_while_tasks_are_shared_out(worker, there, file)
    for topic in CONNECTORS:
        assert flow.assert_exact(topic, "Connect again") == 3_400


def refuse_while_tasks_are_shared_out(worker: ConnectWorker, there: str, file: Path) -> None:
    """Members that join show no tasks, whatever they run."""
    worker.freeze()
    keep_from_settling(there, GROUP)
    refused = command("run", str(file), "--until-caught-up")
    said = f"(group '{GROUP}') may copy it (connector 'A->B.MirrorSourceConnector'): its Connect cluster is sharing out"
    assert (refused.code, said in refused.err) == (1, True), refused.err
