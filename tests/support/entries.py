"""A ledger entry for tests of pure decisions; a test says with `replace` what it is about."""

from __future__ import annotations

from heliograph.model.lanes import Identity, LaneId, LedgerEntry, Rule

FRESH = LedgerEntry(
    lane=LaneId("A->B", "orders", 0),
    generation=0,
    identity=Identity(7, 0),
    rule=Rule(),
    target_cluster_id="c",
    source_topic_id="s",
    target_topic_id="t",
    source_start=0,
    target_start=0,
    source_next=0,
    source_epoch=0,
    target_next=0,
    sequence_next=0,
)
"""Of a lane that has copied nothing."""
