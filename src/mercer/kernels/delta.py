"""The delta kernel."""

from __future__ import annotations

from typing import Any

from mercer.kernels.base import Kernel, kernel
from mercer.kernels.proof import Proof
from mercer.points import Pair


@kernel
class Delta(Kernel):
    """1 for equal points, 0 otherwise: white noise, or the matching of categories.

    .. math:: k(x, z) = 1[x = z]

    Equality is of values, so it is a function of the two points: two equal rows count as one point. (Noise that
    is independent for repeated measurements is a parameter of the models, not a kernel.)

    Examples
    --------
    >>> from mercer.kernels import Delta
    >>> Delta()(["red", "blue", "red"])
    array([[1., 0., 1.],
           [0., 1., 0.],
           [1., 0., 1.]])
    """

    def of(self, pair: Pair) -> Any:
        return pair.equal

    def _proof(self) -> Proof:
        return self._axiom(
            "feature map",
            "one coordinate per distinct point: Phi(x) = e_x; the Gram matrix is blocks of ones.",
        )
