"""Runs that wait for a flow, as the ledger keeps them: a note of each, so that `status` and the holder know of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

STANDBY_NOTE = "standby"
"""The kind of note; its subject is the run."""


@dataclass(frozen=True)
class Standby:
    """A run that would carry a flow if its holder were gone."""

    run: str
    host: str
    process: int
    since_ms: int
    renewed_ms: int
    carries: bool = False
    """It carries what the target guards, because the holder is not heard any more; nobody holds the flow yet."""
    machine: str = ""
    """As a holder's."""

    @property
    def rank(self) -> tuple[bool, int, str]:
        """Whose turn it is when the holder is gone: whoever carries already, else the one that has waited longest."""
        return (not self.carries, self.since_ms, self.run)


def encode_standby(standby: Standby) -> bytes:
    return json.dumps(asdict(standby), separators=(",", ":")).encode()


def decode_standby(value: bytes) -> Standby | None:
    """What was written; None where it cannot be read: nobody is waited for because of it."""
    try:
        fields = json.loads(value)
        return Standby(
            str(fields["run"]),
            str(fields["host"]),
            int(fields["process"]),
            int(fields["since_ms"]),
            int(fields["renewed_ms"]),
            bool(fields.get("carries", False)),
            str(fields.get("machine", "")),
        )
    except (ValueError, KeyError, TypeError):
        return None


def standbys(notes: Mapping[str, bytes]) -> list[Standby]:
    """All that can be read, the longest waiting first."""
    found = (decode_standby(value) for value in notes.values())
    return sorted((one for one in found if one is not None), key=lambda one: (one.since_ms, one.run))
