"""A file whose transforms or converters would change records is refused unless it says that they may be copied as they are."""

from __future__ import annotations

import pytest

from heliograph.config.load import load
from heliograph.errors import ConfigError

FILE = "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\n"
MASK = "transforms = mask\ntransforms.mask.type = org.apache.kafka.connect.transforms.MaskField$Value\n"
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
JSON = "org.apache.kafka.connect.json.JsonConverter"
WORKER = "bootstrap.servers = b:1\ngroup.id = connect\nlisteners = http://127.0.0.1:8083\n"


def faults(text: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as refused:
        load(text, "mm2.properties")
    return tuple(refused.value.faults)


def test_transforms_are_refused_with_their_line_and_what_to_do() -> None:
    (fault,) = faults(FILE + MASK)
    assert fault == (
        "mm2.properties:5: transforms = mask: these transforms would change records, and Heliograph copies them byte for "
        "byte: leave it out, or set transforms.ignore = true if records may be copied untransformed"
    )
    (fault,) = faults(f"{FILE}A->B.transforms = mask, route")
    assert fault.startswith("mm2.properties:5: A->B.transforms = mask, route: these transforms would change records")


def test_a_fault_of_the_whole_file_is_said_once_though_several_flows_have_it() -> None:
    assert len(faults(f"{FILE}B->A.enabled = true\n{MASK}")) == 1


@pytest.mark.parametrize("option", ["key.converter", "value.converter", "header.converter"])
def test_a_converter_that_is_not_of_bytes_is_refused(option: str) -> None:
    (fault,) = faults(f"{FILE}{option} = {JSON}")
    assert f"{option} = {JSON}: this converter would change records" in fault
    assert load(f"{FILE}{option} = {BYTES}", "mm2.properties").flows


@pytest.mark.parametrize("line", ["transforms.ignore = true", "A->B.transforms.ignore = true"])
def test_who_says_that_records_may_be_copied_untransformed_gets_them_so(line: str) -> None:
    found = load(f"{FILE}{MASK}key.converter = {JSON}\n{line}\n", "mm2.properties")
    assert any("transforms is not served in this version" in said for said in found.warnings)


@pytest.mark.parametrize(
    "lines",
    ["transforms =", "transforms.mask.type = x", "predicates = p", "A->B.transforms =\ntransforms = mask", "# none"],
)
def test_what_changes_no_record_is_not_refused(lines: str) -> None:
    assert load(f"{FILE}{lines}\n", "mm2.properties").flows


def test_a_flow_that_is_not_enabled_may_have_any() -> None:
    assert load(f"{FILE}B->A.transforms = mask\n", "mm2.properties").flows


def test_a_workers_defaults_are_for_connectors_of_any_kind() -> None:
    text = f"{WORKER}key.converter = {JSON}\n"
    assert load(text, "worker.properties").flows == ()
    over = {
        "clusters": "worker,A,B",
        "A.bootstrap.servers": "a:1",
        "B.bootstrap.servers": "b:1",
        "A->B.enabled": "true",
    }
    assert load(text, "worker.properties", overlay=over).flows
    with pytest.raises(ConfigError) as refused:
        load(text, "worker.properties", overlay={**over, "A->B.value.converter": JSON})
    assert [fault for fault in refused.value.faults if fault.startswith("REST: A->B.value.converter = ")]
