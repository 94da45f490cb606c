"""Why a cluster cannot be reached: one sentence, each address once."""

from __future__ import annotations

import socket

import pytest

from heliograph.errors import ClusterUnreachable, ConnectionLost
from heliograph.kafka.admin import ClusterAdmin
from heliograph.kafka.unreachable import is_refused, unreachable
from heliograph.model.clusters import Cluster
from heliograph.model.security import PLAINTEXT, Security, Tls


def lost(address: str, cause: OSError) -> ConnectionLost:
    error = ConnectionLost(f"{address}: {cause}")
    error.__cause__ = cause
    return error


REFUSED = ConnectionRefusedError(111, "Connect call failed ('a', 1)")
UNKNOWN = socket.gaierror(-2, "Name or service not known")


def test_each_address_is_named_once_with_what_it_met() -> None:
    assert str(unreachable("A", {"a:1": lost("a:1", REFUSED)})) == "cluster A: connection refused at a:1"
    both = {"a:1": REFUSED, "a:2": lost("a:2", REFUSED)}
    assert str(unreachable("A", both)) == "cluster A: connection refused at a:1, a:2"
    mixed = {"a:1": REFUSED, "a:2": ConnectionLost("a:2: no answer")}
    assert str(unreachable("A", mixed)) == "cluster A is unreachable: a:1: connection refused; a:2: no answer"
    one = {"x:1": lost("x:1", UNKNOWN)}
    assert str(unreachable("A", one)) == "cluster A is unreachable at x:1: name or service not known"
    assert str(unreachable("A", {"x:1": TimeoutError()})) == "cluster A is unreachable at x:1: no answer"


def test_a_refusal_is_known_through_what_was_raised_from_it() -> None:
    assert is_refused(REFUSED) and is_refused(lost("a:1", REFUSED)) and is_refused(UNKNOWN)
    assert not is_refused(ConnectionLost("a:1: closed")) and not is_refused(None)


@pytest.mark.parametrize("security", [PLAINTEXT, Security(Tls())])
def test_a_port_that_refuses_is_not_asked_again_until_the_time_is_over(security: Security) -> None:
    """With or without TLS: a test that waited would run into its time limit."""
    admin = ClusterAdmin(Cluster("Z", ("127.0.0.1:1",), security=security), request_timeout_ms=900_000)
    with pytest.raises(ClusterUnreachable, match="^cluster Z: connection refused at 127.0.0.1:1$"):
        admin.topics()
