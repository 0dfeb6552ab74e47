"""The metric in which a kernel compares rows: which columns count, and along which directions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.utils.sparsefuncs import mean_variance_axis

from mercer.kernels.base import Kernel
from mercer.kernels.rules.algebra import Power, Product, Scaled, Sum
from mercer.kernels.rules.power_series import Series
from mercer.kernels.rules.pullback import Columns, Normalized, NormalScores, On, Ranked, Rescaled, Transformed
from mercer.points import Points

_SAME_POINTS = (Sum, Product, Scaled, Power, Series, Normalized, Rescaled)  # whose parts see the points as they are
_ROUNDING = 1e-12  # of the largest entry of a column: a deviation below is none
_NAMED_COLUMNS, _NAMED_PART = 5, 0.1  # entries of a direction that are named, and how large they are at least
_LEAST_SHARE = 0.05  # of the metric, that a further direction must have to be drawn


@dataclass(frozen=True, eq=False)
class Metric:
    r"""The quadratic form :math:`(x - z)' M (x - z)` by which a kernel compares rows, in units of deviations.

    `k.transformed(A)` compares rows by M = A'A, a kernel with a scale for each column by the squares of their inverses.
    Of a sum the metrics are averaged, each weighted as its kernel is; parts that treat all columns alike are passed
    over. The unit of each column is its deviation (after `ranked` that of its normal scores). M has trace 1: only
    ratios matter, since the scale of the kernel is common to all columns.

    Attributes
    ----------
    entries
        M, (d, d); its diagonal alone, (d,), where no columns are mixed.
    names
        Of the columns.
    groups
        Places of the columns that one column of the user's table became, by its name.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF
    >>> from mercer.kernels import Metric
    >>> X = np.random.default_rng(0).normal(size=(100, 3)) * [1, 10, 1]
    >>> metric = Metric.of(RBF(2.0).transformed([3.0, 0.1, 0.0]), X, ["age", "income", "noise"])
    >>> metric.importances.round(1), metric.mixes
    (array([0.9, 0.1, 0. ]), False)
    >>> Metric.of(RBF(2.0), X) is None
    True
    """

    entries: np.ndarray
    names: Sequence[str]
    groups: Mapping[str, np.ndarray]

    @classmethod
    def of(
        cls, kernel: Kernel, X: Any, names: Sequence[str] | None = None, groups: Mapping[str, np.ndarray] | None = None
    ) -> Self | None:
        """Return the metric of a kernel; None where it treats all columns alike, or has no columns.

        Parameters
        ----------
        kernel
            The kernel.
        X
            Points it was fitted to, whose deviations are the units.
        names
            Of the columns; None for x0, x1, ...
        groups
            Which of them belong together, by a common name; None where each is on its own.
        """
        parts = list(_parts(kernel, _View(Points.of(X))))
        if not parts:
            return None
        roots = [root for _, root in parts]
        if any(root.ndim == 2 for root in roots):
            roots = [np.diag(root) if root.ndim == 1 else root for root in roots]
        shares = np.array([weight for weight, _ in parts]) / sum(weight for weight, _ in parts)
        entries = sum(
            share * (root**2 if root.ndim == 1 else root.T @ root) for share, root in zip(shares, roots, strict=True)
        )
        if entries.ndim == 2 and np.count_nonzero(entries) == np.count_nonzero(entries.diagonal()):
            entries = entries.diagonal()
        names = [f"x{i}" for i in range(len(entries))] if names is None else [str(name) for name in names]
        return cls(entries, names, {n: np.array([i]) for i, n in enumerate(names)} if groups is None else groups)

    @property
    def matrix(self) -> np.ndarray:
        """M, (d, d)."""
        return np.diag(self.entries) if self.entries.ndim == 1 else self.entries

    @property
    def importances(self) -> np.ndarray:
        """The share of each column in the trace of M."""
        return self.entries if self.entries.ndim == 1 else self.entries.diagonal()

    @property
    def mixes(self) -> bool:
        """Whether M mixes columns."""
        return self.entries.ndim == 2

    def by_column(self, most: int | None = None) -> dict[str, float]:
        """Return the importance of each column of the user's table, the largest first.

        Parameters
        ----------
        most
            How many have a line of their own; what is left to the others comes last, as "n others".

        Examples
        --------
        >>> import numpy as np
        >>> from mercer.kernels import Metric
        >>> metric = Metric(np.array([0.25, 0.5, 0.25]), ["age", "job=clerk", "job=smith"], {"age": [0], "job": [1, 2]})
        >>> metric.by_column()
        {'job': 0.75, 'age': 0.25}
        """
        sums = {name: float(self.importances[places].sum()) for name, places in self.groups.items()}
        ranked = sorted(sums.items(), key=lambda item: -item[1])
        if most is None or len(ranked) <= most + 1:
            return dict(ranked)
        return dict(ranked[:most]) | {f"{len(ranked) - most:,} others": sum(share for _, share in ranked[most:])}

    def axes(self, count: int = 3) -> tuple[np.ndarray, np.ndarray]:
        """Return the leading eigenvalues, and the eigenvectors in rows, whose largest entry is positive."""
        if not self.mixes:
            order = np.argsort(-self.entries, kind="stable")[:count]
            return self.entries[order], np.eye(len(self.entries))[order]
        values, vectors = np.linalg.eigh(self.entries)
        values, vectors = np.maximum(values[::-1][:count], 0.0), vectors.T[::-1][:count]
        largest = np.take_along_axis(vectors, np.abs(vectors).argmax(axis=1)[:, None], axis=1)
        return values, vectors * np.where(largest < 0, -1.0, 1.0)

    def directions(self, count: int = 3) -> list[tuple[float, dict[str, float]]]:
        """Return the leading directions: the share of each, and its largest entries by column.

        Parameters
        ----------
        count
            How many.
        """
        leading = []
        for share, vector in zip(*self.axes(count), strict=True):
            order = np.argsort(-np.abs(vector), kind="stable")[:_NAMED_COLUMNS]
            parts = {self.names[i]: float(vector[i]) for i in order if abs(vector[i]) >= _NAMED_PART}
            leading.append((float(share), parts))
        return leading

    def loadings(self, most: int = 15, count: int = 3) -> tuple[np.ndarray, list[str], np.ndarray]:
        """Return what a picture of the directions shows: shares, names of columns, and entries (columns, directions).

        A further direction has a share of at least 5%, and the columns are those with the largest entries, weighted by
        these shares.

        Parameters
        ----------
        most, count
            How many columns and directions, at most.
        """
        shares, vectors = self.axes(count)
        kept = (shares >= _LEAST_SHARE) | (np.arange(len(shares)) == 0)
        shares, vectors = shares[kept], vectors[kept]
        seen = np.flatnonzero(np.abs(vectors).max(axis=0) >= _NAMED_PART)
        weights = (np.sqrt(shares)[:, None] * np.abs(vectors)).max(axis=0)
        chosen = seen[np.argsort(-weights[seen], kind="stable")][:most]
        return shares, [self.names[i] for i in chosen], vectors[:, chosen].T


@dataclass(frozen=True, eq=False)
class _View:
    """The points as a part of a kernel sees them, and the linear map to them of the columns in units of deviations."""

    points: Points  # until the first map
    root: np.ndarray | None = None  # a matrix, or one factor for each column; None where there is no map yet
    chosen: np.ndarray | None = None  # which columns these are, a row of 0 and a 1 for each; None for all

    def on(self, columns: tuple[Any, ...] | slice) -> _View:
        """Return the view of some of its columns."""
        if self.root is not None:
            root = np.diag(self.root) if self.root.ndim == 1 else self.root
            return _View(self.points, root[columns if isinstance(columns, slice) else list(columns)])
        data = self.points.data
        names = list(getattr(data, "columns", range(data.shape[1] if hasattr(data, "shape") else self.points.width)))
        of_all = np.eye(len(names)) if self.chosen is None else self.chosen
        if not isinstance(columns, slice):
            at = [names.index(c) if c in names else c for c in columns]
        return _View(self.points.through(Columns(columns)), None, of_all[columns if isinstance(columns, slice) else at])

    def ranked(self, sample: np.ndarray) -> _View:
        """Return the view after ranks have been taken, whose deviations are those of the sample."""
        scores = NormalScores(sample.shape, sample.tobytes())
        return _View(Points(scores(Points(sample))), None, self.chosen)

    def after(self, A: np.ndarray) -> _View:
        """Return the view after a linear map: a matrix, or one factor for each column."""
        root = self.root
        if root is None:
            root = _deviations(self.points.vectors)
            root = root if self.chosen is None else root[:, None] * self.chosen
        if A.ndim == 1 and root.ndim == 2:
            return _View(self.points, A[:, None] * root)
        return _View(self.points, A @ root if A.ndim == root.ndim == 2 else A * root)


def _parts(kernel: Kernel, seen: _View, weight: float = 1.0) -> Iterator[tuple[float, np.ndarray]]:
    """Yield the weight of each part of a kernel that has a metric, and a root of that metric, which has trace 1."""
    if isinstance(kernel, On):
        yield from _parts(kernel.base, seen.on(Columns.parse(kernel.columns).columns), weight)
    elif isinstance(kernel, Ranked) and seen.root is None:  # after a map there are no columns to be ranked
        yield from _parts(kernel.base, seen.ranked(np.ascontiguousarray(kernel.sample, dtype=np.float64)), weight)
    elif isinstance(kernel, Transformed):
        yield from _parts(kernel.base, seen.after(np.asarray(kernel.matrix, dtype=np.float64)), weight)
    elif isinstance(kernel, _SAME_POINTS):
        factor = float(kernel.factor) if isinstance(kernel, Scaled) else 1.0
        for part in kernel.children().values():
            yield from _parts(part, seen, weight * factor)
    elif not kernel.children():
        scale = getattr(kernel, "scale", None)
        root = (seen.after(1.0 / np.asarray(scale, dtype=np.float64)) if np.ndim(scale) == 1 else seen).root  # type: ignore[arg-type]
        if root is not None and root.any() and weight > 0:
            yield weight, root / np.linalg.norm(root)


def _deviations(rows: Any) -> np.ndarray:
    """Return the deviation of each column, 0 where rounding alone tells its entries apart."""
    if sparse.issparse(rows):
        return np.sqrt(np.asarray(mean_variance_axis(rows, axis=0)[1], dtype=np.float64))
    rows = np.asarray(rows, dtype=np.float64)
    top = np.abs(rows).max(axis=0, initial=0.0)
    top = np.where(top > 0, top, 1.0)  # squares of huge numbers overflow
    deviation = (rows / top).std(axis=0)
    return np.asarray(np.where(deviation > _ROUNDING, deviation, 0.0) * top)
