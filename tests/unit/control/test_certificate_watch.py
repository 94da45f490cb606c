"""The watch over certificates, with stores in files and no broker that answers."""

from __future__ import annotations

import asyncio
from pathlib import Path

from heliograph.config.load import load_file
from heliograph.control.certificate_watch import CertificateWatch
from heliograph.control.security import read_stores
from heliograph.kafka.slot import Warm
from heliograph.model.events import Event
from tests.unit.kafka.test_certificates import ENDS, KEY
from tests.unit.wire.test_pem import NAMELESS

DAY_MS = 86_400_000
END_MS = int(ENDS.timestamp() * 1000)
OURS = "our certificate in ssl.keystore.location ({folder}/own), issued to nobody by name,"


def written(folder: Path) -> Path:
    (folder / "own").write_text(NAMELESS + KEY)
    lines = ["clusters = A, B, C", *(f"{name}.bootstrap.servers = 127.0.0.1:1" for name in "ABC")]
    lines += ["A->B.enabled = true", "A->C.enabled = true", "B->A.enabled = false"]
    lines += ["A.security.protocol = SSL", "A.ssl.keystore.type = PEM", f"A.ssl.keystore.location = {folder / 'own'}"]
    path = folder / "mm2.properties"
    path.write_text("\n".join(lines))
    return path


def watch(path: Path, now_ms: int) -> CertificateWatch:
    return CertificateWatch(read_stores(load_file(str(path))).flows, str(path), Warm(), lambda: now_ms)


def test_every_flow_that_needs_a_certificate_is_told(tmp_path: Path) -> None:
    async def story() -> list[Event]:
        told: asyncio.Queue[Event] = asyncio.Queue()
        watching = asyncio.create_task(watch(written(tmp_path), END_MS - DAY_MS).watch(told.put_nowait))
        try:
            return [await told.get(), await told.get()]
        finally:
            watching.cancel()

    first, second = asyncio.run(story())
    assert (first.flow, second.flow) == ("A->B", "A->C")
    assert first.subject == second.subject == "cluster A"
    assert first.reason == f"{OURS.format(folder=tmp_path)} expires on 2026-12-16 02:30 UTC"


def test_one_look_names_each_certificate_once(tmp_path: Path) -> None:
    (sentence,) = asyncio.run(watch(written(tmp_path), END_MS).look_once())
    assert sentence.startswith(f"cluster A: {OURS.format(folder=tmp_path)} expired on 2026-12-16 02:30 UTC: ")
    assert sentence.endswith("; put a new one there and start the run again")


def test_a_file_that_is_gone_by_now_changes_nothing(tmp_path: Path) -> None:
    watching = watch(written(tmp_path), END_MS)
    (tmp_path / "own").unlink()
    assert len(asyncio.run(watching.look_once())) == 1


def test_nothing_is_said_of_one_that_holds_for_long(tmp_path: Path) -> None:
    assert asyncio.run(watch(written(tmp_path), END_MS - 30 * DAY_MS).look_once()) == []
