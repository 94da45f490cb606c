"""Which certificates a person must hear of: those that end within a week, and those that have ended.

Values in, events out: reads no clock and opens no connection. What was told is handed in and handed back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from heliograph.model.events import Event, EventKind
from heliograph.replication.findings import named

NOTICE = timedelta(days=7)
_AGAIN = timedelta(days=1)
_LOOK = timedelta(hours=1)
_AT_LEAST = timedelta(seconds=1)


@dataclass(frozen=True)
class Certificate:
    """One certificate of a cluster's connections, wherever it was seen: the same on ten brokers is one."""

    cluster: str
    owner: str
    """Its common name."""
    ends: datetime
    kept_in: str = ""
    """The option and the file that hold it, for one of ours; empty for one that brokers show."""
    brokers: tuple[str, ...] = field(default=(), compare=False)
    """Addresses of the brokers that show it."""
    renewed: datetime | None = field(default=None, compare=False)
    """Until when the one holds that our file has by now; None where that is no later."""

    def needs_notice(self, now: datetime) -> bool:
        return self.ends - now <= NOTICE


Told = Mapping[tuple[Certificate, bool], datetime]
"""When it was said of a certificate that it ends soon (False), or that it has ended (True)."""


def news(seen: Mapping[Certificate, Iterable[str]], now: datetime, told: Told) -> tuple[list[Event], Told]:
    """What to say now of certificates and the flows that need them, and what has been said then: once a day at most."""
    recent = {key: when for key, when in told.items() if now - when < _AGAIN}
    events: list[Event] = []
    for certificate, flows in seen.items():
        key = (certificate, certificate.ends <= now)
        if certificate.needs_notice(now) and key not in recent:
            recent[key] = now
            events += [_event(certificate, flow, now) for flow in flows]
    return events, recent


def merged(shown: Iterable[Certificate]) -> list[Certificate]:
    """One for all brokers that show the same."""
    brokers: dict[Certificate, tuple[str, ...]] = {}
    for found in shown:
        brokers[found] = (*brokers.get(found, ()), *found.brokers)
    return [replace(certificate, brokers=by) for certificate, by in brokers.items()]


def with_renewals(seen: Iterable[Certificate], in_files: Iterable[Certificate]) -> list[Certificate]:
    """The ones in use, each with the end of its successor if the file has one by now."""
    latest = {(found.cluster, found.kept_in): found.ends for found in in_files}
    ends = [(one, latest.get((one.cluster, one.kept_in), one.ends)) for one in seen]
    return [replace(one, renewed=end) if end > one.ends else one for one, end in ends]


def pause(seen: Iterable[Certificate], now: datetime) -> timedelta:
    """How long to wait before the next look: an hour, or until there will be news."""
    moments = [moment - now for one in seen for moment in (one.ends - NOTICE, one.ends) if moment > now]
    return max(_AT_LEAST, min([_LOOK, *moments]))


def _event(certificate: Certificate, flow: str, now: datetime) -> Event:
    subject = f"cluster {certificate.cluster}"
    has_ended = certificate.ends <= now
    what = f"our certificate in {certificate.kept_in}" if certificate.kept_in else _shown(certificate.brokers)
    verb = "expired" if has_ended else "expires"
    reason = f"{what}, issued to {certificate.owner}, {verb} on {_moment(certificate.ends)}"
    if has_ended:
        reason += ": connections that are open go on, new ones are refused"
    time_ms = int(now.timestamp() * 1000)
    return Event(time_ms, flow, subject, EventKind.CERTIFICATE, reason, _what_to_do(certificate, has_ended))


def _shown(brokers: tuple[str, ...]) -> str:
    return f"the certificate of broker{'s' if len(brokers) > 1 else ''} {named(brokers)}"


def _what_to_do(certificate: Certificate, has_ended: bool) -> str:
    before = "" if has_ended else " before then"
    if not certificate.kept_in:
        return f"give the broker{'s' if len(certificate.brokers) > 1 else ''} a new one{before}"
    if certificate.renewed is not None:
        until = _moment(certificate.renewed)
        return f"the file has a new one, until {until}: start the run again{before} to use it"
    return f"put a new one there and start the run again{before}"


def _moment(time: datetime) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC")
