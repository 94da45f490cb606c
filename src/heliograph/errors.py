"""The exception tree: one class per reaction a caller can have.

HeliographError
├── ConfigError          the file is wrong: show every fault, exit 2, touch nothing
├── SetupError           this machine or these clusters cannot do it: one sentence, exit 1
│   └── BrokersUnsupported   brokers too old or too new: the flow is refused, other flows go on
├── ClusterUnreachable   no broker answers: back off, name it in status, other flows go on
├── ConnectionLost       a broker connection ended: metadata, attach again
│   └── AccessRefused    certificate or login was refused: a person must act; exit 1 at the start, shown while running
├── BrokerRefused        a broker answered with an error code: act by replication.reactions
├── LaneParked           a lane cannot go on: keep the reason, retry with backoff
└── Refused              a change that somebody asks of a run is not made: say why, nothing changed
"""

from __future__ import annotations

from collections.abc import Sequence


class HeliographError(Exception):
    """Everything Heliograph raises on purpose."""


class ConfigError(HeliographError):
    """All faults of a file at once, each a whole sentence with line, option and allowed values."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = tuple(faults)


class SetupError(HeliographError):
    """Something outside the file is missing; the message says what to do about it."""


class BrokersUnsupported(SetupError):
    """A cluster's brokers do not speak what a flow needs; with other brokers the flow could begin."""


class ClusterUnreachable(HeliographError):
    """No bootstrap server of a cluster answered."""


class ConnectionLost(HeliographError):
    """The connection ended or timed out; whether the last request was carried out is unknown."""


class AccessRefused(ConnectionLost):
    """A broker's certificate or our login was refused; the message names the option. Asking again does not help."""


class BrokerRefused(HeliographError):
    """A broker answered with an error code."""

    def __init__(self, code: int, what: str, advice: str = "") -> None:
        super().__init__(f"{what}: error {code}")
        self.code = code
        self.what = what
        self.advice = advice
        """What a person must do, as a permission to grant; empty where time or another try may help."""


class LaneParked(HeliographError):
    """This lane stops, its neighbours go on; the message is the reason that status shows."""


class Refused(HeliographError):
    """A question or a change over REST is refused; `status` is HTTP's word for the reason."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
