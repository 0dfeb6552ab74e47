"""The metric that a model has learned, read off its kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.kernels import Kernel, Metric


def learned_metric(model: Any) -> Metric | None:
    """Return the metric of a fitted model's kernel, with the names of its columns; None where all count alike.

    Deviations of columns are those of the points that the model holds.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF, KernelRidge
    >>> from mercer.estimators.features.learned import learned_metric
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> list(learned_metric(KernelRidge(kernel=RBF((1.0, 3.0))).fit(X, X[:, 0])).by_column())
    ['x0', 'x1']
    """
    kernel = getattr(model, "kernel_", None)
    points = getattr(getattr(model, "function_", None), "points", None)
    if not isinstance(kernel, Kernel) or points is None:
        return None
    encoder = getattr(model, "encoder_", None)
    if encoder is None:
        return Metric.of(kernel, points, getattr(model, "feature_names_in_", None))
    return Metric.of(kernel, points, encoder.get_feature_names_out(), encoder.groups())


class WithMetric:
    """The attributes of a model whose kernel may have a metric."""

    @property
    def metric_(self) -> np.ndarray | None:
        """The metric of the kernel, (d, d), in units of the columns' deviations and with trace 1; None without one."""
        metric = learned_metric(self)
        return None if metric is None else metric.matrix

    @property
    def feature_importances_(self) -> np.ndarray | None:
        """The share of each column in the diagonal of `metric_`; None where the kernel treats all alike."""
        metric = learned_metric(self)
        return None if metric is None else metric.importances

    def directions(self, count: int = 3) -> list[tuple[float, dict[str, float]]]:
        """Return the leading directions of the metric: the share of each, and its largest entries by column.

        Parameters
        ----------
        count
            How many.
        """
        metric = learned_metric(self)
        return [] if metric is None else metric.directions(count)
