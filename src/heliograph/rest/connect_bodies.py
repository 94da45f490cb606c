"""What Connect's routes are sent, read as Connect reads it, and refused with a sentence where Connect would answer 500."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import Request

from heliograph.config.connectors import FaultyConnector, as_texts
from heliograph.errors import Refused

_KNOWN = ("config", "name", "initial_state")
_STATES = ("RUNNING", "PAUSED", "STOPPED")
_NO_PARTITIONS = "Partitions / offsets need to be provided for an alter offsets request"

Offsets = list[dict[str, Any]]


async def read_object(request: Request) -> dict[str, Any]:
    """The body, which must be a JSON object."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refused(415, f"HTTP 415 {HTTPStatus(415).phrase}")
    try:
        body = json.loads(await request.body())
        json.dumps(body, ensure_ascii=False).encode()  # half a character can be kept by nobody
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"the body is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise Refused(400, f"the body is {_word(body)}, expected a JSON object")
    return body


def _word(value: Any) -> str:
    words = {list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return words.get(type(value), "a number")


def new_connector(body: Mapping[str, Any]) -> tuple[str, dict[str, str], str]:
    """Name, configuration and first state of `POST /connectors`."""
    strange = next((field for field in body if field not in _KNOWN), None)
    if strange is not None:
        known = ", ".join(f'"{field}"' for field in _KNOWN)
        raise Refused(400, f'Unrecognized field "{strange}" (known properties: {known})')
    config = body.get("config")
    if not isinstance(config, dict):
        raise Refused(400, f"config is {_word(config)}, expected a JSON object with the connector's configuration")
    name = body.get("name") if body.get("name") is not None else config.get("name", "")
    if not isinstance(name, str | int):
        raise Refused(400, f"name is {_word(name)}, expected a text")
    state = body.get("initial_state", "RUNNING")
    if not isinstance(state, str) or state.upper() not in _STATES:
        raise Refused(400, f"initial_state is {json.dumps(state)}, expected {', '.join(_STATES)}")
    return str(name), texts(config), state.upper()


def texts(config: Mapping[str, Any]) -> dict[str, str]:
    try:
        return as_texts(config)
    except FaultyConnector as error:
        raise Refused(400, error.message) from error


def patch_of(body: Mapping[str, Any]) -> dict[str, str | None]:
    """Fields to set, and with null those to take out."""
    gone: dict[str, str | None] = {name: None for name, value in body.items() if value is None}
    return {**texts({name: value for name, value in body.items() if value is not None}), **gone}


def offsets_of(body: Mapping[str, Any]) -> Offsets:
    """The rows of `PATCH /offsets`; each with its partition, and its offset or null."""
    strange = next((field for field in body if field != "offsets"), None)
    if strange is not None:
        raise Refused(400, f'Unrecognized field "{strange}" (one known property: "offsets")')
    rows = body.get("offsets")
    if rows is None or rows == []:
        raise Refused(400, _NO_PARTITIONS)
    if not isinstance(rows, list):
        raise Refused(400, f"offsets is {_word(rows)}, expected a list")
    return [_offset(row) for row in rows]


def _offset(row: Any) -> dict[str, Any]:
    if not isinstance(row, dict) or not isinstance(row.get("partition"), dict):
        raise Refused(400, "Source partitions may not be null")
    offset = row.get("offset")
    if offset is not None and not isinstance(offset, dict):
        raise Refused(400, f"offset is {_word(offset)}, expected an object or null")
    return {"partition": row["partition"], "offset": offset}
