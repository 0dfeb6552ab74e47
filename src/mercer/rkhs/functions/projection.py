"""The projection of functions on the span of kernel functions at given points: the step of the representer theorem."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh

from mercer.gram import Gram
from mercer.kernels import Kernel
from mercer.machine.budget import Budget
from mercer.rkhs.functions.centres import doubled, first_equal, plain, taken
from mercer.rkhs.functions.sums import exponents, indefinite, scaled


class Projected(NamedTuple):
    """What projecting found.

    Attributes
    ----------
    function
        The projection, a sum of kernel functions at the given points.
    error
        The distance in H of the function from its projection; one for each function of a vector.
    relative
        The same as a share of the norm.
    """

    function: Any
    error: Any
    relative: Any


def project(kernel: Kernel, points: Any, values: np.ndarray, budget: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return points, and the coefficients of the functions in their span that have these values there.

    Parameters
    ----------
    kernel, points
        Whose kernel functions span the space; equal points count once.
    values
        Of the functions that are projected, (n, functions).
    budget
        Bytes that may be used.

    Returns
    -------
    rows, coefficients
        Which points are left, and their coefficients, (rows, functions): of the least squares solutions of K a = values
        the shortest, without the directions in which K is rounding alone.
    """
    rows = np.unique(first_equal(points))
    chosen = doubled(plain(taken(points, rows)))
    n = len(rows)
    limit = Budget.for_points(budget, n)
    limit.require(24 * n * n, f"a projection on the span of {n} points", "project on fewer, or raise the budget.")
    spectrum, U = eigh(np.asarray(Gram(kernel, chosen, budget=limit).dense(), dtype=np.float64), driver="evd")
    rounding = n * np.finfo(np.float64).eps * max(float(spectrum[-1]), 0.0)
    if spectrum[0] < -100 * rounding:
        raise indefinite(kernel, f"the kernel matrix of the points has the eigenvalue {spectrum[0]:.6g}")
    kept = spectrum > rounding
    size = exponents(values[rows])
    right = scaled(values[rows], -size)
    inside = U[:, kept] @ ((U[:, kept].T @ right) / spectrum[kept, None])
    return rows, np.ldexp(inside, size)
