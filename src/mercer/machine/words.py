"""Amounts as one would say them."""

from __future__ import annotations


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
