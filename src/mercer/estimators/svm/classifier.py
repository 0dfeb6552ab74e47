"""The base of SVC and NuSVC: one machine per pair of classes, and their votes."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import KW_ONLY
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mercer.certify import Certificate, Stop, combined
from mercer.estimators.shared.classes import Labels, Pairs, one_vs_rest, pair_values, shown, votes
from mercer.estimators.shared.data import Training, chosen_kernel
from mercer.estimators.shared.fitting import finite, whole_fit
from mercer.estimators.shared.margins import classifier_table, zones
from mercer.estimators.shared.parameters import SEARCHED_KERNEL, Rules, check_parameters, with_parameters
from mercer.estimators.svm.calibration import pair_maps, probabilities
from mercer.estimators.svm.fold import dealt, held_out_values
from mercer.estimators.svm.machine import Statement, SupportVectorMachine
from mercer.gram import Gram
from mercer.machine.warn import warn
from mercer.points import Points
from mercer.rkhs.functions.vector import functions_of
from mercer.solvers.dual.problem import Solution

_VALUES = 64 * 2**20  # bytes of pairwise values held at a time when only their votes are wanted


def _has_probabilities(model: Any) -> bool:
    if not getattr(model, "probability", False):
        raise AttributeError("probabilities are not available when probability=False; fit with probability=True.")
    return True


@with_parameters
class PairwiseClassifier(ClassifierMixin, Labels, SupportVectorMachine):
    """A classifier made of one machine for each pair of classes."""

    _: KW_ONLY
    class_weight: Any = None
    decision_function_shape: str = "ovr"
    break_ties: bool = False
    probability: bool = False
    random_state: Any = None

    _rules: ClassVar[Rules] = {"kernel": SEARCHED_KERNEL}

    # -- what the two models define ---------------------------------------------------------------------

    def _pair_terms(self, signs: np.ndarray, weights: np.ndarray) -> dict[str, Any]:
        """Return the terms of `SVMDual` for one pair, from the labels +-1 and the weights of its samples."""
        raise NotImplementedError

    def _on_part(self, labels: np.ndarray, weights: np.ndarray | None, rows: np.ndarray) -> Any:
        """Return the model for some of the samples: with the class weights of all, and parameters that are feasible."""
        part = copy.copy(self)
        part.class_weight = dict(zip(self.classes_, self.class_weight_, strict=True))
        return part

    def _scale(self, solution: Solution, training: Training) -> float:
        """Return the divisor of coefficients and offset with which f = +-1 on the margin."""
        return 1.0

    # -- fit --------------------------------------------------------------------------------------------

    @whole_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Find the machine of every pair of classes.

        Parameters
        ----------
        X
            The training points: a matrix (dense or sparse), a table, or whatever the kernel compares; the square matrix
            of similarities for kernel="precomputed".
        y
            A class for each.
        sample_weight
            A weight for each, at least 0: C becomes C times the weight, and weight 0 drops the sample.

        Returns
        -------
        self
        """
        check_parameters(self)
        data, labels = self._read(X, y)
        codes = self._encode(labels)
        training = self._training(data, sample_weight, chosen_kernel(self, data, labels, sample_weight))
        if training.rows is not None:
            codes = codes[training.rows]
        pairs = Pairs(codes, len(self.classes_))
        statements = self._statements(training, pairs, codes)
        folds = self._folds(codes) if self.probability else None
        solutions = self._solve(training, statements, X, y)
        self._assemble(training, data, pairs, codes, solutions)
        self._warn_unfinished(training, data, labels)
        self.__dict__.pop("calibration_", None)  # of an earlier fit
        if folds is not None:
            if self.certificate_.stopped == Stop.INTERRUPTED:
                raise KeyboardInterrupt  # without probabilities it would not be the model that was asked for
            self.calibration_ = self._calibration(training, labels, codes, folds)
        return self

    def _folds(self, codes: np.ndarray) -> np.ndarray:
        """Return the fold in which each sample is held out, to find probabilities."""
        counts = np.bincount(codes)
        if counts.min() < 2:
            rare = shown(self.classes_[int(counts.argmin())])
            warn(
                f"class {rare} has one sample only, which cannot be both learned from and held out: its probabilities "
                "are 1 / (1 + exp(-f)) of the margin f, and not calibrated. Give it more samples.",
            )
        return dealt(codes, self.random_state)

    def _calibration(
        self, training: Training, labels: np.ndarray, codes: np.ndarray, folds: np.ndarray
    ) -> dict[str, np.ndarray]:
        labels = labels if training.rows is None else labels[training.rows]
        values = held_out_values(self, training, labels, folds, self._gram(training))
        return pair_maps(values, codes, len(self.classes_), training.weights)

    def _statements(self, training: Training, pairs: Pairs, codes: np.ndarray) -> list[Statement]:
        weights = self._class_weights(codes, training.weights)
        if len(pairs) == 1:  # the samples stay where they are
            return [Statement(None, self._pair_terms(2.0 * codes - 1.0, weights))]
        return [
            Statement(rows, self._pair_terms(pairs.signs(i, j), weights[rows]), (pairs.members[i], pairs.members[j]))
            for i, j in pairs
            for rows in (pairs.rows(i, j),)
        ]

    def _assemble(
        self, training: Training, data: Any, pairs: Pairs, codes: np.ndarray, solutions: list[Solution]
    ) -> None:
        self._scales = np.array([self._scale(s, training) for s in solutions])
        coefficients = [s.coefficients / scale for s, scale in zip(solutions, self._scales, strict=True)]
        if len(pairs) == 1:
            coefficients = [coefficients[0][pairs.rows(0, 1)]]
        support, blocks = pairs.layout(coefficients)
        if len(pairs) == 1:
            self._keep(training, data, support, [np.concatenate(blocks)])
        else:
            self._keep(training, data, support, blocks)
        self._counts = np.array([len(b) for b in blocks], dtype=np.int32)
        self.intercept_ = np.array([s.offset for s in solutions]) / self._scales
        self.n_iter_ = np.array([s.certificate.iterations for s in solutions], dtype=np.int32)

    @property
    def n_support_(self) -> np.ndarray:
        """The number of support vectors of each class."""
        check_is_fitted(self)
        return self._counts

    # -- values -----------------------------------------------------------------------------------------

    @finite
    def _values(self, X: Any) -> np.ndarray:
        """Return f of every pair at validated points, (points, pairs)."""
        if self._linear:
            return np.asarray(X @ self.coef_.T, dtype=np.float64) + self.intercept_
        sums = self._sums(X)
        return sums[:, 0] + self.intercept_ if sums.shape[1] == 1 else pair_values(sums, self.intercept_)

    def _pieces(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the values of every pair for some points after the other."""
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        step = max(1, _VALUES // (24 * max(1, len(self.intercept_))))
        if step >= n:
            yield self._values(X)
            return
        points = Points(X)
        for start in range(0, n, step):
            yield self._values(points.take(slice(start, min(start + step, n))).data)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return how far each point is on which side, in units of the margin.

        Parameters
        ----------
        X
            Points as in `fit`; for kernel="precomputed", their similarities to all training samples.

        Returns
        -------
        ndarray
            Two classes: f(x), positive for `classes_[1]`, shape (n,). More: with decision_function_shape="ovo" f of
            each pair, positive for the first of the two, shape (n, pairs); with "ovr" the votes of each class, ties
            broken by the sum of its values, shape (n, classes).
        """
        check_is_fitted(self)
        X = self._read_new(X)
        if len(self.classes_) == 2:
            return np.concatenate([piece[:, 0] for piece in self._pieces(X)])
        if self.decision_function_shape == "ovr":
            return np.concatenate([one_vs_rest(piece, len(self.classes_)) for piece in self._pieces(X)])
        return np.concatenate(list(self._pieces(X)))

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each point: the one that wins most pairs.

        Among classes that win the same number, the first; with break_ties=True the one with the largest
        decision function.
        """
        check_is_fitted(self)
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'.")
        X = self._read_new(X)
        count = len(self.classes_)
        if count == 2:
            return self.classes_[np.concatenate([(piece[:, 0] >= 0).astype(np.intp) for piece in self._pieces(X)])]
        if self.break_ties:
            chosen = [one_vs_rest(piece, count).argmax(axis=1) for piece in self._pieces(X)]
        else:
            chosen = [votes(piece, count) for piece in self._pieces(X)]
        return self.classes_[np.concatenate(chosen)]

    # -- probabilities ----------------------------------------------------------------------------------

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, (n, classes), in the order of `classes_`.

        A logistic map of the values of each pair (Platt 1999), fitted to samples that were held out in turn, and one
        law from all pairs (Wu, Lin and Weng 2004). For two classes it rises with the decision function; `predict`
        returns the side of the margin, whatever is more probable.
        """
        maps, X = self._maps(), self._read_new(X)
        count = len(self.classes_)
        return np.concatenate([probabilities(piece, maps, count) for piece in self._pieces(X)])

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithms of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    @property
    def probA_(self) -> np.ndarray:
        """A of 1 / (1 + exp(A f + B)) for each pair, as in scikit-learn: the probability of its first class."""
        return -self._maps()["slope"]

    @property
    def probB_(self) -> np.ndarray:
        """B of 1 / (1 + exp(A f + B)) for each pair; of two classes, f is minus the decision function."""
        offset = self._maps()["offset"]
        return offset if len(self.classes_) == 2 else -offset

    def _maps(self) -> dict[str, np.ndarray]:
        check_is_fitted(self)
        if not hasattr(self, "calibration_"):
            raise NotFittedError(
                f"predict_proba is not available when fitted with probability=False: nothing was held out to learn it "
                f"from. Fit this {type(self).__name__} again."
            )
        return self.calibration_

    # -- the solution looked at -------------------------------------------------------------------------

    def _pair_coefficients(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield for each pair which support vectors it uses (places in support_) and their coefficients."""
        blocks = self._expansion.blocks
        if len(self.classes_) == 2:
            yield np.arange(len(self.support_)), blocks[0][:, 0]
            return
        starts = np.cumsum([0, *map(len, blocks)])
        for i in range(len(blocks)):
            for j in range(i + 1, len(blocks)):
                b = np.concatenate([blocks[i][:, j - 1], blocks[j][:, i]])
                at = np.concatenate([np.arange(starts[i], starts[i + 1]), np.arange(starts[j], starts[j + 1])])
                yield at[b != 0], b[b != 0]

    def _coef(self) -> np.ndarray:
        return np.array([np.asarray(b @ self.support_vectors_[at]).ravel() for at, b in self._pair_coefficients()])

    @property
    def function_(self) -> Any:
        """The decision function as an `RKHSFunction`; for class pairs an `RKHSVector`, in the order of "ovo".

        Its norm is that of w, and the offset is no part of it: `margin_width_` is 2 over the norm. For
        kernel="precomputed" its points are the places in `support_`.
        """
        check_is_fitted(self)
        parts = list(self._pair_coefficients())
        rows, a = (np.concatenate(part) for part in zip(*parts, strict=True))
        ends = np.cumsum([0, *(len(at) for at, _ in parts)])
        A = sparse.csc_array((a, rows, ends), shape=(len(self.support_), len(parts)))
        single = len(parts) == 1
        return functions_of(self.kernel_, self._support_points(), A.toarray() if single else A, self.intercept_, single)

    @property
    def margin_width_(self) -> Any:
        """The distance 2 / |w| between f = -1 and f = 1 in feature space (M2); for class pairs an array."""
        check_is_fitted(self)
        if self._linear:  # sums of kernel values round more
            with np.errstate(divide="ignore"):
                widths = list(2.0 / np.linalg.norm(self.coef_, axis=1))
            return widths[0] if len(widths) == 1 else np.array(widths)
        points = Points(self._support_points()) if len(self.support_) else None
        widths = []
        for at, b in self._pair_coefficients():
            square = float(b @ Gram(self.kernel_, points.take(at)).matvec(b)) if points is not None and len(at) else 0.0
            widths.append(2.0 / np.sqrt(square) if square > 0 else np.inf)
        return widths[0] if len(widths) == 1 else np.array(widths)

    def zones(self, X: Any) -> np.ndarray:
        """Return the zone of each point (M10).

        Returns
        -------
        ndarray of int
            -2 where f <= -1 (surely the negative class), -1 where -1 < f < 0 (probably), 1 where 0 <= f < 1 (probably
            the positive class), 2 where f >= 1 (surely). Shape (n,), or (n, pairs) for more than two classes.
        """
        check_is_fitted(self)
        values = zones(self._values(self._read_new(X)))
        return values[:, 0] if len(self.classes_) == 2 else values

    def margins(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Return what complementary slackness says of each sample (M7), as a pandas DataFrame.

        Parameters
        ----------
        X, y, sample_weight
            What the model was fitted to. For other samples alpha and kkt are NaN, and the role follows from the margin.

        Returns
        -------
        DataFrame
            Per sample (and per pair of classes, where there are more than two): `alpha`; `margin`, y f(x); `slack`,
            max(0, 1 - margin); `role`, "outside" (alpha = 0), "on the margin" (0 < alpha < C), "inside" or
            "misclassified" (alpha = C, by the sign of the margin); `kkt`, by how much the margin contradicts the role.
        """
        return classifier_table(self, X, y, sample_weight)

    def _bounds(self, weights: np.ndarray, scale: float) -> np.ndarray:
        """The largest alpha of each sample of a pair."""
        raise NotImplementedError

    def _rechecked(self, X: Any, y: Any, sample_weight: Any) -> Certificate:
        data = self._read_new(X)
        codes = self._codes(y)
        training = self._training(data, sample_weight, self.kernel_)
        if training.rows is not None:
            codes = codes[training.rows]
        pairs = Pairs(codes, len(self.classes_))
        n = self.shape_fit_[0]
        claims = []
        for p, (statement, (at, b)) in enumerate(
            zip(self._statements(training, pairs, codes), self._pair_coefficients(), strict=True)
        ):
            full = np.zeros(n)
            full[self.support_[at]] = b * self._scales[p]
            rows = training.original(np.arange(len(codes)) if statement.rows is None else statement.rows)
            b = full[rows]
            offset = float(self.intercept_[p] * self._scales[p])
            half = float(self._scales[p]) if statement.terms.get("offset") == "split" else 0.0
            claims.append(self._recheck_one(training, statement, np.maximum(b, 0), np.maximum(-b, 0), offset, half))
        return combined(claims)
