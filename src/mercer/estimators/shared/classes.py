"""Classes: labels and class numbers, one machine per pair of classes, and how the pairs vote."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d


class Labels:
    """What classifiers share: `classes_`, `class_weight_`, and the number of each sample's class."""

    classes_: np.ndarray
    class_weight_: np.ndarray
    class_weight: Any

    def _encode(self, y: np.ndarray) -> np.ndarray:
        """Return the class number of each sample; sets classes_ and class_weight_."""
        if y.dtype.kind not in "iubU":
            check_classification_targets(y)
        self.classes_, codes = numbered(y)
        if len(self.classes_) < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least two classes; y has one class only, {shown(self.classes_[0])}. "
                "OneClassSVM describes a single class."
            )
        if self.class_weight is None:
            self.class_weight_ = np.ones(len(self.classes_))
        else:
            self.class_weight_ = compute_class_weight(self.class_weight, classes=self.classes_, y=y)
        return codes

    def _class_weights(self, codes: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        """Return the weight of each sample times that of its class, all of which must be positive."""
        counts = np.bincount(codes, minlength=len(self.classes_))
        if not counts.all():
            raise ValueError(
                f"all samples of class {shown(self.classes_[int(np.argmin(counts))])} have weight 0 in sample_weight, "
                "so there is nothing to learn it from; give them a positive weight or leave the class out of y."
            )
        products = self.class_weight_[codes] * (1.0 if weights is None else weights)
        if not (products > 0).all():
            c = self.classes_[codes[int(np.argmin(products))]]
            raise ValueError(f"class_weight gives class {shown(c)} the weight {products.min():g}; it must be > 0.")
        return products

    def _codes(self, y: Any) -> np.ndarray:
        """Return the class numbers of labels that the model knows."""
        y = column_or_1d(y)
        codes = np.searchsorted(self.classes_, y).clip(max=len(self.classes_) - 1)
        strange = self.classes_[codes] != y
        if np.any(strange):
            raise ValueError(f"y contains {shown(y[np.argmax(strange)])}, which is none of the classes of this model.")
        return codes


def numbered(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes in ascending order and each sample's number; integers of a small range need no sort."""
    if y.dtype.kind in "iu":
        low, high = int(y.min()), int(y.max())
        if high - low < 4 * len(y) + 1024 and max(-low, high) < 2**62:
            shifted = y.astype(np.int64) - low
            present = np.bincount(shifted) > 0
            return (np.flatnonzero(present) + low).astype(y.dtype), (np.cumsum(present) - 1)[shifted]
    classes, codes = np.unique(y, return_inverse=True)
    return classes, codes


def as_given(y: Any) -> Any:
    """Return labels of pandas' nullable types in their own: scikit-learn would make floats of integers and booleans."""
    kind = getattr(getattr(y, "dtype", None), "numpy_dtype", None)
    if isinstance(kind, np.dtype) and kind.kind in "biu" and not y.isna().any():
        return y.to_numpy(dtype=kind)
    return y


def shown(label: Any) -> str:
    """Return a label as the user wrote it."""
    return repr(label.item() if isinstance(label, np.generic) else label)


class Pairs:
    """The pairs (i, j), i < j, of k classes in scikit-learn's order: (0, 1), (0, 2), ..., (k-2, k-1).

    In a pair the first class is the positive one; of two classes alone the second is, as in scikit-learn.

    Parameters
    ----------
    codes
        The class number of each sample.
    count
        k, the number of classes.

    Examples
    --------
    >>> import numpy as np
    >>> pairs = Pairs(np.array([1, 0, 2, 1]), 3)
    >>> [(i, j) for i, j in pairs], pairs.rows(0, 1)
    ([(0, 1), (0, 2), (1, 2)], array([1, 0, 3]))
    """

    def __init__(self, codes: np.ndarray, count: int) -> None:
        self.count = count
        order = np.argsort(codes, kind="stable")
        stops = np.cumsum(np.bincount(codes, minlength=count))[:-1]
        self.members = np.split(order, stops)

    def __len__(self) -> int:
        return self.count * (self.count - 1) // 2

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return ((i, j) for i in range(self.count) for j in range(i + 1, self.count))

    def rows(self, i: int, j: int) -> np.ndarray:
        """The samples of a pair: those of class i, then those of class j."""
        return np.concatenate([self.members[i], self.members[j]])

    def signs(self, i: int, j: int) -> np.ndarray:
        """+1 or -1 for the samples of a pair, in the order of `rows`."""
        first = -1.0 if self.count == 2 else 1.0
        return np.repeat([first, -first], [len(self.members[i]), len(self.members[j])])

    def layout(self, coefficients: list[np.ndarray]) -> tuple[np.ndarray, list[np.ndarray]]:
        """Lay the coefficients of all pairs out by class.

        Parameters
        ----------
        coefficients
            For each pair, those of its samples in the order of `rows`.

        Returns
        -------
        support
            The samples with a coefficient that is not zero, class by class, ascending within a class.
        blocks
            For each class, a matrix (its support vectors, k - 1): column j - 1 of class i and column i of class j
            belong to the pair (i, j). Transposed and joined they are libsvm's `sv_coef`.
        """
        full = [np.zeros((len(m), self.count - 1)) for m in self.members]
        for (i, j), b in zip(self, coefficients, strict=True):
            cut = len(self.members[i])
            full[i][:, j - 1] = b[:cut]
            full[j][:, i] = b[cut:]
        used = [block.any(axis=1) for block in full]
        support = np.concatenate([m[u] for m, u in zip(self.members, used, strict=True)])
        return support, [block[u] for block, u in zip(full, used, strict=True)]


def pair_index(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and the second class of every pair."""
    return np.triu_indices(count, 1)


def pair_values(sums: np.ndarray, intercept: np.ndarray) -> np.ndarray:
    """Return f of every pair, f_ij = sums[i, j-1] + sums[j, i] + b_ij.

    Parameters
    ----------
    sums
        The sums of each class, (points, classes, classes - 1).
    intercept
        The offset of each pair.
    """
    n, count, width = sums.shape
    first, second = pair_index(count)
    flat = sums.reshape(n, count * width)
    out = flat[:, first * width + second - 1]
    out += flat[:, second * width + first]
    out += intercept
    return out


def votes(values: np.ndarray, count: int) -> np.ndarray:
    """Return the class that wins most pairs for each point; the lowest of those that tie (libsvm)."""
    won = (values > 0).astype(np.int32)
    return _by_class(won, 1 - won, count).argmax(axis=1)


def one_vs_rest(values: np.ndarray, count: int) -> np.ndarray:
    """Return one score per class: its votes, plus the sum of its pairs' values squeezed into (-1/3, 1/3).

    As scikit-learn defines it; the sum decides between classes with the same number of votes.
    """
    won = (values >= 0).astype(np.float64)
    confidence = _by_class(values, -values, count)
    return _by_class(won, 1 - won, count) + confidence / (3 * (np.abs(confidence) + 1))


def _by_class(as_first: np.ndarray, as_second: np.ndarray, count: int) -> np.ndarray:
    """Sum over the pairs of each class: one number of a pair goes to its first class, the other to its second."""
    order = np.argsort(pair_index(count)[1], kind="stable")
    sizes = np.arange(count - 1, 0, -1)  # pairs in which a class is first
    out = np.zeros((len(as_first), count), as_first.dtype)
    out[:, :-1] = np.add.reduceat(as_first, np.cumsum(sizes) - sizes, axis=1)
    out[:, 1:] += np.add.reduceat(as_second[:, order], np.cumsum(sizes[::-1]) - sizes[::-1], axis=1)
    return out


def pair_labels(classes: Any) -> list[tuple[Any, Any]]:
    """Return (positive, negative) classes of each pair."""
    if len(classes) == 2:
        return [(classes[1], classes[0])]
    first, second = pair_index(len(classes))
    return [(classes[i], classes[j]) for i, j in zip(first, second, strict=True)]
