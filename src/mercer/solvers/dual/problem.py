"""The dual of every support vector machine of the lectures, in one form: statement, plan, iterate and solution."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np

from mercer import _core
from mercer.certify import Certificate, relative_gap
from mercer.gram import Gram
from mercer.machine.budget import readable
from mercer.points import Points
from mercer.solvers.control import Control, check_vector
from mercer.solvers.run import Row

Offset = Literal["free", "split", "none"]
WHOLE = 3000  # points up to which the whole matrix is one working set
LARGEST = 3072  # points of a working set
FLOAT64_EPS = float(np.finfo(np.float64).eps)
_FITS_ANY_BUDGET = 2**16  # bytes of a matrix; asking the system what is free takes longer than such a fit
_FLOAT64_POINTS = 600  # points up to which float64 costs no more than float32
_FLOAT32_TOL = 1e-6  # the smallest relative gap that is looked for in float32
_SUM_DRIFT = 4e-9  # of the sum of all coefficients: by which rounding may change, in a run, sums that it keeps


@dataclass
class SVMDual:
    """Minimise 1/2 b' K b + linear' b + width' (plus + minus), with b = plus - minus.

    Subject to 0 <= plus <= upper, 0 <= minus <= lower, and to the constraint that goes with the offset:

    ========== =================================================== =======================
    offset     kept as it is at the start                          models
    ========== =================================================== =======================
    "free"     sum(b): the dual of one unpenalised offset          SVC, SVR, OneClassSVM
    "split"    sum(plus) and sum(minus), each by itself            NuSVC, NuSVR
    "none"     nothing: no offset, f(x) = sum b_i k(x_i, x)        M9, the plug-in machine
    ========== =================================================== =======================

    The decision function is f(x) = sum b_i k(x_i, x) + offset.

    - SVC: linear = -y, width = 0, upper = C where y = 1 and 0 elsewhere, lower = C where y = -1, start at 0.
    - SVR: linear = -y, width = epsilon, upper = lower = C, start at 0.
    - OneClassSVM: linear = 0, upper = 1, lower = 0, any start with sum(plus) = nu n.
    - NuSVC: linear = 0, upper/lower = 1 by class, "split", start with sum(plus) = sum(minus) = nu n / 2.
    - NuSVR: linear = -y, width = 0, upper = lower = C, "split", start with sum(plus) = sum(minus) = C nu n / 2.

    Parameters
    ----------
    gram
        The kernel matrix of the training points (square).
    rows
        Which of the points of `gram` take part; None for all. Many problems, as those of class pairs, share one.
    classes
        The points of the two classes that `rows` joins, for a pair of classes. Pairs with a class in common hold the
        same array.
    linear, width, upper, lower
        As above, one number per point.
    offset
        As above.
    plus, minus
        A feasible start; zeros when not given.
    """

    gram: Gram
    linear: np.ndarray
    upper: np.ndarray
    lower: np.ndarray
    width: np.ndarray | float = 0.0
    offset: Offset = "free"
    plus: np.ndarray | None = None
    minus: np.ndarray | None = None
    rows: np.ndarray | None = None
    classes: tuple[np.ndarray, np.ndarray] | None = None

    def __len__(self) -> int:
        return int(self.gram.shape[0]) if self.rows is None else len(self.rows)

    def points(self, single: bool = False) -> Points:
        """The points that take part, in float32 if `single`."""
        everyone = self.gram.left.single() if single else self.gram.left
        return everyone if self.rows is None else everyone.take(self.rows)

    @property
    def is_hard(self) -> bool:
        """Whether a coefficient has no bound."""
        return bool(np.isinf(self.upper).any() or np.isinf(self.lower).any())

    def alone(self) -> SVMDual:
        """Return the same problem on a matrix of its own points."""
        if self.rows is None:
            return self
        gram = Gram(self.gram.kernel, self.points(), budget=self.gram.given_budget)
        return replace(self, gram=gram, rows=None, classes=None)


@dataclass
class Solution:
    """What a solver returns.

    Attributes
    ----------
    plus, minus
        The two parts of the coefficients b = plus - minus, at least 0 each.
    offset
        b of f(x) = sum b_i k(x_i, x) + b ("split": half the sum of the two; 0 for "none").
    half_width
        "split" only: the rho of NuSVC (y f >= rho), minus the epsilon of NuSVR.
    values
        f(x_i) at the training points, offset included, as the solver knows them.
    certificate
        The claim, not yet attached to a model.
    history
        A row per outer iteration.
    """

    plus: np.ndarray
    minus: np.ndarray
    offset: float
    values: np.ndarray
    certificate: Certificate
    half_width: float = 0.0
    history: list[Row] = field(default_factory=list)

    @property
    def coefficients(self) -> np.ndarray:
        """The coefficients b."""
        return self.plus - self.minus


class Infeasible(ValueError):
    """No solution exists: a hard margin on classes that cannot be separated, or a tube too narrow for its targets.

    Parameters
    ----------
    message
        What is wrong and what to do.
    coefficients
        The evidence: coefficients b, of the sign of each label. Their positive part and the negative of their negative
        part sum to 1 each: two mixtures, one of each class, that meet in feature space, sum b_i phi(x_i) = 0 up to
        rounding. Without an offset both parts together sum to 1. For a tube: b with sum |b_i| = 1 and
        sum b_i phi(x_i) = 0 (and sum b_i = 0 with an offset) whose sum b_i y_i, the narrowest epsilon, is more than the
        epsilon asked for.
    """

    def __init__(self, message: str, coefficients: np.ndarray | None = None) -> None:
        super().__init__(message)
        self.coefficients = coefficients


# -- the plan ----------------------------------------------------------------------------------------------


@dataclass
class Method:
    """How a problem will be solved, and why."""

    name: str
    why: str
    single: bool
    size: int  # of the working set
    memory: int
    whole: bool = False
    held: bool = False  # whether all values are kept although the working set is smaller


def method(problem: SVMDual, control: Control) -> Method:
    """Choose between the whole matrix and decomposition, and between float32 and float64."""
    n, gram = len(problem), problem.gram
    single = n > _FLOAT64_POINTS and control.tol >= _FLOAT32_TOL and control.precision != "float64"
    single = (single or control.precision == "float32") and gram.single_is_enough
    item = 4 if single else 8
    if n <= WHOLE and (n * n * item <= _FITS_ANY_BUDGET or n * n * whole_item(single) <= gram.budget):
        why = f"{n} points fit in one working set"
        return Method("SMO on the whole matrix", why, single, n, n * n * item, whole=True)
    if not gram.compiled and n * n * item <= gram.budget // 2:
        why = "the kernel is computed by Python: each value once, all kept"
        return Method("decomposition", why, False, LARGEST, n * n * item, held=True)
    size = int(min(LARGEST, math.isqrt(gram.budget // 4 // item)))
    if size < 16:
        gram.budget.require(16 * 16 * 4 * item, "the smallest working set", "raise the budget.")
    why = f"{n} points: blocks of up to {size}, never the whole matrix"
    return Method("decomposition", why, single, size, size * size * item)


def whole_item(single: bool) -> int:
    """Return the bytes that a value of the whole matrix may come to take: one of float32 is computed in float64 too."""
    return 12 if single else 8


def plan(problems: list[SVMDual], control: Control | None = None) -> str:
    """Return how the problems will be solved and why, in a sentence."""
    control = control or Control()
    largest = max(problems, key=len)
    chosen = method(largest, control)
    many = f"{len(problems)} problems of up to {len(largest)} points, side by side: " if len(problems) > 1 else ""
    kind = "float32" if chosen.single else "float64"
    return f"{many}{chosen.name} in {kind}, {readable(chosen.memory)}: {chosen.why}."


# -- the iterate -------------------------------------------------------------------------------------------


Arrays = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def _largest(bounds: np.ndarray) -> float:
    top = float(bounds.max())
    return top if top < math.inf else float(np.max(bounds, where=np.isfinite(bounds), initial=0.0))


def _outside(name: str, values: np.ndarray, bound: np.ndarray) -> str:
    """Return which value is not in its box, if one is not."""
    outside = (values < 0) | (values > bound)
    i = int(np.argmax(outside))
    return f"{name}[{i}] = {values[i]:g} is outside [0, {bound[i]:g}]" if outside[i] else ""


def dot(a: np.ndarray, b: np.ndarray) -> float:
    """Return the inner product, without BLAS, whose threads would compete with the core's."""
    return float(np.multiply(a, b).sum())


class Bounds(NamedTuple):
    """Both objectives, and the offsets at which they are this close."""

    primal: float
    dual: float
    plus: float  # F + width + plus is the reduced gradient of `plus`
    minus: float
    rounding: float  # what rounding can add to their difference

    @property
    def offset(self) -> float:
        """The offset of f: half the sum of two where plus and minus have one each."""
        return (self.plus - self.minus) / 2

    @property
    def half_width(self) -> float:
        """The rho of NuSVC, minus the epsilon of NuSVR, where plus and minus have an offset each."""
        return -(self.plus + self.minus) / 2

    @property
    def relative_gap(self) -> float:
        """The gap beyond rounding in units of the larger objective; infinite while the primal is."""
        return relative_gap(self.primal - self.dual - self.rounding, self.primal, self.dual)


class State:
    """The variables of one problem, F = K b + linear, and what follows from them.

    Without an offset (offset "none") a phantom point stands last: its kernel values are 0 and its coefficient is free,
    so that keeping the sum of all coefficients says nothing about the others.
    """

    def __init__(self, problem: SVMDual, diagonal: np.ndarray | None = None) -> None:
        self.n = len(problem)
        self.phantom = problem.offset == "none"
        self.groups = 2 if problem.offset == "split" else 1
        self.linear = self._vector("linear", problem.linear, 0.0)
        self.upper = self._vector("upper", problem.upper, math.inf)
        self.lower = self._vector("lower", problem.lower, math.inf)
        self.width = self._vector("width", problem.width, 0.0)
        self.plus = self._start("plus", problem.plus, self.upper)
        self.minus = self._start("minus", problem.minus, self.lower)
        if self.phantom:
            self.balance()
        self.gradient = self.linear.copy()
        if diagonal is None:
            diagonal = problem.gram.diag() if problem.rows is None else problem.alone().gram.diag()
        self.lengths = np.sqrt(np.abs(np.asarray(diagonal, dtype=np.float64)))  # in feature space
        self.size = float(self.lengths.max()) ** 2  # of kernel values
        self._steepest = float(np.abs(self.linear).max()) + float(self.width.max())
        self._largest = max(_largest(self.upper[: self.n]), _largest(self.lower[: self.n]))

    def _vector(self, name: str, value: object, last: float) -> np.ndarray:
        vector = check_vector(name, value, self.n)
        return np.append(vector, last) if self.phantom else vector

    def _start(self, name: str, value: np.ndarray | None, bound: np.ndarray) -> np.ndarray:
        if value is None:
            return np.zeros(self.n + self.phantom)
        start = self._vector(name, value, 0.0).copy()
        if why := _outside(name, start, bound):
            raise ValueError(f"the start is infeasible: {why}.")
        return start

    def resume(self, plus: np.ndarray, minus: np.ndarray) -> str:
        """Go on from finite values that an earlier run has left; return why not, if this problem does not allow them.

        The gradient is left to the caller: computing it again removes what rounding has left in it.
        """
        if why := _outside("plus", plus, self.upper) or _outside("minus", minus, self.lower):
            return f"holds values that no run leaves: {why}"
        kept, begun = self.sums(), (self.plus.copy(), self.minus.copy())
        self.plus[:], self.minus[:] = plus, minus
        if self.phantom:
            self.balance()
        elif np.abs(self.sums() - kept).max() > _SUM_DRIFT * float((plus + minus).sum()):
            self.plus[:], self.minus[:] = begun
            return "belongs to another problem (the coefficients have another sum: another nu)"
        return ""

    @property
    def coefficients(self) -> np.ndarray:
        """b, one number per point, without the phantom."""
        return (self.plus - self.minus)[: self.n]

    def balance(self) -> None:
        """Give the phantom what the others leave of a zero sum."""
        rest = float(self.coefficients.sum())
        self.plus[-1], self.minus[-1] = max(0.0, -rest), max(0.0, rest)

    def sums(self) -> np.ndarray:
        """Return what every step keeps: the sum of all coefficients, or those of plus and of minus."""
        plus, minus = float(self.plus.sum()), float(self.minus.sum())
        return np.array([plus - minus] if self.groups == 1 else [plus, minus])

    @property
    def arrays(self) -> Arrays:
        """What the core's functions take first."""
        return self.gradient, self.plus, self.minus, self.upper, self.lower, self.width

    @property
    def free(self) -> np.ndarray:
        """Which points have a coefficient strictly between its bounds."""
        inside = ((self.plus > 0) & (self.plus < self.upper)) | ((self.minus > 0) & (self.minus < self.lower))
        return inside[: self.n]

    @property
    def dual(self) -> float:
        """The dual objective, to be maximised."""
        b, total = self.plus - self.minus, self.plus + self.minus
        return -(0.5 * dot(b, self.gradient + self.linear) + dot(self.width, total))

    def slopes(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the slopes of the objective along growing and shrinking b, for each group (as in the core)."""
        n, inf = self.n, math.inf
        F, w = self.gradient[:n], self.width[:n]
        p, m, up, low = self.plus[:n], self.minus[:n], self.upper[:n], self.lower[:n]
        if self.groups == 1:
            return [
                (
                    F + np.where(m > 0, -w, np.where(p < up, w, inf)),
                    F + np.where(p > 0, w, np.where(m < low, -w, -inf)),
                )
            ]
        return [
            (F + np.where(p < up, w, inf), F + np.where(p > 0, w, -inf)),
            (F + np.where(m > 0, -w, inf), F + np.where(m < low, -w, -inf)),
        ]

    def bounds(self) -> Bounds:
        """Return the objectives at the offsets that bring them closest."""
        b = self.plus - self.minus
        dual = self.dual
        # A purely quadratic objective may have the optimum 0, reached only in the limit: stop where w is nothing.
        units = 2.0 if self._steepest > 0 else 64.0
        total = self.plus + self.minus
        length = dot(np.abs(b[: self.n]), self.lengths)
        rounding = units * FLOAT64_EPS * (length**2 + (float(total[: self.n].sum()) + self._largest) * self._steepest)
        if self.phantom:
            plus = minus = 0.0
            gap, n = 0.0, self.n
            for part, bound, sign in ((self.plus, self.upper, 1.0), (self.minus, self.lower, -1.0)):
                r = (sign * self.gradient + self.width)[:n]
                gap += float(np.where(r >= 0, part[:n] * r, (part - bound)[:n] * r).sum())
        else:
            plus, minus, gap = _core.offsets(*self.arrays, self.groups)
        return Bounds(dual + gap, dual, plus, minus, rounding)

    @property
    def floor(self) -> float:
        """What rounding does to the gradient: violations below it mean nothing."""
        length = dot(np.abs(self.coefficients), self.lengths)
        return 2 * FLOAT64_EPS * (math.sqrt(self.size) * length + self._steepest)

    def kkt(self, bounds: Bounds) -> float:
        """Return the worst violation of complementary slackness, in units of f."""
        n, worst = self.n, 0.0
        halves = ((self.plus, self.upper, 1.0, bounds.plus), (self.minus, self.lower, -1.0, bounds.minus))
        for part, bound, sign, offset in halves:
            slope = (sign * self.gradient + self.width)[:n] + offset
            # Growing must not pay below the upper bound, shrinking not above 0.
            pays = np.maximum(np.where(part[:n] < bound[:n], -slope, 0.0), np.where(part[:n] > 0, slope, 0.0))
            worst = max(worst, float(pays.max()))
        return worst
