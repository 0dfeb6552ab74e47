"""The memory budget: how many bytes a computation may use."""

from __future__ import annotations

import math
import numbers
import os
import re
from pathlib import Path

_UNITS = {
    "": 1,
    "k": 10**3,
    "m": 10**6,
    "g": 10**9,
    "t": 10**12,
    "ki": 2**10,
    "mi": 2**20,
    "gi": 2**30,
    "ti": 2**40,
}
# Points up to which a matrix and its decomposition fit into these bytes, which any machine has.
_UNASKED_POINTS, _UNASKED_BYTES = 1500, 128 * 2**20
_FREE_SHARE = 0.5  # of the free memory, when the caller names no budget


class Budget(int):
    """A number of bytes: an int, or read from a text such as "500 MB" or "4GiB".

    Parameters
    ----------
    size
        Bytes, a text with a unit, or None for half of the memory that is free now.

    Examples
    --------
    >>> Budget("1.5 GiB")
    Budget('1.5 GiB')
    >>> Budget("2 kB") + 0
    2000
    """

    def __new__(cls, size: int | float | str | None = None) -> Budget:
        if size is None:
            return super().__new__(cls, int(_FREE_SHARE * available_memory()))
        if isinstance(size, str):
            match = re.fullmatch(r"\s*([0-9.]+)\s*([kmgt]?i?)b?\s*", size.lower())
            if match is None or match[2] == "i" or not re.fullmatch(r"\d+\.?\d*|\.\d+", match[1]):
                raise ValueError(
                    f"budget {size!r} is not a size; write bytes as a number, or a text like '500 MB' or '4 GiB'."
                )
            size = float(match[1]) * _UNITS[match[2]]
        if isinstance(size, bool) or not isinstance(size, numbers.Real):
            raise TypeError(f"budget must be a number of bytes or a text like '500 MB'; it is {size!r}.")
        if not 1 <= size < math.inf:
            raise ValueError(f"budget must be a positive, finite number of bytes; it is {size!r}.")
        return super().__new__(cls, int(size))

    @classmethod
    def for_points(cls, size: int | float | str | None, n: int) -> Budget:
        """Return a budget for a matrix of n points; of few, without asking what is free, which takes a while."""
        return cls(_UNASKED_BYTES if size is None and n <= _UNASKED_POINTS else size)

    def __repr__(self) -> str:
        return f"Budget({readable(self)!r})"

    @classmethod
    def all_that_is_free(cls) -> Budget:
        """Return what could be allocated now."""
        return cls(available_memory())

    def require(self, needed: int, what: str, remedy: str) -> None:
        """Raise MemoryError unless `needed` bytes fit; the amount that it names does."""
        if needed > self:
            raise MemoryError(
                f"{what} would need {readable(needed, up=True)}, more than the budget of {readable(self)}; {remedy}"
            )


def readable(size: int, up: bool = False) -> str:
    """Return a size with the unit that suits it, to four digits; `up` for no less than the size.

    Examples
    --------
    >>> readable(3 * 2**30), readable(10**6), readable(10**6, up=True)
    ('3 GiB', '976.6 KiB', '976.6 KiB')
    """
    value, unit = float(size), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    if up and value > 0:
        step = 10.0 ** (math.floor(math.log10(value)) - 3)
        value = math.ceil(value / step - 1e-9) * step
    return f"{value:.4g} {unit}"


def available_memory() -> int:
    """Return the bytes that are free now, for this process or the container it runs in."""
    candidates = [_free_on_machine()]
    root = Path("/sys/fs/cgroup")
    for limit, used in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        try:
            candidates.append(int((root / limit).read_text()) - int((root / used).read_text()))
        except (OSError, ValueError):
            continue
    return max(min(candidates), 64 * 2**20)


def _free_on_machine() -> int:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    return 2**31
