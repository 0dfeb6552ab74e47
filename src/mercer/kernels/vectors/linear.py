"""The constant and the linear kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.preprocessing import FunctionTransformer

from mercer.features import DiscreteLaw
from mercer.features.combine import ConstantColumn
from mercer.kernels.base import Kernel, check_number, kernel
from mercer.points import Pair
from mercer.points.formulas.dual import number


@kernel
class Constant(Kernel):
    r"""The constant kernel, an intercept in feature space.

    .. math:: k(x, z) = c, \quad c \ge 0

    Parameters
    ----------
    value
        The constant c.

    Examples
    --------
    >>> from mercer.kernels import Constant
    >>> Constant(2.0)([[0.0], [1.0]])
    array([[2., 2.],
           [2., 2.]])
    """

    value: float = 1.0

    _because = "feature map", "Phi(x) = sqrt(c) for every x, so a'Ka = c (sum a_i)^2 >= 0."

    def _validate(self) -> None:
        check_number(self, "value", self.value, closed=True)

    def of(self, pair: Pair) -> Any:
        return number(self.value)

    def spectral_law(self, dim: int) -> Any:
        return DiscreteLaw(np.zeros((1, dim)))

    def feature_map(self) -> Any:
        return FunctionTransformer(ConstantColumn(float(self.value) ** 0.5), accept_sparse=True)


@kernel
class Linear(Kernel):
    r"""The inner product itself (K4).

    .. math:: k(x, z) = \langle x, z \rangle

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> Linear()([[1.0, 2.0], [3.0, 4.0]])
    array([[ 5., 11.],
           [11., 25.]])
    """

    _because = "inner product", "k(x, z) = <x, z> is the inner product itself; the feature map is the identity."

    def of(self, pair: Pair) -> Any:
        return pair.dot

    def feature_map(self) -> Any:
        return FunctionTransformer(accept_sparse=True)
