"""A running mirror's REST, as commands use it: where it is, what it answers, and a sentence when nobody does."""

from __future__ import annotations

import argparse
import json
import os
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import quote

from heliograph.cli.who import user
from heliograph.config.load import load_file
from heliograph.errors import ConfigError, SetupError

_SECONDS = 25
_USER = "X-Heliograph-User"
_TOKEN = "HELIOGRAPH_TOKEN"  # noqa: S105  a name


def add_remote_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the file that `heliograph run` was given")
    parser.add_argument("--url", default="", help="where the run listens (default: the first of the file's listeners)")
    parser.add_argument(
        "--token-file",
        default="",
        metavar="PATH",
        help=f"a file with a token of rest.auth.tokens.file (default: what {_TOKEN} holds)",
    )


class Remote:
    """`ask` returns what the run answers; SetupError with its sentence where it refuses."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.url = args.url.rstrip("/") or _listener(args.file)
        self._token = _token(args.token_file)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"Content-Type": "application/json", _USER: user()}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        data = None if body is None else json.dumps(body).encode()
        address = f"{self.url}/api/v1{quote(path, safe='/?=&%')}"
        request = urllib.request.Request(address, data, headers, method=method)  # noqa: S310  the file's own listener
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS) as answer:  # noqa: S310  as above
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            raise SetupError(_sentence(error)) from error
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise SetupError(
                f"no run answers at {self.url} ({reason}): is the mirror running? --url says where else to ask"
            ) from error


def _listener(file: str) -> str:
    settings = load_file(file)
    listeners = settings.server.listeners
    if not listeners:
        raise ConfigError([f"{file}: listeners = none: the run cannot be reached; set listeners, or say --url"])
    if not listeners[0].port:
        raise ConfigError([f"{file}: listeners has port 0: the run says in its log which it took; say --url"])
    url = listeners[0].url
    return url if listeners[0].host else url.replace("://:", "://127.0.0.1:")


def _token(file: str) -> str:
    if not file:
        return os.environ.get(_TOKEN, "")
    try:
        text = Path(file).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ConfigError([f"--token-file {file}: cannot be read: {error.strerror}"]) from error
    return text.splitlines()[0].rpartition(":")[2].strip() if text else ""


def _sentence(error: urllib.error.HTTPError) -> str:
    try:
        message: str = json.loads(error.read())["error"]["message"]
    except (ValueError, KeyError, TypeError):
        message = f"{error.url} answered {error.code}"
    return message
