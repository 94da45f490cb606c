"""Ctrl-C and a reader that went away: a command ends within a second, and in silence where nobody reads it.

Python waits for its threads before it ends, and a thread that asks a cluster may wait for as long as the cluster is silent.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from functools import cache

INTERRUPTED = 130
NOBODY_READS = 128 + signal.SIGPIPE
_SECONDS = 0.7
_SHOW_CURSOR = "\r\x1b[2K\x1b[?25h"


@contextlib.contextmanager
def ending_soon() -> Iterator[None]:
    """An interrupt is raised as ever; if that has not ended the process after a moment, this does.

    Python raises it between two of its own steps. One that comes just before the main thread begins to wait in the kernel would be
    raised when that wait ends, which may be never: so a thread hears of it too, through the file that Python writes each signal to.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    heard, heard_by = os.pipe()
    os.set_blocking(heard_by, False)
    is_over = threading.Event()
    _own_stderr()
    watcher = threading.Thread(target=_watch, args=(heard, is_over), daemon=True)
    watcher.start()
    before = signal.set_wakeup_fd(heard_by, warn_on_full_buffer=False)
    # A handler of our own: for Python's the event loop would put its own in place, which only asks its task to end.
    signal.signal(signal.SIGINT, lambda number, frame: signal.default_int_handler(number, frame))
    try:
        yield
    finally:
        is_over.set()
        signal.set_wakeup_fd(before)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.close(heard_by)
        watcher.join()


def _watch(heard: int, is_over: threading.Event) -> None:
    """Until the other end is closed."""
    while numbers := os.read(heard, 64):
        if signal.SIGINT in numbers and not is_over.wait(_SECONDS):
            _say_interrupted()
            os._exit(INTERRUPTED)  # whatever still waits is not waited for
    os.close(heard)


@cache
def _own_stderr() -> int:
    """As it was at the start, for as long as this process lives: while Spark's JVM starts, 2 is that one's log. -1: there is none."""
    try:
        return os.dup(2)
    except OSError:
        return -1


def _say_interrupted() -> None:
    """A spinner has hidden the cursor."""
    stderr = _own_stderr()
    with contextlib.suppress(OSError):
        cursor = _SHOW_CURSOR if os.isatty(stderr) else ""
        os.write(stderr, f"{cursor}heliograph: interrupted\n".encode())


def leave() -> None:
    """The command was interrupted and has cleaned up: the process says so, ends in a moment, and prints nothing more.

    An interrupt that comes up in a second task ends the event loop before the others have cleaned up. Python says so of each
    when it drops them, with a stack trace, and warns of what the interrupt kept from being awaited at all. And it waits for threads,
    of which a pool may have left one behind: the interrupt came while the pool started it.
    """
    _say_interrupted()
    sys.unraisablehook = lambda _: None
    warnings.simplefilter("ignore")
    logging.getLogger("asyncio").disabled = True
    threading.Thread(target=_exit_after_a_moment, daemon=True).start()


def _exit_after_a_moment() -> None:
    time.sleep(_SECONDS)
    os._exit(INTERRUPTED)


def nobody_reads() -> bool:
    """Whether standard output is a pipe whose reader has gone; then what is left goes nowhere."""
    is_broken = False
    try:
        sys.stdout.flush()
        output = sys.stdout.fileno()
    except BrokenPipeError:
        is_broken, output = True, sys.stdout.fileno()
    except (OSError, ValueError):
        return False  # it is no file: a test's
    if is_broken or _has_no_reader(output):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, output)
        os.close(nowhere)
        return True
    return False


def _has_no_reader(output: int) -> bool:
    """What a write met that failed before: its text is no longer there to be flushed again."""
    poll = select.poll()
    poll.register(output, select.POLLOUT)
    return any(found & select.POLLERR for _, found in poll.poll(0))
