"""A real Kafka Connect worker and a run of Heliograph side by side: asked the same, their answers compared field by field."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.support.clusters import TwoClusters
from tests.support.connect import mirror_source
from tests.support.groups import checkpoints
from tests.support.heliograph_run import HeliographRun
from tests.support.reading import messages
from tests.support.rest import Rest
from tests.support.topics import ANSWER_SECONDS, admin, ends
from tests.support.waiting import wait_until

BUSY = ("a rebalance is expected", "stale configuration", "rebalance is in process")
SHAPES = {"worker_id", "version", "commit", "kafka_cluster_id", "trace"}
"""Fields whose values must differ; both must have them, with a value of the same type."""


@dataclass
class Side:
    """A worker, and the alias under which it copies, so that both write topics of their own."""

    find: Callable[[], Rest]
    alias: str
    clusters: TwoClusters
    topic: str
    name: str
    """What its connector `orders` is really called: Heliograph refuses a flow that a connector of the same name copies."""

    @property
    def rest(self) -> Rest:
        return self.find()

    def config(self, **changed: str | None) -> dict[str, Any]:
        base = mirror_source((self.alias, self.clusters.a.bootstrap), ("B", self.clusters.b.bootstrap), self.topic)
        fields = {**base, **{name.replace("_", "."): value for name, value in changed.items()}}
        return {name: value for name, value in fields.items() if value is not None}

    def copied(self) -> int:
        return sum(ends(self.clusters.b.bootstrap, f"{self.alias}.{self.topic}").values())

    def beats(self) -> int:
        """How many heartbeats of this side's are on the target."""
        found = messages(self.clusters.b.bootstrap, "heartbeats") if self._has("heartbeats") else []
        return sum(self.alias.encode() in message.key() for message in found)

    def checkpointed(self, group: str) -> dict[int, int]:
        """By partition: what the newest checkpoint of a group says that it had read on the source."""
        topic = f"{self.alias}.checkpoints.internal"
        found = checkpoints(self.clusters.b.bootstrap, topic) if self._has(topic) else []
        return {row.partition: row.upstream for row in found if row.group == group}

    def _has(self, topic: str) -> bool:
        return topic in admin(self.clusters.b.bootstrap).list_topics(timeout=ANSWER_SECONDS).topics

    def tells_topics(self, name: str = "") -> bool:
        """Connect notes what a connector writes in a topic of its own, some time after it is written."""
        name = name or self.name
        return bool(self.rest.get(f"/connectors/{name}/topics")[name]["topics"])

    def state(self, name: str = "") -> str:
        status, body = self.rest.ask("GET", f"/connectors/{name or self.name}/status")
        if status != 200:
            return ""
        return " ".join([body["connector"]["state"], *(task["state"] for task in body["tasks"])])

    def wait_for(self, state: str, name: str = "") -> None:
        wait_until(lambda: self.state(name) == state, f"{name} of {self.alias} is {state}", every=0.2)


@dataclass
class Pair:
    """Connect and Heliograph."""

    connect: Side
    ours: Side
    lives: list[HeliographRun]
    """Of our run: the last one runs now."""
    differences: list[str] = field(default_factory=list)
    asked: set[tuple[str, str, bool]] = field(default_factory=set)
    """Methods and paths, and whether the answer was what was wanted."""

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.connect, self.ours

    def ask(self, method: str, path: str, body: Any = None, instead: int = 0, **sent: Any) -> None:
        """`body` may be made for each side; `instead` is our status where Connect answers 500."""
        answers = []
        for side in self.sides:
            data = body(side) if callable(body) else body
            answers.append(settled(side.rest, method, path.replace("orders", side.name), data, **sent))
        (theirs, said), (ours, we_said) = answers
        self.asked.add((method, path.partition("?")[0], ours < 400))
        label = f"{method} {path} {sent.get('raw', '')!r}"
        if instead:
            is_ours = isinstance(we_said, dict) and we_said.get("error_code") == ours and we_said.get("message")
            if (theirs, ours) != (500, instead) or not is_ours or "Exception" in we_said["message"]:
                self.differences.append(f"{label}: expected 500 and {instead}: {answers}")
        elif theirs != ours:
            self.differences.append(f"{label}: {answers}")
        else:
            plain = self._plain(said, self.connect), self._plain(we_said, self.ours)
            self.differences += compare(*plain, label)

    def _plain(self, body: Any, side: Side) -> Any:
        text = json.dumps(body).replace(side.name, "orders").replace(side.alias, "A")
        found = json.loads(text) if body != "" else ""
        # In Connect names and offsets come in the order of a hash table.
        if isinstance(found, dict) and "offsets" in found:
            found["offsets"].sort(key=lambda row: json.dumps(row, sort_keys=True))
        elif isinstance(found, list) and all(isinstance(one, str) for one in found):
            found.sort()
        return found

    def wait_for(self, state: str, name: str = "") -> None:
        assert self.differences == [], "\n".join(self.differences)
        for side in self.sides:
            side.wait_for(state, name)

    def wait_each(self, holds: Callable[[Side], bool], what: str) -> None:
        for side in self.sides:
            wait_until(lambda side=side: holds(side), f"{side.alias}: {what}", every=0.2)

    def probe(self, path: str) -> None:
        """What HTTP asks of any path: HEAD has the status and kind of GET and no body, OPTIONS says what is taken."""
        seen = []
        for side in self.sides:
            where = path.replace("orders", side.name)
            head, options, got = (side.rest.whole(method, where) for method in ("HEAD", "OPTIONS", "GET"))
            assert (head[0], head[2]) == (got[0], b""), (side.alias, path)
            words = [sorted(re.findall("[A-Z]+", text)) for text in (options[1].get("Allow", ""), options[2].decode())]
            # Jersey does not say what its bodies for paths without a route are.
            kinds = [answer[1].get_content_type() for answer in (got, options) if answer[0] < 400]
            seen.append((head[0], options[0], *words, *kinds))
        if seen[0] != seen[1]:
            self.differences.append(f"HEAD and OPTIONS {path}: {seen[0]} / {seen[1]}")

    def wait_copied(self, records: int) -> None:
        for side in self.sides:
            wait_until(lambda side=side: side.copied() == records, f"{side.alias}: {records} are copied", every=0.2)


def settled(rest: Rest, method: str, path: str, data: Any, **sent: Any) -> tuple[int, Any]:
    """The answer, once the worker is not just sharing out its work anew."""
    found: list[tuple[int, Any]] = []

    def is_there() -> bool:
        found.append(rest.ask(method, path, data, **sent))
        return not any(word in str(found[-1][1]) for word in BUSY)

    wait_until(is_there, f"{method} {path} is answered", every=0.2)
    return found[-1]


def compare(theirs: Any, ours: Any, where: str) -> Iterator[str]:
    """Where two answers differ, in words."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        if theirs.keys() != ours.keys():
            yield f"{where}: {sorted(theirs)} / {sorted(ours)}"
        for name in theirs.keys() & ours.keys():
            if name in SHAPES:
                if type(theirs[name]) is not type(ours[name]):
                    yield f"{where}.{name}: {theirs[name]!r} / {ours[name]!r}"
            else:
                yield from compare(theirs[name], ours[name], f"{where}.{name}")
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for place, (one, other) in enumerate(zip(theirs, ours, strict=True)):
            yield from compare(one, other, f"{where}[{place}]")
    elif theirs != ours:
        yield f"{where}: {theirs!r} / {ours!r}"
