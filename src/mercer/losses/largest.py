"""The largest errors: a joint loss of all predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.kernels.base import check_integer
from mercer.losses.base import Box, Loss

_ROUNDING = 1e-12  # of the sum of |u|, by which a point on the rim of the conjugate's domain may lie outside


@dataclass(frozen=True)
class LargestErrors(Loss):
    r"""The sum of the k largest absolute errors; the largest alone for k = 1, and `Absolute` for k = n.

    .. math:: L(y, f) = \max_{|S| = k} \sum_{i \in S} |f_i - y_i|
              = \min_\varepsilon \; k \varepsilon + \sum_i \max(0, |f_i - y_i| - \varepsilon)

    It depends on all predictions together, as the representer theorem allows. The second form makes it the loss of
    `NuSVR` with nu = k / n. `value` gives the k largest errors, and 0 for the others; their sum is the loss.

    - derivative: the sign of f - y at the k largest errors, 0 at the others
    - conjugate: L*(y, u) = u'y for max \|u_i\| <= 1 and sum \|u_i\| <= k, else infinite
    - box: linear = -y, width = 0, upper = lower = 1, total = k

    There must be an offset, and samples have equal weights.

    Parameters
    ----------
    count
        k, at least 1; of fewer samples all errors count.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF, KernelMachine
    >>> LargestErrors(2).value(0.0, [1.0, -3.0, 2.0])
    array([0., 3., 2.])
    >>> X = np.linspace(0, 6, 30)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.1 * np.cos(40 * X[:, 0])
    >>> model = KernelMachine(RBF(1.0), loss=LargestErrors(1), penalty=0.1).fit(X, y)
    >>> model.certificate_.verify(X, y).converged
    True
    """

    count: int = 1

    target = "real"
    joint = True

    def __post_init__(self) -> None:
        check_integer(self, "count", self.count, 1)

    def _among(self, errors: np.ndarray) -> np.ndarray:
        """Return which errors are among the largest; of equal ones the first."""
        largest = np.zeros(errors.shape, bool)
        largest[np.argsort(-errors, kind="stable")[: int(self.count)]] = True
        return largest

    def value(self, y: Any, f: Any) -> np.ndarray:
        errors = np.abs(np.subtract(f, y, dtype=float))
        return np.where(self._among(errors), errors, 0.0)

    def derivative(self, y: Any, f: Any) -> np.ndarray:
        t = np.subtract(f, y, dtype=float)
        return np.where(self._among(np.abs(t)), np.sign(t), 0.0)

    @np.errstate(over="ignore")
    def conjugate(self, y: Any, u: Any) -> np.ndarray:
        size = np.abs(u)
        inside = size.max(initial=0.0) <= 1.0 and float(size.sum()) <= self.count * (1.0 + _ROUNDING)
        return np.multiply(u, y) if inside else np.full(np.broadcast_shapes(np.shape(u), np.shape(y)), np.inf)

    def box(self, y: Any) -> Box:
        y = np.asarray(y, dtype=float)
        one = np.ones_like(y)
        return Box(-y, np.zeros_like(y), one, one, float(min(int(self.count), y.size)))
