"""Options that contradict each other: each is right by itself, and together they would break what the mirror promises."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from heliograph.config.properties import Property
from heliograph.config.resolve import View
from heliograph.model.takeover import needed_wait_s

_SPECULATION = "spark.speculation"


def contradictions(entries: Mapping[str, Property]) -> Iterator[str]:
    """A sentence for each, with the value that is needed."""
    view = View(entries)
    wait_s, request_ms = view.number("takeover.wait.seconds"), view.number("request.timeout.ms")
    needed_s = needed_wait_s(request_ms)
    if wait_s < needed_s:
        yield (
            f"takeover.wait.seconds = {wait_s} is shorter than an attempt that is not heard any more may still write "
            f"(request.timeout.ms = {request_ms}): expected {needed_s} or more"
        )
    speculation = entries.get(_SPECULATION)
    if speculation is not None and speculation.value.lower() == "true":
        yield (
            f"{_SPECULATION} = true would let a second copy of a task take the lanes from the first: "
            "expected false, which is also what Heliograph sets"
        )
