"""Bodies of Connect's routes: read as Connect reads them, refused with a 4xx and a sentence where Connect breaks."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from fastapi import Request

from heliograph.errors import Refused
from heliograph.rest.connect_bodies import new_connector, offsets_of, patch_of, read_object


def request(body: bytes, content_type: str = "application/json") -> Request:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    scope = {"type": "http", "method": "POST", "path": "/", "headers": [(b"content-type", content_type.encode())]}
    return Request(scope, receive)


def read(body: bytes, content_type: str = "application/json") -> dict[str, Any]:
    return asyncio.run(read_object(request(body, content_type)))


@pytest.mark.parametrize("content_type", ["application/json", "application/json; charset=utf-8", "Application/JSON"])
def test_an_object_is_read(content_type: str) -> None:
    assert read(b'{"a": 1}', content_type) == {"a": 1}


@pytest.mark.parametrize("content_type", ["text/plain", "", "application/x-www-form-urlencoded"])
def test_another_type_of_body_is_refused_as_connect_does(content_type: str) -> None:
    with pytest.raises(Refused, match="HTTP 415 Unsupported Media Type") as refused:
        read(b"{}", content_type)
    assert refused.value.status == 415


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{nope", "the body is not JSON"),
        (b"", "the body is not JSON"),
        (b"\xff", "the body is not JSON"),
        (b'{"a": "\\ud800"}', "the body is not JSON"),
        (b"[" * 100_000, "the body is not JSON"),
        (b"[1]", "the body is a list, expected a JSON object"),
        (b"null", "the body is null"),
        (b"5", "the body is a number"),
        (b"true", "the body is true or false"),
        (b'"x"', "the body is a text"),
    ],
)
def test_what_is_no_object_is_refused(body: bytes, words: str) -> None:
    with pytest.raises(Refused, match=words) as refused:
        read(body)
    assert refused.value.status == 400


def test_a_new_connector_is_read_as_connect_reads_it() -> None:
    config = {"tasks.max": 1, "enabled": True}
    texts = {"tasks.max": "1", "enabled": "true"}
    assert new_connector({"name": "x", "config": config}) == ("x", texts, "RUNNING")
    assert new_connector({"name": 5, "config": config, "initial_state": "stopped"}) == ("5", texts, "STOPPED")
    assert new_connector({"config": {"name": "x"}})[0] == "x"
    assert new_connector({"config": {}})[0] == ""


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"name": "x"}, "config is null"),
        ({"name": "x", "config": []}, "config is a list"),
        ({"name": ["x"], "config": {}}, "name is a list"),
        ({"name": "x", "config": {}, "extra": 1}, 'Unrecognized field "extra"'),
        ({"name": "x", "config": {}, "initial_state": "BOGUS"}, "expected RUNNING, PAUSED, STOPPED"),
        ({"name": "x", "config": {}, "initial_state": 5}, "initial_state is 5"),
        ({"name": "x", "config": {"topics": None}}, "Configuration 'topics' values must not be null."),
        ({"name": "x", "config": {"topics": {}}}, "Invalid value for configuration topics"),
    ],
)
def test_a_bad_connector_is_refused_with_the_field(body: dict[str, Any], words: str) -> None:
    with pytest.raises(Refused, match=words) as refused:
        new_connector(body)
    assert refused.value.status == 400


def test_a_patch_sets_fields_and_takes_them_out() -> None:
    assert patch_of({"a": 1, "b": None}) == {"a": "1", "b": None}
    with pytest.raises(Refused):
        patch_of({"a": []})


def test_offsets_are_rows_of_a_partition_and_an_offset_or_none() -> None:
    row = {"partition": {"topic": "t"}, "offset": {"offset": 1}}
    assert offsets_of({"offsets": [row, {"partition": {}}]}) == [row, {"partition": {}, "offset": None}]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "Partitions / offsets need to be provided"),
        ({"offsets": None}, "need to be provided"),
        ({"offsets": []}, "need to be provided"),
        ({"offsets": "x"}, "offsets is a text"),
        ({"offsets": [], "more": 1}, 'Unrecognized field "more"'),
        ({"offsets": [5]}, "Source partitions may not be null"),
        ({"offsets": [{"offset": {}}]}, "Source partitions may not be null"),
        ({"offsets": [{"partition": {}, "offset": 5}]}, "offset is a number"),
    ],
)
def test_bad_offsets_are_refused(body: dict[str, Any], words: str) -> None:
    with pytest.raises(Refused, match=words) as refused:
        offsets_of(json.loads(json.dumps(body)))
    assert refused.value.status == 400
