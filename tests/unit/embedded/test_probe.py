"""Free ports, and a port where nobody answers."""

from __future__ import annotations

import socket

from heliograph.embedded.probe import HOST, brokers_known_to, free_ports


def test_ports_are_distinct_not_taken_and_below_those_of_outgoing_connections() -> None:
    first = free_ports(20)
    second = free_ports(20, taken=first)
    assert len({*first, *second}) == 40
    assert all(20_000 <= port < 32_768 for port in (*first, *second))


def test_a_port_somebody_listens_on_is_not_free() -> None:
    [port] = free_ports(1)
    with socket.socket() as server:
        server.bind((HOST, port))
        server.listen()
        assert port not in free_ports(2_000)


def test_where_nobody_listens_no_broker_is_known() -> None:
    assert brokers_known_to(free_ports(1)[0]) == set()
