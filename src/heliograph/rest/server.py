"""The REST server's process: `python -m heliograph.rest.server`, started by the driver (control/desk.py).

Its order comes by standard input. It dials the driver, listens, and ends when the driver is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from typing import Any

import uvicorn

from heliograph.config.flows import ServerSettings
from heliograph.config.listeners import Listener
from heliograph.rest.app import build
from heliograph.rest.scene import Scene
from heliograph.spark.line import Line

_STEPS_BEHIND = 10
_BACKLOG = 1024
_MOST_CONNECTIONS = 2000
_KEEP_ALIVE_SECONDS = 15
_AGAIN_SECONDS = 5.0


class _Uvicorn(uvicorn.Server):
    """The driver ends this process; signals are not the server's to take."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def main() -> None:
    os.nice(_STEPS_BEHIND)  # who looks must not slow what is looked at, however many they are
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the whole family, and the driver drains
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s rest: %(message)s")
    asyncio.run(_serve(json.loads(sys.stdin.buffer.read())))


async def _serve(order: dict[str, Any]) -> None:
    settings = _settings(order["server"])
    line = await Line.dial("127.0.0.1", order["port"])
    line.send({"kind": "hello", "token": order["token"]})
    scene = Scene()
    scene.connect(line)
    serving = [asyncio.create_task(_keep_door(line, scene, settings, listener)) for listener in settings.listeners]
    await _listen(line, scene)
    for task in serving:
        task.cancel()
    await asyncio.gather(*serving, return_exceptions=True)


async def _keep_door(line: Line, scene: Scene, settings: ServerSettings, listener: Listener) -> None:
    """A port that is taken may be free later."""
    while True:
        try:
            door = _open(listener)
            break
        except OSError as error:
            reason = f"listeners = {listener.url}: {error.strerror or error}"
            line.send({"kind": "listening", "urls": scene.listens_on, "refused": reason})
            await asyncio.sleep(_AGAIN_SECONDS)
    port = door.getsockname()[1]
    scene.listens_on.append(Listener(listener.scheme, listener.host or socket.gethostname(), port).url)
    line.send({"kind": "listening", "urls": scene.listens_on, "refused": ""})
    await _Uvicorn(_config(scene, settings, listener)).serve(sockets=[door])


async def _listen(line: Line, scene: Scene) -> None:
    """Until the driver is gone."""
    while (message := await line.receive()) is not None:
        if message["kind"] == "view":
            scene.merge(message, time.monotonic())
        else:
            scene.answered(message)
    scene.lost()


def _settings(fields: dict[str, Any]) -> ServerSettings:
    listeners = tuple(Listener(**listener) for listener in fields["listeners"])
    return ServerSettings(**{**fields, "listeners": listeners})


def _open(listener: Listener) -> socket.socket:
    door = socket.socket(socket.AF_INET6 if ":" in listener.host else socket.AF_INET, socket.SOCK_STREAM)
    door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        door.bind((listener.host, listener.port))
        door.listen(_BACKLOG)
    except OSError:
        door.close()
        raise
    return door


def _config(scene: Scene, settings: ServerSettings, listener: Listener) -> uvicorn.Config:
    secure = listener.scheme == "https"
    return uvicorn.Config(
        build(scene, settings),
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        ssl_certfile=settings.certificate_file if secure else None,
        ssl_keyfile=settings.key_file if secure else None,
    )


if __name__ == "__main__":
    main()
