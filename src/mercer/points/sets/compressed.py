"""Sparse points as the core multiplies them: their nonzeros by row and by column, with squared norms in double."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from mercer import _core
from mercer.machine.lazy import cached_property

_LISTED = 1 << 20  # features up to which lists by column are kept however few nonzeros there are


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
        if width <= max(_LISTED, self.rows.nonzeros):
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
