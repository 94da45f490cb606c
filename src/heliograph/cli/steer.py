"""`heliograph pause | resume | drain | throttle | topics | reload`: a running mirror told from the shell what REST can tell it."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, urlencode

from heliograph.cli.remote import Remote, add_remote_options
from heliograph.cli.words import count, size
from heliograph.errors import ConfigError

_TOPIC = re.compile(r"[A-Za-z0-9._-]+")
_UNITS = {"": 1, "k": 1_000, "M": 1_000_000, "G": 1_000_000_000}
_KEPT = "The reason is kept and shown wherever the change is; the change survives a restart."
_HOLDS = {
    "pause": ("stop a flow, a topic or a partition at once", f"Other lanes notice nothing. {_KEPT}"),
    "resume": ("let go on what was paused or drained", "It goes on exactly where it was."),
    "drain": (
        "carry a flow, a topic or a partition to its end, then stop it",
        f"Up to where the source ends at this moment; what comes later waits until `heliograph resume`. {_KEPT}",
    ),
}


def add_parser(commands: Any) -> None:
    for verb, (short, about) in _HOLDS.items():
        parser = _parser(commands, verb, short, about)
        _add_flow(parser)
        parser.add_argument("--topic", default="", help="one source topic of it")
        parser.add_argument("--partition", type=int, default=-1, metavar="N", help="one partition of that topic")
        parser.set_defaults(run=_hold, verb=verb)
    limit = _parser(commands, "throttle", "limit the bytes per second of a flow or a topic", _KEPT)
    _add_flow(limit)
    limit.add_argument("--topic", default="", help="one source topic of it")
    limit.add_argument(
        "--bytes-per-second", required=True, type=_bytes, metavar="N", help="such as 500k, 20M or 1G; 0: no limit"
    )
    limit.set_defaults(run=_throttle)
    topics = _parser(commands, "topics", "add a topic to a running flow, or take one out", _KEPT)
    topics.add_argument("what", choices=("add", "remove"), help="what to do")
    topics.add_argument("topic", metavar="TOPIC", help="a topic of the source, by its very name")
    _add_flow(topics)
    topics.set_defaults(run=_topics)
    reload = _parser(
        commands, "reload", "have the file read again", "As SIGHUP does. A file that is wrong is not used."
    )
    _add_reason(reload)
    reload.set_defaults(run=_reload)


def _parser(commands: Any, name: str, short: str, about: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=short, description=f"{short[0].upper()}{short[1:]}. {about}"
    )
    add_remote_options(parser)
    parser.add_argument("--dry-run", action="store_true", help="check it and change nothing")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _add_flow(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--flow", required=True, metavar="A->B", help="the flow")
    _add_reason(parser)


def _add_reason(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--reason", default="", help="why: shown with the change, and kept as an event")


def _bytes(text: str) -> int:
    number, unit = (text[:-1], text[-1]) if text[-1:] in ("k", "M", "G") else (text, "")
    if not number.isdigit():
        raise argparse.ArgumentTypeError(f"{text}: expected a whole number, as in 20M; units are k, M and G")
    return int(number) * _UNITS[unit]


def _hold(args: argparse.Namespace) -> int:
    if args.partition >= 0 and not args.topic:
        raise ConfigError(["--partition needs --topic"])
    body = {"topic": args.topic, "partition": args.partition, "reason": args.reason, "dry_run": args.dry_run}
    answer = Remote(args).ask("POST", f"/flows/{args.flow}/{args.verb}", body)
    return _say(args, answer, _held_sentence)


def _held_sentence(args: argparse.Namespace, answer: dict[str, Any]) -> str:
    if args.verb == "resume":
        subjects = answer["resumed"]
        return f"resumed {', '.join(subjects)}" if subjects else "nothing was held"
    subject = "/".join(
        part for part in (args.flow, args.topic, str(args.partition) if args.partition >= 0 else "") if part
    )
    done = {"pause": "paused", "drain": "drains"}[args.verb]
    return f"{subject}: {count(answer['lanes'], 'lane')} {done}"


def _throttle(args: argparse.Namespace) -> int:
    body = {
        "bytes_per_second": args.bytes_per_second,
        "topic": args.topic,
        "reason": args.reason,
        "dry_run": args.dry_run,
    }
    answer = Remote(args).ask("PUT", f"/flows/{args.flow}/throttle", body)
    limit = f"{size(args.bytes_per_second)}/s" if args.bytes_per_second else "no limit"
    return _say(args, answer, lambda _, __: f"{args.flow}{'/' if args.topic else ''}{args.topic}: {limit}")


def _topics(args: argparse.Namespace) -> int:
    if not _TOPIC.fullmatch(args.topic):
        advice = "it takes one topic by its name; patterns belong in the file's topics"
        raise ConfigError([f"topics {args.what} {args.topic}: {advice}"])
    remote = Remote(args)
    if args.what == "add":
        body = {"topic": args.topic, "reason": args.reason, "dry_run": args.dry_run}
        answer = remote.ask("POST", f"/flows/{args.flow}/topics", body)
    else:
        answer = remote.ask("DELETE", f"/flows/{args.flow}/topics/{args.topic}?{_query(args)}")
    return _say(args, answer, _topic_sentence)


def _topic_sentence(args: argparse.Namespace, answer: dict[str, Any]) -> str:
    if args.what == "remove":
        return f"{args.flow}: {args.topic} is copied no more; what was copied stays"
    if answer["exists"] is False:
        there = f"there is no topic {args.topic} on {answer['source']}"
        return f"{args.flow}: {there}; it will be copied once it exists"
    return f"{args.flow}: {args.topic} is copied from now on"


def _reload(args: argparse.Namespace) -> int:
    answer = Remote(args).ask("POST", f"/reload?{_query(args)}", {})
    return _say(args, answer, lambda _, __: f"{args.file} was read again")


def _query(args: argparse.Namespace) -> str:
    return urlencode({"reason": args.reason, "dry_run": str(args.dry_run).lower()}, quote_via=quote)


def _say(
    args: argparse.Namespace, answer: dict[str, Any], sentence: Callable[[argparse.Namespace, dict[str, Any]], str]
) -> int:
    if args.json:
        sys.stdout.write(json.dumps(answer, indent=2) + "\n")
    else:
        prefix = "would be done, nothing was changed: " if args.dry_run else ""
        sys.stdout.write(f"{prefix}{sentence(args, answer)}\n")
    return 0
