"""`heliograph init [FILE]`: write a commented file for one flow, from flags or after asking. Touches no cluster."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from heliograph.config.load import load
from heliograph.config.template import Answers, render
from heliograph.errors import ConfigError, SetupError

_NEEDED = ("source_bootstrap", "target_bootstrap")
_ANY_ADDRESS = "host:9092"
_OTHER_ALIAS = {"source_alias": "target_alias", "target_alias": "source_alias"}
_QUESTIONS = (
    ("source_alias", "Name of the cluster to read from"),
    ("source_bootstrap", "Its address, host:port"),
    ("target_alias", "Name of the cluster to write to"),
    ("target_bootstrap", "Its address, host:port"),
    ("topics", "Topics to mirror, names or regular expressions split by commas"),
)


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "init",
        help="write a commented file for a new flow",
        description="Writes a commented MirrorMaker 2 file for one flow. What no flag says is asked on a terminal.",
    )
    parser.add_argument("file", nargs="?", metavar="FILE", default="mm2.properties", help="default: %(default)s")
    parser.add_argument("--source-alias", metavar="ALIAS", help="name of the cluster to read from (default: A)")
    parser.add_argument("--source-bootstrap", metavar="HOST:PORT", help="where the source is first reached")
    parser.add_argument("--target-alias", metavar="ALIAS", help="name of the cluster to write to (default: B)")
    parser.add_argument("--target-bootstrap", metavar="HOST:PORT", help="where the target is first reached")
    parser.add_argument(
        "--topics", metavar="LIST", help="names or Java regular expressions, split by commas (default: .*)"
    )
    parser.add_argument(
        "--replication-factor", type=int, metavar="N", help="of new remote topics (default: -1, as the target has it)"
    )
    parser.add_argument("--both-ways", action="store_true", help="mirror back too")
    parser.add_argument("--force", action="store_true", help="overwrite FILE if it exists")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    path = Path(args.file)
    if path.exists() and not args.force:
        raise SetupError(f"{path} exists already: name another file, or say --force to overwrite it")
    said = {
        name: value for name, value in vars(args).items() if name in Answers.__dataclass_fields__ and value is not None
    }
    if sys.stdin.isatty():
        try:
            said = _asked(said, input, sys.stderr.write)
        except EOFError as end:
            raise SetupError("nothing was written: the answers ended before the last question") from end
    missing = [f"--{name.replace('_', '-')}" for name in _NEEDED if not said.get(name)]
    if missing:
        raise ConfigError([f"{' and '.join(missing)}: needed where nobody can be asked (no terminal)"])
    text = render(Answers(**said))
    load(text, str(path))
    _write(path, text, args.force)
    sys.stdout.write(f"wrote {path}: next, `heliograph check {path}`\n")
    return 0


def _asked(said: dict[str, Any], ask: Callable[[str], str], tell: Callable[[str], Any]) -> dict[str, Any]:
    """The answers with those that a person gave; an empty line takes the default. One that is wrong is asked for again.

    ConfigError if what flags said is wrong: nobody is asked then.
    """
    answers = {name: value for name, value in said.items() if value != ""}
    if faults := _faults(answers):
        raise ConfigError(faults)
    for name, question in _QUESTIONS:
        default = _default(name, answers)
        while name not in answers:
            given = ask(f"{question} [{default}]: " if default else f"{question}: ").strip() or default
            if not given:
                continue
            if faults := _faults(answers | {name: given}):
                tell(f"{faults[0]}\n")
            else:
                answers[name] = given
    return answers


def _default(name: str, answers: dict[str, Any]) -> str:
    """Two clusters never have the same name by default."""
    default: str = getattr(Answers, name)
    other = _OTHER_ALIAS.get(name, name)
    return getattr(Answers, other) if answers.get(other) == default else default


def _faults(answers: dict[str, Any]) -> list[str]:
    """What is wrong with these answers, whatever the missing ones will be."""
    whole = {name: _default(name, answers) or _ANY_ADDRESS for name, _ in _QUESTIONS} | answers
    try:
        load(render(Answers(**whole)), "")
    except ConfigError as error:
        return [fault.partition(": ")[2] for fault in error.faults]  # without the line of a file that is not there yet
    return []


def _write(path: Path, text: str, force: bool) -> None:
    """All or nothing, in the encoding that Java reads; without --force nobody's file is replaced, not even a new one's."""
    content = text.encode("latin-1", "backslashreplace")
    flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if force else os.O_EXCL)
    try:
        with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
            file.write(content)
    except OSError as error:
        raise SetupError(f"{path} cannot be written: {error.strerror}") from error
