"""The budgets of CONTRIBUTING: how long a module and a function may be, and that a silenced check says why.

Tables are data, so their length is no budget; there is no other exception.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "src" / "heliograph"
MODULE_LINES = 400
FUNCTION_LINES = 50
_SILENCED = re.compile(r"#\s*(?P<what>type:\s*ignore|noqa)(?P<rest>.*)", re.IGNORECASE)
_WITH_REASON = {
    "type": re.compile(r"^\[[a-z0-9-]+(,\s*[a-z0-9-]+)*\]\s*(#\s*)?(?P<reason>\S.*)$"),
    "noqa": re.compile(r"^:\s*[A-Z]+[0-9]+(,\s*[A-Z]+[0-9]+)*\s+(#\s*)?(?P<reason>\S.*)$"),
}


def modules() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def is_table(path: Path) -> bool:
    inside = path.relative_to(ROOT)
    return inside.parts[:2] == ("config", "tables") or inside == Path("wire/error_codes.py")


def long_functions(source: str) -> Iterator[tuple[str, int]]:
    """Name and length of every function over the budget, its decorators and docstring included."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            lines = (node.end_lineno or first) - first + 1
            if lines > FUNCTION_LINES:
                yield node.name, lines


def unexplained(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of every silenced check that has no code, or no reason beside it."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        for found in _pieces(token.string):
            rest = found["rest"].strip()
            kind = "noqa" if found["what"].lower() == "noqa" else "type"
            if not _WITH_REASON[kind].match(rest):
                yield token.start[0], token.string


def _pieces(comment: str) -> Iterator[re.Match[str]]:
    found = _SILENCED.search(comment)
    if found:
        yield found


def test_no_module_is_longer_than_its_budget() -> None:
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in modules() if not is_table(path)
    }
    assert len(lengths) > 50
    assert {name: lines for name, lines in lengths.items() if lines > MODULE_LINES} == {}


def test_no_function_is_longer_than_its_budget() -> None:
    offenders = [
        f"{path.relative_to(ROOT)}: {name} has {lines} lines, the budget is {FUNCTION_LINES}"
        for path in modules()
        for name, lines in long_functions(path.read_text())
    ]
    assert offenders == []


def test_every_silenced_check_has_a_code_and_a_reason() -> None:
    offenders = [
        f"{path.relative_to(ROOT)}:{line}: {text}" for path in modules() for line, text in unexplained(path.read_text())
    ]
    assert offenders == []


def test_a_function_of_one_line_too_many_is_found() -> None:
    body = "\n".join("    x = 1" for _ in range(FUNCTION_LINES - 1))
    assert list(long_functions(f"def f():\n{body}\n")) == []
    assert list(long_functions(f"def f():\n{body}\n    x = 2\n")) == [("f", FUNCTION_LINES + 1)]
    assert list(long_functions(f"@cache\nasync def f():\n{body}\n")) == [("f", FUNCTION_LINES + 1)]


@pytest.mark.parametrize(
    "comment",
    [
        "# noqa",
        "# noqa: S101",
        "# type: ignore",
        "# type: ignore[misc]",
        "# type: ignore  why",
        "# noqa because",
        "# NOQA:BLE001",
    ],
)
def test_a_bare_exception_from_a_check_is_found(comment: str) -> None:
    assert list(unexplained(f"x = 1  {comment}\n")) == [(1, comment)]


@pytest.mark.parametrize(
    "comment",
    [
        "# noqa: S101  begin() comes first",
        "# noqa: S101, BLE001  two at once",
        "# type: ignore[misc]  # mypy cannot see it",
        "# type: ignore[misc, arg-type]  the library has no types",
        "# an honest comment",
    ],
)
def test_a_reason_beside_the_code_is_enough(comment: str) -> None:
    assert list(unexplained(f"x = 1  {comment}\n")) == []
