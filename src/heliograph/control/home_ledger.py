"""Is the ledger that tells which records came home still the one that this flow began with?

It is kept by the flow in the other direction, on this flow's source. If somebody deleted it, a new one knows nothing of what that
flow wrote before: its records would pass for an application's and be copied back. So this flow notes in its own ledger, on the
other cluster, which one it trusts.
"""

from __future__ import annotations

from heliograph.config.flows import FlowSettings
from heliograph.kafka.ledger import LEDGER_TOPIC
from heliograph.kafka.life import now_ms
from heliograph.kafka.slot import Warm
from heliograph.replication.generations import NoteKey
from heliograph.replication.openings import Refused

_KIND = "home"
_MADE_ANEW = (
    "{topic} on {alias} is not the one that this flow began with: which records {back} wrote before cannot be told any more, and "
    "they would be copied back"
)
_CURE = "restore it; or begin anew behind them, with start.from = latest and `heliograph run FILE --reset`"


async def distrust(settings: FlowSettings, warm: Warm, trust_anew: bool) -> Refused | None:
    """Why no lane of the flow may be carried; None: it may. `trust_anew`: believe whichever ledger is there now."""
    if not settings.home:
        return None
    name = settings.flow.name
    view = (await warm.client(settings.source).metadata([LEDGER_TOPIC]))[LEDGER_TOPIC]
    ledger = warm.ledger(settings.target)
    known = ledger.book.notes(name, _KIND).get(settings.home, b"").decode()
    if view.topic_id and known != view.topic_id and (trust_anew or not known):
        await ledger.write([(NoteKey(name, _KIND, settings.home), view.topic_id.encode())], now_ms())
        await ledger.refresh()
        return None
    if known == view.topic_id:
        return None
    reason = _MADE_ANEW.format(topic=LEDGER_TOPIC, alias=settings.source.alias, back=settings.home)
    return Refused(reason, what_to_do=_CURE)
