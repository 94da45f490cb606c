"""Checkpoints and group offsets where every word goes through TLS, with a certificate for a login."""

from __future__ import annotations

from tests.integration.protocol.harness import carry
from tests.support.clusters import TwoClusters
from tests.support.flows import InProcessFlow
from tests.support.groups import Turns, checkpoint_job, checkpoints, commit, committed, group_offsets_job
from tests.support.secured import Secured, prefixed
from tests.support.topics import create_topic
from tests.support.writers import samples, write


def test_groups_and_checkpoints_are_exact_into_a_cluster_behind_tls(
    secured: Secured, two_clusters: TwoClusters, unique: str
) -> None:
    here, there = two_clusters.a.bootstrap, secured.cluster.bootstrap
    source, target, group = f"{unique}s", f"{unique}t", f"{unique}-g"
    lines = {
        f"{source}->{target}.topics": unique,
        "emit.checkpoints.enabled": "true",
        "checkpoints.topic.replication.factor": "1",
        "sync.group.offsets.enabled": "true",
        **prefixed(target, secured.keys("TLS", secured.client_certificate())),
    }
    flow = InProcessFlow(source, target, here, secured.cluster.bootstrap_of("TLS"), lines)
    create_topic(here, unique)
    write(here, unique, samples(40))
    carry(opened := flow.open())
    commit(here, group, {(unique, 0): 25})
    assert committed(there, group) == {}  # and there is a coordinator for it: a cluster makes that for its first group
    for job in (checkpoint_job, group_offsets_job):
        turns = Turns(opened.plan, job)
        assert turns.turn() and turns.pending() == [] and turns.events == []
    (row,) = checkpoints(there, f"{source}.checkpoints.internal")
    assert row[:5] == (group, flow.remote(unique), 0, 25, 25)
    assert committed(there, group) == {(flow.remote(unique), 0): 25}
