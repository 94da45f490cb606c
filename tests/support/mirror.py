"""Files for the mirror and what its commands say: `run` to the end, `status --json`, lanes by topic."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.commands import command
from tests.support.doors import address_lines
from tests.support.heliograph_run import HeliographRun, write_properties
from tests.support.waiting import wait_until

QUICK = {
    "replication.factor": "1",
    "takeover.wait.seconds": "15",
    "request.timeout.ms": "8000",
    "lane.retry.backoff.ms": "200",
    "heartbeats.replication.enabled": "false",
    "emit.heartbeats.enabled": "false",
    "emit.offset-syncs.enabled": "false",
    "emit.checkpoints.enabled": "false",
    "commit.source.group": "false",
}
"""One broker on each side, no test waits long for what must be waited for, none writes or copies what is not its subject."""


def word() -> str:
    """A word that no other module uses: for aliases, so that flows, and with them ledgers, are apart, and for topics."""
    return f"t{uuid.uuid4().hex[:8]}"


def flow_file(
    path: Path, clusters: Mapping[str, str], flows: Mapping[str, str], more: Mapping[str, str] | None = None
) -> Path:
    """A MirrorMaker 2 file: aliases with their addresses, flows with their topics, further lines, which win."""
    settings = {"clusters": ", ".join(clusters)}
    for alias, bootstrap in clusters.items():
        settings |= address_lines(alias, bootstrap)
    for flow, topics in flows.items():
        settings |= {f"{flow}.enabled": "true", f"{flow}.topics": topics}
    return write_properties(path, settings | QUICK | dict(more or {}))


def run_to_the_end(properties: Path, *options: str, code: int = 0, timeout_seconds: float = 150.0) -> str:
    """`heliograph run FILE --until-caught-up`; its output. Fails with the output for another exit status."""
    with HeliographRun(properties, "--until-caught-up", *options) as run:
        ended = run.wait(timeout_seconds)
        assert ended == code, f"exit {ended} instead of {code}:\n{run.output}"
        return run.output


def status(properties: Path) -> dict[str, Any]:
    """`heliograph status FILE --json`, the flows by name."""
    said = command("status", str(properties), "--json")
    assert said.out, f"status printed nothing, exit {said.code}: {said.err}"
    return {flow["flow"]: flow for flow in json.loads(said.out)["flows"]}


def status_when_following(properties: Path, flow: str) -> dict[str, Any]:
    """The flow's status once all its lanes follow: what a shell sees is up to a second old."""
    seen: dict[str, Any] = {}

    def follows() -> bool:
        seen.update(status(properties)[flow])
        return {lane["state"] for lane in seen["lanes"]} == {"following"}

    wait_until(follows, f"status shows that every lane of {flow} follows", every=0.2)
    return seen


def lanes_of(flow: Mapping[str, Any], topic: str) -> list[dict[str, Any]]:
    """The lanes of a topic in a flow's status, by partition."""
    return sorted((lane for lane in flow["lanes"] if lane["topic"] == topic), key=lambda lane: lane["partition"])


def summed(lanes: list[dict[str, Any]], name: str) -> int:
    return sum(lane[name] for lane in lanes)


def reasons(lanes: list[dict[str, Any]], name: str) -> dict[str, int]:
    """`rebuilt` or `dropped` of several lanes in one."""
    found: dict[str, int] = {}
    for lane in lanes:
        for reason, count in lane[name].items():
            found[reason] = found.get(reason, 0) + count
    return found
