"""What is measured: the cases, their data and their sizes. Pure; must not know how anything is run."""

from __future__ import annotations

from dataclasses import dataclass, replace

LARGE_BATCH = 256 << 10
SMALL_BATCH = 16 << 10
ANY_COUNT = 100_000


@dataclass(frozen=True)
class Load:
    """Records on the source and the batches they lie in. `size` 0: JSON documents of about 508 bytes."""

    records: int
    partitions: int = 8
    codec: str = "none"
    size: int = 0
    batch_bytes: int = LARGE_BATCH
    batch_records: int = ANY_COUNT

    def scaled(self, factor: float) -> Load:
        return replace(self, records=max(self.partitions * 10, int(self.records * factor)))


@dataclass(frozen=True)
class Copy:
    """All of the load is on the source before the mirror starts. The figures are medians of several rounds.

    A rehearsal before them is not measured: brokers compile anew what a load of another kind taught them.
    """

    name: str
    what: str
    load: Load
    rounds: int = 3
    rehearsals: int = 1

    def scaled(self, factor: float) -> Copy:
        whole = factor >= 1
        rounds, rehearsals = (self.rounds, self.rehearsals) if whole else (1, 0)
        return replace(self, load=self.load.scaled(factor), rounds=rounds, rehearsals=rehearsals)


@dataclass(frozen=True)
class Latency:
    """A steady stream. Measuring begins `lead` seconds after the first record that arrived.

    With `lead` 25 and `seconds` 40 the measured time holds the end of Heliograph's first epoch of 45 s; the lead is also
    the warm-up of both.
    """

    name: str
    what: str
    rate: int
    partitions: int = 8
    lead: float = 25.0
    seconds: float = 40.0
    rounds: int = 2

    def scaled(self, factor: float) -> Latency:
        shorter, rounds = min(1.0, factor), self.rounds if factor >= 1 else 1
        lead, seconds = max(3.0, self.lead * shorter), max(4.0, self.seconds * shorter)
        return replace(self, lead=lead, seconds=seconds, rounds=rounds)


@dataclass(frozen=True)
class Start:
    """From the start of the process to the first record on the target, the median of several rounds."""

    name: str
    what: str
    load: Load
    rounds: int = 3

    def scaled(self, factor: float) -> Start:
        return replace(self, rounds=self.rounds if factor >= 1 else 1)


Case = Copy | Latency | Start

_BIG = 2_000_000

CASES: tuple[Case, ...] = (
    Copy("lz4", "1 GB, 8 partitions, lz4, 256 KB batches", Load(_BIG, codec="lz4")),
    Copy("zstd", "1 GB, 8 partitions, zstd, 256 KB batches", Load(_BIG, codec="zstd")),
    Copy("none", "1 GB, 8 partitions, uncompressed, 256 KB batches", Load(_BIG)),
    Copy(
        "small",
        "500,000 records of 1 KB, 40 partitions, uncompressed, 16 KB batches",
        Load(500_000, partitions=40, size=1_000, batch_bytes=SMALL_BATCH),
    ),
    Copy("single", "300,000 batches of one record, 8 partitions, uncompressed", Load(300_000, batch_records=1)),
    Latency("latency-2000", "2,000 records/s, 8 partitions", 2_000),
    Latency("latency-200", "200 records/s, 8 partitions", 200),
    Start("start", "process start to the first record on the target", Load(8_000)),
)


def chosen(names: list[str], scale: float) -> list[Case]:
    """The named cases, all of them without a name, each at this scale."""
    return [case.scaled(scale) for case in CASES if not names or case.name in names]
