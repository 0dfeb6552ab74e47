"""All laws at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mercer.kernels import Kernel
from mercer.testing import objects, values

LAWS: tuple[Callable[..., None], ...] = (
    values.finite,
    values.symmetry,
    values.diagonal,
    values.formula,
    values.blocks,
    values.matvec,
    objects.proof,
    values.positive_semidefinite,
    values.cauchy_schwarz,
    values.float32,
    objects.clone,
    objects.pickling,
    objects.representation,
    objects.parameters,
    objects.equality,
)


def check_kernel(kernel: Kernel, points: Any, other: Any = None) -> None:
    """Raise AssertionError, naming the law and the worst value, unless the kernel obeys every law on these points.

    The laws are functions of `mercer.testing`, listed in `LAWS`; a failure names one, which can then be called by
    itself. What is compared must agree to rounding, as measured by `rounding`.

    Parameters
    ----------
    kernel
        Any kernel: of the catalogue, a composite, or of a class of one's own.
    points
        Points it compares, a few dozen: a matrix, a table, or a sequence of objects. The more telling ones (equal
        points, zeros, far outliers) they include, the more the check says.
    other
        A second set of points; a copy of the first when None.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Kernel, kernel
    >>> from mercer.testing import check_kernel
    >>> @kernel
    ... class Hat(Kernel):
    ...     '''k(x, z) = 1 / (1 + |x - z|^2 / s^2).'''
    ...     scale: float = 1.0
    ...     def of(self, pair):
    ...         return 1 / (1 + pair.sqdist(self.scale))
    ...     def _proof(self):
    ...         return self._axiom("Schoenberg", "a mixture of Gaussian kernels.")
    >>> X = np.random.default_rng(0).normal(size=(20, 3))
    >>> check_kernel(Hat(scale=2.0), X)
    >>> @kernel
    ... class Ball(Hat):
    ...     '''k(x, z) = 1 - |x - z|^2 / s^2, which is no kernel.'''
    ...     def of(self, pair):
    ...         return 1 - pair.sqdist(self.scale)
    >>> check_kernel(Ball(scale=2.0), X)
    Traceback (most recent call last):
        ...
    AssertionError: positive semidefiniteness fails for Ball(scale=2.0): its proof says proven, but the Gram matrix ...
    """
    _, X, Z = values.resolved(kernel, points, other)
    for law in LAWS:
        law(kernel, X, Z)
