"""`heliograph translate FILE --flow A->B`: a source offset to the offset of its copy, exactly, and back."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from heliograph.cli.choice import flow_named
from heliograph.cli.effective import load_effective
from heliograph.cli.working import working
from heliograph.config.flows import FlowSettings
from heliograph.errors import ConfigError
from heliograph.operations.spark_checkpoint import CheckpointMove, Rewritten, SparkCheckpoint
from heliograph.operations.translate import FlowTranslator, Translated, reason_of, word_of
from heliograph.replication.mm2_translation import TOO_OLD

_ABOUT = """\
Says at which offset the copy of a record lies; with --reverse, of which record a copy is. Reads only, and needs no running
mirror. An answer is exact and proven on both logs, or it says why there is none: not yet copied, gone, never copied (a marker,
an aborted transaction, somebody else's record), not known. MirrorMaker 2's own answer is shown where its offset syncs exist.

  heliograph translate FILE --flow 'A->B' --topic orders --partition 0 --offset 1234
  heliograph translate FILE --flow 'A->B' --group billing
  heliograph translate FILE --flow 'A->B' --topic A.orders --partition 0 --offset 1230 --reverse
  heliograph translate FILE --flow 'A->B' --spark-checkpoint DIR --out DIR2

The last rewrites the checkpoint of a Structured Streaming query for the other cluster, topics and offsets: the same query goes on
there. DIR stays as it is.

Exit code 1 if an offset has no exact place on the other side yet.
"""


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "translate",
        help="an offset to the offset of its copy, exactly, and back",
        description=_ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="FILE", help="the file that `heliograph run` was given")
    parser.add_argument("--flow", required=True, metavar="A->B", help="the flow")
    parser.add_argument("--topic", metavar="TOPIC", help="the topic, by its name on either side")
    parser.add_argument("--partition", type=int, metavar="N", help="its partition")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--offset", type=int, metavar="N", help="the offset to translate")
    which.add_argument("--group", metavar="GROUP", help="translate what this consumer group committed")
    which.add_argument("--spark-checkpoint", metavar="DIR", help="rewrite this checkpoint of Structured Streaming")
    parser.add_argument("--out", metavar="DIR2", help="where the rewritten checkpoint goes: a new folder")
    parser.add_argument(
        "--inexact", action="store_true", help="rewrite it also where an offset has no exact place: take the next one"
    )
    parser.add_argument("--reverse", action="store_true", help="from the target to the source")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    if args.offset is not None and args.offset < 0:
        raise ConfigError([f"--offset {args.offset}: offsets begin at 0"])
    if args.offset is not None and (args.topic is None or args.partition is None):
        raise ConfigError(["--offset needs --topic and --partition"])
    if args.partition is not None and args.topic is None:
        raise ConfigError(["--partition needs --topic"])
    if (args.spark_checkpoint is None) != (args.out is None):
        raise ConfigError(["--spark-checkpoint and --out go together"])
    flow = flow_named(load_effective(args.file), args.flow)
    if args.spark_checkpoint is not None:
        return _checkpoint(flow, args)
    with working("reading both logs"):
        found = asyncio.run(_translate(flow, args))
    if args.json:
        sys.stdout.write(json.dumps([one.as_json() for one in found], indent=2) + "\n")
    else:
        sys.stdout.write("".join(f"{sentence(one)}\n" for one in found))
    return 1 if any(one.position is None for one in found) else 0


def _checkpoint(flow: FlowSettings, args: argparse.Namespace) -> int:
    checkpoint = SparkCheckpoint(Path(args.spark_checkpoint))
    with working("reading both logs"):
        done = asyncio.run(_rewrite(flow, checkpoint, args))
    if args.json:
        about = {"batch": done.batch, "committed": done.committed, "left_out": done.left_out, "out": args.out}
        sys.stdout.write(json.dumps({**about, "offsets": [one.as_json() for one in done.moved]}, indent=2) + "\n")
        return 0
    sys.stdout.write("".join(f"{sentence(one)}\n" for one in done.moved))
    goes_on = "goes on after" if done.committed else "does again"
    left_out = f"; {len(done.left_out)} older batches have no exact place and are left out" if done.left_out else ""
    sys.stdout.write(f"{args.out}: the query {goes_on} batch {done.batch}{left_out}\n")
    return 0


async def _rewrite(flow: FlowSettings, checkpoint: SparkCheckpoint, args: argparse.Namespace) -> Rewritten:
    async with FlowTranslator(flow) as translator:
        return await CheckpointMove(translator, args.reverse, args.inexact).rewrite(checkpoint, Path(args.out))


async def _translate(flow: FlowSettings, args: argparse.Namespace) -> list[Translated]:
    async with FlowTranslator(flow) as translator:
        if args.group is not None:
            return await translator.group(args.group, args.topic, args.partition, args.reverse)
        return [await translator.offset(args.topic, args.partition, args.offset, args.reverse)]


def sentence(one: Translated) -> str:
    """`orders-0 1234 -> A.orders-0 1230, exact; MirrorMaker 2: 1201`"""
    ends = (one.topic, one.remote_topic)
    here, there = reversed(ends) if one.reverse else ends
    place = "?" if one.position is None else str(one.position)
    text = f"{here}-{one.partition} {one.offset} -> {there}-{one.partition} {place}, {word_of(one.answer)}"
    if reason := reason_of(one.answer):
        text += f": {reason}"
    if one.mm2 is not None:
        text += f"; MirrorMaker 2: {'too old for its table' if one.mm2 == TOO_OLD else one.mm2}"
    return text
