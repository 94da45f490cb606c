"""What HTTP asks of every path beside its own methods: HEAD as GET without its body, OPTIONS, and 405 with what is allowed.

As Kafka Connect's server has it; whoever probes a worker with HEAD or asks what it may send gets the same answers here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from fastapi import APIRouter, HTTPException, Response
from fastapi.routing import APIRoute

_ALL = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE"})


def complete(api: APIRouter) -> None:
    """To be called when all routes are there. What is added is in no document: it says nothing new."""
    by_path: dict[str, dict[str, APIRoute]] = {}
    for route in api.routes:
        if isinstance(route, APIRoute):
            by_path.setdefault(route.path, {}).update(dict.fromkeys(route.methods or (), route))
    for path, routes in by_path.items():
        allowed = [*sorted(routes), *(["HEAD"] if "GET" in routes else []), "OPTIONS"]
        if "GET" in routes:
            _add(api, path, routes["GET"].endpoint, ["HEAD"])
        _add(api, path, _options(allowed), ["OPTIONS"])
        _add(api, path, _not_allowed(allowed), _ALL.difference(routes))


def _add(api: APIRouter, path: str, answer: Callable[..., object], methods: Iterable[str]) -> None:
    api.add_api_route(path, answer, methods=[*methods], include_in_schema=False, response_model=None)


def _options(allowed: Iterable[str]) -> Callable[[], Awaitable[Response]]:
    text = ", ".join(allowed)

    async def options() -> Response:
        return Response(text, headers={"Allow": text.replace(" ", "")}, media_type="text/plain")

    return options


def _not_allowed(allowed: Iterable[str]) -> Callable[[], Awaitable[Response]]:
    allow = ",".join(allowed)

    async def not_allowed() -> Response:
        raise HTTPException(405, headers={"Allow": allow})

    return not_allowed
