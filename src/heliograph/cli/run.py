"""`heliograph run FILE`: mirror all flows of a file."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import re
import signal
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import gettempdir
from typing import Any

from heliograph.assembly import desk_for
from heliograph.cli.check import check_at_start, log_findings
from heliograph.cli.logs import add_log_options, set_up_logs
from heliograph.cli.questions import confirmed
from heliograph.cli.who import user
from heliograph.cli.words import count, size
from heliograph.config.flows import Settings
from heliograph.config.load import load_file
from heliograph.control.outcome import Summary
from heliograph.control.planner import FlowPlan
from heliograph.control.replicate import Replicator, RunOptions
from heliograph.control.security import read_stores
from heliograph.control.steering import Steering, with_state
from heliograph.embedded.java import find_java
from heliograph.errors import BrokerRefused, ClusterUnreachable, ConfigError, HeliographError, SetupError
from heliograph.replication.findings import Finding, Level, has_failed
from heliograph.replication.other_writers import mirror_maker_finding
from heliograph.replication.topic_plan import AddPartitions, CreateTopic, Unnameable

_log = logging.getLogger("heliograph.run")
_PROGRESS_SECONDS = 10
_STANDBY_SECONDS = 300
_RECALL_SECONDS = 3.0
_PREFIX = re.compile(r"[A-Za-z0-9._-]+")

_ABOUT = """\
Mirrors every enabled flow of FILE, a MirrorMaker 2 driver file, in one process:

  clusters = A, B
  A.bootstrap.servers = host1:9092
  B.bootstrap.servers = host2:9092
  A->B.enabled = true
  A->B.topics = orders, payments-.*

Save FILE while it runs, or send SIGHUP, and it is read again: topics, filters, intervals, limits and flows change, and lanes
that did not change notice nothing. A file that is wrong is not used.

Ctrl-C or SIGTERM drains and ends. Whatever is killed, start the command again: it continues exactly where it was.

One run carries a flow at a time. A second run of the same file says who carries it, stands by, and takes over when that one is
gone; --standby says that this is what you want.
"""


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "run",
        help="mirror all flows of a file",
        description=_ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="FILE", help="a MirrorMaker 2 driver file")
    parser.add_argument(
        "--master", default="", help="where Spark runs: local[n,4], spark://…, yarn, k8s://… (default: this machine)"
    )
    parser.add_argument(
        "--clusters", nargs="+", default=[], metavar="ALIAS", help="run only the flows into these clusters"
    )
    parser.add_argument(
        "--until-caught-up",
        action="store_true",
        help="copy what is there at the start, up to the last stable offset, print a summary and end",
    )
    parser.add_argument(
        "--standby",
        action="store_true",
        help="wait, warm, while another run carries the flows, and take over when it is gone; also while clusters are away",
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would be done and change nothing")
    parser.add_argument(
        "--reset",
        action="store_true",
        help="begin all lanes anew where start.from says, whatever is stored; what is there already is copied again",
    )
    parser.add_argument("--yes", action="store_true", help="do not ask before a --reset")
    parser.add_argument(
        "--trial",
        default="",
        metavar="PREFIX",
        help="copy beside another mirror: remote topics have PREFIX in front, and a ledger of their own",
    )
    parser.add_argument(
        "--spark-log",
        type=Path,
        default=Path(gettempdir()) / f"heliograph-{os.getuid()}-{os.getpid()}-spark.log",
        help="where Spark's JVM writes its own messages (default: heliograph-USER-PROCESS-spark.log, by their numbers, in "
        "the temporary directory)",
    )
    add_log_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    settings = read_stores(load_file(args.file))
    _check_aliases(settings, args.clusters)
    set_up_logs(args.log_level, args.log_format)
    for warning in settings.warnings:
        _log.warning("%s", warning)
    _check_trial(args.trial)
    _check_standby(args)
    question = "Begin all lanes anew? Records that are on the target already are copied again."
    if args.reset and not args.dry_run and not confirmed(question, args.yes):
        return 1
    options = RunOptions(
        master=args.master,
        clusters=tuple(args.clusters),
        until_caught_up=args.until_caught_up,
        spark_log=args.spark_log,
        reset=args.reset,
        trial=args.trial,
        standby=args.standby,
        who=user(),
    )
    if not args.dry_run:
        _check_java(os.environ)
    return asyncio.run(_run(settings, options, args.dry_run))


def _check_standby(args: argparse.Namespace) -> None:
    others = {"--until-caught-up": args.until_caught_up, "--reset": args.reset, "--dry-run": args.dry_run}
    unfit = [name for name, given in others.items() if given]
    if args.standby and unfit:
        raise ConfigError([f"--standby waits for another run to be gone; it cannot be given with {', '.join(unfit)}"])


def _check_java(environ: Mapping[str, str]) -> None:
    """Spark says of a JAVA_HOME that is wrong only that its gateway has gone."""
    home = environ.get("JAVA_HOME")
    if home and not os.access(Path(home) / "bin" / "java", os.X_OK):
        find_java(environ)


def _check_trial(prefix: str) -> None:
    if prefix and not _PREFIX.fullmatch(prefix):
        raise ConfigError([f"--trial {prefix}: expected letters, digits, '.', '_' and '-', as in --trial __trial."])


def _check_aliases(settings: Settings, aliases: list[str]) -> None:
    unknown = [alias for alias in aliases if alias not in settings.clusters]
    if unknown:
        known = ", ".join(sorted(settings.clusters))
        raise ConfigError([f"--clusters {' '.join(unknown)}: no such alias; the file has {known}"])
    targets = {flow.flow.target for flow in settings.flows}
    if aliases and not targets & set(aliases):
        raise ConfigError(
            [f"--clusters {' '.join(aliases)}: no enabled flow goes there; flows go to {', '.join(sorted(targets))}"]
        )


async def _run(settings: Settings, options: RunOptions, dry_run: bool) -> int:
    steering = Steering(settings.path, with_state(settings))
    replicator = Replicator(await _amended(settings, steering), options, steering)
    loop = asyncio.get_running_loop()
    spark = None
    if not dry_run:
        spark = asyncio.create_task(replicator.engine.start())
        spark.add_done_callback(lambda task: task.cancelled() or task.exception())
    try:
        plans, findings = await _plan_and_check(replicator, dry_run)
        _announce(plans, replicator)
        if dry_run or options.until_caught_up:
            _refuse_unreachable(replicator)
        if dry_run:
            for sentence in await replicator.carriers():
                sys.stdout.write(f"{sentence}\n")
            for sentence in await replicator.certificates.look_once():
                _log.warning("%s", sentence)
            return 1 if has_failed(findings) else 0
    except BaseException:
        if spark is not None:
            spark.cancel()
            await asyncio.gather(spark, return_exceptions=True)
            await replicator.engine.stop()
            replicator.close()
        raise
    finally:
        if dry_run:
            replicator.close()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, _asked_to_stop, replicator)
    loop.add_signal_handler(signal.SIGHUP, _hung_up, replicator, _has_terminal())
    seen = () if options.until_caught_up else (desk_for(replicator).keep,)
    summary = await replicator.run(plans, _Progress(replicator).tick, *seen)
    return _conclude(summary, options.until_caught_up)


async def _amended(settings: Settings, steering: Steering) -> Settings:
    """The file with what was changed by REST before; a cluster that does not answer now is asked again while it runs."""
    try:
        async with asyncio.timeout(_RECALL_SECONDS):
            await steering.recall()
    except (HeliographError, TimeoutError) as error:
        _log.debug("what REST changed is not known yet: %s", error)
        return settings
    return await steering.settings() if steering.amended.rows else settings


async def _plan_and_check(replicator: Replicator, dry_run: bool) -> tuple[list[FlowPlan], list[Finding]]:
    """Both at once. A refused start says one sentence; a dry run, which is there to tell, also what else fails."""
    flows = tuple(watch.settings for watch in replicator.watches)
    checking = asyncio.create_task(check_at_start(replace(replicator.settings, flows=flows), replicator.warm))
    try:
        plans = await replicator.plan()
    except BaseException as error:
        if dry_run:
            log_findings([finding for finding in await checking if finding.level is Level.FAIL], [str(error)])
        checking.cancel()
        if isinstance(error, BrokerRefused) and not dry_run:
            file = replicator.settings.path
            raise SetupError(f"{error}; `heliograph check {file}` says what else is missing") from error
        raise
    findings = [*await checking, *(_lookalikes(plan) for plan in plans)]
    log_findings(findings, [watch.trouble for watch in replicator.watches if watch.trouble])
    return plans, findings


def _lookalikes(plan: FlowPlan) -> Finding:
    """A MirrorMaker 2 that is known to carry a flow refuses its plan; here is one that may."""
    flow = plan.settings.flow
    return mirror_maker_finding((flow.source, flow.target), "", plan.lookalikes)


def _refuse_unreachable(replicator: Replicator) -> None:
    troubles = [watch.trouble for watch in replicator.watches if watch.trouble]
    if troubles:
        raise ClusterUnreachable("; ".join(troubles))


def _asked_to_stop(replicator: Replicator) -> None:
    _log.info("draining")
    replicator.stop()


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


def _hung_up(replicator: Replicator, had_terminal: bool) -> None:
    """SIGHUP asks for the file to be read again; it is also what comes when the terminal of a run is closed."""
    if had_terminal and not _has_terminal():
        _asked_to_stop(replicator)
    else:
        _log.info("reading %s again", replicator.file.path)
        replicator.file.ask()


def _announce(plans: list[FlowPlan], replicator: Replicator) -> None:
    lines = []
    for plan in plans:
        records = sum(max(0, end - plan.starts.get(name, 0)) for name, end in plan.ends.items())
        total = sum(plan.bytes_by_topic.values())
        lines.append(
            f"flow {plan.name}: {count(len(plan.topics), 'topic')}, {count(len(plan.ends), 'partition')}, "
            f"{count(records, 'record')}, {size(total)} on the source"
        )
        lines += [f"  {_action(action)}" for action in plan.actions]
        lines += _beginnings(plan, replicator.options)
    for watch in replicator.watches:
        if watch.trouble:
            lines.append(f"flow {watch.name}: waiting: {watch.trouble}")
    engine = replicator.engine
    lines.append(f"master {engine.master}, {count(replicator.settings.engine.slots, 'slot')}")
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


def _beginnings(plan: FlowPlan, options: RunOptions) -> list[str]:
    """What another mirror left, and what becomes of it."""
    if options.reset:
        return [f"  every lane begins anew (--reset) at {plan.settings.start_from or plan.settings.start}"]
    stored = plan.progress.stored.values()
    kept = sorted({f"{entry.connector} in {entry.kept_in}" for entry in stored})
    if not kept:
        return []
    return [f"  MirrorMaker 2 stored progress of {count(len(stored), 'partition')} ({', '.join(kept)}): taken over"]


def _action(action: object) -> str:
    match action:
        case CreateTopic():
            return f"create {action.name}: {count(action.partitions, 'partition')} ({action.reason})"
        case AddPartitions():
            return f"grow {action.name} from {action.have} to {action.want} partitions ({action.reason})"
        case Unnameable():
            return f"leave out {action.topic}: {action.reason}"
    return str(action)


class _Progress:
    """A line in the log every ten seconds."""

    def __init__(self, replicator: Replicator) -> None:
        self._replicator = replicator
        self._seconds = 0

    def tick(self) -> None:
        board = self._replicator.board
        records, byte_rate = board.rates(self._replicator.clock.monotonic())
        self._seconds += 1
        if self._seconds % _PROGRESS_SECONDS:
            return
        waiting = [watch.turns.sentence() for watch in self._replicator.watches if watch.standing_by]
        for sentence in waiting if self._seconds % _STANDBY_SECONDS == 0 else ():
            _log.info("%s", sentence)
        if waiting and not board.lanes:
            return
        if not board.lanes and not self._replicator.engine.sessions:
            _log.info("Spark is starting at %s, for %d s now", self._replicator.engine.master, self._seconds)
            return
        lag = sum(max(0, view.row["source_end"] - view.row["position"]) for view in board.lanes.values())
        idle = [view for view in board.lanes.values() if view.row["state"] not in ("following", "done")]
        _log.info(
            "%s: %s records/s, %s/s, %s behind%s",
            count(len(board.lanes), "lane"),
            count(records),
            size(byte_rate),
            count(lag, "record"),
            f"; {count(len(idle), 'lane')} not following, first: {idle[0].row['reason']}" if idle else "",
        )


def _conclude(summary: Summary, until_caught_up: bool) -> int:
    sys.stdout.write(
        f"copied {count(summary.records, 'record')}, {size(summary.bytes)}, {count(summary.lanes, 'lane')}, "
        f"in {summary.seconds:.1f} s\n"
    )
    for key, reason in summary.unfinished:
        sys.stdout.write(f"  not finished: {key}: {reason}\n")
    return 1 if until_caught_up and summary.unfinished else 0
