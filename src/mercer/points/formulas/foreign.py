"""Pair statistics on arrays of another library (torch on a CPU or a GPU), in its own operations."""

from __future__ import annotations

from typing import Any


def statistic(xp: Any, kind: str, x: Any, z: Any, scale: Any = 1.0) -> Any:
    """Return one statistic for every row of `x` against every row of `z`.

    Differences are formed coordinate by coordinate and then scaled, as in the core: norms and inner products
    would cancel.
    """
    if kind == "dot":
        return x @ z.T
    scales = xp.broadcast_to(xp.asarray(scale, dtype=x.dtype, device=x.device), (x.shape[1],))
    total = xp.zeros((x.shape[0], z.shape[0]), dtype=x.dtype, device=x.device)
    for j in range(x.shape[1]):
        a, b = x[:, j, None], z[None, :, j]
        if kind == "sqdist":
            total = total + ((a - b) / scales[j]) ** 2
        elif kind == "l1":
            total = total + xp.abs((a - b) / scales[j])
        elif kind == "sqsum":
            total = total + (a + b) ** 2
        elif kind == "minimum":
            total = total + xp.minimum(a, b)
        else:
            bottom = a + b
            total = total + xp.where(bottom > 0, (a - b) ** 2 / xp.where(bottom > 0, bottom, xp.ones_like(bottom)), 0)
    return total
