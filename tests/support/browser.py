"""A real Chromium without a window, driven over its own pipe: no driver, no library, no port.

`Browser()` starts it, `open` gives a tab. What a page says on its console, what fails and what it asks for is kept for the test to judge.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Self

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
_ANSWER_SECONDS = 60.0
_FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--force-color-profile=srgb", "--remote-debugging-pipe",
)  # fmt: skip
_LAUNCH = """
import fcntl, os, sys
reading, writing = (fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3])
os.dup2(reading, 3)
os.dup2(writing, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Chromium reads commands at 3 and answers at 4; our pipes are put there, whatever their numbers were."""
_KEYS = {
    "Enter": ("\r", 13),
    "Escape": ("", 27),
    "ArrowDown": ("", 40),
    "ArrowUp": ("", 38),
    "ArrowRight": ("", 39),
    "Tab": ("", 9),
}
_SHIFT = 8
_ROLES = (
    "button",
    "link",
    "textbox",
    "searchbox",
    "combobox",
    "checkbox",
    "spinbutton",
    "dialog",
    "table",
    "navigation",
    "img",
)


def find_chromium() -> str:
    """Where it is. A missing one is fetched by apt where that is allowed; otherwise the test is skipped and says why."""
    found = _installed() or _fetched()
    if found is None:
        pytest.skip("no Chromium on this machine, and apt cannot install it: apt-get install chromium")
    return found


def _installed() -> str | None:
    return next(filter(None, map(shutil.which, _NAMES)), None)


@cache
def _fetched() -> str | None:
    """Tried once, and not for long: a machine that reaches no registry must not hold up the tests."""
    if os.geteuid() == 0 and shutil.which("apt-get"):
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        install = ["apt-get", "install", "-qy", "--no-install-recommends", "chromium", "fonts-dejavu-core"]
        for command, seconds in ((["apt-get", "update", "-q"], 60), (install, 170)):
            with contextlib.suppress(subprocess.TimeoutExpired):
                subprocess.run(command, check=False, capture_output=True, timeout=seconds, env=quiet)
    return _installed()


class Browser:
    """One process; end it with `close`, or as a context."""

    def __init__(self) -> None:
        program = find_chromium()
        self._folder = tempfile.mkdtemp(prefix="heliograph-browser-")
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        command = [program, *_FLAGS, f"--user-data-dir={self._folder}", "about:blank"]
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _LAUNCH, str(to_read), str(to_write), *command],
            pass_fds=(to_read, to_write),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": self._folder},
        )
        os.close(to_read)
        os.close(to_write)
        self._buffer = b""
        self._number = 0
        self.tabs: dict[str, Tab] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with contextlib.suppress(OSError, TimeoutError, EOFError):
            self.call("Browser.close")
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)
        os.close(self._read)
        os.close(self._write)
        shutil.rmtree(self._folder, ignore_errors=True)

    def call(self, method: str, parameters: Mapping[str, Any] | None = None, session: str = "") -> dict[str, Any]:
        self._number += 1
        number = self._number
        message = {"id": number, "method": method, "params": dict(parameters or {})}
        if session:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        for answer in self._messages(_ANSWER_SECONDS):
            if answer.get("id") == number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                result: dict[str, Any] = answer["result"]
                return result
        raise TimeoutError(f"Chromium did not answer {method}")

    def pump(self, seconds: float) -> None:
        """Take what comes in by itself."""
        for _ in self._messages(seconds):
            pass

    def _messages(self, seconds: float) -> Iterator[dict[str, Any]]:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            while b"\0" in self._buffer:
                text, _, self._buffer = self._buffer.partition(b"\0")
                message = json.loads(text)
                if message.get("sessionId") in self.tabs:
                    self.tabs[message["sessionId"]].take(message)
                yield message
            if select.select([self._read], [], [], left)[0]:
                piece = os.read(self._read, 1 << 20)
                if not piece:
                    raise EOFError("Chromium ended")
                self._buffer += piece

    def open(self, width: int = 1440, height: int = 900, *, dark: bool = False, phone: bool = False) -> Tab:
        target = self.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        tab = self.tabs[session] = Tab(self, session, target)
        for domain in ("Page", "Runtime", "Log", "Network"):
            tab.call(f"{domain}.enable")
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone}
        tab.call("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        tab.call("Emulation.setEmulatedMedia", {"features": [scheme]})
        return tab


class Tab:
    """`errors`: what the console showed as an error and what was thrown; `requests`: addresses that the page asked for."""

    def __init__(self, browser: Browser, session: str, target: str) -> None:
        self._browser = browser
        self._session = session
        self._target = target
        self.errors: list[str] = []
        self.requests: list[str] = []

    def call(self, method: str, parameters: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return self._browser.call(method, parameters, self._session)

    def take(self, message: Mapping[str, Any]) -> None:
        found = message.get("params", {})
        match message.get("method"):
            case "Runtime.exceptionThrown":
                details = found["exceptionDetails"]
                self.errors.append(details.get("exception", {}).get("description") or details["text"])
            case "Runtime.consoleAPICalled" if found["type"] in ("error", "warning", "assert"):
                self.errors.append(" ".join(str(part.get("value", part.get("description"))) for part in found["args"]))
            case "Log.entryAdded" if found["entry"]["level"] == "error":
                self.errors.append(f"{found['entry']['text']} {found['entry'].get('url', '')}")
            case "Network.requestWillBeSent":
                self.requests.append(found["request"]["url"])

    def close(self) -> None:
        self._browser.call("Target.closeTarget", {"targetId": self._target})

    def go(self, url: str) -> None:
        self.call("Page.navigate", {"url": url})

    def pump(self, seconds: float) -> None:
        self._browser.pump(seconds)

    def value(self, expression: str) -> Any:
        """What a JavaScript expression is."""
        asked = {"expression": expression, "returnByValue": True, "awaitPromise": True}
        answer = self.call("Runtime.evaluate", asked)
        assert "exceptionDetails" not in answer, f"{expression}: {answer['exceptionDetails']}"
        return answer["result"].get("value")

    def wait(self, expression: str, what: str = "", seconds: float = 30.0) -> Any:
        """Until an expression is true; its value. While a page is being loaded nothing is there yet to be asked about."""
        until = time.monotonic() + seconds
        careful = f"(() => {{ try {{ return {expression}; }} catch {{ return null; }} }})()"
        while not (found := self.value(careful)):
            assert time.monotonic() < until, (
                f"not so after {seconds:g} s: {what or expression}\n{self.text()[:2000]}\n{self.errors}"
            )
            self.pump(0.1)
        return found

    def text(self) -> str:
        """All that can be read."""
        return str(self.value("document.body?.innerText"))

    def sees(self, text: str, seconds: float = 30.0) -> None:
        self.wait(f"document.body.innerText.includes({json.dumps(text)})", f"the page shows '{text}'", seconds)

    def click(self, selector: str, text: str = "") -> None:
        """The first that matches, with this text if one is given: where it is, with the mouse."""
        found = f"[...document.querySelectorAll({json.dumps(selector)})].find((el) => el.textContent.includes({json.dumps(text)}))"
        self.wait(f"Boolean({found})", f"{selector} {text}")
        x, y = self._middle(found)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", {"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1})

    def hover(self, selector: str) -> None:
        """Point at the first that matches."""
        x, y = self._middle(f"document.querySelector({json.dumps(selector)})")
        self.call("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": x, "y": y})

    def _middle(self, found: str) -> tuple[float, float]:
        x, y = self.value(
            f"(() => {{ const el = {found}; el.scrollIntoView({{block: 'center'}}); const r = el.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; }})()"
        )
        return x, y

    def fill(self, selector: str, text: str) -> None:
        self.wait(f"Boolean(document.querySelector({json.dumps(selector)}))", selector)
        self.value(f"document.querySelector({json.dumps(selector)}).focus()")
        self.call("Input.insertText", {"text": text})

    def press(self, key: str, *, shift: bool = False) -> None:
        text, code = _KEYS.get(key, (key, ord(key[0].upper())))
        held = _SHIFT if shift else 0
        about = {
            "key": key, "code": key, "windowsVirtualKeyCode": code, "nativeVirtualKeyCode": code, "modifiers": held,
        }  # fmt: skip
        self.call(
            "Input.dispatchKeyEvent",
            {"type": "keyDown", "text": text, **about} if text else {"type": "rawKeyDown", **about},
        )
        self.call("Input.dispatchKeyEvent", {"type": "keyUp", **about})

    def picture(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", {"format": "png"})["data"]))

    def nameless(self) -> list[str]:
        """What can be pressed, chosen or filled in, and has no name for who does not see it: as Chromium tells a screen reader."""
        nodes = self.call("Accessibility.getFullAXTree")["nodes"]
        return [
            f"{node['role']['value']} {node.get('properties', [])}"
            for node in nodes
            if not node.get("ignored")
            and node.get("role", {}).get("value") in _ROLES
            and not node.get("name", {}).get("value", "").strip()
        ]
