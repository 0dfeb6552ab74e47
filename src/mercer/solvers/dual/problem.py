"""The dual of every support vector machine of the lectures, in one form."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from mercer.certify import Certificate
from mercer.gram import Gram
from mercer.points import Points
from mercer.solvers.run import Row

Offset = Literal["free", "split", "none"]


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
        The two runs of points that `rows` joins, where they are those of a pair of classes. Pairs that have a class in
        common hold the same array.
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
