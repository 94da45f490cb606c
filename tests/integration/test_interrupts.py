"""Ctrl-C while a cluster is silent, and a pipe whose reader has gone: commands as a shell starts them. Needs no broker."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.heliograph_run import PROGRAM

FILE = "clusters = A, B\nA.bootstrap.servers = {a}\nB.bootstrap.servers = {a}\nA->B.enabled = true\n"
SILENT_SECONDS = 120
PATIENT = """
import sys
from importlib import import_module
from heliograph.cli import main
for name in ("kafka.connections._SETUP_SECONDS", "kafka.admin._PATIENCE_MS", "operations.compare._ANSWER_SECONDS",
             "control.flow_set._PATIENCE_SECONDS", "cli.check._AT_RUN_SECONDS", "cli.remote._SECONDS"):
    module, _, limit = name.rpartition(".")
    module = import_module(f"heliograph.{module}")
    assert getattr(module, limit) > 0
    setattr(module, limit, 86_400_000)
sys.exit(main.main())
"""
"""The command, without those of its limits that do not follow request.timeout.ms: a silent cluster is waited for all day."""


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """Whoever starts the tests in the background has interrupts ignored, and programs that are started here would inherit that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def silent(tmp_path: Path) -> Iterator[tuple[socket.socket, Path]]:
    """A file of clusters that take connections and never answer."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(SILENT_SECONDS)
        path = tmp_path / "mm2.properties"
        patience = "request.timeout.ms = 86400000\ntakeover.wait.seconds = 100000\ncanary.enabled = true\n"
        path.write_text(FILE.format(a=f"127.0.0.1:{listener.getsockname()[1]}") + patience)
        yield listener, path


WAITING = (
    "plan {file}",
    "compare {file}",
    "status {file}",
    "lag {file}",
    "audit {file}",
    "events {file} --follow",
    "check {file}",
    "canary {file}",
    "translate {file} --flow A->B --topic t --partition 0 --offset 1",
    "run {file}",
    "hand-back {file} --yes",
    "forget {file} --flow A->B --yes",
    "pause {file} --flow A->B --url {url}",
    "top {file} --url {url}",
)
AT_ONCE = {"hand-back", "forget", "pause", "top"}
"""The others ask first, for three seconds, what REST changed."""


@pytest.mark.parametrize("words", WAITING, ids=lambda words: words.split()[0])
def test_an_interrupt_ends_a_command_that_waits_for_a_cluster(words: str, silent: tuple[socket.socket, Path]) -> None:
    """Some wait in a thread. Nothing but the interrupt can end them: no wait of theirs ends while the test lasts.

    A run that carries nothing yet has nothing to drain, and does not wait for its Spark.
    """
    listener, file = silent
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    arguments = [word.format(file=file, url=url) for word in words.split()]
    with subprocess.Popen(
        [sys.executable, "-c", PATIENT, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        kept = contextlib.ExitStack()
        try:
            for _ in range(1 if arguments[0] in AT_ONCE else 2):
                kept.enter_context(listener.accept()[0])
            process.send_signal(signal.SIGINT)
            out, said = process.communicate(timeout=SILENT_SECONDS)
        finally:
            process.kill()
            kept.close()
    assert (process.returncode, out, said) == (130, "", "heliograph: interrupted\n")


@pytest.mark.parametrize("words", [["config", "{file}"], ["config", "{file}", "--json"], ["--help"]])
def test_a_reader_that_goes_away_is_met_with_silence(words: list[str], tmp_path: Path) -> None:
    path = tmp_path / "mm2.properties"
    path.write_text(FILE.format(a="a:1"))
    command = [word.format(file=path) for word in words]
    nobody, pipe = os.pipe()
    os.close(nobody)  # before it begins: what it says while somebody could read it is no fault
    with subprocess.Popen([PROGRAM, *command], stdout=pipe, stderr=subprocess.PIPE) as process:
        os.close(pipe)
        assert process.stderr is not None
        assert process.stderr.read() == b""
        assert process.wait() == (141 if "config" in words else 0)


def test_a_java_home_that_is_wrong_is_named_before_spark_is_started(tmp_path: Path) -> None:
    path = tmp_path / "mm2.properties"
    path.write_text(FILE.format(a="127.0.0.1:1"))
    environ = {**os.environ, "JAVA_HOME": "/nope"}
    said = subprocess.run(
        [PROGRAM, "run", str(path)], env=environ, capture_output=True, text=True, timeout=120, check=False
    )
    assert (said.returncode, said.stdout) == (1, "")
    assert said.stderr.splitlines()[-1].startswith(
        "heliograph: Java 17 or newer was not found: JAVA_HOME=/nope does not run; install a JDK"
    )


LOADING = """
import os, signal, sys, time
from heliograph.cli import main
def load(command):
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(60)  # another thread may have been woken for it: Python hears of it in a moment
    raise AssertionError("the interrupt comes first")
main.module_of = load
sys.exit(main.main([sys.argv[1], "mm2.properties"]))
"""


@pytest.mark.parametrize("command", ["status", "run", "demo"])
def test_an_interrupt_while_a_command_is_still_loaded_is_no_stack_trace(command: str) -> None:
    """On a busy machine that is a second and more, and a second is when people change their minds."""
    ended = subprocess.run([sys.executable, "-c", LOADING, command], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "heliograph: interrupted\n")


ENDLESS = """
import asyncio, sys, threading
from heliograph.cli import config, main
def wait():
    print("waits", flush=True)
    threading.Event().wait()
config.run = lambda args: asyncio.run(asyncio.to_thread(wait))
sys.argv = ["heliograph", "config", "mm2.properties"]
sys.exit(main.main())
"""


DEAF = """
import asyncio, signal, sys
from heliograph.cli import config, main
def run(args):
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    print("waits", flush=True)
    asyncio.run(asyncio.sleep(3600))
config.run = run
sys.argv = ["heliograph", "config", "mm2.properties"]
sys.exit(main.main())
"""
"""The main thread waits in the kernel and is not woken: as when the signal comes in the moment before that wait begins."""


LEFT_BEHIND = """
import sys, threading, time
from heliograph.cli import config, main
def run(args):
    threading.Thread(target=threading.Event().wait).start()
    print("waits", flush=True)
    time.sleep(3600)
config.run = run
sys.argv = ["heliograph", "config", "mm2.properties"]
sys.exit(main.main())
"""
"""The command has come to its end, and Python waits for a thread of it: as when the signal comes while a pool starts its first one."""


REDIRECTED = """
import os, sys, time
from heliograph.cli import config, main
def run(args):
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    print("waits", flush=True)
    time.sleep(3600)
config.run = run
sys.argv = ["heliograph", "config", "mm2.properties"]
sys.exit(main.main())
"""
"""Another thread has standard error go to Spark's log, while its JVM starts."""


@pytest.mark.parametrize(
    "program", [ENDLESS, DEAF, LEFT_BEHIND, REDIRECTED], ids=["endless", "deaf", "left-behind", "redirected"]
)
def test_a_thread_that_never_ends_is_not_waited_for(program: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "waits\n"
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=SILENT_SECONDS)
        finally:
            process.kill()
    assert (process.returncode, said) == (130, "heliograph: interrupted\n")


CUT_SHORT = """
import asyncio, sys
from heliograph.cli import config, main

async def ends_slowly():
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        await asyncio.sleep(60)

async def is_interrupted_again():
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        raise KeyboardInterrupt

async def command():
    other, slow = asyncio.create_task(is_interrupted_again()), asyncio.create_task(ends_slowly())
    asyncio.get_running_loop().call_later(0.1, interrupt)
    try:
        await slow
    except BaseException:
        await asyncio.gather(other, return_exceptions=True)
        raise

def interrupt():
    raise KeyboardInterrupt

config.run = lambda args: asyncio.run(command())
sys.argv = ["heliograph", "config", "any.properties"]
sys.exit(main.main())
"""


def test_what_an_interrupt_cuts_short_is_not_heard_any_more() -> None:
    """A command in whose tasks the interrupt comes up a second time: its loop is closed before its clean-up has ended."""
    done = subprocess.run([sys.executable, "-c", CUT_SHORT], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "heliograph: interrupted\n")
