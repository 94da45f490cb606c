"""One run whose metrics are looked at: a flow with a topic for every kind of trouble, a canary, a group; a second flow beside it."""

from __future__ import annotations

import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from heliograph.metrics.table import METRICS
from tests.support.clusters import TwoClusters
from tests.support.exposition import read_exposition
from tests.support.heliograph_run import HeliographRun
from tests.support.mirror import flow_file, word
from tests.support.rest import Rest, rest_of, wait_for_flow
from tests.support.scraped import Scrape
from tests.support.topics import create_topic, ends
from tests.support.waiting import wait_until

PARTITIONS = {"plain": 2, "lanes": 2, **dict.fromkeys(("small", "sure", "slow", "stuck", "held", "alien", "again"), 1)}
"""By topic: each is one test's, so that their order does not matter."""
CANARY_LIMIT_MS = 2_000
COST = 250.0
EPOCH_SECONDS = 8


@dataclass
class Stage:
    clusters: TwoClusters
    here: str
    there: str
    beside: str
    """Another alias of the source, whose flow keeps what its target refuses as dead letters."""
    w: str
    file: Path
    run: HeliographRun
    rest: Rest | None = None

    @property
    def flow(self) -> str:
        return f"{self.here}->{self.there}"

    @property
    def second(self) -> str:
        return f"{self.beside}->{self.there}"

    @property
    def source(self) -> str:
        return self.clusters.a.bootstrap

    @property
    def target(self) -> str:
        return self.clusters.b.bootstrap

    @property
    def canary(self) -> str:
        return f"heliograph-canary-{self.here}-{self.there}"

    @property
    def huge(self) -> str:
        """The topic of the second flow."""
        return f"{self.beside}.huge"

    def topic(self, kind: str) -> str:
        return f"{self.w}.{kind}"

    def remote(self, kind: str) -> str:
        return f"{self.here}.{self.w}.{kind}"

    def copied(self, kind: str) -> int:
        return sum(ends(self.target, self.remote(kind)).values())

    def lane(self, kind: str, partition: int = 0) -> dict[str, str]:
        return {"topic": self.topic(kind), "partition": str(partition)}

    def scrape(self) -> Scrape:
        assert self.rest is not None
        with urllib.request.urlopen(f"{self.rest.url}/metrics", timeout=30) as answer:  # noqa: S310  loopback
            assert answer.headers["Content-Type"].startswith("text/plain")
            found = read_exposition(answer.read().decode())
        assert found.keys() <= METRICS.keys()
        return Scrape(found, self.flow)

    def until(self, holds: Callable[[Scrape], bool], what: str) -> Scrape:
        last: list[Scrape] = []

        def is_so() -> bool:
            last[:] = [self.scrape()]
            return holds(last[0])

        wait_until(is_so, what, every=0.3)
        return last[0]

    def steer(self, verb: str, topic: str) -> None:
        """`pause` or `resume` a topic."""
        assert self.rest is not None
        code, body = self.rest.ask("POST", f"/api/v1/flows/{self.flow}/{verb}", {"topic": topic, "reason": "a test"})
        assert code == 200, body

    def limit(self, bytes_per_second: int, topic: str = "") -> None:
        """Of the flow or of a topic; 0: none."""
        assert self.rest is not None
        body = {"bytes_per_second": bytes_per_second, "topic": topic, "reason": "a test"}
        code, body = self.rest.ask("PUT", f"/api/v1/flows/{self.flow}/throttle", body)
        assert code == 200, body

    @contextmanager
    def paused(self, topic: str) -> Iterator[None]:
        self.steer("pause", topic)
        try:
            yield
        finally:
            self.steer("resume", topic)


@contextmanager
def metrics_stage(clusters: TwoClusters, folder: Path) -> Iterator[Stage]:
    file = folder / "mm2.properties"
    made = Stage(clusters, word(), word(), word(), word(), file, HeliographRun(file))
    for kind, partitions in PARTITIONS.items():
        create_topic(made.source, made.topic(kind), partitions)
    create_topic(made.source, made.huge)
    for remote in (made.remote("stuck"), f"{made.beside}.{made.huge}"):
        create_topic(made.target, remote, config={"max.message.bytes": "50000"})
    addresses = {made.here: made.source, made.there: made.target, made.beside: made.source}
    flow_file(file, addresses, {made.flow: f"{made.w}.*", made.second: made.huge}, _options(made))
    with made.run:
        made.rest = rest_of(made.run)
        wait_for_flow(made.rest, made.flow)
        wait_for_flow(made.rest, made.second)
        lanes = sum(PARTITIONS.values()) + 1  # and the canary
        made.until(lambda found: found.of("heliograph_flow_lanes", state="following") == lanes, "all lanes follow")
        yield made


def _options(stage: Stage) -> dict[str, str]:
    return {
        "listeners": "http://127.0.0.1:0",
        "slots": "1",
        "takeover.wait.seconds": "30",  # jobs have their turns though a broker stands still for a while
        "epoch.seconds": f"{EPOCH_SECONDS}",
        "refresh.topics.interval.seconds": "5",
        "wan.cost.per.gb": f"{COST}",
        "checkpoints.topic.replication.factor": "1",
        "emit.checkpoints.interval.seconds": "1",
        "refresh.groups.interval.seconds": "1",
        f"{stage.flow}.emit.checkpoints.enabled": "true",
        f"{stage.flow}.canary.enabled": "true",
        f"{stage.flow}.canary.limit.ms": f"{CANARY_LIMIT_MS}",
        f"{stage.flow}.topic.{stage.topic('slow')}.throttle.bytes.per.second": "4000",
        f"{stage.second}.on.bad.record": "dead-letter",
    }
