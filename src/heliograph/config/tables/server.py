"""The REST server's options."""

from __future__ import annotations

from heliograph.config.kinds import Kind, Read, Text, Whole
from heliograph.config.listeners import EXPECTED, read_listeners
from heliograph.config.option import TOP, Option
from heliograph.config.tables.engine import OURS


def _server(name: str, kind: Kind, default: str, doc: str, since: str = OURS) -> Option:
    return Option(name, kind, default, doc, TOP, since=since)


ROWS = (
    _server(
        "listeners",
        Read(read_listeners, EXPECTED, "addresses"),
        "http://127.0.0.1:8083",
        "Where a run serves its page, REST and metrics; `none`: nowhere. Port 0 is any free one. An address that other "
        "machines reach needs rest.auth.tokens.file.",
        since="2.4.0",
    ),
    _server(
        "rest.port",
        Whole(0, 65535),
        "8083",
        "Connect's old name for the port of listeners, which counts if listeners is not set.",
        since="2.4.0",
    ),
    _server(
        "rest.host.name",
        Text(),
        "",
        "Connect's old name for the address of listeners, with rest.port. Empty: 127.0.0.1; Connect listens on every address.",
        since="2.4.0",
    ),
    _server(
        "rest.auth.tokens.file",
        Text(),
        "",
        "A file with one token per line, with or without a name in front (`alice: token`): whoever changes something by REST "
        "must send one as a bearer token. Empty: anybody who reaches the listener may.",
    ),
    _server("rest.ssl.certificate.file", Text(), "", "PEM, for https listeners: the certificate and its chain."),
    _server("rest.ssl.key.file", Text(), "", "PEM, for https listeners: the key of that certificate."),
    _server("rest.body.max.bytes", Whole(1024), "1048576", "The largest request that REST reads."),
    _server(
        "rest.requests.per.second",
        Whole(0),
        "200",
        "Requests that one address may send in a second, on average over ten seconds; others get 429. 0: no limit.",
    ),
    _server(
        "state.cluster",
        Text(),
        "",
        "The alias of the cluster that keeps what REST changed, in topic __heliograph-flows. Empty: the first of clusters.",
    ),
)
