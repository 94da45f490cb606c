"""What a check found: one line each, with what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """PASS: as it should be. WARN: it works, but a person should know. FAIL: what the subject names will not work.

    NOTE: what only matters in a case that is not known to be; a run says it once, calmly.
    """

    NOTE = "NOTE"
    PASS = "PASS"  # noqa: S105  a level, no password
    WARN = "WARN"
    FAIL = "FAIL"


@dataclass(frozen=True)
class Finding:
    """`subject` is a cluster or flow and what was looked at; `advice` says what to do, empty where nothing is to be done."""

    level: Level
    subject: str
    sentence: str
    advice: str = ""


def has_failed(findings: Iterable[Finding]) -> bool:
    return any(finding.level is Level.FAIL for finding in findings)


def named(names: Iterable[str], most: int = 10) -> str:
    """Names as a person reads them: `a, b and 12 more`."""
    listed = sorted(names)
    if len(listed) <= most:
        return ", ".join(listed)
    return f"{', '.join(listed[:most])} and {len(listed) - most} more"
