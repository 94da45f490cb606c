"""A cluster of two brokers in different racks, each with two disks, whose first broker can be cut off from the controller alone."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from heliograph.embedded.formatting import is_formatted, named
from heliograph.embedded.probe import HOST
from heliograph.embedded.settings import CONTROLLER_ID, new_cluster_id, node_properties
from tests.support.doors import AuthorizedCluster
from tests.support.relay import Relay

CUT_OFF = 1
"""The broker between which and the controller there is a line that can be cut."""
BROKEN = 2
"""The broker whose second disk fails."""
RACKS = {1: "one", 2: "two"}
QUICK_TO_NOTICE = {
    "replica.lag.time.max.ms": "1500",
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    # A disk is written to every second even at rest, so that one that fails is noticed.
    "log.flush.offset.checkpoint.interval.ms": "1000",
    "replica.high.watermark.checkpoint.interval.ms": "1000",
}


class OddCluster(AuthorizedCluster):
    """Brokers name the follower in a reader's rack (KIP-392)."""

    line: Relay

    def __init__(self, name: str, directory: Path) -> None:
        super().__init__(name, directory, len(RACKS), QUICK_TO_NOTICE)

    def _choose_ports(self, taken: Iterable[int]) -> list[int]:
        ports = super()._choose_ports(taken)
        self._end_line()
        self.line = Relay(HOST, self._layout.controller_port).start()
        # Whoever fetches the metadata log is told this address; the other broker finds its way by the one that it was given.
        own = {"advertised.listeners": f"CONTROLLER://{self.line.address}"}
        self._write_properties(CONTROLLER_ID, own)
        for broker, rack in RACKS.items():
            own = {"broker.rack": rack, "log.dirs": f"{self._data(broker)},{self.second_disk(broker)}"}
            if broker == CUT_OFF:
                own["controller.quorum.voters"] = f"{CONTROLLER_ID}@{self.line.address}"
            self._write_properties(broker, own)
        return ports

    def _write_properties(self, node: int, own: Mapping[str, str]) -> None:
        layout = replace(self._layout, config={**self._config, **own})
        Path(self._properties(node)).write_text(node_properties(layout, node, self._data(node)))

    def _finish_formatting(self, tools: Mapping[int, subprocess.Popen[bytes]]) -> None:
        super()._finish_formatting(tools)
        for broker in RACKS:
            disk = self.second_disk(broker)
            if not is_formatted(disk):
                disk.mkdir(parents=True)
                meta = (self._data(broker) / "meta.properties").read_text()
                (disk / "meta.properties").write_text(named(meta, self.cluster_id, broker, new_cluster_id()))

    def second_disk(self, broker: int) -> Path:
        return self._folder(broker) / "data2"

    def lose_disk(self) -> None:
        """The second disk of the second broker is gone; what is open stays open, and nothing can be made there."""
        disk = self.second_disk(BROKEN)
        disk.rename(disk.with_name("taken-out"))

    def return_disk(self) -> None:
        """Put back, and its broker started again, as brokers need it."""
        disk = self.second_disk(BROKEN)
        disk.with_name("taken-out").rename(disk)
        self.restart(BROKEN)

    def cut_off(self) -> None:
        """The first broker hears no more who leads what, and goes on as if nothing had been."""
        self.line.refuse = True
        self.line.cut()

    def join(self) -> None:
        self.line.refuse = False

    def stop(self) -> None:
        super().stop()
        self._end_line()

    def _end_line(self) -> None:
        line = getattr(self, "line", None)
        if line is not None:
            line.close()
