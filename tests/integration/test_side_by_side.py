"""`heliograph compare` on real clusters: nothing where they agree, and each difference by name where they do not."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from heliograph.config.load import load, load_file
from heliograph.control.planner import FlowPlanner
from heliograph.operations.side_by_side import FlowCompared, compare_flows
from heliograph.replication.side_by_side import About
from tests.integration.protocol.harness import Mirror, carry
from tests.support.acls import add, remove
from tests.support.clusters import TwoClusters
from tests.support.commands import Said, command
from tests.support.groups import commit
from tests.support.mirror import flow_file
from tests.support.quotas import quotas, set_quota
from tests.support.topics import add_partitions, create_topic, delete_topic, ends, set_configs
from tests.support.writers import samples, write, write_transactions

RATE = "producer_byte_rate"


def test_compare_is_silent_where_both_agree_and_names_every_difference(
    two_clusters: TwoClusters, unique: str, tmp_path: Path
) -> None:
    here, there = two_clusters.a.bootstrap, two_clusters.b.bootstrap
    source, kept, gone = f"{unique}s", f"{unique}-a", f"{unique}-b"
    flow, remote = f"{source}->B", f"{source}.{kept}"
    create_topic(here, kept, partitions=2, config={"retention.ms": "7000000"})
    create_topic(here, gone)
    add(here, ("topic", kept, "LITERAL", "User:bob", "ALL", "ALLOW"))
    file = flow_file(tmp_path / "mm2.properties", {source: here, "B": there}, {flow: f"{unique}.*"})

    def compared(*options: str) -> Said:
        return command("compare", str(file), "--flow", flow, *options)

    with quotas((here, there), unique, RATE, 1_000_000.0):
        settings = load_file(str(file))
        planner = FlowPlanner(settings.flows[0], settings.engine)
        planner.apply(planner.discover())
        planner.close()
        add(there, ("topic", remote, "LITERAL", "User:bob", "READ", "ALLOW"))
        said = compared()
        assert (said.code, said.err) == (0, "")
        assert said.out.startswith(f"{flow}: no differences (2 topics, ")

        add_partitions(here, kept, 3)
        set_configs(there, remote, {"retention.ms": "8000000", "flush.messages": "9"})
        remove(there, ("topic", remote, "LITERAL", "User:bob", "READ", "ALLOW"))
        set_quota(there, unique, RATE, 5.0)
        delete_topic(here, gone)
        said = compared("--json")
    assert said.code == 1
    [found] = json.loads(said.out)["flows"]
    assert found["troubles"] == []
    assert [tuple(each.values()) for each in found["differences"]] == [
        ("topics", f"{kept} -> {remote}", "3 partitions", "2 partitions"),
        ("topics", f"{gone} -> {source}.{gone}", "-", "1 partition"),
        ("configs", f"{kept} -> {remote}: flush.messages", "9223372036854775807", "9"),
        ("configs", f"{kept} -> {remote}: retention.ms", "7000000", "8000000"),
        ("ACLs", f"topic {remote}", "ALLOW READ to User:bob", "-"),
        ("quotas", f"user {unique}: {RATE}", "1000000", "5"),
    ]


def test_groups_differ_unless_they_stand_at_the_copy_of_the_record_where_they_stand(
    two_clusters: TwoClusters, unique: str
) -> None:
    mirror = Mirror(two_clusters.a.bootstrap, two_clusters.b.bootstrap, unique)
    same, moved, new = (f"{unique}-{name}" for name in ("a", "b", "c"))
    mirror.make_topic()
    write_transactions(mirror.source, unique, f"{unique}-x", transactions=4)
    write(mirror.source, unique, samples(50))
    opened = mirror.open()
    carry(opened)
    flow, engine = opened.plan.settings, load(mirror.lines(), "mm2.properties").engine
    end, there = (ends(at, topic)[0] for at, topic in ((mirror.source, unique), (mirror.target, mirror.remote)))
    assert there < end, "markers are not copied, so offsets differ"

    def groups() -> tuple[FlowCompared, list[tuple[str, str, str]]]:
        [found] = asyncio.run(compare_flows([flow], engine))
        differences = [each for each in found.differences if each.about is About.GROUPS]
        return found, [(each.subject, each.source, each.target) for each in differences]

    for group in (same, moved, new):
        commit(mirror.source, group, {(unique, 0): end - 10})
    for group, offset in ((same, there - 10), (moved, there - 11)):
        commit(mirror.target, group, {(mirror.remote, 0): offset})
    found, differences = groups()
    assert (found.compared[About.GROUPS], found.troubles) == (3, [])
    assert differences == [
        (f"{moved}: {mirror.remote}-0", f"{end - 10}, which is {there - 10} there", str(there - 11)),
        (new, "committed for 1 partition", "-"),
    ]
    for group in (moved, new):
        commit(mirror.target, group, {(mirror.remote, 0): there - 10})
    assert groups()[1] == []
