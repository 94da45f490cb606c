"""Options that name remote topics otherwise than MirrorMaker 2's policies do."""

from __future__ import annotations

from heliograph.config.kinds import Read
from heliograph.config.option import FLOW, Option
from heliograph.config.tables.engine import OURS
from heliograph.replication.renames import (
    FORMAT_EXPECTED,
    PAIRS_EXPECTED,
    REGEX_EXPECTED,
    parse_format,
    parse_pairs,
    parse_rewrite,
)

ROWS = (
    Option(
        "topic.rename.pairs",
        Read(parse_pairs, PAIRS_EXPECTED, "pairs"),
        "",
        "Topics with a remote name of their own: orders -> sales.orders, clicks -> web. Wins over topic.rename.regex.",
        FLOW,
        since=OURS,
    ),
    Option(
        "topic.rename.regex",
        Read(parse_rewrite, REGEX_EXPECTED, "rewrite"),
        "",
        r"Remote names of the topics that match: (.+)\.prod -> prod.$1. Wins over topic.rename.format.",
        FLOW,
        since=OURS,
    ),
    Option(
        "topic.rename.format",
        Read(parse_format, FORMAT_EXPECTED, "format"),
        "",
        "Remote names of all other topics, as in Confluent Replicator: ${topic}.copy; ${topic} keeps names. Empty: "
        "replication.policy.class names them.",
        FLOW,
        since=OURS,
    ),
)
