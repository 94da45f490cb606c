"""The page's real server over an invented run: `python -m tests.support.page_server [SHAPE] [PORT]`, or `PageServer` in a test.

Routes, guard, scene and stream are those of a run; only the driver is missing, whose views and answers are invented here.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
import socket
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any, Self

import uvicorn

from heliograph.config.flows import ServerSettings, Settings
from heliograph.config.load import load
from heliograph.rest.app import build
from heliograph.rest.history import FIELDS, STEP_SECONDS, History
from heliograph.rest.scene import Scene
from heliograph.rest.summaries import flow_summary
from tests.support.invented_scene import InventedRun

_CONFIGS = {
    "cleanup.policy": ("delete", "delete"),
    "compression.type": ("producer", "producer"),
    "max.message.bytes": ("4194304", "1048588"),
    "message.timestamp.type": ("CreateTime", "CreateTime"),
    "min.insync.replicas": ("2", "1"),
    "retention.bytes": ("-1", "-1"),
    "retention.ms": ("604800000", "259200000"),
    "segment.bytes": ("1073741824", "1073741824"),
}
_LOGIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="mirror" password="not-to-be-seen";'
_STANDINGS = (
    ("billing-worker", "in step", ""),
    ("fraud-model", "waits for the copy", "it committed an offset that is not copied yet"),
    ("search-indexer", "live on the target", "it has members on the target: its offsets there are its own"),
)


_PLANS: tuple[dict[str, Any], ...] = (
    {
        "actions": [
            {"job": "topics", "subject": "topic frankfurt.shop.orders.created", "what": "grow from 6 to 12 partitions", "why": "the source has 12"},
            {"job": "topics", "subject": "topic frankfurt.billing.invoices.v2", "what": "create with 24 partitions", "why": "it is copied and missing"},
            {"job": "topic configs", "subject": "topic frankfurt.fraud.sessions.raw", "what": "retention.ms: 604800000, now 259200000",
             "why": "the source's is 604800000"},
        ],
        "left_out": ["topic shop.orders.created.a-very-long-name: its remote name has 251 characters, and Kafka allows 249"],
    },
    {"troubles": ["ACLs: dublin does not allow DESCRIBE on the cluster for User:mirror"]},
)  # fmt: skip
"""Of the first flows under load; nothing is pending for the others."""
_NOTHING_PENDING: dict[str, Any] = {"actions": [], "left_out": [], "troubles": [], "unseen": False}


def invented_settings(flows: Iterable[str]) -> Settings:
    """Of a file that says all this in the real reader's eyes, and of one change by REST."""
    lines = [f"{flow}.enabled = true\n{flow}.topics = shop\\\\..*, billing\\\\..*" for flow in flows]
    aliases = dict.fromkeys(alias for flow in flows for alias in flow.split("->"))
    for alias in aliases:
        lines += [f"{alias}.bootstrap.servers = {alias}-1:9093,{alias}-2:9093", f"{alias}.security.protocol = SASL_SSL"]
        lines += [f"{alias}.sasl.mechanism = PLAIN", f"{alias}.sasl.jaas.config = {_LOGIN}"]
    home = next(iter(aliases), "home")
    head = [
        f"clusters = {', '.join(aliases) or home}",
        f"state.cluster = {home}",
        "replication.factor = 3",
        "listeners = http://127.0.0.1:8083",
    ]
    change = {f"{flow}.throttle.bytes.per.second": "40000000" for flow in list(flows)[:1]}
    return load("\n".join([*head, *lines]), "mirror.properties", overlay=change)


class InventedPast(History):
    """An hour that nobody lived: a busy time in its middle, a catch-up at its beginning."""

    def __init__(self, scene: Scene) -> None:
        super().__init__()
        self._scene = scene

    def of(self, flow: str, seconds: int) -> dict[str, Any]:
        chance = random.Random(flow)
        now = flow_summary(self._scene, flow)
        if now["lag_records"] is None:
            return History.of(self, flow, seconds)
        steps = range(seconds // STEP_SECONDS, 0, -1)
        times = [self._scene.run["time_ms"] - step * STEP_SECONDS * 1000 for step in steps]
        shares = [1 - step * STEP_SECONDS / 3600 for step in steps]
        waves = [0.8 + 0.35 * math.sin(6 * share + len(flow)) ** 2 + chance.uniform(-0.06, 0.06) for share in shares]
        behind = [(1 - share) * 0.4 * now["lag_records"] for share in shares]
        columns = {
            "records_per_s": [now["records_per_s"] * wave for wave in waves],
            "bytes_per_s": [now["bytes_per_s"] * wave for wave in waves],
            "lag_records": [now["lag_records"] + late + 400 * wave for late, wave in zip(behind, waves, strict=True)],
            "lag_ms": [late / 20 + 20 for late in behind],
            "latency_p50_ms": [11 * wave for wave in waves],
            "latency_p99_ms": [44 * wave * chance.uniform(0.9, 1.3) for wave in waves],
        }
        return {"step_s": STEP_SECONDS, "time_ms": times} | {
            name: [round(value) for value in columns[name]] for name in FIELDS
        }


class InventedScene(Scene):
    """A scene whose driver answers at once."""

    def __init__(self, run: InventedRun) -> None:
        super().__init__()
        self.invented = run
        self.history = InventedPast(self)

    async def _answer(self, what: str, args: dict[str, Any], seconds: float, advice: str) -> dict[str, Any]:
        """To `ask` and `tell`."""
        del seconds, advice
        run = self.invented
        match what:
            case "pause" | "drain":
                names = ("flow", "topic", "partition", "reason", "who")
                run.holds.append({name: args[name] for name in names} | {"kind": what, "since_ms": run.now_ms})
            case "resume":
                about = ("flow", "topic", "partition")
                run.holds = [hold for hold in run.holds if any(hold[name] != args[name] for name in about)]
            case "throttle":
                run.throttles[args["flow"]] = args["bytes_per_second"]
            case "topic-configs":
                rows = ({"name": name, "source": one, "target": two} for name, (one, two) in _CONFIGS.items())
                return {"configs": [row | {"differs": row["source"] != row["target"]} for row in rows]}
            case "settings":
                return {"options": [value.as_json() for value in invented_settings(run.sizes).values]}
            case "plan":
                plans = dict(zip(run.sizes, _PLANS, strict=False)) if run.shape == "load" else {}
                return {"flows": [_NOTHING_PENDING | {"flow": flow} | plans.get(flow, {}) for flow in run.sizes]}
            case "groups":
                return {"groups": list(self._groups(args["flow"])), "group_troubles": []}
        return {}

    def _groups(self, flow: str) -> Iterator[dict[str, Any]]:
        for group, state, reason in _STANDINGS:
            for place, topic in enumerate(sorted(self.flows[flow]["topics"])[:8]):
                here = 91_237_111 + place * 91_011
                there = here - 289 if state != "waits for the copy" else None
                set_there = {"in step": there, "live on the target": here + 4_000}.get(state)
                yield {
                    "group": group, "topic": topic, "partition": place % 3, "committed": here, "translated": there, "on_target": set_there,
                    "state": state, "reason": reason,
                }  # fmt: skip


async def serve(
    shape: str, door: socket.socket, tokens_file: str, ready: threading.Event, stop: threading.Event
) -> None:
    now_ms = round(time.time() * 1000)  # noqa: TID251  the page shows how old things are by the browser's clock
    run = InventedRun(shape, now_ms - 7_000)
    scene = InventedScene(run)
    for second in range(7, 0, -1):  # rates are over the last seconds
        scene.merge(run.step(), time.monotonic() - second)
    app = build(scene, ServerSettings(tokens_file=tokens_file, requests_per_second=0))
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", ws="none"))
    serving = asyncio.create_task(server.serve(sockets=[door]))
    ready.set()
    while not stop.is_set() and not serving.done():
        scene.merge(run.step(), time.monotonic())
        await asyncio.sleep(1.0)
    server.should_exit = server.force_exit = True
    with contextlib.suppress(asyncio.CancelledError):
        await serving


class PageServer:
    """In a thread of its own, while the context lasts."""

    def __init__(self, shape: str = "load", port: int = 0, tokens_file: str = "") -> None:
        self._door = socket.create_server(("127.0.0.1", port))
        self.port: int = self._door.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._ready, self._stop = threading.Event(), threading.Event()
        work = serve(shape, self._door, tokens_file, self._ready, self._stop)
        self._thread = threading.Thread(target=asyncio.run, args=(work,))

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(30)
        self._door.close()


def main(shape: str = "load", port: str = "9100") -> None:
    with socket.create_server(("127.0.0.1", int(port))) as door:
        asyncio.run(serve(shape, door, "", threading.Event(), threading.Event()))


if __name__ == "__main__":
    main(*sys.argv[1:])
