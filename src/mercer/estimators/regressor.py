"""What SVR and NuSVR share: targets, predictions and the tube."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from mercer.certify import Certificate
from mercer.estimators.inputs import read_targets
from mercer.estimators.margins import tube_table
from mercer.estimators.parameters import SEARCHED_KERNEL, Rules, check_parameters
from mercer.estimators.ranges import whole_fit
from mercer.estimators.single import SingleMachine


class TubeRegressor(RegressorMixin, SingleMachine):
    """A regressor that does not mind residuals inside a tube."""

    _numeric_target: ClassVar[bool] = True
    _rules: ClassVar[Rules] = {"kernel": SEARCHED_KERNEL}

    def _tube(self) -> float:
        """Half the width of the tube."""
        raise NotImplementedError

    def _bounds(self, weights: np.ndarray) -> np.ndarray:
        """The largest coefficient of each sample."""
        return np.asarray(self.C * weights)

    @whole_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Find the flattest function that keeps most targets in the tube.

        Parameters
        ----------
        X
            The training points: a matrix (dense or sparse), a table, or whatever the kernel compares; the square matrix
            of similarities for kernel="precomputed".
        y
            A number for each.
        sample_weight
            A weight for each, at least 0: C becomes C times the weight, and weight 0 drops the sample.

        Returns
        -------
        self
        """
        check_parameters(self)
        data, target = self._read(X, y)
        target = np.asarray(target, dtype=np.float64)
        self._warn_unfinished(self._fit(X, y, target, data, sample_weight), data, target)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return f at each point."""
        check_is_fitted(self)
        return self._values(self._read_new(X))

    def margins(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Return where each sample lies in the tube (M7), as a pandas DataFrame.

        Parameters
        ----------
        X, y, sample_weight
            What the model was fitted to. For other samples alpha and kkt are NaN, and the residual gives the role.

        Returns
        -------
        DataFrame
            Per sample: `alpha`; `residual`, y - f(x); `slack`, by how much it leaves the tube; `role`, "inside the
            tube" (alpha = 0), "on the tube" (0 < alpha < C) or "outside the tube" (alpha = C); `kkt`, by how much the
            residual contradicts the role.
        """
        return tube_table(self, X, y, sample_weight)

    def _rechecked(self, X: Any, y: Any, sample_weight: Any) -> Certificate:
        data = self._read_new(X)
        return self._rechecked_target(data, read_targets(self, data, y, True), sample_weight)
