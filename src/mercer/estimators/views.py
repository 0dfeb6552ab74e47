"""One view of the samples of a `KernelCCA`: its data, its kernel, and its functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from mercer.estimators.images import Images
from mercer.kernels import Kernel
from mercer.points import Points
from mercer.rkhs import RKHSVector
from mercer.solvers.unsupervised.cca import View


class ViewModel(Images):
    """Functions sum_i A_ij k(x_i, .) + b_j of some of the training points, or of all."""

    _chosen: np.ndarray | None = None  # which of the training points; None for all

    def _keep_data(self, data: Any, kernel: Kernel) -> None:
        self._chosen = None
        super()._keep_data(data, kernel)

    def _keep_functions(self, found: View, coefficients: np.ndarray) -> None:
        self._A, self._b = found.B @ coefficients, found.b @ coefficients
        self._chosen = found.centres
        self._prepare()

    def _prepare(self) -> None:
        super()._prepare()
        if self._kind != "similarities" and self._chosen is not None:
            self._centres = self._centres.take(self._chosen)

    def _scores(self, data: Any) -> np.ndarray:
        """Return the functions at validated points."""
        if self._kind == "similarities" and self._chosen is not None:
            data = data[:, self._chosen]
        return self._sums(data, self._A) + self._b

    def _functions(self) -> RKHSVector:
        points = self._points_fit
        if self._chosen is not None:
            points = Points(points).take(self._chosen).data
        return RKHSVector(self.kernel_, points, self._A, self._b)


class SecondView(ViewModel):
    """The second view, which reads y as the first reads X.

    Parameters
    ----------
    kernel, gamma, degree, coef0, kernel_params, budget
        As of the `KernelCCA` that it belongs to.
    """

    def __init__(
        self,
        kernel: Any,
        gamma: float | None,
        degree: int,
        coef0: float,
        kernel_params: dict[str, Any] | None,
        budget: int | float | str | None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.budget = budget

    def _read_second(self, y: Any, fitting: bool = True) -> Any:
        """Return y, validated; a vector of numbers is a matrix of one column."""
        if self._reads() == "vectors" and not sparse.issparse(y):
            y = y if hasattr(y, "ndim") else np.asarray(y)
            y = np.asarray(y).reshape(-1, 1) if y.ndim == 1 else y
        try:
            return self._read(y, targets=False)[0] if fitting else self._read_new(y)
        except ValueError as error:
            raise ValueError(f"y, the second view, cannot be read as X of it: {str(error).rstrip('.')}.") from error
