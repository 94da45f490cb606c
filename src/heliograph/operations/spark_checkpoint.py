"""A Structured Streaming checkpoint rewritten for the other cluster of a flow: the same query goes on there, exactly.

Reads the checkpoint and both clusters, writes a new folder, and never into the old one. Spark goes on from the newest batch, and
does it again from where the one before ended if it was not committed: those two must be exact. Older batches that have no answer any
more are left out, nobody reads them again.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from heliograph.errors import SetupError
from heliograph.operations.translate import FlowTranslator, Translated, reason_of, word_of
from heliograph.replication.spark_offsets import Batch, Initial, Place
from heliograph.replication.translation import Exact, Gone, NeverCopied, is_marked

_OFFSETS, _COMMITS, _SOURCES = "offsets", "commits", "sources"
_SPARKS_OWN = "metadata"


@dataclass
class Rewritten:
    """What became of a checkpoint."""

    batch: int
    """The newest batch: the query goes on there."""
    committed: bool
    moved: list[Translated] = field(default_factory=list)
    """The offsets from which the query goes on."""
    left_out: list[int] = field(default_factory=list)
    """Older batches without an exact answer."""


class SparkCheckpoint:
    """One checkpoint folder, read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if not (folder / _SPARKS_OWN).is_file() or not (folder / _OFFSETS).is_dir():
            raise SetupError(
                f"{folder} is no checkpoint of Structured Streaming: it needs a file {_SPARKS_OWN} and a folder {_OFFSETS} (a "
                "path on this computer)"
            )
        self.batches = {
            int(file.name): Batch(file.read_text(encoding="utf-8"), str(file)) for file in _numbered(folder / _OFFSETS)
        }
        if not self.batches:
            raise SetupError(f"{folder} has no batch yet: nothing was read, begin the query anew on the other cluster")
        self.committed = {int(file.name) for file in _numbered(folder / _COMMITS)}
        found = ((file, Initial.read(file.read_bytes())) for file in sorted((folder / _SOURCES).glob("*/0")))
        self.initial = {file: initial for file, initial in found if initial is not None}
        if not any(True for batch in self.batches.values() for _ in batch.places()):
            raise SetupError(f"{folder} has no offsets of a Kafka source")

    @property
    def newest(self) -> int:
        return max(self.batches)

    def needed(self) -> list[Batch | Initial]:
        """What Spark reads when the query starts."""
        found: list[Batch | Initial] = [self.batches[self.newest]]
        if self.newest - 1 in self.batches:
            found.append(self.batches[self.newest - 1])
        elif self.newest == 0:
            found += self.initial.values()
        return found


class CheckpointMove:
    """Moves one checkpoint with one flow's translator; `inexact`: take the next place where there is no exact answer."""

    def __init__(self, translator: FlowTranslator, reverse: bool = False, inexact: bool = False) -> None:
        self._translator = translator
        self._reverse = reverse
        self._inexact = inexact
        self._answers: dict[Place, Translated] = {}

    async def rewrite(self, checkpoint: SparkCheckpoint, out: Path) -> Rewritten:
        _may_write(checkpoint.folder, out)
        for part in checkpoint.needed():
            await self._ask(part.places())
        refused = [one for one in self._answers.values() if not self._is_good(one)]
        if refused:
            raise SetupError(_refusal(refused))
        newest = checkpoint.newest
        result = Rewritten(newest, newest in checkpoint.committed)
        result.moved = [self._answers[place] for place in checkpoint.batches[newest].places()]
        files = await self._files(checkpoint, result)
        _write(checkpoint.folder, out, files)
        return result

    async def _files(self, checkpoint: SparkCheckpoint, result: Rewritten) -> dict[Path, bytes]:
        """The rewritten files by their path in the checkpoint; older batches as far back as all of them have an answer."""
        files: dict[Path, bytes] = {}
        for number in sorted(checkpoint.batches, reverse=True):
            batch = checkpoint.batches[number]
            if result.left_out or not await self._has_answers(batch):
                result.left_out.append(number)
                continue
            files[Path(_OFFSETS) / str(number)] = batch.moved(self._move).encode()
            if number in checkpoint.committed:
                commit = Path(_COMMITS) / str(number)
                files[commit] = (checkpoint.folder / commit).read_bytes()
        for file, initial in checkpoint.initial.items():
            if await self._has_answers(initial):
                files[file.relative_to(checkpoint.folder)] = initial.moved(self._move)
        return files

    async def _has_answers(self, part: Batch | Initial) -> bool:
        places = list(part.places())
        await self._ask(places)
        return all(self._is_good(self._answers[place]) for place in places)

    async def _ask(self, places: Iterable[Place]) -> None:
        for place in places:
            if place not in self._answers:
                self._answers[place] = await self._translator.offset(*place, self._reverse)

    def _is_good(self, one: Translated) -> bool:
        return one.position is not None and (self._inexact or is_exact(one))

    def _move(self, place: Place) -> Place:
        one = self._answers[place]
        assert one.position is not None  # noqa: S101  only what has an answer is moved
        return (one.topic if self._reverse else one.remote_topic), one.partition, one.position


def is_exact(one: Translated) -> bool:
    """Whether a reader who goes on there misses nothing that it would have read here, and reads nothing twice."""
    match one.answer:
        case Exact():
            return True
        case NeverCopied(reason):
            return is_marked(reason)
        case Gone(side):
            return side == ("target" if one.reverse else "source") and one.position is not None
    return False


def _refusal(refused: list[Translated]) -> str:
    one = refused[0]
    topic = one.remote_topic if one.reverse else one.topic
    more = f", and {len(refused) - 1} more" if len(refused) > 1 else ""
    return (
        f"{topic}-{one.partition} {one.offset} has no exact place on the other cluster, {word_of(one.answer)}: "
        f"{reason_of(one.answer)}{more}; nothing was written. --inexact takes the next place where there is one"
    )


def _may_write(folder: Path, out: Path) -> None:
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise SetupError(f"--out {out}: it exists and is not empty; name a new folder")
    if out.resolve().is_relative_to(folder.resolve()):
        raise SetupError(f"--out {out}: it lies inside the checkpoint, which is never written to")


def _write(folder: Path, out: Path, files: Mapping[Path, bytes]) -> None:
    """All of the checkpoint with these files in place of its own; the folder appears whole or not at all."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{out.name}-", dir=out.parent) as aside:
        copy = Path(aside) / "copy"
        # Hadoop keeps a checksum beside each file and refuses a file that does not fit to it; without one it takes the file.
        written = {folder / name for name in (_OFFSETS, _COMMITS)} | {folder / file.parent for file in files}
        shutil.copytree(folder, copy, ignore=lambda at, names: set(names) if Path(at) in written else set())
        for file, content in files.items():
            (copy / file).parent.mkdir(parents=True, exist_ok=True)
            (copy / file).write_bytes(content)
        if out.exists():
            out.rmdir()
        copy.rename(out)


def _numbered(folder: Path) -> list[Path]:
    return [file for file in folder.glob("*") if file.name.isdecimal()]
