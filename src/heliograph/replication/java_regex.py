"""Java's regular expressions, written again for Python's `re`.

Knows where the two dialects differ and translates one into the other; what has no counterpart is refused, so a pattern
either means the same in both or is a fault. Knows nothing of topics. Names are taken to be ASCII, as Kafka's topics are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

_POSIX = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "ASCII": r"\x00-\x7f",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Punct": r"!-/:-@\[-`{-~",
    "Graph": "!-~",
    "Print": " -~",
    "Blank": r" \t",
    "Cntrl": r"\x00-\x1f\x7f",
    "XDigit": "0-9a-fA-F",
    "Space": r" \t-\r",
}
_SAME_ESCAPES = "dDsSwWtnrfa"
"""Letters that mean the same after a backslash in both dialects, inside a class and outside."""
_SETS = {"\\d", "\\D", "\\s", "\\S", "\\w", "\\W"}
_COUNT = re.compile(r"\{\d+(,\d*)?\}")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_FLAGS = re.compile(r"\(\?([a-zA-Z]*)(?:-([a-zA-Z]*))?([:)])")
_SERVED_FLAGS = "ims"


class PatternError(ValueError):
    """Why a pattern cannot be used; half a sentence, to be put behind the pattern."""


@lru_cache(maxsize=1024)  # one pattern is checked, then compiled, for every flow and at every look at the file
def translate(pattern: str) -> str:
    """The same expression for Python's `re` with the ASCII flag; raises PatternError where there is none."""
    return _Translator(pattern).run()


@dataclass
class _Translator:
    """Walks the pattern once, left to right. `flags` holds, per open group, the flags switched on inside it."""

    pattern: str
    at: int = 0
    out: list[str] = field(default_factory=list)
    flags: list[list[str]] = field(default_factory=lambda: [[]])

    def run(self) -> str:
        while self.at < len(self.pattern):
            self._step()
        if len(self.flags) != 1:
            raise PatternError("a group is not closed")
        self._close_flags()
        return "".join(self.out)

    def _step(self) -> None:
        char = self.pattern[self.at]
        match char:
            case "\\":
                self._escape()
            case "[":
                self._character_class()
            case "(":
                self._open_group()
            case ")":
                self._close_group()
            case "|":
                self._alternative()
            case "{":
                self._count()
            case _:
                self._take(char, 1)

    def _take(self, text: str, length: int) -> None:
        self.out.append(text)
        self.at += length

    def _rest(self, offset: int = 0) -> str:
        return self.pattern[self.at + offset :]

    def _count(self) -> None:
        found = _COUNT.match(self.pattern, self.at)
        if found is None:
            raise PatternError("a { that begins no count is written \\{")
        self._take(found.group(), len(found.group()))

    # Groups and flags. Java's (?i) holds to the end of its group and across |, Python's must open the expression:
    # it becomes (?i:…), closed before | and ) and opened again behind |.

    def _open_group(self) -> None:
        flags = _FLAGS.match(self.pattern, self.at)
        if flags is not None:
            self._flag_group(flags)
        elif self._rest().startswith("(?<") and self._rest()[3:4] not in ("=", "!"):
            name = _NAME.match(self.pattern, self.at + 3)
            if name is None or self.pattern[name.end() : name.end() + 1] != ">":
                raise PatternError("a group's name must be letters and digits, as in (?<name>…)")
            self._push(f"(?P<{name.group()}>", name.end() + 1 - self.at)
        else:
            opening = next((o for o in ("(?=", "(?!", "(?>", "(?<=", "(?<!") if self._rest().startswith(o)), "(")
            if opening == "(" and self._rest().startswith("(?"):
                raise PatternError(f"Java has no group that begins {self._rest()[:3]}")
            self._push(opening, len(opening))

    def _flag_group(self, found: re.Match[str]) -> None:
        on, off, end = found.group(1), found.group(2) or "", found.group(3)
        unserved = sorted(set(on + off) - set(_SERVED_FLAGS))
        if unserved:
            raise PatternError(f"the flag {unserved[0]} is not supported; supported are i, m and s")
        opening = f"(?{on}{'-' + off if off else ''}:"
        if end == ":":
            self._push(opening, len(found.group()))
        elif on or off:
            self.flags[-1].append(opening)
            self._take(opening, len(found.group()))
        else:
            raise PatternError("(?) names no flag")

    def _push(self, text: str, length: int) -> None:
        self._take(text, length)
        self.flags.append([])

    def _close_flags(self) -> None:
        self.out.append(")" * len(self.flags[-1]))

    def _close_group(self) -> None:
        if len(self.flags) == 1:
            raise PatternError("a ) closes no group")
        self._close_flags()
        self.flags.pop()
        self._take(")", 1)

    def _alternative(self) -> None:
        self._close_flags()
        self._take("|" + "".join(self.flags[-1]), 1)

    # Escapes

    def _escape(self) -> None:
        letter = self.pattern[self.at + 1 : self.at + 2]
        if letter == "Q":
            self.out.append("".join(re.escape(c) for c in self._quoted()))
        elif letter == "k":
            name = re.match(r"\\k<([A-Za-z][A-Za-z0-9]*)>", self._rest())
            if name is None:
                raise PatternError("\\k must be followed by a group's name, as in \\k<name>")
            self._take(f"(?P={name.group(1)})", len(name.group()))
        elif letter in ("z", "Z", "A", "b", "B"):
            # Java's \Z also stands before a last line end; Python's \Z is Java's \z.
            self._take({"z": r"\Z", "Z": r"(?=\n?\Z)", "B": r"(?!\b)"}.get(letter, "\\" + letter), 2)
        elif letter.isdigit() and letter != "0":
            self._take("\\" + letter, 2)
        else:
            text, in_class = self._character()
            self.out.append(f"[{text}]" if in_class else text)

    def _quoted(self) -> str:
        """The text between \\Q and \\E, or to the end of the pattern; moves behind it."""
        end = self.pattern.find("\\E", self.at + 2)
        text = self.pattern[self.at + 2 : end if end >= 0 else len(self.pattern)]
        self.at = end + 2 if end >= 0 else len(self.pattern)
        return text

    def _character(self) -> tuple[str, bool]:
        """An escape that means one character or a set of them; True where the text belongs inside brackets."""
        letter = self.pattern[self.at + 1 : self.at + 2]
        if letter in ("p", "P"):
            return self._property(letter == "P"), True
        number = re.match(
            r"\\(?:x([0-9a-fA-F]{2})|x\{([0-9a-fA-F]+)\}|u([0-9a-fA-F]{4})|0([0-3]?[0-7]{1,2}))", self._rest()
        )
        if number is not None:
            hexadecimal = number.group(1) or number.group(2) or number.group(3)
            code = int(hexadecimal, 16) if hexadecimal else int(number.group(4), 8)
            if code > 0x10FFFF:
                raise PatternError(f"{number.group()} is no character")
            self.at += len(number.group())
            return re.escape(chr(code)), False
        self.at += 2
        if letter == "e":
            return r"\x1b", False
        if letter and letter in _SAME_ESCAPES:
            return "\\" + letter, False
        if not letter or (letter.isalnum() and letter.isascii()):
            raise PatternError(f"\\{letter} is not supported")
        return re.escape(letter), False

    def _property(self, negated: bool) -> str:
        found = re.match(r"\\[pP]\{(\w+)\}", self._rest())
        name = found.group(1) if found else self._rest(2)[:1]
        if found is None or name not in _POSIX:
            raise PatternError(f"\\p{{{name}}} is not supported; supported are {', '.join(_POSIX)}")
        self.at += len(found.group())
        return f"^{_POSIX[name]}" if negated else _POSIX[name]

    # Character classes

    def _character_class(self) -> None:
        opening = "[^" if self._rest().startswith("[^") else "["
        self._take(opening, len(opening))
        if self._rest().startswith("]"):
            raise PatternError("a ] that begins a character class is written \\]")
        while not self._rest().startswith("]"):
            self.out.append(self._member_or_range())
        self._take("]", 1)

    def _member_or_range(self) -> str:
        first, is_single = self._member()
        if is_single and self._rest().startswith("-") and self._rest(1)[:1] not in ("]", "["):
            self.at += 1
            return f"{first}-{self._member()[0]}"
        return first

    def _member(self) -> tuple[str, bool]:
        """One member of a class; True where it is a single character and so may begin a range."""
        rest = self._rest()
        if not rest:
            raise PatternError("a character class is not closed")
        if rest.startswith("&&"):
            raise PatternError("an intersection of character classes (&&) is not supported")
        if rest.startswith("["):
            raise PatternError("a character class inside another is not supported")
        if rest.startswith("\\Q"):
            return "".join(re.escape(c) for c in self._quoted()), False
        if rest.startswith("\\"):
            text, in_class = self._character()
            if text.startswith("^"):
                raise PatternError("\\P{…} inside a character class is not supported")
            return text, not in_class and text not in _SETS
        self.at += 1
        return re.escape(rest[0]), True
