"""A new file for `heliograph init`: MirrorMaker 2's lines for one flow, each with a word about it.

Text out of answers; that the text is valid is seen by loading it. Options not named here keep their defaults.
"""

from __future__ import annotations

from dataclasses import dataclass

_SPECIAL = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


@dataclass(frozen=True)
class Answers:
    """What a person says about a new flow. `topics` are names or regular expressions split by commas."""

    source_alias: str = "A"
    source_bootstrap: str = ""
    target_alias: str = "B"
    target_bootstrap: str = ""
    topics: str = ".*"
    replication_factor: int = -1
    both_ways: bool = False


_TEMPLATE = """\
# Mirrors {source_alias} to {target_alias}. `heliograph check FILE` says what is missing, `heliograph run FILE` starts it.
# Every option, with its meaning and default: `heliograph config`. MirrorMaker 2 reads this file too.

# Names of the clusters. They become part of topic names on the other side: {source_alias}.orders
clusters = {source_alias}, {target_alias}

# Where each cluster is first reached: host:port, several split by commas.
{source_alias}.bootstrap.servers = {source_bootstrap}
{target_alias}.bootstrap.servers = {target_bootstrap}

# How to log in, for each cluster on its own. Without these lines: PLAINTEXT.
#{source_alias}.security.protocol = SASL_SSL
#{source_alias}.sasl.mechanism = SCRAM-SHA-512
#{source_alias}.sasl.jaas.config = org.apache.kafka.common.security.scram.ScramLoginModule required username="..." password="...";
#{source_alias}.ssl.truststore.type = PEM
#{source_alias}.ssl.truststore.location = ca.pem

# Which way records go.
{source_alias}->{target_alias}.enabled = true
{target_alias}->{source_alias}.enabled = {both_ways}

# Topics to mirror: names or Java regular expressions that match the whole name, split by commas.
# Internal topics, and what came from the other side, are never taken.
{source_alias}->{target_alias}.topics = {topics}
{back}
# Names to leave out; this wins over topics.
#{source_alias}->{target_alias}.topics.exclude = .*\\\\.replica, test-.*

# Replicas of new remote topics; -1: as the target's brokers have it. At most as many as there are brokers.
replication.factor = {replication_factor}

# The same for the heartbeats topics, which a run makes on both clusters, and for the offset-syncs topic, on {source_alias}.
# {source_alias} must not be written to: source.readonly = true
heartbeats.topic.replication.factor = {replication_factor}
offset-syncs.topic.replication.factor = {replication_factor}

# The same for the checkpoints topic on the target: where the source's consumer groups go on there.
checkpoints.topic.replication.factor = {replication_factor}

# Where a topic begins that was never copied: earliest or latest.
#{source_alias}.consumer.auto.offset.reset = earliest

# read_committed leaves aborted records out; MirrorMaker 2's default, read_uncommitted, copies them.
#{source_alias}.consumer.isolation.level = read_committed

# Keep topic names as they are, instead of {source_alias}.orders. Only where records go one way.
#replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy
"""


def render(answers: Answers) -> str:
    """The file's text. Values are escaped as Java's grammar wants it: a regular expression keeps its backslashes."""
    topics = _escaped(answers.topics)
    back = f"{answers.target_alias}->{answers.source_alias}.topics = {topics}\n" if answers.both_ways else ""
    return _TEMPLATE.format(
        source_alias=answers.source_alias,
        target_alias=answers.target_alias,
        source_bootstrap=_escaped(answers.source_bootstrap),
        target_bootstrap=_escaped(answers.target_bootstrap),
        both_ways="true" if answers.both_ways else "false",
        topics=topics,
        back=back,
        replication_factor=answers.replication_factor,
    )


def _escaped(text: str) -> str:
    return "".join(_SPECIAL.get(character, character) for character in text.strip())
