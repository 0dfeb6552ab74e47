"""Points moved to a common centre, with squared norms: what distances by inner products are made of."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from mercer import _core

_SAMPLE = 2048  # rows whose mean is centre enough
_CENTRAL = 0.1  # a centre this near to 0, as a share of the mean squared norm, is taken to be 0


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
    """Return about the mean of the rows, or None where 0 does as well."""
    some = rows[:: max(1, len(rows) // _SAMPLE)]
    mean = some.mean(axis=0, dtype=np.float64)
    far = float(mean @ mean) > _CENTRAL * float(np.einsum("ij,ij->", some, some, dtype=np.float64)) / len(some)
    return mean.astype(rows.dtype) if far else None


class Centred:
    """Rows from which a centre was taken, their squared norms, and the largest of these."""

    def __init__(self, rows: np.ndarray, norms: np.ndarray, radius: float) -> None:
        self.rows, self.norms, self.radius = rows, norms, radius

    @classmethod
    def about(cls, centre: np.ndarray | None, vectors: np.ndarray) -> Centred:
        """Take the centre from the vectors."""
        rows = vectors if centre is None else vectors - centre
        norms = np.zeros(padded(len(rows), rows.dtype), rows.dtype)
        _core.norms(rows, norms)
        return cls(rows, norms, float(norms.max()))

    @cached_property
    def packed(self) -> np.ndarray:
        """The rows in the layout that the core streams."""
        return packed(self.rows)

    def take(self, chosen: slice | np.ndarray) -> Centred:
        """Return some of the rows; the radius stays that of all."""
        rows = np.ascontiguousarray(self.rows[chosen])
        norms = np.zeros(padded(len(rows), rows.dtype), rows.dtype)
        norms[: len(rows)] = self.norms[: len(self.rows)][chosen]
        return Centred(rows, norms, self.radius)
