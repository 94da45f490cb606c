"""For whom a command works: named in the event of each change that it makes."""

from __future__ import annotations

import getpass
import os
import platform


def user() -> str:
    """The user and this host, as in `ann@north`."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        name = str(os.getuid())
    return f"{name}@{platform.node()}".encode("ascii", "replace").decode()
