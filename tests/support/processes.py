"""Processes that may end while they are looked at."""

from __future__ import annotations

import psutil


def children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def command_of(process: psutil.Process) -> list[str]:
    """Nothing of one that has ended, also while its parent has not looked after it."""
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []
