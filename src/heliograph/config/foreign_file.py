"""Files that people give by mistake, known by their first look: not a word about options helps there."""

from __future__ import annotations

import json
import re

_WRITES_ONE = "`heliograph init FILE` writes a commented file to start from"
_KIND = re.compile(r"^kind:\s*['\"]?(\w+)", re.MULTILINE)
_YAML = re.compile(r"\A\s*---\s*$|^apiVersion:\s*\S", re.MULTILINE)


def mistaken_for(content: bytes) -> str:
    """What the file is instead of a properties file, and what to do, as the end of a sentence; empty: it may be one."""
    if not content.strip():
        return f"is empty: {_WRITES_ONE}"
    if b"\0" in content:
        return "is not a text file: a MirrorMaker 2 properties file is expected"
    text = content.decode("latin-1")
    if _is_json(text):
        return "is JSON, not a properties file: the JSON of a connector is for POST /connectors of a running mirror"
    if _YAML.search(text):
        kind = _KIND.search(text)
        what = f"YAML ({kind[1]})" if kind else "YAML"
        return f"is {what}, not a properties file: write its clusters and mirrors as properties; {_WRITES_ONE}"
    return ""


def _is_json(text: str) -> bool:
    if not text.lstrip().startswith(("{", "[")):
        return False
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
