"""`heliograph check FILE`: what would keep a flow from running, before it is started. One PASS, WARN or FAIL line each."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from heliograph.cli.effective import load_effective, no_flows
from heliograph.cli.working import working
from heliograph.config.flows import Settings
from heliograph.config.load import load_file
from heliograph.control.clock import Clock
from heliograph.errors import ClusterUnreachable
from heliograph.kafka.slot import Warm
from heliograph.operations.check import check, quick_check
from heliograph.replication.findings import Finding, Level, has_failed

_log = logging.getLogger("heliograph.check")
_AT_RUN_SECONDS = 15.0
_LOG_LEVELS = {
    Level.PASS: logging.DEBUG,
    Level.NOTE: logging.INFO,
    Level.WARN: logging.WARNING,
    Level.FAIL: logging.ERROR,
}

_ABOUT = """\
Asks both clusters of every flow in FILE, and the one that keeps what REST changes, and changes nothing: reach, authentication, cluster ids, broker versions, every
permission that is needed, replication.factor, size and timestamp limits, clocks, space, a MirrorMaker 2 that still runs,
and who else writes remote topics. `heliograph run` does the quick part of it at every start.

Exit code 0 if nothing failed, else 1.
"""


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "check",
        help="say what would keep a flow from running",
        description=_ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="FILE", help="the file that `heliograph run` will be given")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    settings, unknown = load_file(args.file), ""
    if not settings.flows:  # they all come by REST
        try:
            settings = load_effective(args.file)
        except ClusterUnreachable as error:
            unknown = str(error)
    with working("asking both sides of every flow"):
        findings = asyncio.run(check(settings, Clock().now_ms))
    if said := unknown or no_flows(settings):
        findings.append(Finding(Level.NOTE, "flows", said.removeprefix(f"{settings.path}: ")))
    if args.json:
        rows = [asdict(finding) for finding in findings]
        sys.stdout.write(
            json.dumps({"findings": rows, "warnings": list(settings.warnings), **_counts(findings)}, indent=2) + "\n"
        )
    else:
        sys.stderr.writelines(f"warning: {warning}\n" for warning in settings.warnings)
        sys.stdout.write(report(findings))
    return 1 if has_failed(findings) else 0


def report(findings: Sequence[Finding]) -> str:
    """One line for each finding, what to do below it, and the counts at the end."""
    lines = [line for finding in findings for line in _lines(finding)]
    counts = _counts(findings)
    lines.append(f"{counts['passed']} passed, {counts['warned']} warned, {counts['failed']} failed")
    return "\n".join(lines) + "\n"


def _lines(finding: Finding) -> list[str]:
    line = f"{finding.level}  {finding.subject}: {finding.sentence}"
    return [line, f"      -> {finding.advice}"] if finding.advice else [line]


def _counts(findings: Sequence[Finding]) -> dict[str, int]:
    found = [finding.level for finding in findings]
    return {
        "passed": found.count(Level.PASS),
        "warned": found.count(Level.WARN),
        "failed": found.count(Level.FAIL),
    }


async def check_at_start(settings: Settings, warm: Warm) -> list[Finding]:
    """The quick part, for `run`. It decides nothing: every FAIL has its own way to wait, or to refuse the start."""
    try:
        async with asyncio.timeout(_AT_RUN_SECONDS):
            return await quick_check(settings, Clock().now_ms, warm)
    except TimeoutError:
        _log.warning("the check at the start was not done within %g s: see `heliograph check FILE`", _AT_RUN_SECONDS)
    except Exception as error:  # noqa: BLE001  the outermost loop of a part: a check that breaks must not keep a run from starting
        _log.warning("the check at the start broke: %r", error)
    return []


def log_findings(findings: Sequence[Finding], said: Sequence[str] = ()) -> None:
    """What is not PASS, for the log of a run; what only repeats a sentence that was `said` is left out."""
    for finding in findings:
        if any(sentence in finding.sentence for sentence in said):
            continue
        advice = f" ({finding.advice})" if finding.advice else ""
        _log.log(_LOG_LEVELS[finding.level], "check: %s: %s%s", finding.subject, finding.sentence, advice)
