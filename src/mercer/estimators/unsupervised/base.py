"""The base of the models of the images phi(x) of the data in H: they read X by its kernel and need no targets."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, ClassVar

import numpy as np

from mercer.estimators.shared.data import KernelData, Training
from mercer.estimators.shared.fitting import finite
from mercer.estimators.shared.parameters import PAIRWISE_RULES, Rules, with_parameters
from mercer.gram import Gram
from mercer.kernels import Kernel
from mercer.machine.budget import Budget
from mercer.points import Points


@with_parameters
class Images(KernelData):
    """A model of the points phi(x_i) of H; scikit-learn's kernels by name, as `KernelRidge` reads them."""

    _: KW_ONLY
    gamma: float | None = None
    degree: int = 3
    coef0: float = 1
    kernel_params: dict[str, Any] | None = None
    budget: int | float | str | None = None

    _rules: ClassVar[Rules] = PAIRWISE_RULES
    _compares_two: ClassVar[bool] = True
    dtype: ClassVar[str] = "float64"  # what `KernelData` turns numbers into

    def _gram(self, training: Training) -> Gram:
        if self.budget is not None:
            return super()._gram(training)
        return Gram(training.kernel, training.points, budget=Budget.for_points(None, len(training.points)))

    def _read_new(self, X: Any) -> Any:
        data = super()._read_new(X)
        return data if self._kind in ("anything", "function") else data.astype(np.float64, copy=False)

    def _keep_data(self, data: Any, kernel: Kernel) -> None:
        """Set the attributes that describe the training data."""
        self.shape_fit_ = tuple(data.shape) if hasattr(data, "shape") else (len(data),)
        self.X_fit_ = data
        self.kernel_ = kernel
        self._prepare()

    def _prepare(self) -> None:
        """Read the training points once for all that is asked about new ones."""
        self._centres = Points(self._points_fit, "X_fit_")

    @property
    def _points_fit(self) -> Any:
        """The training points as the kernel compares them: for kernel="precomputed", their numbers."""
        return np.arange(self.shape_fit_[0]) if self._kind == "similarities" else self.X_fit_

    @finite
    def _sums(self, data: Any, coefficients: np.ndarray) -> np.ndarray:
        """Return sum_i k(x, x_i) c_ij at validated new points x, in float64, in tiles."""
        if self._kind == "similarities":
            return np.asarray(data @ coefficients, dtype=np.float64)
        return np.asarray(Gram(self.kernel_, data, self._centres).matvec(coefficients), dtype=np.float64)

    def _own(self, data: Any) -> np.ndarray:
        """Return k(x, x) at validated new points."""
        if self._kind == "similarities":
            raise ValueError(
                f"{type(self).__name__} with kernel='precomputed' knows the similarities of new points to the training "
                "samples, not to themselves, and so no distances; pass a kernel object."
            )
        return np.asarray(self.kernel_.diag(data), dtype=np.float64)

    def __getstate__(self) -> Any:
        return {name: value for name, value in super().__getstate__().items() if name != "_centres"}

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        if hasattr(self, "X_fit_"):
            self._prepare()


def like(X: Any, values: np.ndarray) -> np.ndarray:
    """Return the values in float32 where X is an array of such and they are in its range."""
    if getattr(X, "dtype", None) != np.float32 or np.abs(values).max(initial=0.0) > np.finfo(np.float32).max:
        return values
    return values.astype(np.float32)
