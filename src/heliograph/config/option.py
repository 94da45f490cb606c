"""One row of the option table, and the forms in which an option may stand in a file.

A form is the option's name with its prefixes: `{name}` at the top level, `{cluster}.{name}` for one alias,
`{flow}.{name}` for one flow (`A->B`). A row's scope lists the forms that take effect, weakest first: MirrorMaker 2's
prefix rules are nothing but these lists. What an option means to the engine is not known here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from heliograph.config.kinds import Kind

TOP = ("{name}",)
CLUSTER = ("{cluster}.{name}",)
FLOW = ("{name}", "{flow}.{name}")
FLOW_ONLY = ("{flow}.{name}",)
STORAGE = ("{cluster}.{name}", "{name}")
"""MirrorMaker 2's order for the Connect topics of its herders, on the flow's target: the top level wins."""
TOPIC_PLACE = "<name>"
CONSUMER = ("{flow}.{name}", "{cluster}.{name}", "{flow}.source.{name}")
"""MirrorMaker 2's order: what the source cluster's prefix says wins over the flow's own `consumer.`."""
BOOTSTRAP = ("{name}", "{cluster}.{name}")

# Security keys reach the three connections of a flow in different ways.
READER = (
    "{flow}.source.cluster.{name}",
    "{flow}.consumer.{name}",
    "{name}",
    "{cluster}.{name}",
    "{cluster}.consumer.{name}",
    "{flow}.source.consumer.{name}",
)
WRITER = ("{name}", "{cluster}.{name}", "{cluster}.producer.{name}", "{flow}.producer.override.{name}")
CONTROL = ("{name}", "{cluster}.{name}", "{cluster}.admin.{name}")
SECURITY = tuple(dict.fromkeys((*READER, *WRITER, *CONTROL)))

_SECRET = re.compile(
    r"password|passphrase|jaas|secret|token(?!\.endpoint)|(\.|access.?)key$|certificate\.chain", re.IGNORECASE
)


@dataclass(frozen=True)
class Option:
    """Name, type, default, meaning. A name that ends with `.*` stands for all names that begin so."""

    name: str
    kind: Kind
    default: str | None
    doc: str
    scope: tuple[str, ...]
    served: bool = True
    instead: str = ""
    """Not served: what happens instead, as the end of a sentence."""
    since: str = "2.4.0"
    """The first MirrorMaker 2 with this option, or `Heliograph` and its version."""

    @property
    def is_family(self) -> bool:
        return self.name.endswith(".*")

    @property
    def is_per_topic(self) -> bool:
        """The name holds a topic's: `topic.<name>.start.from`."""
        return TOPIC_PLACE in self.name

    def topic_in(self, name: str) -> str:
        """The topic that stands in such a name; nothing if it is another option's."""
        before, _, after = self.name.partition(TOPIC_PLACE)
        return name[len(before) : -len(after)] if name.startswith(before) and name.endswith(after) else ""

    @property
    def type(self) -> str:
        return self.kind.word

    @property
    def allowed(self) -> str:
        return self.kind.expected


def is_secret(name: str) -> bool:
    """Whether an option's value must not be shown."""
    return _SECRET.search(name) is not None
