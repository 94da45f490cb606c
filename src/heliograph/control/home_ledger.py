"""Is the ledger that tells which records came home still the one that this flow began with?

It is kept by the flow in the other direction, on this flow's source. If somebody deleted it, a new one knows nothing of what that
flow wrote before: its records would pass for an application's and be copied back. So this flow notes in its own ledger, on the
other cluster, which one it trusts, and tasks read none but that.
"""

from __future__ import annotations

from heliograph.config.flows import FlowSettings
from heliograph.kafka.ledger import LEDGER_TOPIC
from heliograph.kafka.life import now_ms
from heliograph.kafka.refusals import topic_refused
from heliograph.kafka.slot import Warm
from heliograph.kafka.translator import Lineage
from heliograph.replication.generations import LedgerBook
from heliograph.replication.ledger_keys import NoteKey
from heliograph.replication.openings import Refused

_KIND = "home"
_MADE_ANEW = (
    "{topic} on {alias} is not the one that this flow began with: which records {back} wrote before cannot be told any more, and "
    "they would be copied back"
)
_CURE = "restore it; or begin anew behind them, with start.from = latest and `heliograph run FILE --reset`"


def noted_ledger(book: LedgerBook, flow: str, home: str) -> str:
    """The topic id of the ledger that a flow trusts to name what `home` wrote; empty: it has noted none."""
    return book.notes(flow, _KIND).get(home, b"").decode(errors="replace")


def lineage_of(book: LedgerBook, flow: str, home: str) -> Lineage:
    """What a flow's ledger tells a translator of its lanes."""
    return Lineage(frozenset(book.producers(flow)), noted_ledger(book, flow, home) if home else "")


async def trusted_ledger(settings: FlowSettings, warm: Warm, trust_anew: bool) -> str | Refused:
    """The topic id of the ledger that is trusted (empty: the flow needs none), or why no lane of the flow may be carried.

    `trust_anew`: believe whichever ledger is there now.
    """
    if not settings.home:
        return ""
    name, alias = settings.flow.name, settings.source.alias
    view = (await warm.client(settings.source).metadata([LEDGER_TOPIC]))[LEDGER_TOPIC]
    if view.error:
        raise topic_refused(view.error, f"cluster {alias}: topic {LEDGER_TOPIC}", "READ", LEDGER_TOPIC, alias)
    ledger = warm.ledger(settings.target)
    known = noted_ledger(ledger.book, name, settings.home)
    if known != view.topic_id and (trust_anew or not known):
        await ledger.write([(NoteKey(name, _KIND, settings.home), view.topic_id.encode())], now_ms())
        await ledger.refresh()
        return view.topic_id
    if known == view.topic_id:
        return known
    reason = _MADE_ANEW.format(topic=LEDGER_TOPIC, alias=alias, back=settings.home)
    return Refused(reason, what_to_do=_CURE)
