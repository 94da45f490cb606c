"""One flow of a file as `heliograph run` opens it and `heliograph hand-back` gives it back, without Spark and processes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from confluent_kafka import KafkaException

from heliograph.config.flows import Settings
from heliograph.config.load import load
from heliograph.control.flow_watch import FlowWatch, Runner
from heliograph.kafka.client import ClusterClient
from heliograph.kafka.mm2_store import read_stored, write_stored
from heliograph.kafka.slot import Warm, now_ms
from heliograph.migration.hand_back import FlowHandBack, HandingBack
from heliograph.model.lanes import LedgerEntry
from heliograph.operations.compare import compare_topics
from heliograph.replication.mm2_progress import HandBack, Stored
from tests.integration.protocol.harness import Opened
from tests.support.doors import address_lines
from tests.support.mirror import QUICK
from tests.support.topics import ends

T = TypeVar("T")


@dataclass(frozen=True)
class InProcessFlow:
    """A flow between two aliases; `lines` are further lines of its file."""

    source_alias: str
    target_alias: str
    source: str
    target: str
    lines: dict[str, str]
    trial: str = ""

    @property
    def name(self) -> str:
        return f"{self.source_alias}->{self.target_alias}"

    def file(self) -> dict[str, str]:
        return {
            "clusters": f"{self.source_alias}, {self.target_alias}",
            **address_lines(self.source_alias, self.source),
            **address_lines(self.target_alias, self.target),
            f"{self.name}.enabled": "true",
            f"{self.target_alias}->{self.source_alias}.enabled": "false",
            **QUICK,
            **self.lines,
        }

    def _settings(self) -> Settings:
        return load("".join(f"{name} = {value}\n" for name, value in self.file().items()), "flow.properties")

    def remote(self, topic: str) -> str:
        return f"{self.trial}{self.source_alias}.{topic}"

    # -- what a person does -----------------------------------------------------------------------------------------

    def open(self, reset: bool = False) -> Opened:
        """What a run does before its first epoch."""
        settings = self._settings()
        chosen = replace(settings.flows[0], flow=replace(settings.flows[0].flow, trial=self.trial))

        async def run() -> Opened:
            warm = Warm()
            me = Runner("test", 1, f"run-{time.monotonic_ns()}", 1)
            watch = FlowWatch(chosen, settings.engine, warm, me, lambda: None, lambda _: None)
            watch.reset = reset
            try:
                await watch.open(await watch.discover())
                assert watch.opened is not None and watch.tenure is not None
                await watch.tenure.release()
                return Opened(watch.opened.plan, watch.opened)
            finally:
                watch.close()
                warm.close()

        return asyncio.run(run())

    def entry(self, opened: Opened, topic: str, partition: int = 0) -> LedgerEntry:
        return opened.flow.entries[f"{opened.plan.name}/{topic}/{partition}"]

    def hand_back(self, dry_run: bool = False) -> FlowHandBack:
        settings = self._settings()

        async def run() -> FlowHandBack:
            handing = HandingBack(settings.flows[0], settings.engine)
            try:
                plan = await handing.plan()
                if not dry_run:
                    await handing.apply(plan, "ann@north", "")
                return plan
            finally:
                await handing.close()

        return asyncio.run(run())

    # -- what MirrorMaker 2 leaves ----------------------------------------------------------------------------------

    def store(self, topic: str, offset: int, kept_in: str, connector: str = "MirrorSourceConnector") -> None:
        """Stored progress, as MirrorMaker 2 writes it; the topic exists."""
        entry = HandBack(connector, (topic, 0), offset, kept_in)
        self._with_target(lambda client: write_stored(client, [entry], self.source_alias, now_ms()))

    def stored(self, kept_in: str) -> list[Stored]:
        return self._with_target(lambda client: read_stored(client, [kept_in], self.source_alias))

    def _with_target(self, use: Callable[[ClusterClient], Awaitable[T]]) -> T:
        async def run() -> T:
            warm = Warm()
            try:
                return await use(warm.client(self._settings().flows[0].target))
            finally:
                warm.close()

        return asyncio.run(run())

    # -- what is seen -----------------------------------------------------------------------------------------------

    def copied(self, topic: str) -> int:
        try:
            return sum(ends(self.target, self.remote(topic)).values())
        except KafkaException:
            return 0  # it is being made: its leader is not known everywhere yet

    def assert_exact(self, topic: str, what: str = "") -> int:
        """The remote topic is a beginning of the source, record by record; how many records that is."""
        reached = {(topic, partition): end for partition, end in ends(self.target, self.remote(topic)).items()}
        comparison = compare_topics(self.source, self.target, {topic: self.remote(topic)}, ends=reached)
        assert comparison.differences == [], f"{what}: {[str(found) for found in comparison.differences[:3]]}"
        assert comparison.records == sum(reached.values()), what
        return comparison.records
