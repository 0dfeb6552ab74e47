"""Kernels from text: a small grammar that is read, never run."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from difflib import get_close_matches
from functools import partial
from typing import Any, Literal, NoReturn

from mercer.kernels.base import Kernel
from mercer.kernels.state import kernel_classes

_PARTS, _DEPTH, _POWER = 100, 50, 1000  # operations, nested brackets and signs, and the largest exponent

_CONSTANTS = {"True": True, "False": False, "None": None}
_METHODS: dict[str, tuple[str, str] | None] = {  # and the argument that each takes: its name, and what it is
    "exp": None,
    "geometric": None,
    "normalized": None,
    "on": ("columns", "the columns, as in .on([0, 1])"),
    "ranked": ("X", "rows of numbers, as in .ranked([[0.0], [1.0], [5.0]])"),
    "transformed": ("matrix", "a matrix or one factor for each feature, as in .transformed([0.5, 2.0])"),
}
_MAKERS = ("from_gamma", "from_sigma2")
_OF_CODE = ("FromFeatures", "FromFunction", "Composed", "Rescaled", "Spectral")
_ELSEWHERE = {  # what other libraries and papers call some of ours
    "gaussian": "RBF",
    "squaredexponential": "RBF",
    "expquad": "RBF",
    "poly": "Polynomial",
    "expsinesquared": "Periodic",
    "dotproduct": "Linear",
    "white": "Delta",
    "chi2": "ChiSquared",
    "jaccard": "Tanimoto",
    "ruzicka": "MinMax",
    "tau": "Kendall",
    "meanembedding": "SetKernel",
}
_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "**": operator.pow,
}
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


def parse_kernel(text: str) -> Kernel:
    """Return the kernel that a text describes, such as "2 * RBF(1.5) + Linear()".

    The text is what one would write in Python, and what `repr` of a kernel gives: names of the catalogue and of
    registered classes with their parameters (numbers, texts, lists; a name alone takes the defaults), `+`, `*`, `**`,
    numbers as factors, parentheses, `.exp()`, `.geometric()`, `.normalized()`, `.on(columns)`, `.ranked(rows)`,
    `.transformed(matrix)`, `RBF.from_gamma(0.5)`.
    It is read by a grammar of its own: nothing in it is run, and it can name nothing but kernels. Python functions,
    laws of frequencies and large matrices cannot be written so.

    Parameters
    ----------
    text
        At most 20,000 characters, 100 operations and powers up to 1,000.

    Raises
    ------
    ExpressionError
        A ValueError that shows the text with a mark under the place, and says what was expected there.

    Examples
    --------
    >>> from mercer.kernels import RBF, Linear, parse_kernel
    >>> parse_kernel("2 * RBF(1.5) + Linear().on([0, 3]) ** 2")
    2.0 * RBF(scale=1.5) + Linear().on([0, 3]) ** 2
    >>> parse_kernel(repr(RBF([1.0, 2.0]).exp() * Linear())) == RBF([1.0, 2.0]).exp() * Linear()
    True
    >>> parse_kernel("RBG(2) + Linear()")
    Traceback (most recent call last):
        ...
    mercer.kernels.expression.ExpressionError: no kernel is called 'RBG'; did you mean RBF?
        RBG(2) + Linear()
        ^^^
    """
    if not isinstance(text, str):
        raise TypeError(f"parse_kernel takes a text such as 'RBF(2) + Linear()'; it got {text!r}.")
    return _Parser(text).kernel()


class _Parser:
    """Recursive descent; every rule returns a value and leaves `at` behind it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokens(text)
        self.at = self.parts = self.depth = 0
        self.where: dict[str, Token] = {}  # the names of the arguments read last

    def kernel(self) -> Kernel:
        first = self.peek()
        if first.kind == "end":
            self.fail("a kernel is expected, such as RBF(2) + Linear(); the text is empty.", first)
        value = self.sum()
        if self.peek().kind != "end":
            hint = "; powers are written **" if self.peek().text == "^" else ""
            self.fail(f"an operator (+ * **) or the end is expected here{hint}.", self.peek())
        if isinstance(value, Kernel):
            return value
        more = "; Constant(c) is the constant kernel" if _is_number(value) else ""
        self.fail(f"this is {value!r:.40}, no kernel{more}.", first)

    # -- tokens -------------------------------------------------------------------------------------------

    def peek(self) -> Token:
        return self.tokens[self.at]

    def take(self) -> Token:
        token = self.tokens[self.at]
        self.at += token.kind != "end"
        return token

    def accept(self, *texts: str) -> Token | None:
        token = self.peek()
        return self.take() if token.kind == "sign" and token.text in texts else None

    def expect(self, text: str, opened: Token) -> None:
        if not self.accept(text):
            self.fail(f"{text!r} is expected here, to close the {opened.text!r} at {opened.start + 1}.", self.peek())

    def fail(self, sentence: str, token: Token) -> NoReturn:
        raise ExpressionError(sentence, self.text, token.start, token.end)

    # -- expressions --------------------------------------------------------------------------------------

    def sum(self) -> Any:
        value = self.product()
        while sign := self.accept("+", "-"):
            value = self.combine(sign, value, self.product())
        return value

    def product(self) -> Any:
        value = self.signed()
        while sign := self.accept("*", "/"):
            value = self.combine(sign, value, self.signed())
        return value

    def signed(self) -> Any:
        self.depth += 1
        if self.depth > _DEPTH:
            self.fail(
                f"brackets, signs and powers are nested more than {_DEPTH} deep here; write it flatter.", self.peek()
            )
        sign = self.accept("-", "+")
        if sign is None:
            value = self.power()
        else:
            value = self.signed()
            if isinstance(value, Kernel):
                self.attempt(sign, lambda: -value if sign.text == "-" else value)
            elif not _is_number(value):
                self.fail(f"a sign belongs in front of a number, not of {value!r:.40}.", sign)
            else:
                value = -value if sign.text == "-" else value
        self.depth -= 1
        return value

    def power(self) -> Any:
        value = self.postfix()
        if sign := self.accept("**"):
            value = self.combine(sign, value, self.signed())
        return value

    def postfix(self) -> Any:
        start = self.peek()
        value = self.primary()
        while self.accept("."):
            name = self.take()
            if name.kind != "name" or name.text not in _METHODS:
                self.fail(_no_method(name), name)
            if not isinstance(value, Kernel):
                self.fail(f".{name.text}() belongs to a kernel; this is {value!r:.40}.", start)
            given, named = self.arguments(name)
            takes = _METHODS[name.text]
            if takes and set(named) == {takes[0]} and not given:
                given, named = [named[takes[0]]], {}
            if named or len(given) != (takes is not None):
                self.fail(f".{name.text}() takes {takes[1] if takes else 'nothing'}.", name)
            self.count(name)
            value = self.attempt(name, partial(getattr(value, name.text), *given))
        return value

    def primary(self) -> Any:
        token = self.take()
        if token.kind in ("number", "string"):
            return token.value
        if token.kind == "name":
            return _CONSTANTS[token.text] if token.text in _CONSTANTS else self.named(token)
        if token.text == "[" and token.kind == "sign":
            return self.items("]", token)[0]
        if token.text == "(" and token.kind == "sign":
            values, commas = self.items(")", token)
            if not values and not commas:
                self.fail("a kernel or a number is expected between these brackets.", token)
            return values[0] if len(values) == 1 and not commas else tuple(values)
        where = "the text ends" if token.kind == "end" else f"{token.text!r} stands"
        self.fail(f"a kernel or a number is expected where {where}.", token)

    def items(self, close: str, opened: Token) -> tuple[list[Any], int]:
        """Return what stands between brackets, and the number of commas."""
        values: list[Any] = []
        commas = 0
        while not self.accept(close):
            values.append(self.sum())
            if self.accept(","):
                commas += 1
            else:
                self.expect(close, opened)
                break
        return values, commas

    # -- names --------------------------------------------------------------------------------------------

    def named(self, token: Token) -> Any:
        """Return the kernel, or the slice, that a name and its arguments make."""
        if token.text == "slice":
            given, named = self.arguments(token)
            if named or not 1 <= len(given) <= 3 or not all(v is None or isinstance(v, int) for v in given):
                self.fail("slice takes one to three whole numbers or None, as in slice(0, 3).", token)
            return slice(*given)
        cls = self.kernel_class(token)
        maker: Any = None
        if self.tokens[self.at].text == "." and self.tokens[self.at + 1].text in _MAKERS:
            self.take()
            token = self.take()
            maker = getattr(cls, token.text, None)
            if maker is None:
                self.fail(f"{cls.__name__} has no {token.text}.", token)
        given, named = self.arguments(token) if self.peek().text == "(" else ([], {})
        self.count(token)
        if maker is not None:
            if len(given) != 1 or named or not _is_number(given[0]):
                self.fail(f"{token.text} takes one number, as in {cls.__name__}.{token.text}(0.5).", token)
            return self.attempt(token, lambda: maker(given[0]))
        return self.constructed(cls, token, given, named)

    def constructed(self, cls: type[Kernel], token: Token, given: list[Any], named: dict[str, Any]) -> Kernel:
        """Return the kernel of a class with these parameters, after a look at their names and number."""
        fields_of = {f.name: f for f in fields(cls)}  # type: ignore[arg-type]
        shown = ", ".join(fields_of) or "none"
        if len(given) > len(fields_of):
            self.fail(f"{cls.__name__} was given {len(given)} parameters; it has {shown}.", token)
        values = dict(zip(fields_of, given, strict=False))
        for key, value in named.items():
            if key in values:
                self.fail(f"{key!r} is given twice.", self.where[key])
            if key not in fields_of:
                hint = _meant(key, list(fields_of)) or "."
                self.fail(f"{key!r} is no parameter of {cls.__name__}, which has {shown}{hint}", self.where[key])
            values[key] = value
        for name, f in fields_of.items():
            if name not in values and f.default is MISSING and f.default_factory is MISSING:
                self.fail(f"{cls.__name__} needs {name}, as in {cls.__name__}({name}=...).", token)
            if f.type in ("Kernel", Kernel) and not isinstance(values.get(name, f.default), Kernel):
                self.fail(f"{name} of {cls.__name__} must be a kernel; it is {values.get(name)!r:.40}.", token)
        return self.attempt(token, lambda: cls(**values))

    def kernel_class(self, token: Token) -> type[Kernel]:
        names = kernel_classes()
        if token.text in _OF_CODE:
            self.fail(
                f"{token.text} is made of Python functions or laws, which a text cannot hold; make it in Python.", token
            )
        if token.text in names:
            return names[token.text]
        usable = [name for name in names if name not in _OF_CODE]
        meant = _ELSEWHERE.get(token.text.lower().replace("_", ""))
        hint = f"; did you mean {meant}?" if meant else _meant(token.text, usable)
        self.fail(f"no kernel is called {token.text!r}{hint or '; mercer.kernels lists them.'}", token)

    def arguments(self, name: Token) -> tuple[list[Any], dict[str, Any]]:
        opened = self.peek()
        if not self.accept("("):
            self.fail(f"'(' is expected after {name.text}.", opened)
        given: list[Any] = []
        named: dict[str, Any] = {}
        where: dict[str, Token] = {}
        while not self.accept(")"):
            token = self.peek()
            if token.kind == "name" and self.tokens[self.at + 1].text == "=":
                self.at += 2
                if token.text in named:
                    self.fail(f"{token.text!r} is given twice.", token)
                named[token.text], where[token.text] = self.sum(), token
            elif named:
                self.fail("a parameter without a name cannot follow one with a name.", token)
            else:
                given.append(self.sum())
            if not self.accept(","):
                self.expect(")", opened)
                break
        self.where = where
        return given, named

    # -- values -------------------------------------------------------------------------------------------

    def combine(self, sign: Token, left: Any, right: Any) -> Any:
        for value in (left, right):
            if not isinstance(value, Kernel) and not _is_number(value):
                self.fail(f"{sign.text!r} joins kernels and numbers; one side is {value!r:.40}.", sign)
        self.count(sign)
        if sign.text == "**" and _is_number(right) and abs(right) > _POWER:
            self.fail(f"the power {right!r} is above {_POWER}.", sign)
        if sign.text == "**" and isinstance(right, Kernel):
            self.fail("a kernel cannot be a power; k.exp() is the exponential of a kernel.", sign)
        if isinstance(left, Kernel) or isinstance(right, Kernel):
            return self.attempt(sign, lambda: _OPERATIONS[sign.text](left, right))
        try:
            number = _OPERATIONS[sign.text](float(left), float(right))
        except (OverflowError, ZeroDivisionError):
            number = math.inf
        if isinstance(number, complex) or not math.isfinite(number):
            self.fail(f"{left!r} {sign.text} {right!r} is no finite number.", sign)
        whole = isinstance(left, int) and isinstance(right, int) and abs(number) < 2**53 and number == int(number)
        return int(number) if whole and sign.text != "/" else number

    def count(self, token: Token) -> None:
        self.parts += 1
        if self.parts > _PARTS:
            self.fail(f"the text has more than {_PARTS} kernels and operations; build it in Python.", token)

    def attempt(self, token: Token, make: Callable[[], Any]) -> Any:
        """Return what a constructor or an operation makes; its refusal becomes one that shows the place."""
        try:
            return make()
        except (TypeError, ValueError, OverflowError) as error:
            self.fail(str(error), token)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _no_method(name: Token) -> str:
    if name.text in ("compose", "rescaled"):
        return f".{name.text} takes a Python function, which a text cannot hold; make it in Python."
    known = [f".{method}()" for method in _METHODS]
    hint = _meant(name.text, list(_METHODS)) or "."
    return f"one of {', '.join(known[:-1])} or {known[-1]} is expected after the dot{hint}"


def _meant(name: str, known: list[str]) -> str:
    """Return the closest known name as a question, or nothing."""
    lower = {k.lower(): k for k in known}
    close = get_close_matches(name.lower(), lower, n=1, cutoff=0.5)
    return f"; did you mean {lower[close[0]]}?" if close else ""


# -- the words of a kernel written as text, and the error that points at one of them ----------------------


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
    words: list[Token] = []
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
        words.append(Token(kind, word, value, start, at))
    return [*words, Token("end", "", None, stop, stop)]


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
