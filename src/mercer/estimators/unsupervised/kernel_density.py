"""Densities by kernels, as an estimator."""

from __future__ import annotations

import math
import numbers
from dataclasses import KW_ONLY
from typing import Any, ClassVar, Self

import numpy as np
from scipy.optimize import minimize_scalar
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer.estimators.shared.data import positive_weights
from mercer.estimators.shared.fitting import whole_fit
from mercer.estimators.shared.parameters import Unnecessary, warn_unnecessary, with_parameters
from mercer.features.spectral.law import generator
from mercer.kernels import RBF, Kernel, Laplacian, Matern
from mercer.machine.warn import warn
from mercer.rkhs import RKHSFunction
from mercer.rkhs.statistics.density import METRICS, PROFILES, Profile, log_density, log_left_out, window

_KERNELS: dict[str, Kernel] = {"gaussian": RBF(), "exponential": Matern(nu=0.5), "laplacian": Laplacian()}
_NAMES = (*_KERNELS, *(name for name in PROFILES if name not in _KERNELS))
_METRICS = {**{name: name for name in METRICS}, "l2": "euclidean", "l1": "manhattan", "cityblock": "manhattan"}
_ORDERS = {2.0: "euclidean", 1.0: "manhattan", math.inf: "chebyshev"}  # of Minkowski's metrics
_RULES = ("scott", "silverman", "loo")
_FACTORS = np.geomspace(1e-3, 10.0, 17)  # of Scott's bandwidth, that "loo" looks at first
_RANGE = 600.0  # logarithms within which density values are numbers


@with_parameters
class KernelDensity(DensityMixin, BaseEstimator):
    r"""The density of a sample: the mean of a window about each point.

    .. math:: p(x) = \sum_i w_i \frac{k(x, x_i)}{\int k(u, x_i) \, du}, \qquad \sum_i w_i = 1

    Values are computed as logarithms, which stay finite however far from the data x is (where the window has no end).

    Parameters
    ----------
    bandwidth
        The scale of the window: a number, one per feature, "scott", "silverman" or "loo". The two rules are multiples
        of the standard deviation of each feature, n^(-1/(d + 4)) and (n (d + 2) / 4)^(-1/(d + 4)), made for a normal
        law and a Gaussian window; a constant feature counts as one of deviation 1. "loo" takes the multiple of Scott's
        bandwidth, between 0.001 and 10, for which each point is most likely under the density of the others. None: the
        kernel's own scale where it has one, Scott's rule otherwise.
    kernel
        "gaussian", "exponential", "laplacian", or a kernel that has an integral: `RBF`, `Laplacian`, `Matern` of
        nu = 0.5 ("exponential"), 1.5 and 2.5, `Wendland`, `RationalQuadratic` of alpha > d / 2, `Cauchy` on one
        feature. Its scale is that of the window, or "auto" to leave it to `bandwidth`. Also scikit-learn's "tophat",
        "epanechnikov", "linear" and "cosine", windows of radius `bandwidth`: not positive semidefinite in general.
        A window need not be; but then the density is no function of a space H.
    metric
        Of scikit-learn's kernels by name: "euclidean", "manhattan", "chebyshev", or "minkowski" with p = 2, 1 or inf in
        `metric_params` (2 unless given). The integral is 1 in each of them.
    metric_params
        {"p": p} for metric="minkowski".
    algorithm, atol, rtol, breadth_first, leaf_size
        Of scikit-learn; nothing here depends on them.

    Attributes
    ----------
    bandwidth_
        The scale that was used: a number, or one per feature.
    kernel_
        The kernel with it; None where the window is no kernel.
    function_
        The density as an `RKHSFunction`, where the window is a kernel.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    scikit-learn's rules "scott" and "silverman" do not know the deviation of the data and suit standardised features;
    scipy.stats.gaussian_kde has it, and in one dimension the same bandwidth as here.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelDensity
    >>> X = np.random.default_rng(0).normal(size=(500, 1))
    >>> model = KernelDensity().fit(X)
    >>> np.exp(model.score_samples([[0.0], [2.0]])).round(2)
    array([0.37, 0.06])
    >>> bool(-1e7 < model.score_samples([[1000.0]])[0] < -1e6)
    True
    >>> model.sample(3, random_state=0).shape
    (3, 1)
    """

    bandwidth: float | Any | str | None = None
    _: KW_ONLY
    kernel: str | Kernel = "gaussian"
    metric: str = "euclidean"
    metric_params: dict[str, Any] | None = None
    algorithm: str = "auto"
    atol: float = 0
    rtol: float = 0
    breadth_first: bool = True
    leaf_size: int = 40

    _names: ClassVar[tuple[str, ...]] = _NAMES
    _unnecessary: ClassVar[Unnecessary] = {
        "algorithm": ("auto", "all pairs are compared, in tiles"),
        "atol": (0, "sums are exact to rounding"),
        "rtol": (0, "sums are exact to rounding"),
        "breadth_first": (True, "there is no tree to walk through"),
        "leaf_size": (40, "there is no tree"),
    }

    @whole_fit
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Keep the sample and choose the bandwidth.

        Parameters
        ----------
        X
            The sample, one point per row.
        y
            Not used.
        sample_weight
            A weight for each point, at least 0; None for equal ones.

        Returns
        -------
        self
        """
        kernel = self._checked_kernel()
        data = np.array(validate_data(self, X, dtype=np.float64, order="C"))
        weights, rows = positive_weights(sample_weight, len(data))
        if rows is not None:
            data = data[rows]
        w = np.full(len(data), 1.0) if weights is None else weights / weights.max()
        self._data, self._log_weights = data, np.log(w / w.sum())
        scaled = self._scaled(kernel)
        self.kernel_ = scaled if isinstance(scaled, Kernel) else None
        self.bandwidth_ = scaled.scale
        self._window = window(scaled, data.shape[1])
        return self

    def _checked_kernel(self) -> Any:
        warn_unnecessary(self)
        metric = self._checked_metric()
        if isinstance(self.kernel, str):
            if self.kernel not in _NAMES:
                raise ValueError(
                    f"kernel={self.kernel!r} of KernelDensity must be one of {', '.join(map(repr, _NAMES))}, or a "
                    "kernel object with an integral, such as Wendland() (which ends) or RationalQuadratic(2.0)."
                )
            if self.kernel in PROFILES and (metric != "euclidean" or self.kernel not in _KERNELS):
                return Profile(self.kernel, metric)
            kernel = _KERNELS[self.kernel]
        else:
            kernel = self.kernel
        if not isinstance(kernel, Kernel):
            raise TypeError(f"kernel={self.kernel!r} of KernelDensity must be a kernel object or a name.")
        if metric != "euclidean":
            raise ValueError(
                f"metric={self.metric!r} of KernelDensity is for the kernels {', '.join(map(repr, PROFILES))}; "
                f"{self.kernel!r} has distances of its own."
            )
        return kernel

    def _checked_metric(self) -> str:
        params = dict(self.metric_params or {})
        if self.metric in ("minkowski", "p"):
            metric = _ORDERS.get(params.pop("p", 2))
        else:
            metric = _METRICS.get(self.metric)
        if metric is None or params:
            raise ValueError(
                f"invalid metric: metric={self.metric!r} with metric_params={self.metric_params!r}; KernelDensity "
                "knows the integrals of windows in 'euclidean', 'manhattan' and 'chebyshev', and 'minkowski' with "
                "p = 2, 1 or inf."
            )
        return metric

    # -- the bandwidth ----------------------------------------------------------------------------------

    def _scaled(self, kernel: Any) -> Any:
        """Return the kernel with the bandwidth as its scale."""
        width = self._data.shape[1]
        scale = getattr(kernel, "scale", "auto")
        own = not (isinstance(scale, str) and scale == "auto")
        rule = self.bandwidth
        if own:
            if rule is not None:
                raise ValueError(
                    f"both bandwidth={rule!r} and the scale of {kernel!r} are given; leave one of them out."
                )
            scaled = kernel.resolve(self._data)
            window(scaled, width)
            return scaled
        window(_with_scale(kernel, 1.0), width)  # says what has no integral
        if rule is None:
            rule = "scott"
        if not isinstance(rule, str):
            return _with_scale(kernel, _checked_bandwidth(rule, width))
        if rule not in _RULES:
            raise ValueError(
                f"bandwidth={rule!r} of KernelDensity must be a number > 0, one per feature, "
                f"{', '.join(map(repr, _RULES))} or None."
            )
        scales = _deviations(self._data, np.exp(self._log_weights))
        effective = 1.0 / float(np.exp(2 * self._log_weights).sum())
        base = effective if rule != "silverman" else effective * (width + 2) / 4
        scales = scales * base ** (-1.0 / (width + 4))
        if rule == "loo":
            scales = scales * self._best_factor(kernel, scales)
        return _with_scale(kernel, scales)

    def _best_factor(self, kernel: Any, scales: np.ndarray) -> float:
        """Return the multiple of the scales with the largest leave-one-out likelihood."""
        n, width = self._data.shape
        if n < 2:
            raise ValueError("bandwidth='loo' leaves out one point at a time, and there is n_samples=1; use a number.")
        w = np.exp(self._log_weights)

        def loss(log_factor: float) -> float:
            scaled = window(_with_scale(kernel, scales * math.exp(log_factor)), width)
            total = float(w @ log_left_out(scaled, self._data, self._log_weights))
            return -total if math.isfinite(total) else math.inf

        steps = np.log(_FACTORS)
        losses = np.array([loss(step) for step in steps])
        best = int(np.argmin(losses))
        if not math.isfinite(losses[best]):
            raise ValueError(
                f"bandwidth='loo': up to ten times Scott's bandwidth, the windows of {kernel!r} leave some point "
                "without neighbours, and the likelihood is 0. Use a kernel without compact support, or a number."
            )
        if best == 0:
            warn(
                f"the leave-one-out likelihood still grows at {_FACTORS[0]:g} times Scott's bandwidth: points of the "
                "sample are repeated, and a density that is infinite there is most likely. bandwidth_ is that bound; "
                "choose bandwidth='scott' or a number.",
                UserWarning,
            )
            return float(_FACTORS[0])
        bounds = steps[best - 1], steps[min(best + 1, len(steps) - 1)]
        least = minimize_scalar(lambda s: min(loss(s), 1e300), bounds=bounds, method="bounded", options={"xatol": 1e-3})
        return math.exp(least.x if least.fun <= losses[best] else steps[best])

    # -- the density ------------------------------------------------------------------------------------

    def score_samples(self, X: Any) -> np.ndarray:
        """Return log p at each point of X."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, order="C", reset=False)
        return log_density(self._window, X, self._data, self._log_weights)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the log-likelihood of X: the sum of log p."""
        return float(self.score_samples(X).sum())

    def sample(self, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Return points drawn from the density: a point of the sample, moved by a draw from the window."""
        check_is_fitted(self)
        if isinstance(n_samples, bool) or not isinstance(n_samples, numbers.Integral) or n_samples < 1:
            raise ValueError(f"n_samples must be a whole number >= 1; it is {n_samples!r}.")
        rng = generator(random_state)
        chosen = rng.choice(len(self._data), size=int(n_samples), p=np.exp(self._log_weights))
        return np.asarray(self._data[chosen] + self._window.draw(int(n_samples), rng))

    @property
    def function_(self) -> RKHSFunction:
        """The density as a function of the kernel's space."""
        check_is_fitted(self)
        if self.kernel_ is None:
            raise AttributeError(
                f"the window {self._window.kernel.name!r} is not known to be a positive semidefinite kernel, so that "
                "the density lies in no space H; score_samples gives its logarithms."
            )
        logs = self._log_weights - self._window.log_volume
        if np.abs(logs).max() > _RANGE:
            raise FloatingPointError(
                f"the values of the density are around exp({logs.max():.4g}), outside the range of float64; "
                "score_samples gives their logarithms."
            )
        return RKHSFunction(self.kernel_, self._data, np.exp(logs))


def _with_scale(kernel: Any, scale: Any) -> Any:
    """Return the kernel with another scale: one number where all are equal."""
    if not hasattr(kernel, "scale"):
        return kernel  # which has no integral, as `window` says
    values = np.atleast_1d(np.asarray(scale, dtype=np.float64))
    return kernel.replace(scale=float(values[0]) if len(values) == 1 or np.ptp(values) == 0 else values.tolist())


def _checked_bandwidth(bandwidth: Any, width: int) -> np.ndarray:
    try:
        values = np.atleast_1d(np.asarray(bandwidth, dtype=np.float64))
        right = not isinstance(bandwidth, bool) and values.shape in ((1,), (width,))
    except (TypeError, ValueError):
        right = False
    if not right or not (np.isfinite(values).all() and (values > 0).all()):
        raise ValueError(
            f"bandwidth={bandwidth!r} of KernelDensity must be a finite number > 0, or one for each of the {width} "
            "features."
        )
    return values


def _deviations(X: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return the standard deviation of each feature, 1 for constant ones."""
    constant = X.max(axis=0) == X.min(axis=0)
    unit = np.where(constant, 1.0, np.abs(X).max(axis=0))
    scaled = X / unit
    square = w @ (scaled - w @ scaled) ** 2 / max(1.0 - float(w @ w), np.finfo(np.float64).eps)
    return np.asarray(np.where(constant, 1.0, np.sqrt(square) * unit))
