"""`heliograph forget FILE --flow A->B`: remove what Heliograph wrote about a flow, and no data."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from dataclasses import asdict
from typing import Any

from heliograph.cli.choice import flow_named
from heliograph.cli.questions import ask
from heliograph.cli.words import count
from heliograph.config.flows import Settings
from heliograph.config.load import load_file
from heliograph.control.clock import Clock
from heliograph.errors import SetupError
from heliograph.model.clusters import Cluster
from heliograph.operations.forget import LOOK_AGAIN_SECONDS, forget
from heliograph.replication.forgetting import Forgetting

_ABOUT = """\
Removes Heliograph's own traces of one flow from its target: positions and holders from the ledger, telemetry and events.
Records of the remote topics are not touched. A run of the flow afterwards begins anew, and refuses remote topics that
already hold records of this flow: delete those first, or keep the positions.
"""


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "forget",
        help="remove what Heliograph wrote about a flow, and no data",
        description=_ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="FILE", help="the file that `heliograph run` was given")
    parser.add_argument("--flow", required=True, metavar="A->B", help="the flow to forget")
    parser.add_argument("--dry-run", action="store_true", help="say what would be removed and change nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    settings = load_file(args.file)
    target = _target(settings, args.flow)
    if not args.dry_run and not args.yes:
        _confirm(args.flow, target)
    now_ms = Clock().now_ms()
    plan = asyncio.run(forget(target, args.flow, now_ms, args.dry_run, LOOK_AGAIN_SECONDS))
    if args.json:
        sys.stdout.write(json.dumps(_as_json(plan, args.dry_run), indent=2) + "\n")
    else:
        sys.stdout.write("\n".join(sentences(plan, args.dry_run)) + "\n")
    return 0


def _target(settings: Settings, flow: str) -> Cluster:
    """A flow that is disabled in the file is forgotten too, if its clusters are still there."""
    source, _, target = flow.partition("->")
    is_known = any(known.flow.name == flow for known in settings.flows)
    if not is_known and source in settings.clusters and target in settings.clusters and source != target:
        return settings.clusters[target]
    return flow_named(settings, flow).target


def _confirm(flow: str, target: Cluster) -> None:
    if not sys.stdin.isatty():
        raise SetupError(f"forgetting {flow} removes its positions for good: say --yes, or --dry-run to look first")
    if not ask(f"Remove all positions, telemetry and events of {flow} from cluster {target.alias}?"):
        raise SetupError("nothing was removed")


def sentences(plan: Forgetting, dry_run: bool) -> list[str]:
    """What was done, or would be, and what stays."""
    did = "would remove" if dry_run else "removed"
    if plan.is_nothing:
        return [f"{plan.flow}: Heliograph has no trace of it on its target"]
    if plan.delete_topics:
        verb = "would delete" if dry_run else "deleted"
        return [f"{plan.flow}: {verb} {', '.join(plan.delete_topics)}: no other flow was in them", *_stays(plan)]
    lines = [f"{plan.flow}: {did} {count(len(plan.ledger_keys), 'key')} from the ledger"]
    for cut in plan.cuts:
        rest = f"; {count(cut.left, 'record')} stay until the topic's retention" if cut.left else ""
        if cut.removed or cut.left:
            lines.append(f"{plan.flow}: {did} {count(cut.removed, 'record')} from {cut.topic}{rest}")
    lines.append(f"the topics stay: {', '.join(plan.others)} still has something in them")
    return [*lines, *_stays(plan)]


def _stays(plan: Forgetting) -> list[str]:
    forgotten_later = f"the coordinator forgets heliograph.{plan.flow} after transactional.id.expiration.ms"
    return [f"remote topics were not touched; {forgotten_later}"]


def _as_json(plan: Forgetting, dry_run: bool) -> dict[str, Any]:
    return {
        "flow": plan.flow,
        "dry_run": dry_run,
        "ledger_keys": [str(key) for key in plan.ledger_keys],
        "logs": [asdict(cut) for cut in plan.cuts],
        "other_flows": list(plan.others),
        "deleted_topics": list(plan.delete_topics),
    }
