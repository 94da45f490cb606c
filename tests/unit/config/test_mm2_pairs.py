"""Files of MirrorMaker 2's own tests: which pairs of clusters run, and what is refused, here and there.

A pair that only emits heartbeats is a herder there; here heartbeats are written by the runs of flows.
"""

from __future__ import annotations

import pytest

from heliograph.config.flows import Settings
from heliograph.config.load import load
from heliograph.errors import ConfigError

FLOW = "clusters = a, b\na->b.enabled = true\n"


def loaded(text: str) -> Settings:
    """With an address for every alias, as MirrorMaker 2's tests need none."""
    aliases = text.partition("\n")[0].partition("=")[2].split(",")
    return load("\n".join([text, *(f"{alias.strip()}.bootstrap.servers = h:1" for alias in aliases)]), "mm2.properties")


def flows(settings: Settings) -> list[str]:
    return [flow.flow.name for flow in settings.flows]


def pairs_of_heartbeats(settings: Settings) -> set[str]:
    return {f"{pulse.source}->{pulse.target}" for flow in settings.flows for pulse in flow.jobs.heartbeats}


@pytest.mark.parametrize(
    "more",
    [
        "",
        "emit.heartbeats.enabled = false",
        "a->b.emit.heartbeats.enabled = false\na->c.emit.heartbeats.enabled = false",
    ],
    ids=["6 pairs there", "none there", "4 pairs there"],
)
def test_without_a_flow_nothing_runs_where_mirrormaker_2_would_emit_heartbeats(more: str) -> None:
    with pytest.raises(ConfigError, match="no flow is enabled"):
        loaded(f"clusters = a, b, c\n{more}")


def test_with_heartbeats_off_the_pairs_are_those_of_the_flows() -> None:
    enabled = "".join(f"a->{alias}.enabled = {alias in 'bcd'}\n" for alias in "bcdef")
    settings = loaded(f"clusters = a, b, c, d, e, f\nemit.heartbeats.enabled = false\n{enabled}")
    assert flows(settings) == ["a->b", "a->c", "a->d"]
    assert pairs_of_heartbeats(settings) == set()


def test_a_pair_without_a_flow_gets_no_heartbeats() -> None:
    settings = loaded(
        "clusters = central, local_one, local_two, beats_emitter\n"
        "emit.heartbeats.enabled = false\n"
        "central->local_one.enabled = true\n"
        "central->local_two.enabled = true\n"
        "beats_emitter->central.emit.heartbeats.enabled = true\n"
    )
    assert flows(settings) == ["central->local_one", "central->local_two"]
    assert pairs_of_heartbeats(settings) == set()


def test_by_default_heartbeats_are_of_both_pairs_of_a_flow() -> None:
    assert pairs_of_heartbeats(loaded("clusters = a, b, c\na->b.enabled = true\n")) == {"a->b", "b->a"}


@pytest.mark.parametrize("protocol", ["sasl_ssl", "Sasl_Ssl"])
def test_a_protocol_is_read_in_any_case(protocol: str) -> None:
    login = 'sasl.mechanism = PLAIN\nsasl.jaas.config = x.PlainLoginModule required username="u" password="p";\n'
    security = loaded(f"{FLOW}security.protocol = {protocol}\n{login}").flows[0].source.security
    assert security.tls is not None and security.login is not None


def test_a_place_that_is_neither_source_nor_target_is_refused() -> None:
    with pytest.raises(ConfigError, match="offset-syncs.topic.location = elsewhere: expected source or target"):
        loaded(f"{FLOW}offset-syncs.topic.location = elsewhere\n")


def test_checkpoints_may_be_off_and_need_no_offset_syncs() -> None:
    """Both are faults of MirrorCheckpointConnector's configuration: its translation is made of offset syncs."""
    off = loaded(f"{FLOW}emit.checkpoints.enabled = false\n").flows[0].jobs
    assert not off.groups.checkpoints and off.offset_syncs is not None
    without = loaded(f"{FLOW}emit.offset-syncs.enabled = false\n").flows[0].jobs
    assert without.groups.checkpoints and without.offset_syncs is None
