"""A classifier that finds its kernel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import check_scoring
from sklearn.utils.multiclass import check_classification_targets

from mercer.estimators import SVC
from mercer.estimators.shared.classes import as_given, numbered, pair_index, shown
from mercer.estimators.svm.calibration import pair_maps, probabilities
from mercer.machine.words import count
from mercer.selection.automatic.account import scoring_name
from mercer.selection.automatic.base import AutoModel

_C = np.array([0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0])


class AutoClassifier(ClassifierMixin, AutoModel):
    """A classifier of tables that finds its kernel: an encoder, a search, an `SVC` on all rows, and probabilities.

    The columns are turned into numbers (`TableEncoder`). Kernels that suit the data are compared by cross-validation,
    on some of the rows first; the best is fitted to all. Margins of rows that were held out give the probabilities.

    Parameters
    ----------
    kernels
        What to try: kernels, classes of kernels (at several scales), texts such as "RBF(2) + Linear()"; they compare
        encoded rows. None for a list that suits the data.
    cv
        A number of folds, which are shuffled; a splitter of scikit-learn, or pairs of training and test rows.
    scoring
        What to maximise: a name or a scorer of scikit-learn. None for accuracy (`AutoRegressor`: R²).
    time_limit
        Seconds for everything. The search ends after 60% of them with the best so far; the last fit may, too.
    search_rows
        Rows on which kernels are compared, at most. Of more than 3,000, all kernels see 2,000 first, and then the best
        few see the rest; of a table of twice as many, the best four are compared on up to three times search_rows.
    budget
        Bytes that kernel matrices may use: a number, a text such as "4 GiB", or None for half of what is free.
    random_state
        For the choice of rows and folds.
    verbose
        1 for bars.

    Attributes
    ----------
    account_
        What was seen, tried and chosen, and how sure that is: `print(model.account_)`, `model.account_.to_dict()`.
    encoder_, estimator_
        The fitted `TableEncoder`, and the `SVC` (`KernelRidge`) on its columns.
    kernel_, certificate_, function_, plan_
        Of `estimator_`; `certificate_.verify(X, y)` takes what `fit` took.
    named_kernel_
        `kernel_` with names of columns in the place of their numbers, for people to read; so are those in `results_`.
    best_score_, score_error_
        The winner's mean score over the folds, and its standard error. The best of many looks better than it is;
        `honest_score_` is the score of the way of choosing: each fold by the candidate that is best on the others.
    results_, best_index_
        Columns of all that was tried, and the place of the winner: "kernel", "family", "scale", "C" ("alpha"),
        "mean_test_score", "std_test_score", "folds", "time", "rows". (Not the first look at families that had more.)
    scoring_
        The name of the score.
    held_out_
        "rows" that were held out in turn, and "values": their decision function (predictions) by models of the others.
    calibration_
        "slope" and "offset" of the logistic map from margins to probabilities, for each pair of classes; for more than
        two classes the "power" that the law of all pairs is raised to.
    classes_, n_features_in_, feature_names_in_
        As in scikit-learn.
    timings_
        Seconds: "encode", "search", "calibrate", "refit".
    interrupted_
        Whether the search or the last fit was ended before its time.

    Notes
    -----
    `predict` returns the class of the largest probability, so that the two never disagree. For two classes the decision
    function is the margin of `estimator_`, shifted to 0 where both classes are equally probable; for more it is the
    logarithm of the probabilities.

    Examples
    --------
    >>> import pandas as pd
    >>> from mercer import AutoClassifier
    >>> fruit = pd.DataFrame({"weight": [150, 170, 140, 7, 8, 6] * 5, "colour": ["red", "green", "red"] * 10})
    >>> model = AutoClassifier(cv=3).fit(fruit, ["apple", "apple", "apple", "cherry", "cherry", "cherry"] * 5)
    >>> model.predict(pd.DataFrame({"weight": [9, 145], "colour": ["red", "blue"]}))
    array(['cherry', 'apple'], dtype='<U6')
    """

    _classifies: ClassVar[bool] = True
    _price: ClassVar[str] = "C"

    def _read_target(self, y: np.ndarray) -> np.ndarray:
        if y.dtype.kind == "O":
            y = _of_one_type(y)
        check_classification_targets(y)
        self.classes_, _ = numbered(y)
        counts = np.unique(y, return_counts=True)[1]
        if len(self.classes_) < 2:
            raise ValueError(f"AutoClassifier needs at least two classes; y has one class only, {shown(y[0])}.")
        if counts.min() < 2 and len(counts) == 2:
            rare = self.classes_[int(counts.argmin())]
            raise ValueError(f"class {shown(rare)} has one row only, which cannot be both learned from and held out.")
        return y

    def _readings(self, y: np.ndarray) -> list[tuple[str, np.ndarray, Any]]:
        scoring = "accuracy" if self.scoring is None else self.scoring
        scorer = check_scoring(SVC(), scoring)
        if np.atleast_1d(getattr(scorer, "_response_method", "")).tolist() == ["predict_proba"]:
            raise ValueError(
                f"scoring={scoring_name(scoring)!r} asks for probabilities, which are made after the search; "
                "choose a score of classes or of the decision function, such as 'accuracy' or 'roc_auc'."
            )
        learned = numbered(y)[1] if isinstance(scoring, str) else y  # a scorer may know labels by name
        return [("identity", learned, scoring)]

    def _machine(self, rows: int) -> tuple[Any, np.ndarray]:
        return SVC(decision_function_shape="ovo", budget=self._part), _C

    def _held(self, models: Iterator[tuple[Any, np.ndarray, np.ndarray]], y: np.ndarray, rows: np.ndarray) -> None:
        every = numbered(y)[0]  # the classes, by name or by number
        count = len(every)
        pairs = list(zip(*pair_index(count), strict=True))
        values = np.full((len(rows), len(pairs)), np.nan)
        for model, Z, places in models:
            found = model.decision_function(Z).reshape(len(places), -1)
            known = np.searchsorted(every, model.classes_)  # a rare class may be absent from a fold
            if len(known) == 2 < count:
                found = -found  # of two classes the second is the positive one, of more the first
            at = [pairs.index((known[i], known[j])) for i, j in zip(*pair_index(len(known)), strict=True)]
            values[places[:, None], at] = found
        self.calibration_ = pair_maps(values, np.searchsorted(every, y[rows]), count)
        seen = np.isfinite(values).all(axis=1)
        self.held_out_ = {"rows": rows[seen], "values": self._decision(values[seen])}

    def learned_target(self, y: Any) -> np.ndarray:
        """Return the labels as `estimator_` has learned them."""
        y = np.asarray(as_given(y))
        return y.astype(str) if self.classes_.dtype.kind == "U" else y

    def _decision(self, values: np.ndarray) -> np.ndarray:
        if len(self.classes_) == 2:
            return np.asarray(values[:, 0] + self.calibration_["offset"][0] / self.calibration_["slope"][0])
        p = probabilities(values, self.calibration_, len(self.classes_))
        return np.asarray(np.log(np.maximum(p, np.finfo(float).tiny)))

    def _margins(self, X: Any) -> np.ndarray:
        values = self._values(X, "decision_function")
        return values.reshape(len(values), -1)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the margin of each row, 0 at even odds; for more than two classes log probabilities, (n, classes).

        Parameters
        ----------
        X
            A table or an array as in `fit`.
        """
        return self._decision(self._margins(X))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, (n, classes)."""
        return probabilities(self._margins(X), self.calibration_, len(self.classes_))

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of each row."""
        found = self.decision_function(X)
        codes = (found > 0).astype(np.intp) if found.ndim == 1 else found.argmax(axis=1)
        return np.asarray(self.classes_[codes])

    def _target_sentences(self, y: np.ndarray) -> str:
        counts = np.unique(y, return_counts=True)[1]
        most, least = self.classes_[int(counts.argmax())], self.classes_[int(counts.argmin())]
        return (
            f"The target has {len(counts)} classes; the largest, {shown(most)}, is {counts.max() / len(y):.1%} of the "
            "rows, which is the accuracy of naming it always; the smallest, "
            f"{shown(least)}, has {count(int(counts.min()), 'row')}."
        )

    def _model_sentences(self) -> str:
        n, of = len(self.estimator_.support_), self.estimator_.shape_fit_[0]
        said = f"{count(n, 'support vector')} of {of:,} rows. Probabilities are a logistic map of the margins"
        held = f" of {count(len(self.held_out_['rows']), 'row')} that were held out"
        if len(self.classes_) > 2:
            return f"{said}{held}, one for each of {len(self.calibration_['slope'])} pairs of classes, and coupled."
        even = -self.calibration_["offset"][0] / self.calibration_["slope"][0]
        return f"{said}{held}; even odds are at a margin of {even:.2g}."


def _of_one_type(y: np.ndarray) -> np.ndarray:
    """Return labels in an array of objects as texts, numbers or booleans, whichever they are."""
    import pandas as pd

    found = pd.Series(y, dtype=object).infer_objects().to_numpy()
    if found.dtype.kind == "O" and (strange := [label for label in y if not isinstance(label, str)]):
        other = next((label for label in y if type(label) is not type(strange[0])), None)
        said = shown(strange[0]) if other is None else f"{shown(strange[0])} and {shown(other)}"
        raise ValueError(f"the labels in y must be of one type, texts or numbers, to be put in order; y holds {said}.")
    return found
