"""What in a MirrorMaker 2 file or a connector's configuration would change records: Connect's transforms and converters.

Heliograph copies records byte for byte. A file that masks or filters them is therefore refused, unless it says that they may
be copied as they are: `transforms.ignore = true`. Predicates are only conditions of transforms, and change nothing alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from heliograph.config.option import FLOW
from heliograph.config.properties import Property
from heliograph.config.resolve import View
from heliograph.model.clusters import Flow

IGNORE = "transforms.ignore"
TRANSFORMS = "transforms"
CONVERTERS = tuple(f"{part}.converter" for part in ("key", "value", "header"))
_AS_IT_IS = "ByteArrayConverter"


def changes_records(option: str, value: str) -> str:
    """Why records would differ from their copies under MirrorMaker 2, with what to do; nothing if they would not."""
    if option == TRANSFORMS and value.strip(" ,"):
        what = "these transforms would change records"
    elif option in CONVERTERS and value and value.rpartition(".")[2] != _AS_IT_IS:
        what = "this converter would change records"
    else:
        return ""
    return (
        f"{what}, and Heliograph copies them byte for byte: leave it out, or set {IGNORE} = true if records may be copied "
        "untransformed"
    )


def transform_faults(entries: Mapping[str, Property], flow: Flow, is_worker: bool) -> Iterator[tuple[int, str]]:
    """Lines and sentences. What a worker's file says without a flow is the default for connectors of any kind."""
    view = View(entries, flow=flow.name)
    if view.flag(IGNORE):
        return
    for option in (TRANSFORMS, *CONVERTERS):
        entry = view.set_form(option, FLOW)
        if entry is None or (is_worker and entry.name == option):
            continue
        why = changes_records(option, entry.value)
        if why:
            yield entry.line, f"{entry.name} = {entry.shown}: {why}"
