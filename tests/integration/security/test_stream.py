"""Large frames through TLS: many buffers out, one buffer in, whatever pieces the socket takes."""

from __future__ import annotations

import asyncio
import random
import ssl
import struct

from heliograph.kafka.connections import Connection
from heliograph.model.security import Security, Store, Tls
from tests.support.secured import Secured
from tests.unit.kafka.test_connections import frame, next_request, versions_answer

ROUNDS = 3


async def broker(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Says its versions, then sends every frame back, slowly enough for buffers to fill."""
    writer.write(versions_answer(await next_request(reader)))
    for _ in range(ROUNDS):
        body = await next_request(reader)
        await asyncio.sleep(0.05)
        writer.write(frame(body))
        await writer.drain()
    await reader.read()
    writer.close()


def pieces(seed: int) -> list[bytes]:
    """Six megabytes in buffers from nothing to a megabyte, as a Produce request has them."""
    chance = random.Random(seed)
    return [chance.randbytes(size) for size in (4, 0, 30, 16_384, 16_383, 100, 1 << 20, 7, *[900] * 500, 5 << 20, 1)]


def test_what_is_sent_through_tls_comes_back_byte_for_byte(secured: Secured) -> None:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(secured.certificates.pem("broker"))
    security = Security(Tls(Store("ssl.truststore.location", "PEM", secured.certificates.ca())))

    async def story() -> None:
        listening = await asyncio.start_server(broker, "127.0.0.1", 0, ssl=server)
        port = listening.sockets[0].getsockname()[1]
        connection = await Connection.open("127.0.0.1", port, 10, security)
        try:
            for seed in range(ROUNDS):
                buffers = pieces(seed)
                whole = b"".join(buffers)
                sending = asyncio.create_task(connection.send([struct.pack(">i", len(whole)), *buffers]))
                answer, size = await connection.receive_into(bytearray)
                await sending
                assert bytes(answer[:size]) == whole
        finally:
            connection.close()
            listening.close()
            await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}), return_exceptions=True)

    asyncio.run(story())
