"""What is answered where something is refused: one body for our own paths, Connect's for Connect's, Burrow's for Burrow's."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from heliograph.errors import Refused
from heliograph.rest.lanes_page import BadQuery

_BURROW = ("/v3/", "/burrow/")
_CONNECT = ("/connectors", "/connector-plugins", "/health")


def _is_connects(path: str) -> bool:
    return path == "/" or path.startswith(_CONNECT)


def body(path: str, status: int, message: str, field: str = "", allowed: Sequence[str] = ()) -> dict[str, Any]:
    if _is_connects(path):
        return {"error_code": status, "message": message}
    if path.startswith(_BURROW):
        return {"error": True, "message": message, "request": {"url": path, "host": platform.node()}}
    about: dict[str, Any] = {"message": message}
    if field:
        about["field"] = field
    if allowed:
        about["allowed"] = list(allowed)
    return {"error": about}


def add_handlers(app: FastAPI) -> None:
    """Every refusal is JSON with one sentence; never a stack trace."""

    @app.exception_handler(Refused)
    async def refused(request: Request, error: Refused) -> JSONResponse:
        return JSONResponse(body(request.url.path, error.status, str(error)), error.status)

    @app.exception_handler(BadQuery)
    async def bad_query(request: Request, error: BadQuery) -> JSONResponse:
        return JSONResponse(body(request.url.path, 422, str(error), error.field, error.allowed), 422)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        return JSONResponse(*_invalid(request.url.path, error.errors()))

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> JSONResponse:
        message = f"{request.method} {request.url.path}: {str(error.detail).lower()}"
        if _is_connects(request.url.path):
            message = f"HTTP {error.status_code} {HTTPStatus(error.status_code).phrase}"
        return JSONResponse(body(request.url.path, error.status_code, message), error.status_code, error.headers)

    @app.exception_handler(Exception)
    async def broken(request: Request, _: Exception) -> JSONResponse:
        return JSONResponse(body(request.url.path, 500, "the server could not answer; its log says why"), 500)


def _invalid(path: str, faults: Sequence[Any]) -> tuple[dict[str, Any], int]:
    """The first fault; which field it is about, and what it may be."""
    fault = faults[0]
    if fault["type"] == "json_invalid":
        return body(path, 400, f"the body is not JSON: {fault['ctx']['error']}"), 400
    field = ".".join(str(part) for part in fault["loc"][1:]) or "body"
    words = {"missing": "is missing", "extra_forbidden": "is not known here"}
    said = words.get(fault["type"], fault["msg"][:1].lower() + fault["msg"][1:])
    return body(path, 422, f"{field}: {said}", field), 422
