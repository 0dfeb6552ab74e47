"""The rows of a fit that count: how much each of them does, and which belong together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, check_consistent_length, column_or_1d

from mercer.estimators.shared.data import positive_weights


@dataclass(frozen=True)
class Rows:
    """The rows of positive weight among those that a user has given.

    Examples
    --------
    >>> rows = Rows.of([10, 20, 30, 40], [1, 0, 2, 1], ["a", "a", "b", "b"])
    >>> rows.taken([10, 20, 30, 40]), rows.groups.tolist(), rows.cut([([0, 1], [2, 3])])
    ([10, 30, 40], ['a', 'b', 'b'], [(array([0]), array([1, 2]))])
    """

    given: int  # how many the user has given
    places: np.ndarray  # which of these they are
    weights: np.ndarray | None = None  # how many rows each counts for; None where all count for one
    groups: np.ndarray | None = None  # to which of them each belongs, where the user has said it

    @classmethod
    def of(cls, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Return the rows whose targets are y."""
        n = _num_samples(y)
        weights, places = positive_weights(sample_weight, n)
        places = np.arange(n) if places is None else places
        if groups is not None:
            check_consistent_length(y, groups)
            groups = _known(column_or_1d(groups))[places]
        return cls(n, places, weights, groups)

    @property
    def unit(self) -> float:
        """A power of ten about as large as the weights are on average; 1 where that is between 0.1 and 10.

        C multiplies the weights, and alpha stands beside them: their values to try are meant for weights about 1.
        """
        size = 0.0 if self.weights is None else float(np.log10(self.weights.mean()))
        return 1.0 if abs(size) <= 1 else 10.0 ** round(size)

    def counts(self, rows: np.ndarray) -> np.ndarray | None:
        """Return for how many rows each of some rows is evidence; None where all are for one."""
        return None if self.weights is None else self.weights[rows] / self.unit

    def taken(self, thing: Any) -> Any:
        """Return of something that has an entry for each row given those that count."""
        if len(self.places) == self.given:
            return thing
        return _safe_indexing(thing.tocsr() if sparse.issparse(thing) else thing, self.places)

    def weighted(self, rows: Any = slice(None)) -> dict[str, np.ndarray]:
        """Return what a fit to some of the rows is to be told beside them."""
        return {} if self.weights is None else {"sample_weight": self.weights[rows]}

    def cut(self, cv: Any) -> Any:
        """Return what makes folds of the rows: pairs of rows given become pairs of those that count."""
        if isinstance(cv, int | np.integer) or hasattr(cv, "split"):
            return cv
        place = np.full(self.given, -1)
        place[self.places] = np.arange(len(self.places))
        pairs = [tuple(at[at >= 0] for at in (place[np.asarray(a)], place[np.asarray(b)])) for a, b in cv]
        return [pair for pair in pairs if all(map(len, pair))]


def _known(groups: np.ndarray) -> np.ndarray:
    import pandas as pd

    missing = np.asarray(pd.isna(groups))
    if missing.any():
        raise ValueError(
            f"groups[{int(missing.argmax())}] is missing; say for every row which group it belongs to, or leave the "
            "row out."
        )
    return groups
