"""The file of a run, read again: when it was saved, or when somebody asks (SIGHUP)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from heliograph.config.flows import Settings
from heliograph.config.load import load_file
from heliograph.control.security import read_stores


class FileWatch:
    """Whether the file is to be read. One that is not there has not changed."""

    def __init__(self, path: str, interval_s: int, clock: Callable[[], float]) -> None:
        self.path = path
        self.interval_s = interval_s
        """How often it is looked at; 0: never, only `ask` counts."""
        self._clock = clock
        self._looked = clock()
        self._seen = self._stamp()
        self._asked = False

    def ask(self) -> None:
        self._asked = True

    def is_due(self) -> bool:
        """Once for each time that it was saved or asked for."""
        if self._asked:
            self._asked, self._seen = False, self._stamp()
            return True
        if not self.interval_s or self._clock() - self._looked < self.interval_s:
            return False
        self._looked = self._clock()
        stamp = self._stamp()
        changed = stamp not in ((0, 0), self._seen)
        self._seen = stamp if changed else self._seen
        return changed

    def _stamp(self) -> tuple[int, int]:
        try:
            found = Path(self.path).stat()
        except OSError:
            return 0, 0
        return found.st_mtime_ns, found.st_ino

    async def read(self) -> Settings:
        """ConfigError or SetupError where it is wrong."""
        return await asyncio.to_thread(lambda: read_stores(load_file(self.path)))
