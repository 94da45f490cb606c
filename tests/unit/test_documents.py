"""Documents are held to the code: links resolve, the file map is the tree, commands parse, and no machine is named.

What a document says in words cannot be checked here; what it names can.
"""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from heliograph.cli.main import COMMANDS, module_of
from heliograph.model.events import EventKind

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "heliograph"
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
GLOSSARY = ROOT / "docs" / "glossary.md"
COMPATIBILITY = ROOT / "docs" / "mm2-compatibility.md"

_LINK = re.compile(r"\[[^\]]*\]\((?P<to>[^)\s]+)\)")
_CODE_SPAN = re.compile(r"`([^`\n]+)`")
_FENCE = re.compile(r"^```(?P<kind>\w*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_PATH_IN_REPOSITORY = re.compile(r"^(?:src|tests|docs/decisions|\.ci)/[\w./-]+$")
_TEST_BY_NAME = re.compile(r"^(?P<file>tests/[\w/]+\.py)::(?P<name>\w+(?:::\w+)*)$")
_MODULE_IN_PACKAGE = re.compile(
    r"^(?:cli|operations|embedded|control|config|spark|kafka|replication|wire|model)/[\w./]*$"
)
# Hosts by their shape: to write one down, even here, is what this forbids.
_REGISTRY = re.compile(
    r"\b(?:repo\d*|registry|index|files|pypi|packages|artifactory|nexus|crates)\.[a-z0-9-]+\.[a-z]{2,}"
)
_ADDRESS = re.compile(r"https?://(?P<host>[a-z0-9.-]+)")
_KNOWN_HOSTS = {"keepachangelog.com", "semver.org", "www.apache.org", "maven.apache.org", "www.w3.org"} | {
    "127.0.0.1",
    "host",
}
_MACHINE_PATH = re.compile(r"(?<![\w.$}~/<-])/(?:root|home|work|tmp|Users|mnt|opt|srv)/\w")


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def without_fences(text: str) -> str:
    return _FENCE.sub("", text)


def links() -> Iterator[tuple[Path, str]]:
    for document in DOCUMENTS:
        for match in _LINK.finditer(without_fences(text_of(document))):
            yield document, match["to"]


def heading_anchors(document: Path) -> set[str]:
    """The anchors that headings get: lower case, spaces to dashes, punctuation dropped."""
    headings = re.findall(r"^#+ (.+)$", without_fences(text_of(document)), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def resolves(document: Path, to: str) -> bool:
    if _ADDRESS.match(to):
        return True
    name, _, anchor = to.partition("#")
    target = document if not name else (document.parent / name).resolve()
    return target.exists() and (not anchor or anchor in heading_anchors(target))


def test_every_link_leads_somewhere() -> None:
    broken = [f"{document.relative_to(ROOT)} -> {to}" for document, to in links() if not resolves(document, to)]
    assert not broken


def test_a_broken_link_would_be_found(tmp_path: Path) -> None:
    document = tmp_path / "a.md"
    document.write_text("# One thing\n", encoding="utf-8")
    assert resolves(document, "a.md#one-thing")
    assert not resolves(document, "b.md")
    assert not resolves(document, "#another-thing")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_file_that_a_document_names_exists(document: Path) -> None:
    spans = _CODE_SPAN.findall(without_fences(text_of(document)))
    missing = [span for span in spans if _PATH_IN_REPOSITORY.match(span) and not (ROOT / span).exists()]
    missing += [span for span in spans if _MODULE_IN_PACKAGE.match(span) and not (PACKAGE / span).exists()]
    assert not missing


def named_tests(text: str) -> list[str]:
    return [span for span in _CODE_SPAN.findall(without_fences(text)) if "::" in span and span.startswith("tests/")]


def is_a_test(span: str) -> bool:
    named = _TEST_BY_NAME.match(span)
    if named is None or not (ROOT / named["file"]).exists():
        return False
    text = text_of(ROOT / named["file"])
    return all(
        re.search(rf"^\s*(?:async def|def|class) {name}\b", text, re.MULTILINE) for name in named["name"].split("::")
    )


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_test_that_a_document_names_exists(document: Path) -> None:
    assert not [span for span in named_tests(text_of(document)) if not is_a_test(span)]


@pytest.mark.parametrize(
    "wrong",
    [
        "tests/unit/test_documents.py::test_every_test",
        "tests/unit/test_nothing.py::test_x",
        "tests/unit/test_documents.py::",
        "tests/unit/wire/test_mm2.py::TestEveryBinaryRecord::test_x",
    ],
)
def test_a_test_that_does_not_exist_would_be_found(wrong: str) -> None:
    assert named_tests(f"see `{wrong}`") == [wrong]
    assert not is_a_test(wrong)
    assert is_a_test("tests/unit/wire/test_mm2.py::TestEveryBinaryRecord::test_cut_short_is_refused")


def upstream_rows() -> list[tuple[str, str, str]]:
    """Of the tables of MirrorMaker 2's tests: their names, our tests, remarks."""
    section = text_of(COMPATIBILITY).partition("\n## Every upstream test\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ") and " | here | " not in line]
    rows = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines]
    return [(upstream, here, remarks) for upstream, here, remarks in rows]


def test_every_upstream_test_has_a_counterpart_or_a_reason() -> None:
    rows = upstream_rows()
    assert len(rows) > 100
    assert not [upstream for upstream, here, remarks in rows if not (named_tests(here) or (here == "none" and remarks))]


def test_no_upstream_test_is_listed_twice() -> None:
    names = [name.strip() for upstream, _, _ in upstream_rows() for name in upstream.split(",")]
    assert len(names) == len(set(names))


# -- the file map -------------------------------------------------------------------------------------------------------


def file_map() -> list[str]:
    """The paths that the map in docs/architecture.md names, folders with a slash at their end."""
    text = text_of(ROOT / "docs" / "architecture.md")
    body = next(
        fence["body"] for fence in _FENCE.finditer(text[text.index("## File map") :]) if fence["kind"] == "text"
    )
    found: list[str] = []
    folder = ""
    for line in body.splitlines():
        name = line.split()[0]
        if line.startswith("  "):
            found.append(folder + name)
        else:
            folder = name if name.endswith("/") else ""
            found.append(name)
    return found


def test_all_that_the_file_map_names_exists() -> None:
    missing = [name for name in file_map() if not (PACKAGE / name).exists()]
    assert not missing


def test_every_folder_of_the_package_is_in_the_file_map() -> None:
    folders = {path.parent for path in PACKAGE.rglob("*.py")} - {PACKAGE}
    assert {f"{folder.relative_to(PACKAGE).as_posix()}/" for folder in folders} <= set(file_map())


def test_every_module_of_the_package_is_in_the_file_map() -> None:
    modules = {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py") if path.name != "__init__.py"}
    rows_of_tables = {module for module in modules if module.startswith("config/tables/")}
    assert modules - rows_of_tables <= set(file_map())


# -- the glossary -------------------------------------------------------------------------------------------------------


def glossary_words() -> list[str]:
    rows = [line.split("|")[1].strip() for line in text_of(GLOSSARY).splitlines() if line.startswith("| ")]
    return [word.strip() for row in rows if row != "word" for word in row.split(",")]


def test_every_word_of_the_glossary_is_used() -> None:
    used_in = [path for path in DOCUMENTS if path != GLOSSARY] + sorted(PACKAGE.rglob("*.py"))
    text = "\n".join(map(text_of, used_in)).lower()
    words = glossary_words()
    assert len(words) > 30
    assert not [word for word in words if not re.search(rf"\b{re.escape(word)}", text)]


def test_no_word_of_the_glossary_is_explained_twice() -> None:
    assert len(glossary_words()) == len(set(glossary_words()))


@pytest.mark.parametrize("synonym", ["destination cluster", "sink cluster", "mirror topic", "mirrored topic"])
def test_documents_use_the_glossarys_word_and_no_synonym(synonym: str) -> None:
    assert not [document.name for document in DOCUMENTS if synonym in text_of(document).lower()]


# -- commands -----------------------------------------------------------------------------------------------------------


class _Refused(Exception):
    """The parser did not take a command line."""


class _Parser(argparse.ArgumentParser):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # An abbreviation that works today is another option's tomorrow: documents may not rest on it.
        super().__init__(*args, **{**kwargs, "allow_abbrev": False})

    def error(self, message: str) -> NoReturn:
        raise _Refused(message)


def parse(command: str) -> argparse.Namespace:
    """The command line as the real parser of `heliograph` understands it."""
    parser = _Parser(prog="heliograph")
    commands = parser.add_subparsers(required=True, parser_class=_Parser)
    for module in dict.fromkeys(map(module_of, COMMANDS)):
        module.add_parser(commands)
    return parser.parse_args(shlex.split(command, comments=True)[1:])


def shown_commands(program: str) -> list[tuple[str, str]]:
    """Every command line that a document shows: in fences as its own line, elsewhere as code."""
    found = []
    for document in DOCUMENTS:
        text = text_of(document)
        lines = [line for fence in _FENCE.finditer(text) for line in fence["body"].splitlines()]
        lines += _CODE_SPAN.findall(without_fences(text))
        for line in lines:
            shown = re.sub(r"^\$ ", "", line.strip()).removeprefix(".venv/bin/")
            if re.match(rf"{program} [a-z-]", shown):
                found.append((document.name, shown))
    return found


def as_typed(shown: str) -> str:
    """`[FILE]` and `[--json]` say that they may be left out."""
    return shown.replace("[", "").replace("]", "")


def test_every_shown_command_is_one_that_heliograph_understands() -> None:
    refused = []
    for document, shown in shown_commands("heliograph"):
        try:
            parse(as_typed(shown))
        except _Refused as error:
            refused.append(f"{document}: {shown}: {error}")
    assert not refused


def test_the_readme_shows_every_command_of_heliograph() -> None:
    shown = {line.split()[1] for document, line in shown_commands("heliograph") if document == "README.md"}
    assert set(COMMANDS) <= shown


@pytest.mark.parametrize("wrong", ["heliograph rum FILE", "heliograph run", "heliograph run FILE --dry"])
def test_a_command_that_heliograph_does_not_have_would_be_found(wrong: str) -> None:
    with pytest.raises(_Refused):
        parse(wrong)


def test_every_kind_of_event_is_explained() -> None:
    rows = re.findall(r"^\| (`.*?) \|", (ROOT / "docs" / "policies.md").read_text(), re.MULTILINE)
    explained = {name for row in rows for name in re.findall(r"`([a-z-]+)`", row)}
    assert {str(kind) for kind in EventKind} <= explained


def test_every_shown_make_target_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", text_of(ROOT / "Makefile"), re.MULTILINE))
    named = {line.split()[1] for _, line in shown_commands("make")}
    assert {"demo", "test"} <= named <= targets


# -- no machine, no registry --------------------------------------------------------------------------------------------


def written_files() -> list[Path]:
    """Every text file that people wrote or that is checked in; the test that forbids is exempt from its own patterns."""
    kinds = {".md", ".py", ".toml", ".xml", ".properties", ".lock", ".cfg", ".yml", ".json", ""}
    made = {".coverage", ".git"}  # in a second working tree .git is a file, with the path of the first
    top = [path for path in ROOT.iterdir() if path.is_file() and path.suffix in kinds and path.name not in made]
    deep = [path for name in ("src", "tests", "docs", ".ci") for path in (ROOT / name).rglob("*") if path.is_file()]
    return [path for path in [*top, *deep] if path.suffix in kinds and path != Path(__file__)]


def test_no_file_names_a_registry() -> None:
    named = [str(path.relative_to(ROOT)) for path in written_files() if _REGISTRY.search(text_of(path))]
    assert not named


def test_documents_and_the_lock_file_hold_no_address_but_known_ones() -> None:
    files = [*DOCUMENTS, ROOT / "requirements.lock", ROOT / "pyproject.toml", ROOT / "Makefile"]
    hosts = {match["host"] for path in files for match in _ADDRESS.finditer(text_of(path))}
    assert hosts <= _KNOWN_HOSTS
    assert "index-url" not in text_of(ROOT / "requirements.lock")


def test_no_file_holds_a_path_of_somebodys_machine() -> None:
    files = [path for path in written_files() if "tests" not in path.parts]
    named = [str(path.relative_to(ROOT)) for path in files if _MACHINE_PATH.search(text_of(path))]
    assert not named


@pytest.mark.parametrize("planted", ["see /home/me/x", "(/tmp/a)", "log=/root/b"])
def test_a_machines_path_would_be_found(planted: str) -> None:
    assert _MACHINE_PATH.search(planted)


@pytest.mark.parametrize("harmless", ["src/work/x", "~/.cache/tmp/x", "${HOME}/work/x", "python:/path/to/python3.11"])
def test_a_path_within_something_is_no_machines_path(harmless: str) -> None:
    assert not _MACHINE_PATH.search(harmless)


def test_a_registry_would_be_found() -> None:
    assert _REGISTRY.search("from repo1.example.org")
