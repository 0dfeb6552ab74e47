"""The words of a kernel written as text, and the error that points at one of them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, Literal

_LENGTH = 20_000  # characters of a text
_AROUND = 60  # characters shown on each side of the place

_WORD = re.compile(
    r"""\s*(?:
    (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
  | (?P<name>[^\W\d]\w*)
  | (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
  | (?P<sign>\*\*|[-+*/().,=\[\]^])
    )""",
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"'}


class ExpressionError(ValueError):
    """A text that is no kernel; the message shows where.

    Attributes
    ----------
    sentence
        What is wrong.
    text
        The whole text.
    position
        Where, counted in characters from 0.
    """

    def __init__(self, sentence: str, text: str, start: int, end: int) -> None:
        self.sentence, self.text, self.position = sentence, text, start
        left, right = max(0, start - _AROUND), min(len(text), start + _AROUND)
        shown = "".join(" " if c.isspace() or not c.isprintable() else c for c in text[left:right])
        before, after = "... " if left else "", " ..." if right < len(text) else ""
        mark = " " * (len(before) + start - left) + "^" * max(1, min(end, right) - start)
        super().__init__(f"{sentence}\n    {before}{shown}{after}\n    {mark}")

    def __reduce__(self) -> Any:
        return type(self), (self.sentence, self.text, self.position, self.position + 1)


@dataclass(frozen=True)
class Token:
    """One word: what it is, as it is written, what it stands for, and where."""

    kind: Literal["number", "name", "string", "sign", "end"]
    text: str
    value: Any
    start: int
    end: int


def tokens(text: str) -> list[Token]:
    """Return the words of a text, with an empty one at the end."""
    if len(text) > _LENGTH:
        raise ExpressionError(
            f"the text has {len(text):,} characters; at most {_LENGTH:,} are read.", text, _LENGTH, _LENGTH
        )
    found: list[Token] = []
    at, stop = 0, len(text.rstrip())
    while at < stop:
        match = _WORD.match(text, at)
        if match is None:
            start = at + len(text[at:]) - len(text[at:].lstrip())
            quote = text[start] in "'\""
            what = "this quotation mark is never closed" if quote else f"{text[start]!r} has no meaning here"
            raise ExpressionError(f"{what}.", text, start, start + 1)
        kind: Any = match.lastgroup
        start, at = match.span(kind)
        word = match[kind]
        value: Any = None
        if kind == "number":
            value = _number(word, text, start, at)
        elif kind == "string":
            value = _ESCAPE.sub(lambda m, start=start: _unescaped(m[1], text, start + 1 + m.start()), word[1:-1])  # type: ignore[misc]
        found.append(Token(kind, word, value, start, at))
    return [*found, Token("end", "", None, stop, stop)]


def _number(word: str, text: str, start: int, end: int) -> int | float:
    value = float(word)
    if not math.isfinite(value):
        raise ExpressionError(f"{word:.40} is outside the range of float64.", text, start, end)
    return int(word) if word.isdecimal() and value < 2**53 else value


def _unescaped(code: str, text: str, start: int) -> str:
    if code[0] in "xuU" and len(code) > 1:
        number = int(code[1:], 16)
        if number < 0x110000:
            return chr(number)
    elif code in _ESCAPED:
        return _ESCAPED[code]
    raise ExpressionError(f"\\{code} is no character; a backslash is written \\\\.", text, start, start + 2)
