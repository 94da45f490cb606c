"""Options that name remote topics otherwise than MirrorMaker 2's policies do."""

from __future__ import annotations

from heliograph.config.kinds import Read, Text
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

OLD_NAMES = (
    ("topics.whitelist", "topics"),
    ("topics.blacklist", "topics.exclude"),
    ("groups.whitelist", "groups"),
    ("groups.blacklist", "groups.exclude"),
    ("config.properties.blacklist", "config.properties.exclude"),
    ("config.property.blacklist", "config.properties.exclude"),
    ("refresh.topics.enable", "refresh.topics.enabled"),
    ("refresh.groups.enable", "refresh.groups.enabled"),
    ("sync.topic.configs.enable", "sync.topic.configs.enabled"),
    ("sync.topic.acls.enable", "sync.topic.acls.enabled"),
    ("emit.checkpoints.enable", "emit.checkpoints.enabled"),
    ("emit.heartbeats.enable", "emit.heartbeats.enabled"),
)
"""What options were called in MirrorMaker 2 before 4.0, or in its first documents."""

OLD_ROWS = tuple(
    Option(old, Text(), "", f"Old name of {new}: understood, with a warning.", FLOW) for old, new in OLD_NAMES
)

PLUGIN_ROWS = (
    Option(
        "plugin.*",
        Text(),
        "",
        "Options of your own classes, which get them with the flow's other options.",
        FLOW,
        since=OURS,
    ),
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
