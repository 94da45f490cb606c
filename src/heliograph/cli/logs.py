"""How a command writes its log: text for people, JSON lines for machines; other libraries only when they warn."""

from __future__ import annotations

import argparse
import io
import json
import logging
import os
import sys
from datetime import UTC, datetime
from typing import TextIO

LEVELS = ("debug", "info", "warning", "error")


def add_log_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--log-level", choices=LEVELS, default="info", help="what to log (default: info)")
    parser.add_argument("--log-format", choices=("text", "json"), default="text", help="one line each (default: text)")


def set_up_logs(level: str, form: str) -> None:
    handler = logging.StreamHandler(_own_stderr())
    handler.setFormatter(_Json() if form == "json" else _Text())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("heliograph").setLevel(level.upper())
    # Our own parts say what a lost connection means; the libraries under them would say it again, and louder.
    for library in ("kafka", "py4j", "pyspark", "aiokafka", "asyncio"):
        logging.getLogger(library).setLevel(logging.CRITICAL)


def _own_stderr() -> TextIO:
    """Standard error under a descriptor of our own: while Spark's JVM starts, 2 is that one's log, and lines would be lost."""
    first = sys.__stderr__
    if first is None or sys.stderr is not first:
        return sys.stderr
    raw = io.BufferedWriter(io.FileIO(os.dup(first.fileno()), "w"))
    return io.TextIOWrapper(raw, first.encoding, first.errors, line_buffering=True)


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S.%f")[:-3]
        text = f"{moment} {record.levelname.lower():7} {record.getMessage()}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields)
