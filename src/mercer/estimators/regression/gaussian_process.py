"""Regression by a Gaussian process: kernel ridge with a level of noise, and with what it does not know."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer.certify import Stop, with_duality
from mercer.estimators.regression.base import SYSTEM_RULES, columns_of
from mercer.estimators.regression.process import Process, generator, said_of_search, warn_of_search
from mercer.estimators.shared.data import Training
from mercer.estimators.shared.fitting import whole_fit
from mercer.estimators.shared.parameters import (
    BOOLEAN,
    KERNEL_NAMES,
    Rules,
    Unnecessary,
    check_parameters,
    is_real,
    kernel_rule,
    whole,
    with_parameters,
)
from mercer.gram import Gram, parameters
from mercer.kernels import RBF, Constant
from mercer.kernels.rules.scikit_learn import Noise, translated
from mercer.machine.budget import readable
from mercer.machine.warn import warn
from mercer.points import Points
from mercer.solvers.control import Control, warn_stationary
from mercer.solvers.gp.likelihood import Evidence, least_noise, mean_certificate, rows_of
from mercer.solvers.gp.posterior import ByFactor, ByGradients
from mercer.solvers.gp.search import Tuned, tune
from mercer.solvers.gp.space import NOISE, Space, space_of
from mercer.solvers.systems.ridge import RidgeProblem, solve_ridge

_KERNEL = kernel_rule(KERNEL_NAMES)
_VARIANCE = "a finite number >= 0, or one number > 0 for each sample (or 0 for all)"
_TUNED, _SAMPLE = 12_000, 8_000  # rows up to which all serve to find parameters; of more, so many are drawn
_STREAMED, _LEAST = 1_500, 30  # rows for the parameters if the factor of all exceeds the budget; the fewest of all
_PAIR = 16  # bytes of a likelihood and its slopes for each pair of rows
_FINISHED = 3_000  # rows whose posterior is found in a second after an interruption of the search
_CHEAP_ROWS = 600  # rows whose likelihood costs little
_SLOPES = (1e-4, 1e-2)  # slopes of the likelihood at which the search ends: with few rows, and with more
_SIGNAL = 0.1  # share of the targets' mean square that noise="auto" starts from
_HUGE = 1e150  # targets whose squares leave the range of float64


def _is_variance(value: Any) -> bool:
    if is_real(value):
        return 0 <= value < math.inf
    array = np.asarray(value)
    if array.ndim != 1 or not array.size or array.dtype.kind not in "iuf" or not np.isfinite(array).all():
        return False
    return bool((array > 0).all() or (array == 0).all())


@with_parameters
class GaussianProcessRegressor(Process):
    r"""Regression by a Gaussian process: a mean, and how far from it the truth may be.

    .. math:: f \sim GP(0, k), \quad y_i = f(x_i) + \epsilon_i, \; \epsilon_i \sim N(0, \sigma^2), \qquad
              E f(x) = k_x^T (K + \sigma^2 I)^{-1} y, \quad
              \operatorname{var} f(x) = k(x, x) - k_x^T (K + \sigma^2 I)^{-1} k_x

    The mean is that of `KernelRidge` with alpha equal to the noise variance. The parameters of the kernel and the noise
    are those under which the data are most likely; every continuous parameter of any composite kernel is found.

    Parameters
    ----------
    kernel
        A kernel object, whose parameters are where the search starts; a kernel of `sklearn.gaussian_process.kernels`,
        with its bounds, whose WhiteKernel is the noise; a name such as "rbf", "matern" (of smoothness 5/2) or "linear",
        with a factor, both taken from the data; or "precomputed". None is scikit-learn's default, the search from
        1.0 * RBF(1.0).
    noise
        The variance of the noise: a number, from which the search starts; "auto", which starts from a tenth of the
        targets' mean square; or an array with one for each sample, which are kept. 0 is kept, too: f passes through the
        targets.
    optimizer
        "bfgs" (`mercer.solvers.gp.climb`; "fmin_l_bfgs_b", scikit-learn's name of such a search, is the same); None to
        keep all parameters; or a function optimizer(objective, theta, bounds) that returns the best theta and its
        value, as in scikit-learn: objective(theta, eval_gradient=True) is minus the likelihood, with its gradient.
    n_restarts_optimizer
        How many further starts, drawn around the first one.
    bounds
        From names of parameters to (low, high). A name is that of one parameter ("base__scale[2]"), of all its entries
        ("base__scale"), or the last part of names ("scale"); the noise is "noise". Others get bounds from the data.
    fixed
        Names of parameters to keep.
    normalize_y
        Whether the targets are first brought to mean 0 and deviation 1; `kernel_` and `noise_` then speak of such
        targets, and predictions do not.
    tuning_rows
        On how many rows, drawn at random, the parameters are found; None for all of up to 12,000 and for 8,000 of more.
        Where the factor of all exceeds the budget: for 1,500. They are fewer where the budget asks for it.
    solver
        "cholesky", "cg" (conjugate gradients, which need no n x n matrix; the likelihood is then that of
        `tuning_rows`), or "auto": a factor if it fits the budget.
    residual
        The relative residual that conjugate gradients reach.
    max_iter, time_limit
        Steps of each climb to a maximum of the likelihood, and seconds for all; what is best by then is taken.
    random_state
        Draws restarts and rows.
    budget
        As for `SVC`.
    alpha
        As in scikit-learn: a variance that is known and kept, added to the diagonal of the training matrix beside the
        noise; a number, or one for each sample. With it noise="auto" is no noise: alpha is all there is. None to leave
        it to `noise`.
    n_targets
        How many columns predictions and draws have before a fit (None for one); after it, how many y must have.
    copy_X_train
        Of scikit-learn; nothing here depends on it.

    Attributes
    ----------
    kernel_, noise_
        The kernel and the noise variance that were found; alpha is part of the latter.
    parameters_
        The parameters by name; here the noise is what was found beside alpha.
    jitter_
        What was added to the noise because rounding would have spoiled the result; 0 unless a warning said otherwise.
    log_marginal_likelihood_value_
        The log marginal likelihood of all (normalised) targets; None with solver="cg".
    theta_, theta_names_, theta_bounds_
        The logarithms of the parameters that were free, their names, and those of the bounds in rows (low, high).
    dual_coef_, X_fit_, intercept_
        The posterior mean: coefficients, training points, and the mean of the targets if they were normalised.
    X_train_, y_train_, alpha_, L_
        scikit-learn's names: the points, the (normalised) targets, (K + S)^-1 y_train_ and the Cholesky factor of
        K + S, S being the diagonal of noise_ and jitter_.
    function_
        The posterior mean as an `RKHSFunction`; for several targets a vector of them.
    plan_
        How it was solved, and on which rows the parameters were found.
    certificate_
        Of the posterior mean, as for `KernelRidge`.
    history_, n_iter_
        One row (rows, likelihood, seconds) for each evaluation of the likelihood, and how many there were.

    Notes
    -----
    Several columns of targets are independent given the kernel and the noise, which they share. With normalize_y each
    has its own mean and deviation. One column is as no column: predictions are flat. Before a fit, predictions and
    draws are those of the process itself, of mean 0.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF, GaussianProcessRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 6, (80, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=80)
    >>> model = GaussianProcessRegressor(1.0 * RBF(scale=1.0)).fit(X, y)
    >>> bool(0.005 < model.noise_ < 0.02)
    True
    >>> mean, std = model.predict([[3.0], [30.0]], return_std=True)  # of f, without noise
    >>> bool(std[0] < 0.05), bool(std[1] > 0.5)
    (True, True)
    >>> mean, noisy = model.predict([[3.0]], return_std=True, of="target")  # of a new observation
    >>> bool(noisy[0] > 0.08)
    True
    """

    kernel: Any = "rbf"
    _: KW_ONLY
    noise: Any = "auto"
    optimizer: str | Callable[..., Any] | None = "bfgs"
    n_restarts_optimizer: int = 0
    bounds: Mapping[str, Any] | None = None
    fixed: Any = ()
    normalize_y: bool = False
    tuning_rows: int | None = None
    solver: str = "auto"
    residual: float = 1e-6
    max_iter: int = -1
    time_limit: float | None = None
    random_state: Any = 0
    budget: int | float | str | None = None
    alpha: Any = None
    n_targets: int | None = None
    copy_X_train: bool = True  # noqa: N815

    _rules: ClassVar[Rules] = {
        "kernel": (lambda v: v is None or _KERNEL[0](v), f"None, {_KERNEL[1]}"),
        "noise": (
            lambda v: v == "auto" if isinstance(v, str) else _is_variance(v),
            f"'auto', {_VARIANCE}",
        ),
        "alpha": (lambda v: v is None or _is_variance(v), f"None, {_VARIANCE}"),
        "optimizer": (
            lambda v: v in ("bfgs", "fmin_l_bfgs_b") if isinstance(v, str) else v is None or callable(v),
            "'bfgs', 'fmin_l_bfgs_b', a function, or None to keep parameters",
        ),
        "n_targets": (lambda v: v is None or whole(v, 1), "a whole number >= 1, or None"),
        "n_restarts_optimizer": (lambda v: whole(v, 0), "a whole number >= 0"),
        "bounds": (lambda v: v is None or isinstance(v, Mapping), "a dictionary from names to (low, high), or None"),
        "fixed": (
            lambda v: isinstance(v, list | tuple | set | frozenset) and all(isinstance(name, str) for name in v),
            "a list of names of parameters",
        ),
        "normalize_y": BOOLEAN,
        "tuning_rows": (lambda v: v is None or whole(v, 1), "a whole number >= 1, or None"),
        **SYSTEM_RULES,
    }
    _unnecessary: ClassVar[Unnecessary] = {"copy_X_train": (True, "the training points are never changed")}
    dtype = "float64"
    fit_intercept = False
    _whole_matrices = False  # a process looks at its points in parts

    # -- fit --------------------------------------------------------------------------------------------

    @whole_fit
    def fit(self, X: Any, y: Any) -> GaussianProcessRegressor:
        """Find the parameters, then the posterior.

        Parameters
        ----------
        X
            The training points: a matrix (dense or sparse), a table, or whatever the kernel compares; the square matrix
            of similarities for kernel="precomputed".
        y
            A number for each, or several in columns.

        Returns
        -------
        self
        """
        check_parameters(self)
        control = Control(self.residual, int(self.max_iter), self.time_limit)
        data, target = self._read(X, y)
        columns = columns_of(np.asarray(target, dtype=np.float64))
        if self.n_targets not in (None, columns.shape[1]):
            raise ValueError(
                "The number of targets seen in `y` is different from the parameter `n_targets`. Got "
                f"{columns.shape[1]} != {self.n_targets}."
            )
        Y, mean, unit = self.normalised(columns)
        square = float(np.mean(Y**2)) or 1.0
        training = self._training(data, None)
        if isinstance(self.kernel, str) and self.kernel != "precomputed":
            size = float(np.mean(training.kernel.diag(training.points))) or 1.0
            training = replace(training, kernel=square / size * training.kernel)
        gram = self._gram(training)
        given = translated(self.kernel)
        noise = self.first_noise(square, len(Y), None if given is None else given.noise)
        own = {} if given is None else given.bounds | ({NOISE: given.noise.bounds} if given.noise else {})
        space = space_of(training.kernel, noise, training.points, Y, self.bounds, self.fixed, own)
        space = replace(space, known=self._known_variance(len(Y)))
        memory = self._memory(gram)
        tuned = self._tuned(training.points, Y, space, gram, memory, control)
        if control.cancelled and len(Y) > _FINISHED:
            raise KeyboardInterrupt
        kernel, noise = (space.kernel, space.noise + space.known) if tuned is None else space.at(tuned.theta)
        self._name_parameters(space, tuned)
        self.noise_ = noise
        self._unit, self._normalised, self._rows = unit, Y, None
        training = replace(training, kernel=kernel)
        if memory is None:
            coefficients = self._by_gradients(Gram(kernel, training.points, budget=self.budget), Y, noise)
        else:
            coefficients = self._by_factor(training, Y, noise, memory, control, float(gram.budget - memory.nbytes))
        self._certificates = with_duality(Gram(kernel, training.points), self._certificates, [None])
        if control.cancelled:
            self._certificates = [replace(claim, stopped=Stop.INTERRUPTED) for claim in self._certificates]
        self._history = [] if tuned is None else tuned.history
        self.n_iter_ = max(1, len(self._history))
        self._seconds = control.seconds
        self._keep(training, data, coefficients * unit, mean, flat=columns.shape[1] == 1)
        if not control.cancelled:
            self._prepare()
        self.plan_ += said_of_search(space, tuned, len(Y), self.optimizer is not None)
        warn_of_search(space, tuned, self.jitter_)
        if why := self.certificate_.stationary:
            warn_stationary(kernel, why)
        return self

    def normalised(self, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the targets as the process sees them, their means and their units."""
        mean, unit = np.zeros(Y.shape[1]), np.ones(Y.shape[1])
        if self.normalize_y:
            size = np.maximum(np.abs(Y).max(axis=0), 1e-300)  # targets of any size: their squares may leave float64
            mean = (Y / size).mean(axis=0) * size
            unit = ((Y - mean) / size).std(axis=0) * size
            unit = np.where(unit > 1e-14 * np.abs(mean), unit, 1.0)
            return np.where(unit > 0, (Y - mean) / unit, 0.0), mean, unit
        largest = float(np.abs(Y).max())
        if largest > _HUGE or 0 < largest < 1 / _HUGE:
            raise ValueError(
                f"y reaches {largest:.3g}, whose square leaves the range of float64; scale the targets, or set "
                "normalize_y=True."
            )
        return Y, mean, unit

    def first_noise(self, square: float, n: int, given: Noise | None = None) -> float | np.ndarray:
        """Return the start of the noise; `given` is the noise term of the kernel."""
        if isinstance(self.noise, str):
            if given is not None:
                return given.value
            return _SIGNAL * square if self.alpha is None else 0.0
        if is_real(self.noise):
            return float(self.noise) + (0.0 if given is None else given.value)
        if given is not None:
            raise ValueError(
                "noise has one variance for each sample, which are kept, and the level of the kernel's WhiteKernel "
                "would be found beside them; leave out one of the two."
            )
        noise = np.asarray(self.noise, dtype=np.float64)
        if len(noise) != n:
            raise ValueError(f"noise has {len(noise)} entries and there are {n} samples; one for each is needed.")
        return noise if noise.any() else 0.0

    def _known_variance(self, n: int) -> float | np.ndarray:
        alpha = np.atleast_1d(np.asarray(0.0 if self.alpha is None else self.alpha, dtype=np.float64))
        if len(alpha) not in (1, n):
            raise ValueError(
                f"alpha must be a scalar or an array with same number of entries as y: it has {len(alpha)}, and there "
                f"are {n} samples."
            )
        return alpha if len(alpha) > 1 and alpha.any() else float(alpha[0])

    def _memory(self, gram: Gram) -> np.ndarray | None:
        """Return the memory of the factor; None where conjugate gradients do without."""
        n = gram.shape[0]
        if self.solver == "cg" or (self.solver == "auto" and 8 * n * n > gram.budget):
            return None
        gram.budget.require(8 * n * n, f"the factor of a {n} x {n} matrix", "choose solver='cg', or raise the budget.")
        return np.empty(8 * n * n, np.uint8)

    def _tuned(
        self, points: Points, Y: np.ndarray, space: Space, gram: Gram, memory: np.ndarray | None, control: Control
    ) -> Tuned | None:
        if self.optimizer is None or not space.free.any():
            return None
        n = len(Y)
        some = _STREAMED if memory is None and 8 * n * n > gram.budget else _SAMPLE
        rows = self.tuning_rows or (n if n <= _TUNED and some == _SAMPLE else some)
        if memory is None:
            least = min(rows, n, _LEAST)
            gram.budget.require(_PAIR * least**2, f"a likelihood of {least} rows", "raise the budget.")
            rows = min(rows, int(math.sqrt(gram.budget / _PAIR)))
        rng = generator(self.random_state)
        if rows < n:
            chosen = np.sort(rng.choice(n, int(rows), replace=False))
            points, Y, space = rows_of(points, chosen), Y[chosen], space.of_rows(chosen)
        optimizer = self.optimizer if callable(self.optimizer) else None
        return tune(
            points,
            Y,
            space,
            control,
            restarts=int(self.n_restarts_optimizer),
            rng=rng,
            memory=memory,
            optimizer=optimizer,
            slope=_SLOPES[len(Y) > _CHEAP_ROWS],
        )

    def _by_factor(
        self,
        training: Training,
        Y: np.ndarray,
        noise: float | np.ndarray,
        memory: np.ndarray,
        control: Control,
        spare: float,
    ) -> np.ndarray:
        factored = Evidence(training.points, Y, memory).factor(training.kernel, noise)
        self.jitter_ = factored.jitter
        self.log_marginal_likelihood_value_ = factored.likelihood
        shift = noise + factored.jitter
        self._posterior = ByFactor(training.kernel, training.points, shift, factored.values, spare)
        n = len(Y)
        self.plan_ = f"Cholesky factor of the {n} x {n} matrix, {readable(8 * n * n)}"
        certificate, residual = mean_certificate(
            training.kernel,
            training.points,
            Y,
            factored.A,
            shift,
            unit=self._unit,
            tol=self.residual,
            solver="Gaussian process: " + self.plan_,
            iterations=1,
            seconds=control.seconds,
        )
        self._certificates, self.residual_ = [certificate], _flat(residual)
        return factored.A

    def _by_gradients(self, gram: Gram, Y: np.ndarray, noise: float | np.ndarray) -> np.ndarray:
        self.jitter_ = max(0.0, least_noise(gram.diag()) - float(np.min(noise)))
        self.log_marginal_likelihood_value_ = None
        shift = noise + self.jitter_
        alpha = float(np.mean(shift))
        weights = alpha / shift if isinstance(shift, np.ndarray) else None
        problem = RidgeProblem(gram, Y * self._unit, alpha, weights)
        solution = solve_ridge(problem, Control(self.residual), "cg", self.residual)  # the limits are for the search
        self._posterior = ByGradients(gram, shift)
        why = "as asked" if self.solver == "cg" else "a factor exceeds the budget"
        self.plan_ = solution.plan.replace("as asked", why)
        self._certificates, self.residual_ = [solution.certificate], _flat(solution.residual)
        if solution.diagnosis or np.max(solution.residual) > self.residual:
            warn(
                f"the equation of the mean was left at a relative residual of {np.max(solution.residual):.2g} "
                f"({solution.diagnosis or solution.certificate.stopped}); {self.residual:g} was asked. Take a larger "
                "noise, or solver='cholesky'.",
                ConvergenceWarning,
            )
        return solution.coefficients / self._unit

    def _name_parameters(self, space: Space, tuned: Tuned | None) -> None:
        """Set the attributes that name the parameters."""
        values = np.array([p.value for p in parameters(space.kernel)])
        values = values if np.ndim(space.noise) else np.append(values, space.noise)
        if tuned is not None:
            values[space.free] = np.exp(tuned.theta)
        self.parameters_ = dict(zip(space.names, values.tolist(), strict=True))
        self.theta_, self.theta_names_ = np.log(values[space.free]), space.free_names
        self._space = replace(space, values=values)

    @property
    def _given_kernel(self) -> Any:
        if self.kernel is None:
            return 1.0 * RBF(1.0)
        translation = translated(self.kernel)
        return super()._given_kernel if translation is None else translation.kernel or Constant(0.0)

    def _reads_targets(self) -> tuple[bool, bool]:
        return True, True


def _flat(values: np.ndarray) -> Any:
    return float(values[0]) if len(values) == 1 else values
