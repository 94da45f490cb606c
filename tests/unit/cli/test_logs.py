"""The two forms of the log, and that libraries are quiet."""

from __future__ import annotations

import argparse
import json
import logging
import subprocess
import sys
from collections.abc import Iterator

import pytest

from heliograph.cli.logs import add_log_options, set_up_logs

NAMES = ("", "heliograph", "kafka", "py4j", "pyspark", "aiokafka", "asyncio")


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    handlers, levels = root.handlers[:], {name: logging.getLogger(name).level for name in NAMES}
    yield
    root.handlers[:] = handlers
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


def test_text_is_one_line_with_time_and_level(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logs("info", "text")
    logging.getLogger("heliograph.run").info("%d lanes", 3)
    [line] = capsys.readouterr().err.splitlines()
    time, level, *rest = line.split()
    assert len(time) == len("12:34:56.789")
    assert (level, " ".join(rest)) == ("info", "3 lanes")


def test_json_is_one_object_per_line(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logs("debug", "json")
    log = logging.getLogger("heliograph.run")
    log.warning('a "quoted"\nmessage')
    try:
        raise ValueError("broken")
    except ValueError:
        log.exception("it failed")
    first, second = map(json.loads, capsys.readouterr().err.splitlines())
    assert first.keys() == {"time", "level", "logger", "message"}
    assert (first["level"], first["logger"], first["message"]) == ("warning", "heliograph.run", 'a "quoted"\nmessage')
    assert first["time"].endswith("+00:00")
    assert "ValueError: broken" in second["exception"]


def test_text_shows_an_exception(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logs("info", "text")
    try:
        raise ValueError("broken")
    except ValueError:
        logging.getLogger("heliograph").exception("it failed")
    assert "ValueError: broken" in capsys.readouterr().err


def test_the_level_is_for_our_own_messages_and_libraries_are_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logs("warning", "text")
    logging.getLogger("heliograph.run").info("too much")
    logging.getLogger("kafka.conn").error("socket disconnected")
    logging.getLogger("somewhere").warning("kept")
    assert [line.split()[-1] for line in capsys.readouterr().err.splitlines()] == ["kept"]


def test_setting_up_twice_does_not_say_everything_twice(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logs("info", "text")
    set_up_logs("info", "text")
    logging.getLogger("heliograph").info("once")
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_an_unknown_level_is_refused_with_the_allowed_ones(capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    add_log_options(parser)
    defaults = parser.parse_args([])
    assert (defaults.log_level, defaults.log_format) == ("info", "text")
    with pytest.raises(SystemExit) as left:
        parser.parse_args(["--log-level", "loud"])
    assert left.value.code == 2
    assert "debug" in capsys.readouterr().err


def test_a_line_that_is_logged_while_descriptor_2_is_the_jvms_reaches_the_person() -> None:
    program = (
        "import logging, os\n"
        "from heliograph.cli.logs import set_up_logs\n"
        "set_up_logs('info', 'text')\n"
        "os.dup2(os.open(os.devnull, os.O_WRONLY), 2)\n"
        "logging.getLogger('heliograph.run').warning('generation 1')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr.endswith("warning generation 1\n")
