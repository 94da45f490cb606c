"""One small partition followed record by record, as they come: a fetch that waits at the end of the log."""

from __future__ import annotations

from heliograph.errors import BrokerRefused, ConnectionLost
from heliograph.kafka.client import LATEST, ClusterClient
from heliograph.kafka.own_topics import PlainRecord
from heliograph.kafka.ranges import Log, fetch_once
from heliograph.kafka.refusals import topic_refused
from heliograph.wire.record_batch import walk
from heliograph.wire.records import read_records

_MISSING = {3, 100}
_WAIT_MS = 500


class Follower:
    """Partition 0 of a topic, from the first record that is not older than `since_ms`."""

    def __init__(self, client: ClusterClient, topic: str, since_ms: int) -> None:
        self._client = client
        self._topic = topic
        self._since_ms = since_ms
        self._log: Log | None = None
        self._topic_id = ""
        self._next = 0

    async def read(self) -> list[PlainRecord] | None:
        """What is there, or comes within half a second; None if the topic does not exist."""
        if self._log is None:
            self._log = await self._learn()
        if self._log is None:
            return None
        try:
            buffer, fetched = await fetch_once(self._client, self._log, self._next, committed=False, wait_ms=_WAIT_MS)
        except (BrokerRefused, ConnectionLost, TimeoutError):
            self._log = None  # another leader, or another topic
            raise
        found: list[PlainRecord] = []
        view = memoryview(buffer)
        for at, header in walk(buffer, fetched.start, fetched.end):
            for record in read_records(view[at : at + header.size], header):
                if record.offset >= self._next:
                    key = None if record.key is None else bytes(record.key)
                    found.append(PlainRecord(record.offset, key, None))
            self._next = max(self._next, header.next_offset)
        return found

    async def _learn(self) -> Log | None:
        alias, place = self._client.cluster.alias, (self._topic, 0)
        view = (await self._client.metadata([self._topic]))[self._topic]
        if view.error in _MISSING:
            return None
        if view.error or 0 not in view.leaders:
            raise topic_refused(view.error or 5, f"cluster {alias}: topic {self._topic}", "READ", self._topic, alias)
        node = view.leaders[0].node
        if view.topic_id != self._topic_id:
            ends = await self._client.offsets(node, [place], LATEST)
            since = await self._client.offsets(node, [place], self._since_ms)
            if place not in ends or place not in since:
                raise ConnectionLost(f"cluster {alias}: broker {node} does not lead {self._topic}-0")
            self._topic_id, self._next = view.topic_id, since[place] if since[place] >= 0 else ends[place]
        return Log(self._topic, view.topic_id, 0, node)
