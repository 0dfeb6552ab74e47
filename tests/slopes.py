"""Derivatives by differences, the referee of derivatives by formula."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

CENTRAL = ((1, 8), (-1, -8), (2, -1), (-2, 1))
FORWARD = ((0, -25), (1, 48), (2, -36), (3, 16), (4, -3))


def derivative(f: Callable[[float], Any], step: float) -> np.ndarray:
    """Return f'(0), from one side where the other raises ValueError."""
    try:
        return sum(c * np.asarray(f(i * step), dtype=np.float64) for i, c in CENTRAL) / (12 * step)
    except ValueError:
        return sum(c * np.asarray(f(i * step), dtype=np.float64) for i, c in FORWARD) / (12 * step)


def settled(f: Callable[[float], Any], step: float) -> tuple[np.ndarray, np.ndarray]:
    """Return f'(0) from two steps and by how much they differ, entry by entry: how far the referee is to be trusted."""
    coarse, fine = derivative(f, step), derivative(f, step / 4)
    return fine, np.abs(coarse - fine)


def composites_of(leaves):
    """Sums, products, multiples, powers, normalised kernels and exponentials of the kernels that a strategy draws."""
    return st.recursive(
        leaves,
        lambda k: st.one_of(
            st.tuples(k, k).map(lambda pair: pair[0] + pair[1]),
            st.tuples(k, k).map(lambda pair: pair[0] * pair[1]),
            k.map(lambda part: 1.7 * part),
            k.map(lambda part: part**2),
            k.map(lambda part: part.normalized()),
            k.map(lambda part: (0.2 * part.normalized()).exp()),
        ),
        max_leaves=4,
    )
