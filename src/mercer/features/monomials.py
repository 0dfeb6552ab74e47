"""The feature map of the polynomial kernel, and tensor powers of vectors, which the Taylor map has in common."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from itertools import combinations_with_replacement, groupby, pairwise
from numbers import Integral, Real
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import gammaln, xlogy
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from mercer.machine.budget import Budget

_REMEDY = "Use the kernel instead: it gives the same inner products without building the map."
KINDS = (np.float64, np.float32)  # of numbers that are mapped without conversion

Array = NDArray[Any]

#: Rows are expanded in chunks of about this many bytes, so that a block is still in cache when it is used.
_CHUNK_BYTES = 2**21


class PowerMap(TransformerMixin, BaseEstimator):
    """A map to features that are monomials times factors."""

    def transform(self, X: Any) -> Any:
        """Evaluate the features.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Points.

        Returns
        -------
        ndarray or CSR of shape (n_samples, n_features_out_)
            Sparse when ``X`` is, of the same precision.
        """
        check_is_fitted(self)
        return self._expanded(validate_data(self, X, accept_sparse="csr", dtype=KINDS, reset=False))

    @abstractmethod
    def _expanded(self, X: Any) -> Any:
        """Return the features of points that were checked."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def n_powers(n_features: int, degree: int) -> int:
    """Number of monomials of degree exactly ``degree`` in ``n_features`` variables."""
    return math.comb(n_features + degree - 1, degree) if n_features else int(degree == 0)


def power_names(names: list[str], degree: int) -> Iterator[str]:
    """Names such as "x0^2 x1", in the order of the columns of :func:`power_blocks`."""
    for chosen in combinations_with_replacement(range(len(names)), degree):
        powers = [(names[j], len(list(same))) for j, same in groupby(chosen)]
        yield " ".join(name if power == 1 else f"{name}^{power}" for name, power in powers) or "1"


def _orders(d: int, degree: int) -> Iterator[int]:
    """Numbers of orders k! / alpha! of the factors of each monomial, in the order of :func:`power_names`."""
    for chosen in combinations_with_replacement(range(d), degree):
        yield math.factorial(degree) // math.prod(math.factorial(len(list(same))) for _, same in groupby(chosen))


def _multiplied(square: float, name: str) -> str:
    """A monomial times the root of a number, written "√2 x0 x1", "2 x0" or, times 1, "x0"."""
    root = f"{math.sqrt(square):.6g}"
    factor = root if math.isclose(float(root) ** 2, square, rel_tol=1e-12) else f"√{square:.6g}"
    return name if factor == "1" else factor if name == "1" else f"{factor} {name}"


def power_blocks(X: Array, steps: list[Step]) -> Iterator[Array]:
    """Yield, for k = 0, 1, .. len(steps), the array of sqrt(k! / alpha!) x^alpha over |alpha| = k.

    The inner product of two rows of block k is (x . z)^k. Columns are in the order of
    ``itertools.combinations_with_replacement``. A block is built from the one before it: x_j times those
    monomials whose first variable is x_j or later, which are a suffix of its columns.
    """
    block = np.ones((len(X), 1), dtype=X.dtype)
    yield block
    for suffix, first, ratio in steps:
        product = np.empty((len(X), first[-1]), dtype=X.dtype)
        for j in range(X.shape[1]):
            np.multiply(block[:, suffix[j] :], X[:, j : j + 1], out=product[:, first[j] : first[j + 1]])
        if suffix[-1]:  # not in the block of degree 1, where all ratios are 1
            product *= ratio
        block = product
        yield block


class Step(NamedTuple):
    """How the block of degree k comes from the block of degree k - 1, in d variables."""

    suffix: NDArray[np.int64]  #: for j = 0 .. d, the first column of block k - 1 that x_j multiplies
    first: NDArray[np.int64]  #: for j = 0 .. d, where its products with x_j begin in block k
    ratio: Array  #: sqrt(k / alpha_j) for every column, alpha_j the exponent of its first variable


def steps_to(d: int, degree: int, dtype: Any) -> list[Step]:
    """The steps from the constant to ``degree``, in d variables."""
    steps = []
    power = np.zeros(1)
    for k, (suffix, first) in enumerate(pairwise(_first_columns(d, degree)), start=1):
        starts_alike, power = power, np.ones(n_powers(d, k))
        for j in range(d):
            alike = starts_alike[suffix[j] : suffix[j + 1]]
            power[first[j] : first[j] + len(alike)] += alike
        # k! / alpha! grows by the factor k / alpha_j when alpha_j grows by one.
        steps.append(Step(suffix, first, np.sqrt(k / power).astype(dtype, copy=False)))
    return steps


def _first_columns(d: int, degree: int) -> list[NDArray[np.int64]]:
    """For k = 0 .. degree and j = 0 .. d, where the monomials of degree k in x_j, x_(j+1), ... begin."""
    firsts = [np.zeros(d + 1, dtype=np.int64)]  # any variable may be put in front of the constant
    sizes = np.ones(d + 1, dtype=np.int64)
    sizes[0] = 0
    for _ in range(degree):
        sizes = np.cumsum(sizes)  # C(m+k-1, k) = sum over i <= m of C(i+k-2, k-1)
        firsts.append(sizes[-1] - sizes[::-1])
    return firsts


def expand(X: Any, degrees: range, factors: Array, what: str) -> Any:
    """Concatenate the blocks of ``degrees``, the one of degree k times ``factors[:, k]``.

    Parameters
    ----------
    X : array or CSR of shape (n, d)
        Points, float32 or float64.
    degrees : range
        Degrees to keep, consecutive.
    factors : array of shape (n, last degree + 1) or (1, last degree + 1)
        Row factors for every degree, of the type of X.
    what : str
        The map in words, for the error when it does not fit in memory.
    """
    n, d = X.shape
    factors = np.broadcast_to(factors, (n, degrees[-1] + 1))
    width = sum(n_powers(d, k) for k in degrees)
    if sparse.issparse(X):
        return _expand_csr(X, degrees, factors, width, what)
    # Beside the output: the last block of a chunk of rows, and its coefficients.
    workspace = max(_CHUNK_BYTES, 4 * 8 * n_powers(d, degrees[-1]))
    needed = n * width * X.dtype.itemsize + workspace
    Budget.all_that_is_free().require(needed, f"{what}, {width:,} columns for each of {n:,} rows,", _REMEDY)
    out = np.empty((n, width), dtype=X.dtype)
    _expand_dense(X, degrees, factors, out)
    return out


def _expand_dense(X: Array, degrees: range, factors: Array, out: Array) -> None:
    steps = steps_to(X.shape[1], degrees[-1], X.dtype)
    chunk = max(1, _CHUNK_BYTES // max(1, out.shape[1] * out.itemsize))
    for start in range(0, len(X), chunk):
        rows = slice(start, start + chunk)
        column = 0
        for k, block in enumerate(power_blocks(X[rows], steps)):
            if k in degrees:
                target = out[rows, column : column + block.shape[1]]
                np.multiply(block, factors[rows, k : k + 1], out=target)
                column += block.shape[1]


def _expand_csr(X: Any, degrees: range, factors: Array, width: int, what: str) -> Any:
    """Expand CSR rows: those with the same number t of nonzeros are a dense problem in t variables."""
    if width > np.iinfo(np.int64).max:
        raise MemoryError(f"{what} has {width:,} columns, more than a sparse matrix can number. {_REMEDY}")
    if not (X.has_canonical_format and X.data.all()):
        X = X.copy()
        X.sum_duplicates()
        X.eliminate_zeros()
    n, d = X.shape
    kinds, kind_of_row, n_rows = np.unique(np.diff(X.indptr), return_inverse=True, return_counts=True)
    sizes = [sum(n_powers(t, k) for k in degrees) for t in kinds.tolist()]
    n_values = sum(size * rows for size, rows in zip(sizes, n_rows.tolist(), strict=True))
    index_type: Any = np.int32 if max(width, n_values) < 2**31 else np.int64
    n_bytes = n_values * (X.dtype.itemsize + np.dtype(index_type).itemsize)
    Budget.all_that_is_free().require(
        n_bytes, f"{what}, {n_values:,} nonzeros in {n:,} rows and {width:,} columns,", _REMEDY
    )

    indptr = np.zeros(n + 1, dtype=index_type)
    np.cumsum(np.array(sizes, dtype=index_type)[kind_of_row], out=indptr[1:])
    data, indices = np.empty(n_values, dtype=X.dtype), np.empty(n_values, dtype=index_type)
    firsts = _first_columns(d, degrees[-1])
    for kind, (t, size) in enumerate(zip(kinds.tolist(), sizes, strict=True)):
        alike = np.flatnonzero(kind_of_row == kind)
        chunk = max(1, _CHUNK_BYTES // max(1, 8 * size))
        for start in range(0, len(alike), chunk):
            rows = alike[start : start + chunk]
            source = X.indptr[rows][:, None] + np.arange(t)
            target = indptr[rows][:, None] + np.arange(size, dtype=index_type)
            values = np.empty((len(rows), size), dtype=X.dtype)
            _expand_dense(X.data[source], degrees, factors[rows], values)
            data[target] = values
            indices[target] = _columns(X.indices[source], firsts, degrees)
    csr = sparse.csr_array if isinstance(X, sparse.sparray) else sparse.csr_matrix
    return csr((data, indices, indptr), shape=(n, width))


def _columns(J: Array, firsts: list[NDArray[np.int64]], degrees: range) -> NDArray[np.int64]:
    """Columns, among the monomials of all d variables, of those in the variables J, row by row.

    In the block of degree k - 1, the monomials that x_j may be put in front of begin at ``firsts[k-1][j]``;
    in the block of degree k, their products with x_j begin at ``firsts[k][j]``, in the same order.
    """
    n, t = J.shape
    kept = []
    offset = 0
    begins = _first_columns(t, degrees[-1])
    columns = np.zeros((n, 1), dtype=np.int64)
    for k in range(degrees[-1] + 1):
        if k:
            shift = (firsts[k] - firsts[k - 1])[J]
            parts = [columns[:, begins[k - 1][i] :] + shift[:, i : i + 1] for i in range(t)]
            columns = np.concatenate(parts, axis=1) if t else np.empty((n, 0), dtype=np.int64)
        if k in degrees:
            kept.append(columns + offset)
            offset += n_powers(len(firsts[0]) - 1, k)
    return np.concatenate(kept, axis=1)


class Monomials(PowerMap):
    """All monomials, with the coefficients that make their inner product the polynomial kernel.

    <Phi(x), Phi(z)> = (c1 + c2 <x, z>)^degree, or (c2 <x, z>)^degree when ``exact``, with

    Phi_alpha(x) = sqrt(p! / ((p - k)! alpha!) c1^(p-k) c2^k) x^alpha,   k = |alpha| <= p = degree.

    Only |alpha| = degree when ``exact`` or when c1 = 0, where the other coefficients are zero.

    Parameters
    ----------
    degree : int, default=2
        Degree of the polynomial, at least 1.
    exact : bool, default=False
        Keep only monomials of exactly this degree: the homogeneous kernel. ``c1`` is then not used.
    c1 : float, default=1.0
        Constant of the kernel, nonnegative.
    c2 : float, default=1.0
        Factor of the inner product, positive.

    Attributes
    ----------
    n_features_in_ : int
        Number of features seen in ``fit``.
    n_features_out_ : int
        Number of monomials.

    Examples
    --------
    >>> import numpy as np
    >>> x, z = np.array([[1.0, 2.0]]), np.array([[3.0, -1.0]])
    >>> phi = Monomials(degree=2).fit(x)
    >>> phi.get_feature_names_out().tolist()
    ['1', '√2 x0', '√2 x1', 'x0^2', '√2 x0 x1', 'x1^2']
    >>> round((phi.transform(x) @ phi.transform(z).T).item(), 9)  # (1 + <x, z>)^2
    4.0
    >>> Monomials.count(40, 8, exact=True)
    314457495
    """

    def __init__(self, degree: int = 2, exact: bool = False, c1: float = 1.0, c2: float = 1.0) -> None:
        self.degree = degree
        self.exact = exact
        self.c1 = c1
        self.c2 = c2

    @staticmethod
    def count(n_features: int, degree: int, exact: bool = False) -> int:
        """Number of monomials in ``n_features`` variables, of degree at most or exactly ``degree``.

        C(degree + d, d), or C(degree + d - 1, degree) when ``exact``. The map is not built.
        """
        for name, value in (("n_features", n_features), ("degree", degree)):
            if isinstance(value, bool) or not isinstance(value, Integral) or value < 0:
                raise ValueError(f"{name} must be a nonnegative integer, not {value!r}.")
        n, p = int(n_features), int(degree)
        return n_powers(n, p) if exact else math.comb(n + p, p)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the number of features.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Points.
        y : ignored
        """
        self._degrees()
        X = validate_data(self, X, accept_sparse="csr", dtype=KINDS)
        self.n_features_out_ = sum(n_powers(self.n_features_in_, k) for k in self._degrees())
        return self

    def _expanded(self, X: Any) -> Any:
        degrees, p, logarithm = self._degrees(), self.degree, self._logarithms()
        factors = np.exp(0.5 * logarithm).astype(X.dtype)[None, :]
        return expand(X, degrees, factors, f"The map of {self.n_features_in_} features to monomials of degree {p}")

    def _logarithms(self) -> NDArray[np.float64]:
        """Logarithms of C(p, k) c1^(p-k) c2^k for k = 0 .. p, so that a high degree does not overflow on the way."""
        p, k = self.degree, np.arange(self.degree + 1)
        binomial = gammaln(p + 1) - gammaln(k + 1) - gammaln(p - k + 1)
        return np.asarray(binomial + xlogy(p - k, self.c1) + k * np.log(self.c2))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Name the monomials with their coefficients, such as "√2 x0 x1"."""
        check_is_fitted(self)
        names = [str(name) for name in _check_feature_names_in(self, input_features)]
        Budget.all_that_is_free().require(
            100 * self.n_features_out_,
            f"the list of names of {self.n_features_out_:,} monomials",
            "number the columns instead.",
        )
        squares = np.exp(self._logarithms())
        found = [
            _multiplied(squares[k] * ways, name)
            for k in self._degrees()
            for name, ways in zip(power_names(names, k), _orders(len(names), k), strict=True)
        ]
        return np.array(found, dtype=object)

    def _degrees(self) -> range:
        p, c1, c2 = self.degree, self.c1, self.c2
        if isinstance(p, bool) or not isinstance(p, Integral) or p < 1:
            raise ValueError(
                f"degree must be an integer of at least 1, not {p!r}; degree=2 gives squares and products."
            )
        if not isinstance(c1, Real) or not 0 <= c1 < np.inf:
            raise ValueError(f"c1 must be nonnegative and finite, or the kernel is not positive; got {c1!r}.")
        if not isinstance(c2, Real) or not 0 < c2 < np.inf:
            raise ValueError(f"c2 must be positive and finite, or the kernel is not positive; got {c2!r}.")
        return range(int(p) if self.exact or c1 == 0 else 0, int(p) + 1)
