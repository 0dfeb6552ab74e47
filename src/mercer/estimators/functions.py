"""What a model found, as functions of its space."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.kernels import Kernel, Linear
from mercer.rkhs import RKHSFunction, RKHSVector


def found_functions(kernel: Kernel, points: Any, A: Any, offsets: Any, single: bool) -> RKHSFunction | RKHSVector:
    """Return the functions with coefficients A, (centres, functions): one by itself, or all as a vector."""
    if single:
        return RKHSFunction(kernel, points, A[:, 0], float(np.ravel(offsets)[0]))
    return RKHSVector(kernel, points, A, offsets)


def linear_functions(coef: Any, intercept: Any, single: bool) -> RKHSFunction | RKHSVector:
    """Return w.x + b as functions of the linear kernel: w = sum_i a_i x_i has itself as its only centre."""
    w = np.array(np.atleast_2d(coef), dtype=np.float64)
    return found_functions(Linear(), w, np.eye(len(w)), intercept, single)
