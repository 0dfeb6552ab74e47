"""Amounts and lists as one would say them."""

from __future__ import annotations

import re

_NUMBERS = re.compile(r"[(\[]((?:[-+.\de]+, ){5,}[-+.\de]+)[)\]]")
_NAMES = re.compile(r"""\[((?:(?:'[^'\\]*'|"[^"\\]*"), ){6,}(?:'[^'\\]*'|"[^"\\]*"))\]""")
_NAME = re.compile(r"""('[^'\\]*'|"[^"\\]*")""")
_NAMED = 3  # names of a long list that are said


def count(amount: int, thing: str, things: str | None = None) -> str:
    """Return "1 row", "2 rows".

    Examples
    --------
    >>> from mercer.machine.words import count
    >>> count(1, "row"), count(12000, "row"), count(2, "entry", "entries")
    ('1 row', '12,000 rows', '2 entries')
    """
    return f"{amount:,} {thing if amount == 1 else things or thing + 's'}"


def seconds(value: float) -> str:
    """Return a length of time.

    Examples
    --------
    >>> from mercer.machine.words import seconds
    >>> seconds(0.0123), seconds(3.21), seconds(75), seconds(7260)
    ('12 ms', '3.2 s', '1 min 15 s', '2 h 1 min')
    """
    if value < 0.0995:
        return f"{1000 * value:.0f} ms" if value >= 0.001 else f"{1000 * value:.1g} ms"
    if value < 9.95:
        return f"{value:.1f} s"
    if value < 59.5:
        return f"{value:.0f} s"
    if value < 3570:
        return f"{round(value) // 60} min {round(value) % 60} s"
    return f"{round(value / 60) // 60} h {round(value / 60) % 60} min"


def brief(kernel: str) -> str:
    """Return a kernel as text, with long lists of numbers told by their ends, and of names by the first few.

    Examples
    --------
    >>> from mercer.machine.words import brief
    >>> brief("RBF(scale=(1.5, 2.0, 2.0, 2.0, 4.0, 1.0))")
    'RBF(scale=(6 numbers from 1 to 4))'
    >>> brief("RBF(scale=(1.0, 2.0))")
    'RBF(scale=(1.0, 2.0))'
    >>> brief(f"RBF().on({['age', 'job', 'since', 'height', 'weight', 'town', 'salary']})")
    "RBF().on(['age', 'job', 'since' and 4 more])"
    """

    def numbers(match: re.Match[str]) -> str:
        values = [float(v) for v in match[1].split(",")]
        return f"({len(values)} numbers from {min(values):g} to {max(values):g})"

    def names(match: re.Match[str]) -> str:
        every = _NAME.findall(match[1])
        return f"[{', '.join(every[:_NAMED])} and {len(every) - _NAMED} more]"

    return _NAMES.sub(names, _NUMBERS.sub(numbers, kernel))
