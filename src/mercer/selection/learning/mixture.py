"""Several kernels as one: non-negative weights learned from the targets."""

from __future__ import annotations

import math
import time
from dataclasses import KW_ONLY, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from mercer.certify import Certificate, Stop, relative_gap
from mercer.estimators import SVC, SVR, KernelMachine, KernelRidge
from mercer.estimators.shared.classes import as_given
from mercer.estimators.shared.data import read_anything, read_vectors
from mercer.estimators.shared.parameters import compares_vectors, with_parameters
from mercer.estimators.svm.machine import Recheck
from mercer.gram import Gram
from mercer.kernels import Kernel, parse_kernel
from mercer.kernels.rules.scikit_learn import as_kernel
from mercer.losses import SquaredNorm
from mercer.machine.budget import Budget
from mercer.machine.clock import Clock
from mercer.machine.warn import warn
from mercer.points import Points
from mercer.selection.learning.learning import codes_of, drawn, is_constant
from mercer.selection.learning.weights import Aligned, Mixed, descend, mixed
from mercer.selection.search.cross_validation import within
from mercer.selection.search.grids import expand, listed
from mercer.selection.search.search import flat
from mercer.solvers.run import history_table

METHODS = ("alignment", "objective")
_NO_SPREAD = 1e-12  # of the mean of k(x, x): a spread that is none
_CLASSES = 20  # different whole numbers, up to which they name classes


@with_parameters
class KernelMixture(BaseEstimator):
    r"""The best non-negative combination of some kernels, as one kernel (multiple kernel learning).

    .. math:: k = \sum_j \frac{w_j}{s_j} k_j, \qquad w_j \ge 0, \; \sum_j w_j = 1

    with :math:`s_j` the spread of the points in the space of :math:`k_j`, so that the weights are shares of something
    comparable. Sums of multiples of kernels are kernels, and `kernel_` carries the proof.

    Parameters
    ----------
    kernels
        The kernels: objects, texts (see `parse_kernel`), or classes such as RBF, which stand for themselves at ten
        scales.
    method
        "alignment": the centred matrix of the mixture is as parallel as possible to that of the targets (Cortes, Mohri
        and Rostamizadeh, 2012): quick, one small problem. "objective": the model itself, with the best mixture, reaches
        the least value of what it minimises, for instance the margin objective of `SVC` (Rakotomamonjy and others,
        2008): some ten to fifty fits, and few kernels that count.
    estimator
        For "objective", the model: `SVC`, `SVR`, `KernelRidge`, or `KernelMachine` with a convex loss. None for `SVC()`
        where y holds classes and `KernelRidge()` where it holds numbers.
    tol
        The relative gap at which the weights are finished.
    max_iter, time_limit
        Steps and seconds after which the best weights so far are kept, with a warning ("objective").
    rows
        On how many rows, drawn at random, matrices are compared ("alignment"); None for up to 4,000, or as many as the
        budget allows.
    budget
        Bytes that matrices may use, as for `SVC`.
    random_state
        Draws the rows.

    Attributes
    ----------
    kernel_
        The mixture, without the kernels of weight 0; it goes into any estimator.
    weights_
        w, one for each of `kernels_`.
    kernels_
        The kernels, with every parameter resolved.
    spreads_
        s: the mean squared distance of the points from their mean, in the space of each kernel.
    certificate_
        Upper and lower bound of what is minimised: half the squared distance of the mixture from the matrix of the
        targets ("alignment"), or the objective of the model ("objective"). `verify(X, y)` recomputes both.
    alignment_, alignments_
        For "alignment": the cosine between the centred matrices of the mixture and of the targets, and that of each
        kernel by itself.
    estimator_
        For "objective": the model, fitted with `kernel_`.
    plan_, n_iter_
        How it was done, and in how many steps.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF, SVC, KernelMixture, Linear
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(120, 3))
    >>> y = np.where(X[:, 0] ** 2 + X[:, 1] ** 2 > 1.4, "out", "in")
    >>> mixture = KernelMixture([Linear(), RBF(1.0).on([0, 1]), RBF(1.0).on([2])]).fit(X, y)
    >>> mixture.weights_.round(1)
    array([0., 1., 0.])
    >>> mixture.kernel_.proof().status, mixture.certificate_.converged
    ('proven', True)
    >>> bool(SVC(kernel=mixture.kernel_).fit(X, y).score(X, y) > 0.95)
    True
    """

    _former: ClassVar[dict[str, str]] = {"history_": "_history"}  # what model files of earlier versions call it

    kernels: Any = None
    method: str = "alignment"
    _: KW_ONLY
    estimator: Any = None
    tol: float = 1e-4
    max_iter: int = 200
    time_limit: float | None = None
    rows: int | None = None
    budget: int | float | str | None = None
    random_state: int = 0

    def fit(self, X: Any, y: Any) -> KernelMixture:
        """Find the weights.

        Parameters
        ----------
        X
            The points: whatever the kernels compare.
        y
            A class or a number for each; several columns of numbers count together. Without an `estimator` that says,
            texts and whole numbers with at most 20 values are classes.

        Returns
        -------
        self
        """
        if self.method not in METHODS:
            raise ValueError(f"method must be 'alignment' or 'objective'; it is {self.method!r}.")
        if not (isinstance(self.tol, float | int) and 0 < self.tol < 1):
            raise ValueError(f"tol must be a relative gap with 0 < tol < 1; it is {self.tol!r}.")
        clock = Clock(self.time_limit)
        X, y = self._read(X, y)
        points = Points.of(X)
        self.kernels_ = [_kernel(k).resolve(points) for k in expand(self.kernels, points)]
        if len(points) != len(y):
            raise ValueError(f"X has {len(points)} rows and y has {len(y)}; there must be a target for each row.")
        if self.method == "alignment":
            self._align(points, y, clock)
        else:
            self._optimise(X, y, clock)
        self.kernel_ = mixed(self.kernels_, self.weights_ / self.spreads_)
        return self

    def _read(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Return the points, as a matrix where all kernels compare vectors, and the targets, validated."""
        if y is None:
            raise ValueError("KernelMixture requires y to be passed, but the target y is None.")
        y, classes = self._targets(y)
        if all(isinstance(k, type) or compares_vectors(_kernel(k)) for k in listed(self.kernels)):
            X, y = read_vectors(self, X, y, not classes, not classes)
            return X, y
        return read_anything(self, X, fitting=True), y

    def _targets(self, y: Any) -> tuple[Any, bool]:
        """Return the targets, classes not in a column, and whether they are classes."""
        y = as_given(y)
        classes = is_classes(y) if self.estimator is None else bool(is_classifier(self.estimator))
        return (flat(y) if classes else y), classes

    # -- alignment --------------------------------------------------------------------------------------

    def _align(self, points: Points, y: Any, clock: Clock) -> None:
        chosen = self._chosen(len(points))
        if chosen is not None:
            points, y = points.take(chosen), np.asarray(y)[chosen]
        aligned = self._aligned(points, y)
        self.spreads_ = aligned.spreads
        weights, bounds, steps = aligned.best()
        if aligned.constant:
            weights = self._even(
                "no kernel is nearer to the targets than another: they are constant, or all kernels are"
            )
        self.weights_ = weights
        self.alignment_, self.alignments_ = aligned.cosine(weights), aligned.cosines()
        self.n_iter_ = steps
        rows = f"all {len(points):,} rows" if chosen is None else f"{len(points):,} rows drawn at random"
        self.plan_ = f"{len(self.kernels_)} centred matrices of {rows}, compared with that of the targets"
        self._claim = Certificate(
            *bounds,
            kkt=aligned.kkt(weights),
            tol=float(self.tol),
            solver="non-negative least squares on inner products of matrices",
            iterations=steps,
            seconds=time.perf_counter() - clock.began,
        )

    def _aligned(self, points: Points, y: Any) -> Aligned:
        y, classes = self._targets(y)
        return Aligned(self.kernels_, points, codes_of(np.asarray(y)) if classes else _numbers(y))

    def _chosen(self, n: int) -> np.ndarray | None:
        budget, each = Budget(self.budget), 8 * (len(self.kernels_) + 1)  # bytes of a pair: all matrices, and blocks
        what = f"comparing {len(self.kernels_)} kernels on {{}} rows"
        rng = np.random.default_rng(self.random_state)
        return drawn(n, self.rows, budget, each, what, "take fewer kernels or rows, or raise the budget.", rng)

    # -- the objective of a model -----------------------------------------------------------------------

    def _optimise(self, X: Any, y: Any, clock: Clock) -> None:
        model = self._model(y)
        points = Points.of(X)
        self.spreads_ = np.array([spread_in(k, points) for k in self.kernels_])
        problem = Mixed(model, self.kernels_, self.spreads_, X, y, float(self.tol))

        def watch() -> str | None:
            return Stop.time(clock.limit) if clock.limit is not None and clock.out else None

        count = len(self.kernels_)
        minimum = descend(problem, np.full(count, 1 / count), float(self.tol), int(self.max_iter), watch)
        self.weights_, self.n_iter_ = minimum.shares, len(minimum.history)
        if not minimum.known.slopes.any():
            self.weights_ = self._even("the model is constant whatever the kernel is")
        self._history = minimum.history
        self.estimator_ = problem.fitted(self.weights_)
        name = type(model).__name__
        self.plan_ = f"{count} kernels, {self.n_iter_} fits of {name}, quasi-Newton steps on the weights"
        self._claim = Certificate(
            primal=minimum.known.upper,
            dual=minimum.bound,
            kkt=minimum.known.mismatch(minimum.shares),
            tol=float(self.tol),
            solver=f"quasi-Newton steps on weights, {name} inside",
            iterations=self.n_iter_,
            seconds=time.perf_counter() - clock.began,
            stopped=minimum.stopped,
        )
        if not self.certificate_.converged:
            warn(
                f"the weights were left ({minimum.stopped}) at a relative gap of {self.certificate_.relative_gap:.2g}; "
                f"tol={self.tol:g} was asked. They are the best so far.",
                ConvergenceWarning,
            )

    def _model(self, y: Any) -> Any:
        model, budget = self.estimator, None if self.budget is None else Budget(self.budget)
        if model is None:
            return within(SVC() if is_classes(y) else KernelRidge(), budget)
        penalty = getattr(model, "penalty", 1.0)
        if not isinstance(model, SVC | SVR | KernelRidge | KernelMachine) or (
            hasattr(penalty, "value") and not isinstance(penalty, SquaredNorm)
        ):
            raise TypeError(
                "estimator must be a model that minimises losses plus a squared norm: SVC, SVR, KernelRidge, or "
                f"KernelMachine with such a penalty; it is {model!r:.80}."
            )
        if not getattr(getattr(model, "loss", None), "convex", True):
            raise ValueError(
                f"the loss {model.loss!r} is not convex, so that no bound on the weights can be had; take "
                "method='alignment', or a convex loss such as Huber."
            )
        return within(clone(model), budget)

    def _even(self, why: str) -> np.ndarray:
        """Return equal weights where nothing speaks for any, and say so."""
        warn(f"{why}; the weights are equal.", UserWarning)
        return np.full(len(self.kernels_), 1 / len(self.kernels_))

    # -- the claim, checked -----------------------------------------------------------------------------

    @property
    def history_(self) -> np.ndarray:
        """The descent of method "objective", with the fields of `SVC.history_`: one row for each fit inside."""
        check_is_fitted(self, "_history")
        nan = math.nan
        return history_table(
            (step, upper, bound, relative_gap(upper - bound, upper, bound), nan, nan)
            for step, (upper, bound) in enumerate(self._history, start=1)
        )

    @property
    def certificate_(self) -> Certificate:
        """What is claimed of the weights; `verify(X, y)` recomputes it."""
        check_is_fitted(self, "weights_")
        return replace(self._claim, check=Recheck(self))

    def _rechecked(self, X: Any, y: Any, sample_weight: Any) -> Certificate:
        check_is_fitted(self, "weights_")
        if sample_weight is not None:
            raise ValueError("a mixture is learned without sample weights; call verify(X, y).")
        if self.method == "alignment":
            points = Points.of(X)
            chosen = self._chosen(len(points))
            if chosen is not None:
                points, y = points.take(chosen), np.asarray(y)[chosen]
            aligned = self._aligned(points, y)
            upper, lower = aligned.bounds(self.weights_)
            return Certificate(upper, lower, aligned.kkt(self.weights_), float(self.tol), solver="recomputed")
        y, _ = self._targets(y)
        problem = Mixed(self._model(y), self.kernels_, self.spreads_, X, y, float(self.tol))
        known = problem.checked(self.weights_)
        worst = known.mismatch(self.weights_)
        return Certificate(known.upper, known.bound, worst, float(self.tol), solver="recomputed")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags


def spread_in(kernel: Kernel, points: Points) -> float:
    """Return the mean squared distance of points from their mean in the space of a kernel.

    That is the mean of k(x, x) less the mean of all k(x, z); for kernels that see all points as one, the former.
    """
    n = len(points)
    size = float(np.mean(kernel.diag(points), dtype=np.float64))
    ones = np.ones(n, dtype=Gram(kernel, points).dtype)
    spread = size - float(np.sum(Gram(kernel, points).matvec(ones), dtype=np.float64)) / n**2
    if spread > _NO_SPREAD * size:
        return spread
    return size if size > 0 else 1.0


def is_classes(y: Any) -> bool:
    """Whether targets name classes: texts, booleans, or whole numbers with at most 20 values.

    Examples
    --------
    >>> is_classes(["a", "b"]), is_classes([1, 2, 1]), is_classes([0.5, 2.0]), is_classes(range(100))
    (True, True, False, False)
    """
    y = np.asarray(y)
    few = y.dtype.kind not in "iuf" or len(np.unique(y)) <= _CLASSES
    return few and type_of_target(y) in ("binary", "multiclass")


def _kernel(kernel: Any) -> Kernel:
    if isinstance(kernel, str):
        kernel = parse_kernel(kernel)
    kernel = as_kernel(kernel, "kernels")
    if not isinstance(kernel, Kernel):
        raise TypeError(f"kernels must hold kernel objects, texts or classes; one is {kernel!r:.80}.")
    return kernel


def _numbers(y: Any) -> np.ndarray:
    """Return targets as columns of numbers of size 1."""
    Y = np.asarray(y, dtype=np.float64)
    Y = Y.reshape(len(Y), -1)
    if not np.isfinite(Y).all():
        raise ValueError("y contains NaN or infinite values; every target must be a finite number.")
    return Y / (float(np.abs(Y).max()) or 1.0) if not is_constant(Y, True) else np.zeros(Y.shape)
