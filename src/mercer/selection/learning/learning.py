"""Every continuous parameter of a kernel by the gradient of what it predicts of samples it has not seen."""

from __future__ import annotations

import inspect
import math
import numbers
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import ConvergenceWarning

from mercer.estimators import GaussianProcessRegressor
from mercer.estimators.regression.base import columns_of
from mercer.estimators.shared.classes import numbered, shown
from mercer.estimators.shared.data import KernelData
from mercer.kernels import Kernel, parse_kernel
from mercer.kernels.rules.scikit_learn import as_kernel
from mercer.machine.budget import Budget
from mercer.points import Points
from mercer.selection.learning.learner import Learned, Learner
from mercer.selection.search.cross_validation import within
from mercer.solvers.control import Control
from mercer.solvers.gp.likelihood import rows_of

OBJECTIVES = ("auto", "loo", "density", "likelihood")
_MOST_ROWS = 4_000  # rows whose matrices are held, at most, unless the caller says
_MATRICES = 5  # n x n, held at a time
_ROUNDING = 8 * float(np.finfo(np.float64).eps)  # relative: targets that differ by less are equal
_SQUARABLE = 1e150  # the largest target whose square is well within float64
_LEAST_ROWS = 50  # and at least, where there are so many


def learn_kernel(
    estimator: Any,
    kernel: Any,
    X: Any,
    y: Any,
    objective: str = "auto",
    *,
    ard: bool = False,
    restarts: int = 0,
    bounds: Mapping[str, Any] | None = None,
    fixed: Sequence[str] = (),
    rows: int | None = None,
    max_iter: int = -1,
    time_limit: float | None = None,
    random_state: int = 0,
    budget: int | float | str | None = None,
) -> Learned:
    r"""Learn all continuous parameters of a kernel at once, by gradients, and fit an estimator with it.

    A grid can look at one scale or two. The errors of leaving out each sample are known in closed form, and so is their
    slope in every parameter: one scale for each feature (ARD), factors, exponents, periods.

    Parameters
    ----------
    estimator
        Any model of this library with a kernel: it is cloned, given the kernel (and for `KernelRidge` alpha, for
        `GaussianProcessRegressor` the noise) that was learned, and fitted to all rows.
    kernel
        Where to start: a kernel object, a text such as "RBF + Linear" (see `parse_kernel`), or a class. Scales that
        wait for data ("auto", "median") are taken from it.
    X, y
        The training data, as for `estimator.fit`.
    objective
        "loo": the mean squared error of ridge regression where each sample is predicted by all others; classes are
        numbers -1 and 1, a column for each if there are more than two. "likelihood": the log marginal likelihood of a
        Gaussian process (with its best amplitude, where the model is not one itself). "density": the log density of
        samples that are left out. "auto" is "likelihood" for `GaussianProcessRegressor` and where each feature has a
        scale, since many parameters can overfit the errors of few samples, and else "loo".
    ard
        Whether each feature gets a scale of its own, in every part of the kernel that has one scale. One scale for all
        is learned first, and is where they start.
    restarts
        How many further starts, drawn around the first one.
    bounds
        From names of parameters to (low, high): "scale", "left__scale", "scale[2]", "alpha". Others get bounds from the
        data.
    fixed
        Names of parameters to keep.
    rows
        On how many rows, drawn at random, parameters are learned; None for up to 4,000, or as many as the budget
        allows.
    max_iter, time_limit
        Steps of each climb, and seconds for all; what is best by then is taken.
    random_state
        Draws restarts and rows.
    budget
        Bytes that matrices may use: a number, a text such as "2 GiB", or None for half of what is free.

    Returns
    -------
    Learned

    Notes
    -----
    Models without an alpha of their own (`SVC`, `SVR`, ...) get the kernel that ridge regression would choose; their C
    is kept. Choose it afterwards: `KernelSearchCV(SVC(), [learned.kernel])`.

    With many parameters and few rows each objective can be overfitted; the likelihood is the most cautious. Whether
    many scales are better than one is a question for cross-validation.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF, KernelRidge, learn_kernel
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(150, 5))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=150)  # four features have nothing to say
    >>> learned = learn_kernel(KernelRidge(), RBF(), X, y, "loo", ard=True)
    >>> bool(learned.value < 0.02 < learned.start)
    True
    >>> scales = np.array(learned.kernel.scale)
    >>> bool(scales[0] < 1.5), bool(scales[1:].min() > 5)
    (True, True)
    >>> learned.estimator.predict(X[:2]).shape
    (2,)
    """
    model, kernel = _asked(estimator, kernel, objective, None if budget is None else Budget(budget))
    if objective == "auto":
        objective = "likelihood" if ard or isinstance(model, GaussianProcessRegressor) else "loo"
    control = Control(max_iter=int(max_iter), time_limit=time_limit)
    data, target = model.read_training(X, y)
    Y, unit = numbers_of(model, target, scaled=objective != "density")
    points = Points(data)
    kernel = kernel.resolve(points)
    intercept = bool(getattr(model, "fit_intercept", True))
    if len(Y) < 2 + intercept:
        raise ValueError(f"a kernel is learned by leaving out samples, which takes more than n_samples={len(Y)}.")
    if is_constant(Y, intercept):
        return _kept(model, kernel, X, y, objective)
    rng = np.random.default_rng(random_state)
    chosen = _chosen(len(Y), rows, budget, rng)
    work = Learner(
        model, objective, unit, intercept, control, rng, int(restarts), dict(bounds or {}), tuple(fixed), len(Y)
    )
    if chosen is not None:
        points, Y = rows_of(points, chosen), Y[chosen]
    return work.learn(kernel, points, Y, X, y, bool(ard), chosen)


# -- what was asked for -----------------------------------------------------------------------------------


def _asked(estimator: Any, kernel: Any, objective: str, budget: Budget | None) -> tuple[Any, Kernel]:
    if objective not in OBJECTIVES:
        raise ValueError(f"objective must be one of {', '.join(map(repr, OBJECTIVES))}; it is {objective!r}.")
    if not isinstance(estimator, KernelData) or not (is_classifier(estimator) or is_regressor(estimator)):
        raise TypeError(
            "learn_kernel takes a classifier or regressor of mercer that has a kernel, such as SVC() or KernelRidge(); "
            f"it got {estimator!r:.80}."
        )
    model = clone(estimator)
    if isinstance(kernel, str):
        kernel = parse_kernel(kernel)
    elif inspect.isclass(kernel) and issubclass(kernel, Kernel):
        kernel = kernel()
    kernel = as_kernel(kernel)
    if not isinstance(kernel, Kernel):
        raise TypeError(f"kernel must be a kernel object such as RBF(), a class, or a text; it is {kernel!r:.80}.")
    # The allocator may not have returned what learning has used when the model is fitted: half of it is left for that.
    return within(model.set_params(kernel=kernel), None if budget is None else budget // 2), kernel


def _chosen(n: int, rows: int | None, budget: Any, rng: np.random.Generator) -> np.ndarray | None:
    """Return which rows parameters are learned on; None for all."""
    if rows is not None and not (isinstance(rows, numbers.Integral) and rows >= 3):
        raise ValueError(f"rows must be a whole number >= 3, or None; it is {rows!r}.")
    budget, each = Budget(budget), 8 * _MATRICES
    remedy = f"{'' if rows is None else f'take rows={int(math.sqrt(budget / each))}, or '}raise the budget."
    return drawn(n, rows, budget, each, "learning on {} rows", remedy, rng)


def drawn(
    n: int, rows: int | None, budget: Budget, each: int, what: str, remedy: str, rng: np.random.Generator
) -> np.ndarray | None:
    """Return rows drawn at random whose pairs fit into a budget, at `each` bytes; None where all do."""
    wanted = min(n, _MOST_ROWS if rows is None else int(rows))
    least = min(wanted, _LEAST_ROWS) if rows is None else wanted
    budget.require(each * least**2, what.format(least), remedy)
    wanted = min(wanted, int(math.sqrt(budget / each)))
    return None if wanted >= n else np.sort(rng.choice(n, wanted, replace=False))


def _kept(model: Any, kernel: Kernel, X: Any, y: Any, objective: str) -> Learned:
    """Return the model with its kernel as given: constant targets prefer none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = clone(model).fit(X, y)
    said = "The targets are constant, so that every kernel predicts them; the kernel was kept as it was given."
    return Learned(fitted, kernel, 0.0 if objective == "loo" else math.nan, [], said, 0.0, {}, objective)


# -- targets as the numbers that kernels are compared by --------------------------------------------------


def numbers_of(model: Any, target: Any, scaled: bool) -> tuple[np.ndarray, float]:
    """Return the targets of an estimator in columns, and the unit that they are in.

    Parameters
    ----------
    model
        The estimator; for a Gaussian process targets are normalised as it says.
    target
        As it has read them.
    scaled
        Whether the unit may be the largest: not where the noise is in the units of the targets.
    """
    if is_classifier(model):
        return codes_of(np.asarray(target)), 1.0
    Y = columns_of(np.asarray(target, dtype=np.float64))
    if isinstance(model, GaussianProcessRegressor):
        return model.normalised(Y)[0], 1.0
    largest = float(np.abs(Y).max())
    if scaled and largest > 0:
        return Y / largest, largest
    if largest > _SQUARABLE:
        raise ValueError(f"y reaches {largest:.3g}, whose square leaves the range of float64; scale the targets.")
    return Y, 1.0


def codes_of(labels: np.ndarray) -> np.ndarray:
    """Return labels as numbers: -1 and 1 for two classes, for more one such column for each.

    Examples
    --------
    >>> codes_of(np.array(["no", "yes", "no"])).ravel()
    array([-1.,  1., -1.])
    """
    classes, codes = numbered(labels)
    if len(classes) < 2:
        raise ValueError(
            f"y has one class only, {shown(classes[0])}: every kernel tells it from nothing. Give two or more."
        )
    if len(classes) == 2:
        return np.where(codes == 1, 1.0, -1.0)[:, None]
    return np.where(codes[:, None] == np.arange(len(classes)), 1.0, -1.0)


def is_constant(Y: np.ndarray, intercept: bool) -> bool:
    """Whether the targets are what every model predicts: 0, or any one number where there is an offset."""
    rest = Y - Y.mean(axis=0) if intercept else Y
    return bool(np.abs(rest).max() <= _ROUNDING * np.abs(Y).max(initial=0.0))
