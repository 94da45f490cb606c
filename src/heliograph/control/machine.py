"""Whether a process of this machine lives: the one thing that one run may know of another without waiting."""

from __future__ import annotations

from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_PID_NAMESPACE = Path("/proc/self/ns/pid")
_PROCESSES = Path("/proc")
_ZOMBIE = "Z"


def this_machine() -> str:
    """The same for all processes that see each other by their numbers, since the machine started; empty where it cannot be
    told."""
    try:
        return f"{_BOOT_ID.read_text().strip()}/{_PID_NAMESPACE.readlink()}"
    except OSError:
        return ""


def is_gone(machine: str, process: int) -> bool:
    """Whether a process that was started on `machine` has ended, as far as can be told from here."""
    if not machine or machine != this_machine():
        return False
    try:
        # The name may hold anything, so what follows is looked for from its end.
        state = (_PROCESSES / str(process) / "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return True
    except (OSError, IndexError):
        return False
    return state == _ZOMBIE
