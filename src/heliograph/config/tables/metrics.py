"""Options of the metrics."""

from __future__ import annotations

from heliograph.config.kinds import Fraction, Read
from heliograph.config.option import FLOW, TOP, Option
from heliograph.config.tables.engine import OURS
from heliograph.metrics.picture import LANES_EXPECTED, lanes_told

_MOST_COST = 1_000_000.0

ROWS = (
    Option(
        "metrics.lanes",
        Read(lanes_told, LANES_EXPECTED, "text"),
        "top:20",
        "Which lanes have series of their own in the metrics: all, none, or of each flow those that most need a look.",
        TOP,
        since=OURS,
    ),
    Option(
        "wan.cost.per.gb",
        Fraction(0.0, _MOST_COST),
        "0",
        "What a gigabyte (1,000,000,000 bytes) from the flow's source costs, in any currency: the metrics tell the sum; 0: they "
        "do not.",
        FLOW,
        since=OURS,
    ),
)
