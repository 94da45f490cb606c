"""What a Kafka Connect worker was assigned, as its group keeps it: connectors and how many of their tasks.

Versions 0 (eager) to 2 (sessioned) begin alike; what follows the assignment is not read. A connector itself is task -1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from struct import Struct, error

_SHORT = Struct(">h")
_INT = Struct(">i")
_LONG = Struct(">q")
_CONNECTOR_ITSELF = -1
PROTOCOL_TYPE = "connect"


class _Cursor:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def number(self, kind: Struct) -> int:
        (value,) = kind.unpack_from(self._data, self._at)
        self._at += kind.size
        return int(value)

    def text(self) -> str:
        length = self.number(_SHORT)
        self._at += max(0, length)
        return self._data[self._at - max(0, length) : self._at].decode("utf-8", "replace")


def assigned_tasks(assignment: bytes) -> Mapping[str, int]:
    """Connectors by name with the number of their tasks here; empty for bytes that are no such assignment."""
    cursor = _Cursor(assignment)
    tasks: Counter[str] = Counter()
    try:
        for kind in (_SHORT, _SHORT):  # version, error
            cursor.number(kind)
        cursor.text(), cursor.text()  # leader, its address
        cursor.number(_LONG)
        for _ in range(cursor.number(_INT)):
            name = cursor.text()
            numbers = [cursor.number(_INT) for _ in range(cursor.number(_INT))]
            tasks[name] += sum(1 for number in numbers if number != _CONNECTOR_ITSELF)
    except error:
        return {}
    return dict(tasks)
