"""The web page at `/`: files of `dashboard/`, read once, served from memory.

Everything but the entry is served below a name made from the content of all files, so that browsers keep it for good and a new
version is a new name. The page may load nothing from anywhere else, and run no script that is not a file of ours.
"""

from __future__ import annotations

import hashlib
from importlib.resources import files

from fastapi import FastAPI, Request
from fastapi.responses import Response
from starlette.routing import Match, Route
from starlette.types import Scope

_KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_SAFE = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_ENTRY = "index.html"
_FOR_GOOD = "public, max-age=31536000, immutable"


class Files:
    """The page's files and the name of their version."""

    def __init__(self) -> None:
        folder = files("heliograph") / "dashboard"
        found = sorted((file for file in folder.iterdir() if file.is_file()), key=lambda file: file.name)
        self.contents = {file.name: file.read_bytes() for file in found if _kind(file.name)}
        digest = hashlib.sha256()
        for name, content in self.contents.items():
            digest.update(f"{name} {len(content)} ".encode() + content)
        self.version = digest.hexdigest()[:16]
        self.entry = self.contents.pop(_ENTRY).replace(b"{version}", self.version.encode())


def _kind(name: str) -> str:
    return _KINDS.get(name[name.rfind(".") :], "")


class _ForBrowsers(Route):
    """Matches who asks for HTML: `/` is Kafka Connect's too, which answers programs with JSON."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        accepted = next((value for name, value in scope.get("headers", ()) if name == b"accept"), b"")
        if scope["type"] == "http" and b"text/html" not in accepted:
            return Match.NONE, {}
        return super().matches(scope)


def add_to(app: FastAPI) -> None:
    """Put the page before all other routes. Not as a router: FastAPI would make plain routes of these, for every kind of reader."""
    known = Files()
    entry_tag = f'"{known.version}"'

    async def entry(request: Request) -> Response:
        headers = {**_SAFE, "Cache-Control": "no-cache", "ETag": entry_tag, "Vary": "Accept"}
        if request.headers.get("if-none-match") == entry_tag:
            return Response(status_code=304, headers=headers)
        return Response(known.entry, media_type=_KINDS[".html"], headers=headers)

    async def file(request: Request) -> Response:
        name = request.path_params["name"]
        content = known.contents.get(name)
        if content is None:
            return Response(f"the page has no file '{name}'", 404, {**_SAFE, "Cache-Control": "no-store"}, "text/plain")
        is_this = request.path_params["version"] == known.version
        headers = {**_SAFE, "Cache-Control": _FOR_GOOD if is_this else "no-store"}
        return Response(content, media_type=_kind(name), headers=headers)

    app.router.routes[:0] = [
        _ForBrowsers("/", entry, methods=["GET"], include_in_schema=False),
        Route("/index.html", entry, methods=["GET"], include_in_schema=False),
        Route("/page/{version}/{name}", file, methods=["GET"], include_in_schema=False),
    ]
