"""What Java's Properties.store would write is read back, character for character."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from heliograph.config.properties import Malformed, Property, parse, scan

_SPECIAL = {
    "\t": "\\t",
    "\n": "\\n",
    "\r": "\\r",
    "\f": "\\f",
    "\\": "\\\\",
    "=": "\\=",
    ":": "\\:",
    "#": "\\#",
    "!": "\\!",
}
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


def stored(text: str, is_name: bool) -> str:
    """As java.util.Properties.store escapes: everything but printable ASCII as \\uXXXX, in UTF-16."""
    out = ""
    for at, char in enumerate(text):
        if char == " " and (is_name or at == 0):
            out += "\\ "
        elif char in _SPECIAL:
            out += _SPECIAL[char]
        elif " " <= char <= "~":
            out += char
        else:
            units = char.encode("utf-16-be")
            out += "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
    return out


@given(st.lists(st.tuples(texts, texts), max_size=6), st.sampled_from(["\n", "\r", "\r\n"]))
def test_stored_entries_are_read_back(entries: list[tuple[str, str]], end: str) -> None:
    text = "".join(f"{stored(name, True)}={stored(value, False)}{end}" for name, value in entries)
    assert parse(text) == [Property(name, value, line) for line, (name, value) in enumerate(entries, start=1)]


@given(st.text("ab=: \t\f\n\r\\#!u0041", max_size=40))
def test_any_text_is_read_and_lines_only_grow(text: str) -> None:
    entries = list(scan(text))
    lines = [entry.line for entry in entries]
    assert lines == sorted(set(lines))
    assert all(isinstance(entry, Property | Malformed) for entry in entries)


@given(texts.filter(lambda text: text.strip(" \t\f") == text and not set(text) & set("\r\n\\")), st.data())
def test_a_value_may_be_continued_anywhere(value: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(value)))
    # Blanks at the beginning of a continued line are dropped, so they cannot stand there.
    if value[at : at + 1] not in (" ", "\t", "\f"):
        assert parse(f"a={value[:at]}\\\n  {value[at:]}") == [Property("a", value, 1)]
