"""The perceptron as an estimator (M1)."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.metaestimators import available_if

from mercer.estimators.online import OnlineClassifier, not_at_rest
from mercer.kernels.base import check_integer
from mercer.solvers.iterate import Coefficients, Vector
from mercer.solvers.perceptron import Mistakes, perceptron


class Perceptron(OnlineClassifier):
    r"""Rosenblatt's perceptron: visit the points in turn, and learn from mistakes alone.

    .. math:: \text{if } y_i f(x_i) \le 0: \quad f \leftarrow f + y_i \, k(x_i, \cdot)

    Points that can be separated are separated after finitely many mistakes, at most (R / gamma)² (Novikoff 1962). Which
    separating function comes out depends on the order of the points. More than two classes: each against the rest.

    Parameters
    ----------
    kernel
        None for the primal form, a vector w; or a kernel object, or a name as for `SVC` (with its defaults), for the
        dual form that counts the mistakes at each point.
    fit_intercept
        Whether f has an offset: a feature that is constantly 1, with a weight like the others.
    max_epochs
        Passes over the data at most; a pass without a mistake is the last one.
    shuffle
        Whether the points are visited in a new random order in each pass.
    random_state
        The source of those orders.

    Attributes
    ----------
    coef_, intercept_
        w and b of each machine (primal form).
    dual_coef_, support_
        Signed counts of mistakes, and the points they belong to (dual form).
    function_
        f as an `RKHSFunction`; an `RKHSVector`, one per class, for more than two.
    mistakes_ : int
        All mistakes of all machines.
    mistakes_per_epoch_ : ndarray of shape (n_iter_, machines)
        The same by pass.
    n_iter_ : int
        Passes made, of the machine that made most.
    converged_ : bool
        Whether every machine ended with a pass without mistakes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer.estimators.perceptron import Perceptron
    >>> X, y = load_iris(return_X_y=True)
    >>> setosa = Perceptron().fit(X, y == 0)
    >>> setosa.converged_, setosa.score(X, y == 0), setosa.mistakes_
    (True, 1.0, 5)
    """

    def __init__(
        self,
        kernel: Any = None,
        *,
        fit_intercept: bool = True,
        max_epochs: int = 100,
        shuffle: bool = False,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.fit_intercept = fit_intercept
        self.max_epochs = max_epochs
        self.shuffle = shuffle
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from points and their classes.

        Parameters
        ----------
        X
            A matrix (dense or sparse), or whatever the kernel compares.
        y
            The class of each point.
        """
        self._check_kernel()
        check_integer(self, "max_epochs", self.max_epochs, 1)
        X, codes = self._read(X, y)
        labels = self._signs(codes)
        gram = self._gram(X)
        machines = [self._fresh(X, gram) for _ in labels]
        randoms = self._generators(len(labels), self.shuffle)
        runs = [
            perceptron(machine, signs, int(self.max_epochs), random)
            for machine, signs, random in zip(machines, labels, randoms, strict=True)
        ]
        offset = np.array([machine.offset for machine in machines])
        if gram is None:
            self._keep_vectors(np.stack([m.w for m in machines if isinstance(m, Vector)]), offset)
        else:
            self._keep_coefficients(gram, np.stack([m.c for m in machines if isinstance(m, Coefficients)]), offset)
        self._remember(runs)
        if not self.converged_:
            last = int(self.mistakes_per_epoch_[-1].sum())
            not_at_rest(
                f"the perceptron still made {last} mistakes in pass {self.n_iter_}, the last that max_epochs="
                f"{self.max_epochs} allows; the points may not be separable. Raise max_epochs, or use SVC or Pegasos, "
                "which allow for errors."
            )
        return self

    def _remember(self, runs: list[Mistakes]) -> None:
        self.n_iter_ = max(len(run.per_epoch) for run in runs)
        self.mistakes_per_epoch_ = np.array(
            [run.per_epoch + [0] * (self.n_iter_ - len(run.per_epoch)) for run in runs], dtype=int
        ).T
        self.mistakes_ = int(self.mistakes_per_epoch_.sum())
        self.converged_ = all(run.converged for run in runs)

    @available_if(lambda self: self.kernel is None)
    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Pass once over some points, going on from the current w (primal form only).

        Parameters
        ----------
        X, y
            Points and their classes.
        classes
            All classes there will ever be; needed in the first call, and the same in later ones.
        """
        first = not hasattr(self, "coef_")
        if first and classes is None:
            raise ValueError("the first call of partial_fit needs classes: all classes that y will ever contain.")
        if not first and classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(f"classes={classes!r} differs from those of the first call, {self.classes_.tolist()}.")
        X, codes = self._read(X, y, self.classes_ if not first else classes, first)
        labels = self._signs(codes)
        if first:
            self._keep_vectors(np.zeros((len(labels), X.shape[1])), np.zeros(len(labels)))
            self.mistakes_, self.n_iter_ = 0, 0
            self.mistakes_per_epoch_ = np.zeros((0, len(labels)), dtype=int)
        runs = []
        for i, (signs, random) in enumerate(zip(labels, self._generators(len(labels), self.shuffle), strict=True)):
            machine = Vector(X, bool(self.fit_intercept))
            machine.w, machine.offset = self.coef_[i], float(self.intercept_[i])
            runs.append(perceptron(machine, signs, 1, random))
            self.intercept_[i] = machine.offset
        new = np.array([run.per_epoch[0] for run in runs], dtype=int)
        self.mistakes_per_epoch_ = np.vstack([self.mistakes_per_epoch_, new])
        self.mistakes_ += int(new.sum())
        self.n_iter_ += 1
        self.converged_ = not new.any()
        return self
