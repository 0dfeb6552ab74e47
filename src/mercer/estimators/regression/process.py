"""Predictions of a Gaussian process: means with deviations, draws, likelihoods, and each sample left out."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import LinAlgWarning
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted

from mercer.certify import Certificate, Stop, combined
from mercer.certify.representer import check_representer
from mercer.estimators.regression.base import RepresenterModel, columns_of
from mercer.estimators.shared.data import read_targets
from mercer.estimators.shared.parameters import check_parameters, is_real
from mercer.gram import Gram
from mercer.gram.factor import eigen_factor
from mercer.kernels import Kernel
from mercer.losses import Squared, SquaredNorm
from mercer.machine.budget import Budget
from mercer.machine.warn import warn
from mercer.points import Points
from mercer.solvers.gp.likelihood import Evidence, fill, unit_of_claims
from mercer.solvers.gp.posterior import ByFactor, ByGradients, Posterior
from mercer.solvers.gp.search import Tuned
from mercer.solvers.gp.space import Space
from mercer.solvers.run import HISTORY
from mercer.solvers.systems.inverse import inverse_diagonal

_SMALL = 1 << 25  # bytes that are within any budget
_PAID = 5  # likelihoods of all rows, of which each costs eight times the operations of a low rank, or more
_HISTORY = np.dtype([*((name, HISTORY[name]) for name in HISTORY.names or ()), ("rows", "i8"), ("likelihood", "f8")])


class Process(MultiOutputMixin, RegressorMixin, RepresenterModel):
    """The posterior of a Gaussian process; `GaussianProcessRegressor` finds it."""

    kernel: Any
    noise: Any
    alpha: Any
    n_targets: int | None
    noise_: Any
    jitter_: float
    residual: float
    budget: Any
    log_marginal_likelihood_value_: float | None
    theta_: np.ndarray
    theta_names_: list[str]
    _space: Space
    _unit: np.ndarray  # of each column of y
    _normalised: np.ndarray
    _history: list[Any]
    _posterior: Posterior

    # -- the posterior ----------------------------------------------------------------------------------

    def predict(
        self, X: Any, return_std: bool = False, return_cov: bool = False, *, of: str = "function"
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Return the mean at each point and, if asked, the standard deviation or the covariance.

        Before a fit they are those of the process that has seen no data, as for `sample_y`.

        Parameters
        ----------
        X
            Points as in `fit`; for kernel="precomputed", their similarities to all training samples.
        return_std, return_cov
            What to return beside the mean, which is the same for both choices of `of`.
        of
            "function": how far f may be from the mean. "target": how far a new observation may be, noise included.

        Returns
        -------
        mean : ndarray
            Of shape (points,), or (points, columns of y) if it has several.
        std or cov : ndarray
            Of shape (points,) or (points, points), with a last axis for the columns of y if it has several.
        """
        check_of(of)
        if return_std and return_cov:
            raise RuntimeError("At most one of return_std or return_cov can be requested.")
        if not self._fitted and self._reads() != "similarities":
            return self._predict_prior(X, return_std, return_cov, of)
        check_is_fitted(self)
        new = self._read_new(X)
        values = self._values(new)
        mean = values[:, 0] if self._flat else values
        if not (return_std or return_cov):
            return mean
        self._refuse_similarities()
        points = Points(new)
        noise = self._noise_of(of)
        if return_std:
            std = np.sqrt(self._known.variance(points) + noise)
            return mean, self._in_units(std, self._unit)
        with np.errstate(over="ignore"):
            cov = self._in_units(self._covariance(points, noise), self._unit**2)
        if not np.isfinite(cov).all():
            raise FloatingPointError(
                f"covariances in units of {self._unit.max():.3g} squared leave the range of float64; scale the targets."
            )
        return mean, cov

    @property
    def _fitted(self) -> bool:
        return hasattr(self, "kernel_")

    @property
    def _flat(self) -> bool:
        """Whether predictions are one number for each point."""
        return self.dual_coef_.ndim == 1 if self._fitted else self.n_targets in (None, 1)

    def _predict_prior(self, X: Any, return_std: bool, return_cov: bool, of: str) -> Any:
        points, kernel, noise, means, units = self._prior(X, of)
        mean = means[:, 0] if self._flat else means
        if return_cov:
            return mean, self._in_units(_matrix(kernel, points, noise), units)
        if return_std:
            return mean, self._in_units(np.sqrt(np.asarray(kernel.diag(points), dtype=np.float64) + noise), units)
        return mean

    def _covariance(self, points: Points, noise: float) -> np.ndarray:
        """Return the covariances in normalised units."""
        m, n = len(points), self.shape_fit_[0]
        needed = 8 * m * (n + 2 * m)
        if needed > _SMALL:
            Budget(self.budget).require(
                needed,
                f"the covariances of {m} points",
                "ask for fewer at a time, for return_std, or raise the budget.",
            )
        cov = self._known.covariance(points)
        cov.flat[:: len(cov) + 1] += noise
        return cov

    def _refuse_similarities(self) -> None:
        if self._kind == "similarities":
            raise ValueError(
                "with kernel='precomputed' the similarities of new points to themselves are not known, so there is no "
                "deviation; pass a kernel object, such as Precomputed(all similarities) with indices as points."
            )

    def _in_units(self, values: np.ndarray, unit: np.ndarray) -> np.ndarray:
        return values * unit[0] if self._flat else values[..., None] * unit

    def _noise_of(self, of: str) -> float:
        if of == "function":
            return 0.0
        if np.ndim(self.noise_):
            raise ValueError(
                "the noise was given for each training sample, and that of new points is not known; ask for "
                "of='function' and add their noise variance yourself."
            )
        return float(self.noise_)

    @property
    def _known(self) -> Posterior:
        """The posterior; computed again for a model that was stored."""
        if not hasattr(self, "_posterior"):
            points = self._points()
            shift = self.noise_ + self.jitter_
            if self.log_marginal_likelihood_value_ is None:
                self._posterior = ByGradients(Gram(self.kernel_, points, budget=self.budget), shift)
            else:
                factored = Evidence(points, self._normalised).factor(self.kernel_, shift, careful=True)
                self._posterior = ByFactor(self.kernel_, points, shift + factored.jitter, factored.values)
                self._prepare()
        return self._posterior

    def _prepare(self) -> None:
        """Prepare the variances already now, if beside the search that costs next to nothing."""
        searched = sum(row[0] == self.shape_fit_[0] for row in self._history)
        if isinstance(self._posterior, ByFactor) and searched >= _PAID:
            self._posterior.prepare()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_posterior"}

    def _points(self) -> Points:
        return Points(np.arange(self.shape_fit_[0]) if self._kind == "similarities" else self.X_fit_)

    def log_density(self, X: Any, y: Any) -> np.ndarray:
        r"""Return the logarithm of the predictive density of each target.

        .. math:: \log N\bigl(y_i \mid E f(x_i), \operatorname{var} f(x_i) + \sigma^2\bigr)

        Parameters
        ----------
        X, y
            New points and their targets. Minus the mean of what is returned is the negative log predictive density.

        Returns
        -------
        ndarray
            In the shape of y.
        """
        mean, std = self.predict(X, return_std=True, of="target")
        y = np.asarray(y, dtype=np.float64)
        y = y[:, 0] if self._flat and y.ndim == 2 and y.shape[1] == 1 else y
        if y.shape != mean.shape:
            raise ValueError(f"y has shape {y.shape} and predictions have shape {mean.shape}; they must agree.")
        return _log_normal(y, mean, std)

    def sample_y(
        self, X: Any, n_samples: int = 1, random_state: Any = 0, *, of: str = "function", prior: bool = False
    ) -> np.ndarray:
        """Draw functions, or observations, at some points.

        Parameters
        ----------
        X
            The points.
        n_samples
            How many draws.
        random_state
            Of the draws.
        of
            "function", or "target" for draws with noise.
        prior
            Whether to draw from the process before it has seen data, with the parameters that were found. A model
            without fit has no other; parameters of its kernel that are not known are taken from X.

        Returns
        -------
        ndarray
            (points, draws), or (points, columns of y, draws) if there are several.
        """
        check_of(of)
        rng = generator(random_state)
        if prior or not self._fitted:
            points, kernel, noise, columns, units = self._prior(X, of)
            covariance = _matrix(kernel, points, noise)
        else:
            self._refuse_similarities()
            new = self._read_new(X)
            columns, units = self._values(new), self._unit
            covariance = self._covariance(Points(new), self._noise_of(of))
        R = eigen_factor(covariance)
        draws = np.einsum("rp,crs->pcs", R, rng.standard_normal((columns.shape[1], len(R), int(n_samples))))
        samples = columns[..., None] + draws * units[:, None]
        return samples[:, 0] if self._flat else samples

    def _prior(self, X: Any, of: str) -> tuple[Points, Kernel, float, np.ndarray, np.ndarray]:
        """Return points, kernel, noise, means and units of the process before it has seen data."""
        if self._fitted and self._kind != "similarities":
            points, kernel, noise = Points(self._read_new(X)), self.kernel_, self._noise_of(of)
            units, means = self._unit, np.atleast_1d(self.intercept_)
        else:
            check_parameters(self)
            kind = self._reads()
            if kind == "similarities":
                raise ValueError("there are no draws from a precomputed matrix; pass a kernel object.")
            if kind == "vectors":
                X = check_array(X, accept_sparse="csr", dtype=np.float64)
            points = Points(X)
            kernel = self._resolved(points.data)
            noise = self._first_variance() if of == "target" else 0.0
            means = np.zeros(self.n_targets or 1)
            units = np.ones(len(means))
        return points, kernel, noise, np.broadcast_to(means, (len(points), len(means))), units

    def _first_variance(self) -> float:
        """Return the variance of a target about f before a fit."""
        noise = 0.0 if self.alpha is not None and isinstance(self.noise, str) else self.noise
        given = {"noise": noise, "alpha": 0.0 if self.alpha is None else self.alpha}
        for name, value in given.items():
            if not is_real(value):
                raise ValueError(
                    f"a draw with noise needs its variance, and before a fit {name}={value!r:.80} is none; pass a "
                    "number."
                )
        return float(sum(given.values()))

    # -- what the data say ------------------------------------------------------------------------------

    def log_marginal_likelihood(self, theta: Any = None, eval_gradient: bool = False, clone_kernel: bool = True) -> Any:
        r"""Return the log marginal likelihood of the training targets, and its gradient.

        .. math:: -\tfrac12 y^T (K + \sigma^2 I)^{-1} y - \tfrac12 \log\det(K + \sigma^2 I) - \tfrac n2 \log 2\pi

        for (normalised) targets; for several columns the sum.

        Parameters
        ----------
        theta
            Logarithms of the free parameters, in the order of `theta_names_`; None for those that were found.
        eval_gradient
            Whether to return the gradient in theta, too.
        clone_kernel
            Of scikit-learn; `kernel_` never changes.
        """
        check_is_fitted(self)
        if not clone_kernel:
            warn("clone_kernel=False changes nothing: `kernel_` is never changed.")
        at = self.theta_ if theta is None else np.asarray(theta, dtype=np.float64)
        if at.shape != self.theta_.shape:
            raise ValueError(
                f"theta has shape {at.shape}; there are {len(self.theta_)} free parameters: "
                f"{', '.join(self.theta_names_) or 'none'}."
            )
        if theta is None and not eval_gradient and self.log_marginal_likelihood_value_ is not None:
            return np.float64(self.log_marginal_likelihood_value_)
        points, n = self._points(), len(self._normalised)
        Gram(self.kernel_, points, budget=self.budget).budget.require(
            8 * n * n, f"the factor of a {n} x {n} matrix", "raise the budget."
        )
        kernel, noise = self._space.at(at)
        evidence = Evidence(points, self._normalised)
        value = np.float64(evidence.factor(kernel, noise).likelihood)
        if not eval_gradient:
            return value
        return value, self._space.slopes(at, *evidence.gradient(kernel))

    def loo_predict(self) -> tuple[np.ndarray, np.ndarray]:
        r"""Return mean and deviation of each training target given all the others.

        .. math:: y_i - a_i / G_{ii}, \quad G_{ii}^{-1/2}, \qquad G = (K + \sigma^2 I)^{-1}

        The parameters stay as they are, and so do the mean and the deviation that normalised the targets.

        Returns
        -------
        mean, std : ndarray
            In the shape of y; the noise is included.
        """
        check_is_fitted(self)
        n = self.shape_fit_[0]
        shift = np.broadcast_to(np.asarray(self.noise_ + self.jitter_, dtype=np.float64), n)
        inverse = inverse_diagonal(Gram(self.kernel_, self._points(), budget=self.budget), shift)[:, None]
        mean = self._normalised - self._columns_ / self._unit / inverse
        std = np.broadcast_to(1.0 / np.sqrt(inverse), mean.shape)
        mean, std = mean * self._unit + np.atleast_1d(self.intercept_), std * self._unit
        return (mean[:, 0], std[:, 0]) if self.dual_coef_.ndim == 1 else (mean, std)

    def loo_log_density(self) -> np.ndarray:
        """Return the log predictive density of each training target given all the others, in the shape of y.

        Their sum, unlike the likelihood, is a verdict on predictions (Rasmussen and Williams 2006, 5.4.2).
        """
        mean, std = self.loo_predict()
        y = self._normalised * self._unit + np.atleast_1d(self.intercept_)
        return _log_normal(y[:, 0] if mean.ndim == 1 else y, mean, std)

    # -- what scikit-learn calls it ---------------------------------------------------------------------

    @property
    def theta_bounds_(self) -> np.ndarray:
        """The logarithms of the bounds of the free parameters, one row (low, high) for each."""
        check_is_fitted(self)
        return self._space.limits

    @property
    def X_train_(self) -> Any:
        """The training points."""
        check_is_fitted(self)
        return self.X_fit_

    @property
    def y_train_(self) -> np.ndarray:
        """The targets, normalised if that was asked for."""
        check_is_fitted(self)
        return self._normalised[:, 0] if self._flat else self._normalised

    @property
    def alpha_(self) -> np.ndarray:
        """(K + S)^-1 y_train_."""
        check_is_fitted(self)
        return np.asarray(self.dual_coef_ / (self._unit[0] if self._flat else self._unit))

    @property
    def L_(self) -> np.ndarray:
        """The lower Cholesky factor of K + S."""
        check_is_fitted(self)
        if not isinstance(self._known, ByFactor):
            raise AttributeError("L_ exists where the matrix was factored; conjugate gradients have made no factor.")
        return np.tril(self._known.factor)

    @property
    def history_(self) -> np.ndarray:
        """The course of the search, one row for each evaluation: the fields of other machines, rows and likelihood.

        `primal` is the objective: minus the likelihood of so many rows. There is no dual.
        """
        check_is_fitted(self)
        nan = math.nan
        rows = [(i, -value, nan, nan, n, at, n, value) for i, (n, value, at) in enumerate(self._history, start=1)]
        return np.array(rows, dtype=_HISTORY)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = self._reads() == "similarities"
        return tags

    def _rechecked(self, X: Any, y: Any, sample_weight: Any = None) -> Certificate:
        data = self._read_new(X)
        target = columns_of(read_targets(self, data, y, True, True)) - self.intercept_
        training = self._training(data, None, self.kernel_)
        shift = np.asarray(self.noise_ + self.jitter_, dtype=np.float64)
        alpha = float(shift.mean())
        check = partial(
            check_representer,
            training.kernel,
            training.points.data,
            loss=Squared(),
            penalty=SquaredNorm(alpha),
            weights=alpha / shift if shift.ndim else None,
            intercept=False,
            strength=alpha,
            tol=self.residual,
        )
        unit = self._unit / unit_of_claims(self._unit)  # 1, unless squares leave the range of float64
        columns = zip(target.T / unit[:, None], self._columns_.T / unit[:, None], strict=True)
        return combined([check(y, coefficients=a) for y, a in columns])


def _matrix(kernel: Kernel, points: Points, noise: float) -> np.ndarray:
    """Return the covariances of the process before it has seen data."""
    K = np.empty((len(points), len(points)))
    fill(kernel, points, K)
    K.flat[:: len(points) + 1] += noise
    return K


def check_of(of: Any) -> None:
    """Raise ValueError unless it is said by name whether noise counts."""
    if of not in ("function", "target"):
        raise ValueError(f"of={of!r} must be 'function' (without noise) or 'target' (a new observation, with noise).")


def generator(random_state: Any) -> np.random.Generator:
    """Return a generator from whatever scikit-learn takes for a random state."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))


def _log_normal(y: np.ndarray, mean: np.ndarray, std: np.ndarray) -> np.ndarray:
    if not (std > 0).all():
        i = int(np.argmin(std.ravel()))
        raise ValueError(
            f"the deviation of target {i} is 0, so that its density is infinite or 0; fit with noise > 0 to compare "
            "densities."
        )
    return np.asarray(-0.5 * ((y - mean) / std) ** 2 - np.log(std) - 0.5 * math.log(2 * math.pi))


def said_of_search(space: Space, tuned: Tuned | None, n: int, wanted: bool) -> str:
    """Return the end of a plan: on which rows the parameters were found, and which were held.

    Parameters
    ----------
    space
        The parameters.
    tuned
        What was found; None where nothing was looked for.
    n
        The number of rows.
    wanted
        Whether parameters should have been found.
    """
    held = "; held: " + ", ".join(f"{name} ({why})" for name, why in space.held.items())
    end = held if space.held and wanted else ""
    if tuned is None:
        return "; parameters as given" + end
    starts, first = tuned.starts
    said = f"; {len(tuned.theta)} parameters by the likelihood of "
    said += f"all {n} rows" if tuned.rows == n else f"{tuned.rows} of {n} rows"
    if starts > 1 or first < tuned.rows:
        said += f", from {starts} start{'s' if starts > 1 else ''} on {first}"
    return said + f" ({tuned.evaluations[0]} evaluations, {tuned.evaluations[1]} in all)" + end


def warn_of_search(space: Space, tuned: Tuned | None, jitter: float) -> None:
    """Warn, in the name of the caller's caller, where something should be done about the parameters."""
    if tuned is not None and tuned.stopped != Stop.CONVERGED:
        warn(
            f"the search for parameters ended early ({tuned.stopped}); those are taken that are best so far.",
            ConvergenceWarning,
        )
    if tuned is not None and (ends := space.at_bounds(tuned.theta)):
        warn(
            f"{'; '.join(ends)}: the likelihood may be larger beyond. Widen `bounds` there, or name the parameter in "
            "`fixed` if that value will do.",
            ConvergenceWarning,
        )
    if jitter:
        warn(
            "K + noise is singular to rounding (repeated points, or scales far beyond the data): "
            f"{jitter:.2g} was added to the noise variance. Take a larger noise to choose it yourself.",
            LinAlgWarning,
        )
