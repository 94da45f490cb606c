"""The command `heliograph`: which commands there are, and how an error becomes a sentence and an exit code.

Exit codes: 0 done, 1 could not be done (the sentence says why), 2 the file or the command line is wrong and nothing was touched,
130 interrupted, 141 nobody reads what it prints.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from importlib.metadata import version
from typing import Any

from heliograph.cli.interrupts import INTERRUPTED, NOBODY_READS, ending_soon, leave, nobody_reads
from heliograph.errors import ConfigError, HeliographError

COMMANDS = (
    "run",
    "status",
    "top",
    "lag",
    "canary",
    "events",
    "pause",
    "resume",
    "drain",
    "throttle",
    "topics",
    "reload",
    "check",
    "plan",
    "compare",
    "config",
    "translate",
    "audit",
    "init",
    "hand-back",
    "forget",
    "demo",
)
"""Each has a module, imported when it is called for: Spark and the Kafka library take two seconds to load."""
_MODULES = dict.fromkeys(("pause", "resume", "drain", "throttle", "topics", "reload"), "steer")
"""Where a command's module is not called as it is."""
_TIDY = "demo"
"""An interrupt ends its brokers and takes their files away, which may take longer. A run drains once it carries something."""

_ABOUT = """\
Mirrors Apache Kafka clusters: batches are forwarded as they are, every record exactly once, on Spark.

  heliograph run mm2.properties                 mirror all flows of a MirrorMaker 2 file until stopped
  heliograph run mm2.properties --dry-run       say what would be done, change nothing
  heliograph status mm2.properties              positions, lag and state of every lane, from any shell
  heliograph top mm2.properties                 the same, live, of a mirror that runs
  heliograph lag mm2.properties --watch         how far every lane is behind, in three ways
  heliograph canary mm2.properties              one event through each flow, and how long it took
  heliograph pause mm2.properties --flow A->B   stop a flow, a topic or a partition of a mirror that runs
  heliograph resume mm2.properties --flow A->B  let it go on, exactly where it was
  heliograph drain mm2.properties --flow A->B   carry it to where the source ends now, then stop it
  heliograph throttle mm2.properties --flow A->B --bytes-per-second 20M  limit it
  heliograph topics mm2.properties add payments --flow A->B  copy one more topic, or remove one
  heliograph reload mm2.properties              have a mirror that runs read its file again
  heliograph events mm2.properties              what a person must know: losses, resets, parked lanes
  heliograph check mm2.properties               what would keep a flow from running, before it is started
  heliograph plan mm2.properties                every change that is pending, with its reason; makes none
  heliograph compare mm2.properties             what differs between the two clusters of a flow
  heliograph config mm2.properties              every option, its value, where it came from
  heliograph translate mm2.properties --flow A->B --group g  where a group goes on, on the other cluster
  heliograph audit mm2.properties               what became of every source offset; the sums must close
  heliograph init mm2.properties                write a commented file for a new flow
  heliograph forget mm2.properties --flow A->B  remove what Heliograph wrote about a flow, and no data
  heliograph hand-back mm2.properties           give the flows back to MirrorMaker 2, which goes on exactly there
  heliograph demo                               two clusters on this machine, traffic, and the mirror between them
"""


def module_of(command: str) -> Any:
    return import_module(f"heliograph.cli.{_MODULES.get(command, command).replace('-', '_')}")


def main(arguments: list[str] | None = None) -> int:
    words = sys.argv[1:] if arguments is None else arguments
    try:
        with ending_soon():
            args = _parsed(words)
            if words[0] != _TIDY:
                return _ended(args)
        return _ended(args)
    except KeyboardInterrupt:  # also while the Kafka library, or Spark's, is still loaded
        if arguments is None:  # this process is the command, and ends with it
            leave()
        else:
            sys.stderr.write("heliograph: interrupted\n")
        return INTERRUPTED


def _parsed(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="heliograph", description=_ABOUT, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=f"heliograph {version('heliograph')}")
    commands = parser.add_subparsers(
        title="commands", metavar="COMMAND", description="`heliograph COMMAND --help` says more of each", required=True
    )
    if words and words[0] in COMMANDS:
        module_of(words[0]).add_parser(commands)
    else:
        for command in COMMANDS:
            commands.add_parser(command)
    return parser.parse_args(words)


def _ended(args: argparse.Namespace) -> int:
    """The command's exit code; what it could not do is a sentence."""
    try:
        _check_flow(getattr(args, "flow", None))
        code: int = args.run(args)
        return NOBODY_READS if nobody_reads() else code
    except BrokenPipeError:
        if nobody_reads():
            return NOBODY_READS
        raise
    except ConfigError as error:
        for fault in error.faults:
            sys.stderr.write(f"heliograph: {fault}\n")
        return 2
    except HeliographError as error:
        sys.stderr.write(f"heliograph: {error}\n")
        return 1


def _check_flow(name: str | None) -> None:
    """`--flow A->B` without quotes: the shell gives us `A-`, and writes what we print to a file called B."""
    if name is not None and name.endswith("-"):
        alias = name[:-1]
        raise ConfigError([f"--flow {name}: quote it, as '{alias}->B': the shell took >B for a redirect"])


if __name__ == "__main__":
    sys.exit(main())
