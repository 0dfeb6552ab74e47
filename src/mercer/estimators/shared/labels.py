"""Classes: from the labels of a user to class numbers and back, and what each class weighs."""

from __future__ import annotations

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
        found = self.class_weight_[codes] * (1.0 if weights is None else weights)
        if not (found > 0).all():
            c = self.classes_[codes[int(np.argmin(found))]]
            raise ValueError(f"class_weight gives class {shown(c)} the weight {found.min():g}; it must be > 0.")
        return found

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
