"""Closure rules on points: kernels after a map, on some columns, rescaled or normalized (K3)."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from array_api_compat import array_namespace
from scipy import sparse
from scipy.special import ndtri
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer

from mercer.features import LinearImage, combine
from mercer.kernels.base import Kernel, kernel, written
from mercer.kernels.rules.algebra import Postfix
from mercer.points import Pair, Points, diagonal
from mercer.points.sets.points import NoMatrix

_QUANTILES = 2048  # of a column, at most: sums of two counts on a log scale need many


@kernel
class Rescaled(Postfix):
    """f(x) f(z) k(x, z)."""

    base: Kernel
    f: Callable[..., Any]
    each: bool = False

    _because = "rescaling", "sum a_i a_j f(x_i) f(x_j) k(x_i, x_j) is the form of k at b_i = a_i f(x_i)."

    def of(self, pair: Pair) -> Any:
        return pair.outer(_Values(self.f, self.each)) * self.base.of(pair)

    def feature_map(self) -> Any:
        factor = FunctionTransformer(Applied(_Values(self.f, self.each), column=True), accept_sparse=True)
        return combine.TensorFeatures(factor, self.base.feature_map())

    def __repr__(self) -> str:
        return f"{self._prefix()}.rescaled({_called(self.f, self.each)})"


@kernel
class Composed(Postfix):
    """k(psi(x), psi(z))."""

    base: Kernel
    psi: Callable[..., Any]
    each: bool = False

    _because = "pull-back", "the Gram matrix at x_i is that of k at the points psi(x_i)."

    def of(self, pair: Pair) -> Any:
        return self.base.of(pair.through(Mapped(self.psi, self.each)))

    def feature_map(self) -> Any:
        return combine.preceded(Applied(Mapped(self.psi, self.each)), self.base.feature_map())

    def _seen(self, points: Points) -> Points:
        return points.through(Mapped(self.psi, self.each))

    def __repr__(self) -> str:
        return f"{self._prefix()}.compose({_called(self.psi, self.each)})"


@kernel
class On(Postfix):
    """k(x[columns], z[columns])."""

    base: Kernel
    columns: Any

    _because = "pull-back", "choosing columns is a map of the points; the Gram matrix is that of k at the images."

    def _validate(self) -> None:
        Columns.parse(self.columns)

    def of(self, pair: Pair) -> Any:
        return self.base.of(pair.through(Columns.parse(self.columns)))

    def feature_map(self) -> Any:
        return combine.preceded(Applied(Columns.parse(self.columns)), self.base.feature_map())

    def spectral_law(self, dim: int) -> Any:
        chosen = Columns.parse(self.columns)(Points(np.eye(dim)))  # column j is the unit vector of its feature
        return LinearImage(chosen, self.base.spectral_law(chosen.shape[1]))

    def _seen(self, points: Points) -> Points:
        return points.through(Columns.parse(self.columns))

    @property
    def resolved(self) -> bool:
        return self.base.resolved  # a column may be called "auto" or "median"

    def _key(self) -> tuple[Any, ...]:
        return self.base, Columns.parse(self.columns)

    def __repr__(self) -> str:
        plain = isinstance(self.columns, str | int | slice | list | tuple)
        columns = written(self.columns) if plain else str(Columns.parse(self.columns))
        return f"{self._prefix()}.on({columns})"


@kernel
class Transformed(Postfix):
    """k(A x, A z): for a kernel of |x - z|, the metric (x - z)' A'A (x - z) in the place of the distance."""

    base: Kernel
    matrix: Any

    _fixed: ClassVar[tuple[str, ...]] = ("matrix",)
    _because = "pull-back", "x -> A x is a map of the points; the Gram matrix is that of k at the images."

    def _validate(self) -> None:
        m = np.asarray(self.matrix)
        if m.ndim not in (1, 2) or not m.size or m.dtype.kind not in "fiub" or not np.isfinite(m).all():
            raise ValueError(
                "kernel.transformed takes a finite matrix with a column for each feature, or one factor for each; it "
                f"got an array of shape {m.shape} and type {m.dtype}."
            )

    @property
    def _map(self) -> LinearMap:
        m = np.ascontiguousarray(self.matrix, dtype=np.float64)
        return LinearMap(m.shape, m.tobytes())

    def of(self, pair: Pair) -> Any:
        return self.base.of(pair.through(self._map))

    def feature_map(self) -> Any:
        return combine.preceded(Applied(self._map), self.base.feature_map())

    def spectral_law(self, dim: int) -> Any:
        A = np.asarray(self.matrix, dtype=np.float64)
        A = np.diag(A) if A.ndim == 1 else A
        return LinearImage(A.T, self.base.spectral_law(len(A)))

    def _seen(self, points: Points) -> Points:
        return points.through(self._map)

    def __repr__(self) -> str:
        return f"{self._prefix()}.transformed({written(self.matrix)})"


@kernel
class Ranked(Postfix):
    """k of the columns' normal scores: increasing changes of a column's scale, as by a logarithm, do not matter.

    A number becomes the normal quantile of its rank among those of a sample; between two of them it is interpolated,
    and beyond all of them it counts as the outermost.

    Parameters
    ----------
    sample
        Rows, ascending in each column.
    """

    base: Kernel
    sample: Any

    _fixed: ClassVar[tuple[str, ...]] = ("sample",)
    _because = "pull-back", "ranks in columns are a map of the points; the Gram matrix is that of k at the images."

    def _validate(self) -> None:
        m = np.asarray(self.sample)
        if m.ndim != 2 or not m.size or m.dtype.kind not in "fiub" or not np.isfinite(m).all():
            raise ValueError(
                f"kernel.ranked takes rows of finite numbers; it got an array of shape {m.shape} and type {m.dtype}."
            )
        if (m[1:] < m[:-1]).any():
            raise ValueError("the sample of a ranked kernel must ascend in each column; kernel.ranked(X) makes one.")

    @property
    def _map(self) -> NormalScores:
        m = np.ascontiguousarray(self.sample, dtype=np.float64)
        return NormalScores(m.shape, m.tobytes())

    def of(self, pair: Pair) -> Any:
        return self.base.of(pair.through(self._map))

    def feature_map(self) -> Any:
        return combine.preceded(Applied(self._map), self.base.feature_map())

    def _seen(self, points: Points) -> Points:
        return points.through(self._map)

    def __repr__(self) -> str:
        return f"{self._prefix()}.ranked({written(self.sample)})"


@kernel
class Normalized(Postfix):
    """k(x, z) / sqrt(k(x, x) k(z, z)), and 0 where k(x, x) = 0."""

    base: Kernel

    _because = "rescaling", "f(x) f(z) k(x, z) with f(x) = k(x, x)^(-1/2)."

    def of(self, pair: Pair) -> Any:
        return pair.outer(_InverseRoot(self.base)) * self.base.of(pair)

    def feature_map(self) -> Any:
        return make_pipeline(self.base.feature_map(), Normalizer())

    def spectral_law(self, dim: int) -> Any:
        return self.base.spectral_law(dim)

    def __repr__(self) -> str:
        return f"{self._prefix()}.normalized()"


# -- numbers per point ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Values:
    """f at each point."""

    f: Callable[..., Any]
    each: bool

    def __call__(self, points: Points) -> Any:
        if self.each:
            return np.array([float(self.f(x)) for x in points.items])
        return self.f(points.data)

    def __repr__(self) -> str:
        return _called(self.f, self.each)


@dataclass(frozen=True)
class _InverseRoot:
    """k(x, x)^(-1/2) at each point, 0 where k(x, x) = 0."""

    base: Kernel

    def __call__(self, points: Points) -> Any:
        d = diagonal(self.base.of, points)
        if points.foreign:
            return (d > 0) / (d + (d <= 0)) ** 0.5
        if (d < 0).any():
            i = int(np.argmin(d))
            raise ValueError(
                f"{self.base!r} cannot be normalized: k(x, x) = {d[i]:.6g} < 0 at point {i}, so it is not a kernel."
            )
        return np.where(d > 0, 1.0 / np.sqrt(np.where(d > 0, d, 1.0)), 0.0).astype(d.dtype)


def _called(function: Callable[..., Any], each: bool) -> str:
    name = getattr(function, "__qualname__", None) or repr(function)
    return f"{name}, each=True" if each else name


@dataclass(frozen=True)
class Mapped:
    """The points after a Python function or a fitted scikit-learn transformer."""

    psi: Callable[..., Any]
    each: bool = False

    def __call__(self, points: Points) -> Any:
        if self.each:
            return [self.psi(x) for x in points.items]
        image = getattr(self.psi, "transform", self.psi)(points.data)
        if isinstance(image, np.ndarray) and image.ndim == 1 and image.dtype.kind in "fiub":
            image = image[:, None]
        if points.foreign and isinstance(image, np.ndarray):
            image = array_namespace(points.vectors).asarray(image, device=points.vectors.device)
        return image


@dataclass(frozen=True)
class LinearMap:
    """The points after multiplication by a matrix; by a diagonal one where it is one factor for each feature."""

    shape: tuple[int, ...]
    entries: bytes  # float64, row by row: equal maps share what they make of points

    @property
    def matrix(self) -> np.ndarray:
        return np.frombuffer(self.entries).reshape(self.shape)

    def __call__(self, points: Points) -> Any:
        v, A = points.vectors, self.matrix
        if v.shape[1] != A.shape[-1]:
            raise ValueError(
                f"kernel.transformed has a matrix for {A.shape[-1]} features; {points.name} has {v.shape[1]}."
            )
        if points.foreign:
            A = array_namespace(v).asarray(A, dtype=v.dtype, device=v.device)
        elif sparse.issparse(v):
            return (v.multiply(A).tocsr() if A.ndim == 1 else v @ A.T).astype(v.dtype)
        image = v * A if A.ndim == 1 else v @ A.T
        return image if points.foreign else image.astype(v.dtype, copy=False)

    def pull(self, points: Points, gradient: np.ndarray) -> np.ndarray:
        """Return the gradient in x where that in A x is given."""
        A = self.matrix
        return gradient * A[:, None] if A.ndim == 1 else np.einsum("nkc,kd->ndc", gradient, A, optimize=True)

    def __repr__(self) -> str:
        return f"the linear map {written(self.matrix)}"


@dataclass(frozen=True)
class NormalScores:
    """The points after each column has become the normal quantile of its rank among those of a sample."""

    shape: tuple[int, ...]
    entries: bytes  # float64, row by row, ascending in each column

    @classmethod
    def sample(cls, X: Any) -> np.ndarray:
        """Return the rows of X, or so many quantiles, ascending in each column."""
        v = Points.of(X).vectors
        v = np.asarray(v.toarray() if sparse.issparse(v) else v, dtype=np.float64)
        v = np.sort(v, axis=0)
        if len(v) <= _QUANTILES:
            return v
        return v[np.ceil(len(v) * (np.arange(_QUANTILES) + 0.5) / _QUANTILES).astype(np.intp) - 1]

    def curves(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the numbers of each column, and their scores: equal numbers share the score of their mean rank."""
        for column in np.frombuffer(self.entries).reshape(self.shape).T:
            known, counts = np.unique(column, return_counts=True)
            yield known, ndtri((np.cumsum(counts) - 0.5 * counts) / len(column))

    def __call__(self, points: Points) -> Any:
        if points.foreign:
            raise TypeError(
                f"a ranked kernel works on NumPy arrays and {points.name} is a {type(points.data).__name__}; pass "
                "numpy.asarray of it."
            )
        v = points.vectors.toarray() if sparse.issparse(points.vectors) else points.vectors
        if v.shape[1] != self.shape[1]:
            raise ValueError(f"a ranked kernel knows {self.shape[1]} features; {points.name} has {v.shape[1]}.")
        image = np.empty(v.shape, dtype=v.dtype)
        for j, (known, scores) in enumerate(self.curves()):
            image[:, j] = np.interp(v[:, j], known, scores)
        return image

    def pull(self, points: Points, gradient: np.ndarray) -> np.ndarray:
        """Return the gradient in x where that in the scores is given."""
        slopes = np.zeros((len(points), self.shape[1], 1))
        for j, (known, scores) in enumerate(self.curves()):
            x = np.asarray(points.vectors[:, j], dtype=np.float64)
            place = np.searchsorted(known, x, side="right")
            inside = (place > 0) & (place < len(known))
            steps = np.diff(scores) / np.diff(known)
            slopes[inside, j, 0] = steps[place[inside] - 1]
        return gradient * slopes

    def __repr__(self) -> str:
        return f"normal scores of {self.shape[1]} columns"


@dataclass(frozen=True)
class Columns:
    """Some columns of a matrix or a table."""

    columns: tuple[Any, ...] | slice

    @classmethod
    def parse(cls, columns: Any) -> Columns:
        """Accept one index or name, a slice, a boolean mask, or a sequence of indices or names."""
        if isinstance(columns, slice):
            return cls(columns)
        if isinstance(columns, str | numbers.Integral):
            columns = [columns]
        if not isinstance(columns, Iterable):
            raise TypeError(f"columns must be an index, a name, a slice or a list of them; they are {columns!r}.")
        chosen = [c.item() if isinstance(c, np.generic) else c for c in columns]
        if chosen and all(isinstance(c, bool) for c in chosen):
            chosen = [i for i, c in enumerate(chosen) if c]
        if not chosen:
            raise ValueError("kernel.on([]) chooses no column; name at least one.")
        for c in chosen:
            if not isinstance(c, str | int):
                raise TypeError(f"a column is an index or a name, not {c!r}.")
        return cls(tuple(chosen))

    def __hash__(self) -> int:
        c = self.columns
        return hash((c.start, c.stop, c.step) if isinstance(c, slice) else c)

    def __call__(self, points: Points) -> Any:
        data, name = points.data, points.name
        if hasattr(data, "columns"):
            return self._of_table(data, name)
        if not hasattr(data, "shape"):
            data = points.vectors
        if len(data.shape) != 2:
            raise NoMatrix(f"kernel.on({self}) needs a matrix or a table; {name} has shape {tuple(data.shape)}.")
        if sparse.issparse(data):
            data = sparse.csr_array(data)
        columns = self.columns
        if isinstance(columns, slice):
            return data[:, columns]
        width = data.shape[1]
        for c in columns:
            if isinstance(c, str):
                raise ValueError(
                    f"unknown column {c!r}: {name} is a {type(data).__name__} without column names; use "
                    f"indices 0 to {width - 1}."
                )
            if not -width <= c < width:
                raise ValueError(f"unknown column {c}: {name} has {width} columns, 0 to {width - 1}.")
        return data[:, list(columns)]

    def pull(self, points: Points, gradient: np.ndarray) -> np.ndarray:
        """Return the gradient in x where that in its columns is given."""
        names = list(getattr(points.data, "columns", range(points.width)))
        chosen = [names.index(c) if c in names else c for c in _listed(self.columns, names)]
        out = np.zeros((len(points), points.width, gradient.shape[2]))
        for column, part in zip(chosen, np.moveaxis(gradient, 1, 0), strict=True):
            out[:, column] += part  # a column may be chosen twice
        return out

    def _of_table(self, table: Any, name: str) -> Any:
        names = list(table.columns)
        columns = _listed(self.columns, names)
        chosen = []
        for c in columns:
            if c in names:
                chosen.append(c)
            elif isinstance(c, int) and -len(names) <= c < len(names):
                chosen.append(names[c])
            else:
                raise ValueError(
                    f"unknown column {c!r}: {name} has "
                    f"{', '.join(map(repr, names[:12]))}{', ...' if len(names) > 12 else ''}."
                )
        return table[chosen] if hasattr(table, "iloc") else table.select(chosen)

    def __str__(self) -> str:
        return repr(list(self.columns) if isinstance(self.columns, tuple) else self.columns)


def _listed(columns: tuple[Any, ...] | slice, names: list[Any]) -> list[Any]:
    return names[columns] if isinstance(columns, slice) else list(columns)


@dataclass(frozen=True)
class Applied:
    """A map of points as a function of plain data, for scikit-learn's transformers."""

    map: Callable[[Points], Any]
    column: bool = False

    def __call__(self, X: Any) -> Any:
        image = self.map(Points.of(X))
        return np.asarray(image)[:, None] if self.column else image
