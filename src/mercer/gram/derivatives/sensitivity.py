"""Derivatives of a kernel in its parameters, contracted with a matrix: what the gradient of a likelihood needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mercer.gram.derivatives.parameter import parameters, with_parameters
from mercer.gram.derivatives.plan import Plan
from mercer.gram.derivatives.tiles import sweep
from mercer.kernels import Kernel, Sum
from mercer.points import Points
from mercer.points.formulas.dual import Tape


def parameter_gradient(kernel: Kernel, X: Any, W: Any) -> np.ndarray:
    r"""Return the derivatives of sum_ij W_ij k(x_i, x_j) in the continuous parameters of the kernel.

    .. math:: g_p = \sum_{ij} W_{ij} \frac{\partial k(x_i, x_j)}{\partial \theta_p}

    The kernel's formula is differentiated, so the derivatives are exact to rounding. Parameters that enter by a map of
    points (a period, the diagonal of a normalized kernel) are followed by differences of that map alone; what symbols
    cannot follow at all (a Python function, a Bessel function) by differences of the values: good to about 1e-9. The
    work is done in tiles of the upper triangle and needs a few tens of megabytes whatever n is.

    Parameters
    ----------
    kernel
        A kernel; parameters that wait for data are resolved on X first.
    X
        The n points.
    W
        A symmetric (n, n) matrix.

    Returns
    -------
    ndarray
        One number per parameter, in the order of `parameters(kernel)`.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import parameter_gradient
    >>> from mercer.kernels import RBF
    >>> X = np.array([[0.0], [1.0]])
    >>> parameter_gradient(2.0 * RBF(scale=1.0), X, np.ones((2, 2))).round(4)  # 2 + 2 exp(-1/2), and 4 exp(-1/2)
    array([3.2131, 2.4261])
    """
    points = Points.of(X)
    if points.foreign:
        raise TypeError(
            f"parameter_gradient works on NumPy arrays and {points.name} is a {type(points.data).__name__}; pass "
            "numpy.asarray of it."
        )
    kernel = kernel.resolve(points)
    W = _weights(W, len(points))
    theta = [p.value for p in parameters(kernel)]
    gradient = np.zeros(len(theta))
    tape = Tape()
    plan = Plan(points.double(), theta, tape)
    for term in terms(with_parameters(kernel, tape.parameters(theta))):
        plan.follow(term)
    try:
        sums = sweep(plan.tasks, W)
    except FloatingPointError as error:
        raise FloatingPointError(f"a derivative of {kernel!r} is outside the range of float64: {error}") from None
    for total, shares in zip(sums, plan.shares, strict=True):
        for parameter, share in shares(total).items():
            gradient[parameter] += share
    if not np.isfinite(gradient).all():
        p = parameters(kernel)[int(np.argmin(np.isfinite(gradient)))]
        raise FloatingPointError(
            f"the derivative of {kernel!r} in {p} is outside the range of float64; scale the features "
            "(sklearn.preprocessing.StandardScaler) or the matrix W."
        )
    return gradient


def _weights(W: Any, n: int) -> np.ndarray:
    W = np.asarray(W, dtype=np.float64)
    if W.shape != (n, n):
        raise ValueError(f"W has shape {W.shape}; for {n} points it must be a symmetric {n} x {n} matrix.")
    i = n // 2  # one row tells most mistakes, and all rows would cost as much as the derivatives
    if not np.isfinite(W[i]).all():
        raise ValueError(f"row {i} of W contains NaN or infinite values; it must be finite.")
    if not np.allclose(W[i], W[:, i], rtol=1e-6, atol=1e-9 * float(np.abs(W[i]).max())):
        raise ValueError(f"W is not symmetric: its row {i} is not its column {i}. Pass (W + W.T) / 2.")
    return W


def terms(kernel: Kernel) -> Iterator[Kernel]:
    """Yield the terms of a sum: what symbols cannot follow in one of them does not concern the others."""
    if isinstance(kernel, Sum):
        yield from terms(kernel.left)
        yield from terms(kernel.right)
    else:
        yield kernel
