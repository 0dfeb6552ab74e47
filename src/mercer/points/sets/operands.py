"""Points as the core multiplies them, with squared norms: dense ones about a common centre, sparse ones by nonzeros."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from mercer import _core
from mercer.machine.lazy import cached_property

_CENTRE_SAMPLE = 2048  # rows whose mean is near enough to the centre of all
_FREQUENT_SAMPLE = 256  # rows that show whether each column has one frequent value
_CENTRE_AT_ZERO = 0.1  # a centre this near to 0, as a share of the mean squared norm, is taken to be 0
_THIN_SHARE = 0.35  # of nonzeros below which visiting them one by one is faster
_THIN_FEATURES = 16  # features from which on visiting nonzeros one by one pays
_LISTED_FEATURES = 1 << 20  # features up to which lists by column are kept however few nonzeros there are


def padded(size: int, dtype: np.dtype) -> int:
    """Return the size rounded up to whole panels of the core."""
    panel: int = _core.panel(dtype == np.float32)
    return -(-size // panel) * panel


def packed(rows: np.ndarray) -> np.ndarray:
    """Return the rows in the layout that the core streams."""
    out = np.empty(padded(rows.shape[0], rows.dtype) * rows.shape[1], rows.dtype)
    _core.pack(rows, out)
    return out


def centre(rows: np.ndarray) -> np.ndarray | None:
    """Return a point amid the rows, or None where 0 does as well.

    If most entries of each column are one value, as of one-hot codes whether standardised or not, then it is that
    value: few differences from it are not zero. Otherwise it is about the mean.
    """
    some = rows[:: max(1, len(rows) // _FREQUENT_SAMPLE)]
    if rows.shape[1] >= _THIN_FEATURES:
        frequent = np.partition(some, len(some) // 2, axis=0)[len(some) // 2]  # the median is, if anything is
        if np.count_nonzero(some != frequent) < _THIN_SHARE * some.size:
            return frequent if frequent.any() else None
    some = rows[:: max(1, len(rows) // _CENTRE_SAMPLE)]
    mean = some.mean(axis=0, dtype=np.float64)
    far = float(mean @ mean) > _CENTRE_AT_ZERO * float(np.einsum("ij,ij->", some, some, dtype=np.float64)) / len(some)
    return mean.astype(rows.dtype) if far else None


class Centred:
    """Rows about a centre, in the forms that the core multiplies; those of a part are cut from those of the whole."""

    def __init__(
        self, rows: np.ndarray, whole: Centred | None = None, chosen: slice | np.ndarray | None = None
    ) -> None:
        self.rows = rows
        self._whole, self._chosen = whole, chosen
        self._norms: dict[bool, np.ndarray] = {}

    def take(self, chosen: slice | np.ndarray) -> Centred:
        """Return some of the rows."""
        return Centred(np.ascontiguousarray(self.rows[chosen]), self, chosen)

    @cached_property
    def packed(self) -> np.ndarray:
        """The rows in the layout that the core streams."""
        return packed(self.rows)

    @cached_property
    def thin(self) -> Any:
        """The nonzeros of the rows when they are few, else None."""
        kind = _core.RowsFloat32 if self.rows.dtype == np.float32 else _core.RowsFloat64
        if self._whole is not None:
            if self._whole.thin is None:
                return None
            return kind(self._whole.thin, np.arange(len(self._whole.rows), dtype=np.int64)[self._chosen])
        some = self.rows[:: max(1, len(self.rows) // _FREQUENT_SAMPLE)]
        if self.rows.shape[1] < _THIN_FEATURES or np.count_nonzero(some) >= _THIN_SHARE * some.size:
            return None
        compressed = kind(self.rows)
        return compressed if compressed.nonzeros < _THIN_SHARE * self.rows.size else None

    def norms(self, thin: bool) -> np.ndarray:
        """Return the squared norms, summed as inner products with rows that are `thin`, or not, are summed."""
        if thin not in self._norms:
            n, d = self.rows.shape
            out = np.zeros(padded(n, self.rows.dtype), self.rows.dtype)
            if self._whole is None:
                _core.norms(self.rows, d if thin else _core.chunk(d, self.rows.dtype == np.float32), out)
            else:
                out[:n] = self._whole.norms(thin)[: len(self._whole.rows)][self._chosen]
            self._norms[thin] = out
        return self._norms[thin]

    @cached_property
    def radius(self) -> float:
        """The largest squared norm, of the whole."""
        return self._whole.radius if self._whole is not None else float(self.norms(self.thin is not None).max())

    @cached_property
    def terms(self) -> int:
        """The most terms that a sum over the coordinates has; for a part, of the whole."""
        if self._whole is not None:
            return self._whole.terms
        return int(self.thin.longest) if self.thin is not None else self.rows.shape[1]


class Compressed:
    """The nonzeros of each row; what belongs to a part is cut from what belongs to the whole."""

    def __init__(self, rows: Any, size: int, norms: np.ndarray, whole: Compressed | None = None) -> None:
        self.rows = rows
        self.norms = norms
        self._size = size
        self._whole = self if whole is None else whole

    @classmethod
    def of(cls, vectors: Any, dtype: Any) -> Compressed:
        """Compress the rows of a matrix, rounded to `dtype`."""
        csr = sparse.csr_array(vectors)
        csr.sort_indices()
        kind = _core.RowsFloat32 if dtype == np.float32 else _core.RowsFloat64
        data, index = csr.data.astype(dtype, copy=False), csr.indices.astype(np.int32, copy=False)
        rows = kind(data, index, csr.indptr.astype(np.int64), csr.shape[1])
        norms = np.empty(csr.shape[0])
        rows.norms(norms)
        return cls(rows, csr.shape[0], norms)

    def take(self, chosen: slice | np.ndarray) -> Compressed:
        """Return some of the rows."""
        numbers = np.arange(self._size, dtype=np.int64)[chosen]
        return Compressed(type(self.rows)(self.rows, numbers), len(numbers), self.norms[chosen], self._whole)

    def with_columns(self, width: int) -> Any:
        """Return the rows, which also keep their nonzeros by column unless most columns would have none."""
        if width <= max(_LISTED_FEATURES, self.rows.nonzeros):
            self.rows.list_columns()
        return self.rows

    @cached_property
    def radius(self) -> float:
        """The largest squared norm, of the whole."""
        return float(self.norms.max()) if self._whole is self else self._whole.radius

    @cached_property
    def terms(self) -> int:
        """The most terms that a sum over the coordinates has, of the whole."""
        return int(self.rows.longest) if self._whole is self else self._whole.terms
