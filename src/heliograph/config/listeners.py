"""Where the REST server listens: `http://127.0.0.1:8083`, several of them, or `none`."""

from __future__ import annotations

import re
from dataclasses import dataclass

EXPECTED = "none, or a list of http://host:port and https://host:port with ports from 0 to 65535, split on commas"
_ADDRESS = re.compile(r"(https?)://(\[[0-9A-Fa-f:.]+\]|[^\s/:\[\]]*):(\d{1,5})/?")
_LOOPBACK = re.compile(r"localhost|127(\.\d{1,3}){3}|::1")


@dataclass(frozen=True)
class Listener:
    """One address; port 0 is any free one, an empty host is every address of this machine, as in Connect."""

    scheme: str
    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        return _LOOPBACK.fullmatch(self.host) is not None

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


def read_listeners(text: str) -> tuple[Listener, ...]:
    """ValueError where it is none of what is expected."""
    if text == "none":
        return ()
    found = [_ADDRESS.fullmatch(part.strip()) for part in text.split(",")]
    listeners = [Listener(one[1], one[2].strip("[]"), int(one[3])) for one in found if one is not None]
    if len(listeners) != len(found) or any(one.port > 65535 for one in listeners):
        raise ValueError(EXPECTED)
    return tuple(listeners)
