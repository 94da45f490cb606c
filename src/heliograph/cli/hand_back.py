"""`heliograph hand-back FILE`: give flows back to MirrorMaker 2, which then goes on exactly where Heliograph stopped."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from typing import Any

from heliograph.cli.questions import confirmed
from heliograph.cli.who import user
from heliograph.cli.words import count
from heliograph.cli.working import working
from heliograph.config.flows import EngineSettings, FlowSettings, Settings
from heliograph.config.load import load_file
from heliograph.errors import ConfigError
from heliograph.migration.hand_back import FlowHandBack, HandingBack


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "hand-back",
        help="give flows back to MirrorMaker 2",
        description="Writes the positions of all lanes into MirrorMaker 2's offsets topic on the target. Stop "
        "`heliograph run` first; start MirrorMaker 2 afterwards. A later `heliograph run` takes over again.",
    )
    parser.add_argument("file", metavar="FILE", help="the file that `heliograph run` was given")
    parser.add_argument("--flow", default="", metavar="A->B", help="only this flow (default: all enabled flows)")
    parser.add_argument("--dry-run", action="store_true", help="say what would be written and write nothing")
    parser.add_argument("--reason", default="", metavar="TEXT", help="why; kept in the event that tells of it")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    settings = load_file(args.file)
    flows = _chosen(settings, args.flow)
    names = ", ".join(flow.flow.name for flow in flows)
    question = f"Write the positions of {names} into MirrorMaker 2's offsets topic?"
    if not args.dry_run and not confirmed(question, args.yes):
        return 1
    with working("reading positions"):
        done = asyncio.run(_hand_back(flows, settings.engine, args.dry_run, args.reason))
    if args.json:
        sys.stdout.write(json.dumps({"dry_run": args.dry_run, "flows": [_as_json(plan) for plan in done]}, indent=2))
        sys.stdout.write("\n")
    else:
        for plan in done:
            sys.stdout.writelines(line + "\n" for line in _lines(plan, args.dry_run))
    return 0


def _chosen(settings: Settings, name: str) -> list[FlowSettings]:
    flows = [flow for flow in settings.flows if name in ("", flow.flow.name)]
    if not flows:
        known = ", ".join(flow.flow.name for flow in settings.flows)
        raise ConfigError([f"--flow {name}: no such flow is enabled; the file has {known}"])
    return flows


async def _hand_back(
    flows: list[FlowSettings], engine: EngineSettings, dry_run: bool, reason: str
) -> list[FlowHandBack]:
    done = []
    for flow in flows:
        handing = HandingBack(flow, engine)
        try:
            plan = await handing.plan()
            if not dry_run:
                await handing.apply(plan, user(), reason)
            done.append(plan)
        finally:
            await handing.close()
    return done


def _lines(plan: FlowHandBack, dry_run: bool) -> list[str]:
    verb = "would hand back" if dry_run else "handed back"
    lines = [f"flow {plan.flow}: {verb} {count(len(plan.entries), 'lane')}"]
    lines += [f"  create topic {topic}" for topic in plan.missing_topics]
    lines += [
        f"  {topic}-{partition}: MirrorMaker 2 goes on at source offset {entry.offset + 1} ({entry.connector} in {entry.topic})"
        for entry in plan.entries
        for topic, partition in [entry.partition]
    ]
    lines += [f"  {key}: never copied, MirrorMaker 2 begins it as it is told" for key in plan.never_copied]
    return lines


def _as_json(plan: FlowHandBack) -> dict[str, Any]:
    return {
        "flow": plan.flow,
        "create": list(plan.missing_topics),
        "never_copied": list(plan.never_copied),
        "lanes": [
            {
                "topic": entry.partition[0],
                "partition": entry.partition[1],
                "offset": entry.offset,
                "connector": entry.connector,
                "kept_in": entry.topic,
            }
            for entry in plan.entries
        ],
    }
