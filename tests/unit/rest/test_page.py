"""The page's files: all there, nothing from elsewhere, nothing that the page's own policy would refuse."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from heliograph.rest.page import Files

FOLDER = Path(__file__).parents[3] / "src" / "heliograph" / "dashboard"
FILES = Files()
SCRIPTS = sorted(name for name in FILES.contents if name.endswith(".js"))
_IMPORT = re.compile(r"""(?:from|import)\s*\(?\s*["']([^"']+)["']""")
_ADDRESS = re.compile(rb"(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}")
_NAMESPACE = b"http://www.w3.org/2000/svg"


def test_every_file_of_the_folder_is_served() -> None:
    assert {*FILES.contents, "index.html"} == {path.name for path in FOLDER.iterdir()}


def test_the_entry_names_files_that_exist_by_their_version() -> None:
    named = re.findall(r'(?:src|href)="\./page/([0-9a-f]+)/([a-z_.]+)"', FILES.entry.decode())
    assert len(named) >= 4
    assert {version for version, _ in named} == {FILES.version}
    assert {name for _, name in named} <= FILES.contents.keys()
    assert b"{" not in FILES.entry


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_import_is_of_a_file_beside_it(name: str) -> None:
    imported = _IMPORT.findall(FILES.contents[name].decode())
    assert {target.removeprefix("./") for target in imported} <= FILES.contents.keys()
    assert all(target.startswith("./") for target in imported)


@pytest.mark.parametrize("name", sorted(FILES.contents))
def test_no_file_names_another_host(name: str) -> None:
    assert _ADDRESS.findall(FILES.contents[name].replace(_NAMESPACE, b"")) == []


def test_the_entry_holds_no_script_and_no_style_of_its_own() -> None:
    text = FILES.entry.decode()
    assert re.findall(r"<script(?![^>]*\bsrc=)|<style|\bstyle=|\bon[a-z]+=", text) == []


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_script_makes_markup_from_text(name: str) -> None:
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", FILES.contents[name].decode()
    )


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_script_is_longer_than_a_module_may_be(name: str) -> None:
    assert len(FILES.contents[name].splitlines()) <= 400


STYLE = FILES.contents["style.css"].decode()
_COLOURS = re.compile(r"--([a-z-]+): (#[0-9a-f]{6})")
_LIGHT, _DARK, _SYSTEM = (
    dict(_COLOURS.findall(STYLE[STYLE.index(begin) :].split("}")[0]))
    for begin in (":root {", ':root[data-theme="dark"] {', ':root:not([data-theme="light"]) {')
)
_TEXTS = ("text", "muted", "faint", "accent", "good", "busy", "warn", "bad", "still")


def _brightness(colour: str) -> float:
    """As WCAG reckons it."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_dark_by_choice_is_dark_by_system() -> None:
    assert _DARK == _SYSTEM
    assert _DARK.keys() <= _LIGHT.keys()


@pytest.mark.parametrize("colours", [_LIGHT, _DARK], ids=["light", "dark"])
def test_every_text_can_be_read_on_every_ground(colours: dict[str, str]) -> None:
    pairs = [
        (text, ground) for text in _TEXTS for ground in ("panel", "bg", "hover", f"{text}-soft") if ground in colours
    ]
    pairs.append(("muted", "still-soft"))
    for text, ground in pairs:
        dark, bright = sorted((_brightness(colours[text]), _brightness(colours[ground])))
        assert (bright + 0.05) / (dark + 0.05) >= 4.5, f"{text} on {ground}"
