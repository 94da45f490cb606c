"""Many that look at a run at once: `python -m tests.bench.crowd HOST PORT`, until it is ended.

200 slow ones (half of them send half a request, half ask for the metrics and read a few bytes a second) and 200 endless
streams, as pages have them. It knocks until the server is there.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys

SLOW = 200
STREAMS = 200
_KNOCK_SECONDS = 0.2
_SIP_BYTES = 10
_GULP_BYTES = 1 << 16


async def _half(host: str, port: int) -> None:
    """Never says the rest."""
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(b"POST /api/v1/flows/A-%3EB/pause HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n\r\n{")
    await reader.read()


async def _sip(host: str, port: int) -> None:
    """Reads so slowly that the answer never ends."""
    reader, writer = await asyncio.open_connection(host, port, limit=_SIP_BYTES)
    writer.write(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    while await reader.read(_SIP_BYTES):
        await asyncio.sleep(1)


async def _stream(host: str, port: int) -> None:
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(b"GET /api/v1/stream?flow=A-%3EB HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    while await reader.read(_GULP_BYTES):
        pass


async def _stay(host: str, port: int, place: int) -> None:
    """Comes back whenever it is sent away."""
    kinds = (_stream, _stream, _half, _sip)
    while True:
        with contextlib.suppress(OSError):
            await kinds[place % len(kinds)](host, port)
        await asyncio.sleep(_KNOCK_SECONDS)


async def main(host: str, port: int) -> None:
    await asyncio.gather(*(_stay(host, port, place) for place in range(SLOW + STREAMS)))


if __name__ == "__main__":
    os.nice(19)  # in earnest they have machines of their own
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
