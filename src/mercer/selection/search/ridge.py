"""Kernel ridge regression on many folds, kernels and alphas: one Krylov space for a whole path of alphas.

Large alphas need few products with K, which all folds share. Small ones would need many; there K + alpha is factorised
once for each fold, at an alpha in their middle, and its inverse takes the place of K.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from mercer.estimators.regression.base import columns_of
from mercer.estimators.regression.kernel_ridge import KernelRidge
from mercer.estimators.shared.data import positive_weights
from mercer.estimators.shared.parameters import check_parameters, positive
from mercer.gram import Gram
from mercer.gram.matrix import KernelMatrix
from mercer.kernels import Kernel
from mercer.machine.threads import cores
from mercer.selection.search.cross_validation import CrossValidation, PrecomputedRegressor, SharedData, alike
from mercer.solvers.systems.cg import krylov

_SHARED_PRODUCTS = 100  # products with K that all folds share, before the alphas that are left get a factor
_STREAMED_PRODUCTS = 300  # products with K where it is not held, and there is no factor
_INVERSE_PRODUCTS = 120  # products with the inverse of K + alpha
_FACTOR_SPAN = 1e5  # ratio of alphas that one factor serves
_MATRIX_SHARE, _KRYLOV_SHARE = 0.75, 0.5  # of the budget: for matrices; for Krylov spaces, where no matrix is held
_SOLUTIONS = 4  # copies of the solutions of a fold that are held at a time
_LEAST_PRODUCTS = 8  # products, below which a Krylov space is none
_HEADROOM = 0.3  # of the residual that is asked for, since it is measured again by nobody

Task = tuple[Kernel, dict[int, list[int]]]


class Ridges:
    """The cells of a search whose estimator is `KernelRidge`."""

    races = False  # all alphas cost little more than one: nothing is gained by leaving some

    def __init__(self, cv: CrossValidation) -> None:
        self.cv = cv
        self.models = cv.models
        for model in self.models:
            check_parameters(model)
        self.shared = SharedData(cv)
        self.points, self.target = self.shared.points, self.shared.target
        n = self.n = len(self.target)
        size = 8 * (n * n + max(len(train) for train, _ in cv.splits) ** 2)  # of K and of the factor of a fold
        self.held, self.serial = size <= _MATRIX_SHARE * cv.budget, cores() * size > _MATRIX_SHARE * cv.budget
        room = (1.0 - _MATRIX_SHARE if self.held else _KRYLOV_SHARE) * cv.budget
        self.room = int(room) // (1 if self.serial else cores())  # bytes of Krylov spaces and solutions
        self.plan = f"KernelRidge on {n} points: all alphas of a kernel from one Krylov space" + (
            ", small ones from one factor for each fold." if self.held else ", on products that hold no matrix."
        )

    @staticmethod
    def can(cv: CrossValidation) -> bool:
        """Whether a search is one of `KernelRidge` with plain alphas."""
        if type(cv.estimator) is not KernelRidge or cv.y is None or set(cv.fit_params) - {"sample_weight"}:
            return False
        return alike(cv.models) and all(positive(model.alpha) and model.alpha < np.inf for model in cv.models)

    def tasks(self, cells: list[tuple[int, int]]) -> list[Task]:
        """Return the cells by kernel, and for each its folds with their candidates."""
        by_kernel: dict[Any, tuple[Kernel, dict[int, list[int]]]] = {}
        for candidate, fold in cells:
            model = self.models[candidate]
            key = self.shared.kernel_key((candidate, fold)), repr((model.fit_intercept, model.residual))
            _, folds = by_kernel.setdefault(key, (self.shared.kernel((candidate, fold)), {}))
            folds.setdefault(fold, []).append(candidate)
        return list(by_kernel.values())

    def run(self, task: Task) -> None:
        """Solve and score the candidates of one kernel."""
        try:
            AlphaPath(self, *task).run()
        except Exception:  # the plain fit says what is wrong, or gives the error score
            for fold, which in task[1].items():
                for c in which:
                    if (c, fold) not in self.cv.outcomes and not self.cv.stopped():
                        self.cv.keep((c, fold), self.cv.trial((c, fold)))


class AlphaPath:
    """All alphas and all folds of one kernel.

    With D the roots of the weights, 0 for points that are left out, the solution is D u with (D K D + alpha) u = D y.
    """

    def __init__(self, ridges: Ridges, kernel: Kernel, folds: dict[int, list[int]]) -> None:
        self.ridges, self.cv, self.folds = ridges, ridges.cv, folds
        first = ridges.models[next(iter(folds.values()))[0]]
        self.intercept = bool(first.fit_intercept)
        self.tol = _HEADROOM * first.residual
        self.began = time.perf_counter()
        Y = columns_of(ridges.target)
        self.outputs = Y.shape[1]
        self.B = np.column_stack([Y, np.ones(ridges.n)]) if self.intercept else Y
        self.matrix = KernelMatrix(Gram(kernel, ridges.points, budget=int(self.cv.budget)))
        self.K = self.matrix.dense(np.empty((ridges.n, ridges.n))) if ridges.held else None
        self.roots = {fold: self._roots(fold) for fold in folds}

    def _roots(self, fold: int) -> np.ndarray:
        train = self.cv.splits[fold][0]
        weights = self.cv.fit_params.get("sample_weight")
        weight, rows = positive_weights(None if weights is None else np.asarray(weights)[train], len(train))
        root = np.zeros(self.ridges.n)
        root[train if rows is None else train[rows]] = 1.0 if weight is None else np.sqrt(weight)
        return root

    def _product(self, V: np.ndarray) -> np.ndarray:
        """Return K v for the rows v of a matrix, unless the search is stopped."""
        if self.cv.stop.is_set():
            raise KeyboardInterrupt
        if self.K is not None:
            return np.asarray((self.K @ V.T).T)
        return np.asarray(self.matrix.exact.matvec(np.ascontiguousarray(V.T))).T.astype(np.float64)

    def run(self) -> None:
        """Solve as many folds together as there is room for."""
        which = [c for some in self.folds.values() for c in some]
        alphas = np.unique([float(self.ridges.models[c].alpha) for c in which])
        vector = 8 * self.ridges.n * self.B.shape[1]  # bytes of one for each right-hand side of a fold
        rest = max(_LEAST_PRODUCTS, self.ridges.room // vector - _SOLUTIONS * len(alphas) - 1)
        steps = min(_SHARED_PRODUCTS if self.K is not None else _STREAMED_PRODUCTS, rest)
        together = max(1, self.ridges.room // (vector * (steps + 1 + _SOLUTIONS * len(alphas))))
        folds = list(self.folds.items())
        for i in range(0, len(folds), together):
            self._solve(dict(folds[i : i + together]), alphas, steps)

    def _solve(self, folds: dict[int, list[int]], every: np.ndarray, steps: int) -> None:
        """Solve what some folds have in common together, and the rest of each by itself."""
        wide = self.B.shape[1]
        D = np.repeat([self.roots[fold] for fold in folds], wide, axis=0)
        X, _, residuals = krylov(
            lambda V: D * self._product(D * V),
            D * np.tile(self.B.T, (len(folds), 1)),
            every,
            np.ones(len(every)),
            self.tol,
            steps,
        )
        for i, (fold, which) in enumerate(folds.items()):
            if self.cv.stopped():
                return
            here = slice(i * wide, (i + 1) * wide)
            done = (residuals[here] <= self.tol).all(axis=0)
            self._refine(fold, X[here], done, every)
            self._score(fold, which, X[here], done, every)

    def _refine(self, fold: int, X: np.ndarray, done: np.ndarray, alphas: np.ndarray) -> None:
        """Solve for the alphas that are not done by the inverse at one of them; X and done are changed."""
        while self.K is not None and not done.all():
            left = np.flatnonzero(~done)
            group = left[alphas[left] <= _FACTOR_SPAN * alphas[left[0]]]
            middle = float(np.sqrt(alphas[group[0]] * alphas[group[-1]]))
            rows = np.flatnonzero(self.roots[fold])
            root = self.roots[fold][rows]
            A = self.K[np.ix_(rows, rows)]
            A *= root
            A *= root[:, None]
            A[np.diag_indices(len(rows))] += middle
            factor = cho_factor(A.T, lower=True, overwrite_a=True, check_finite=False)

            def inverse(V: np.ndarray, factor: Any = factor) -> np.ndarray:
                return np.asarray(cho_solve(factor, V.T, check_finite=False).T)

            # (K + alpha) x = b is (1 + (alpha - middle) M) u = b with M the inverse and x = M u.
            _, solved, residuals = krylov(
                inverse,
                self.B.T[:, rows] * root,
                np.ones(len(group)),
                alphas[group] - middle,
                self.tol,
                _INVERSE_PRODUCTS,
            )
            X[:, group] = 0.0
            X[:, group[:, None], rows] = solved
            good = (residuals <= self.tol).all(axis=0)
            done[group[good]] = True
            if not good.all():
                return

    def _score(self, fold: int, which: list[int], X: np.ndarray, done: np.ndarray, alphas: np.ndarray) -> None:
        """Score the candidates of a fold; those without a solution in the plain fit."""
        rows = np.concatenate(self.cv.splits[fold]) if self.cv.train_scores else self.cv.splits[fold][1]
        rows = np.unique(rows)
        A = self.roots[fold] * X  # (outputs, alphas, points)
        if self.intercept:
            offsets = A[:-1].sum(axis=2) / A[-1].sum(axis=1)  # (outputs, alphas)
            A = A[:-1] - A[-1] * offsets[:, :, None]
        flat = A.reshape(-1, self.ridges.n)
        if self.K is not None:
            values = self.K[rows] @ flat.T
        else:
            centres = np.flatnonzero(self.roots[fold])
            points, gram = self.ridges.points, self.matrix.gram
            values = Gram(gram.kernel, points.take(rows), points.take(centres)).matvec(flat[:, centres].T)
        values = np.asarray(values, dtype=np.float64).reshape(len(rows), self.outputs, len(alphas))
        if self.intercept:
            values = values + offsets
        seconds = (time.perf_counter() - self.began) / max(1, sum(map(len, self.folds.values())))
        for c in which:
            k = int(np.searchsorted(alphas, float(self.ridges.models[c].alpha)))
            if not done[k]:
                self.cv.keep((c, fold), self.cv.trial((c, fold)))
                continue
            column = values[:, :, k] if self.ridges.target.ndim == 2 else values[:, 0, k]

            def answer(at: np.ndarray, column: np.ndarray = column) -> PrecomputedRegressor:
                return PrecomputedRegressor(column[np.searchsorted(rows, at)])

            self.cv.score_values((c, fold), answer, seconds)
