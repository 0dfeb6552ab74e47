"""The linear kernel."""

from __future__ import annotations

from typing import Any

from sklearn.preprocessing import FunctionTransformer

from mercer.kernels.base import Kernel, kernel
from mercer.points import Pair


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
