"""Numbers, sizes and times as people read them."""

from __future__ import annotations

from datetime import UTC, datetime


def count(number: float, noun: str = "") -> str:
    """1,234 lanes; 1 lane."""
    text = f"{number:,.0f}"
    if not noun:
        return text
    return f"{text} {noun}" if number == 1 else f"{text} {noun}s"


def size(number: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} TB"


def moment(time_ms: int) -> str:
    """A wall-clock time in UTC, to the second."""
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def ago(now_ms: int, then_ms: int) -> str:
    seconds = max(0, (now_ms - then_ms) // 1000)
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"
