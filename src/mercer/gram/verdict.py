"""The verdict on a similarity: symmetric and positive semidefinite on given points or not, with the evidence (K1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.linalg import eigh, eigvalsh

from mercer.gram.eigenpairs import CONFIDENCE, lanczos
from mercer.gram.factor import eigen_factor, partial_cholesky
from mercer.gram.gram import Gram
from mercer.gram.similarities import Similarities, asymmetry, similarities, symmetric_part
from mercer.machine.budget import Budget
from mercer.machine.lazy import cached_property

_DENSE_POINTS = 5000  # points up to which all eigenvalues are computed: it takes seconds
_LANCZOS_STEPS = 60  # products with the matrix, at most
_FACTOR_RANK = 1000  # of the factor where the whole one is too large


@dataclass(frozen=True, eq=False)
class Verdict:
    """Whether similarities are symmetric and positive semidefinite, and the evidence.

    `bool(verdict)` is `verdict.psd`: do these similarities look like those of a kernel?

    Attributes
    ----------
    psd : bool
        False when refuted: a pair breaks the symmetry, or a witness has a'Ka < -`tolerance`. True otherwise:
        proven on these points if `conclusive`, else the absence of a counterexample.
    conclusive : bool
        Whether all eigenvalues were computed or a counterexample found. A pass by Lanczos' method on part of the
        spectrum is not conclusive: `floor` says what it excludes.
    symmetric : bool
        Whether |K - K'| stays within rounding. Eigenvalues are those of the symmetric part (K + K') / 2.
    asymmetry : float
        The largest |K - K'|, relative to the largest |K|.
    pair : tuple of int
        Where it is.
    pairs : str
        Which pairs were compared in both orders.
    n : int
        The number of points.
    how : str
        "dense eigenvalues" or "Lanczos, 60 steps".
    smallest, largest : float
        The extreme eigenvalues; for Lanczos Ritz values, which lie between the extreme eigenvalues.
    residual : float
        |Ka - smallest a| for the unit vector a found: an eigenvalue is that close to `smallest`. 0 when dense.
    floor : float
        No eigenvalue is below this: up to rounding when dense, with probability 0.99 over the seed for Lanczos.
    tolerance : float
        The size of an eigenvalue that is not told from 0.
    witness : ndarray or None
        A unit vector a with a'Ka < 0.
    quadratic_form : float or None
        That a'Ka, computed from K and a in float64.
    factor : ndarray or None
        R with R'R = K, one column per point, when `psd`; computed when first asked for. Where K is too large, a
        randomly pivoted partial Cholesky factor with at most 1,000 rows, fewer if the budget asks.
    factor_residual : float or None
        sum_i |K - R'R|_ii / trace(K): what the factor leaves out.
    """

    psd: bool
    conclusive: bool
    symmetric: bool
    asymmetry: float
    pair: tuple[int, int]
    pairs: str
    n: int
    how: str
    smallest: float
    largest: float
    residual: float
    floor: float
    tolerance: float
    witness: np.ndarray | None = field(repr=False)
    quadratic_form: float | None
    _factorise: Callable[[], np.ndarray] = field(repr=False)
    _diag: np.ndarray = field(repr=False)

    def __bool__(self) -> bool:
        return self.psd

    @cached_property
    def factor(self) -> np.ndarray | None:
        """R with R'R = K, or None when refuted."""
        return self._factorise() if self.psd else None

    @cached_property
    def factor_residual(self) -> float | None:
        """What the factor leaves of the trace of K, or None when refuted."""
        R = self.factor
        if R is None:
            return None
        trace = float(self._diag.sum())
        return float(np.abs(self._diag - np.einsum("ij,ij->j", R, R)).sum()) / trace if trace else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return all but the factor as plain numbers, texts and lists."""
        names = [name for name in self.__dataclass_fields__ if not name.startswith("_")]
        values = {name: getattr(self, name) for name in names}
        witness = None if self.witness is None else self.witness.tolist()
        return {**values, "pair": list(self.pair), "witness": witness}

    def __str__(self) -> str:
        i, j = self.pair
        ends = "eigenvalues" if self.how.startswith("dense") else "Ritz values"
        if not self.symmetric:
            head = f"Not a kernel on these {self.n} points: the values of points {i} and {j} depend on their order."
        elif not self.psd:
            head = (
                f"Not positive semidefinite on these {self.n} points: a'Ka = {self.quadratic_form:.3g} for a witness a."
            )
        elif self.conclusive:
            head = f"Positive semidefinite on these {self.n} points, up to the tolerance."
        else:
            head = (
                f"No witness against positive semidefiniteness found on these {self.n} points; "
                f"with {CONFIDENCE:.0%} confidence no eigenvalue is below {self.floor:.3g}."
            )
        order = f"  symmetry: largest |K - K'| / |K| is {self.asymmetry:.3g}, of {self.pairs}"
        close = f" (residual {self.residual:.2g})" if self.residual else ""
        return (
            f"{head}\n{order}\n"
            f"  {ends}: {self.smallest:.6g}{close} to {self.largest:.6g}, tolerance {self.tolerance:.2g}; {self.how}"
        )


def verdict(
    k_or_matrix: Any,
    X: Any = None,
    *,
    tol: float | None = None,
    budget: int | float | str | None = None,
    seed: int = 0,
) -> Verdict:
    r"""Decide whether similarities make a kernel on given points.

    .. math:: K = K^T \quad\text{and}\quad a^T K a \ge 0 \text{ for all } a

    Parameters
    ----------
    k_or_matrix
        A kernel, a Python function of two points, a `Gram` of one set of points, or a square matrix.
    X
        The points, for a kernel or a function. Coordinates in float32 are cast to float64.
    tol
        How far below 0 an eigenvalue may be by rounding, relative to the largest |eigenvalue|; and an asymmetry,
        relative to the largest |K_ij|. None for max(n, 100) times the rounding unit of the values;
        a kernel that oscillates a thousand times over the points loses three digits more, and needs a larger one.
    budget
        Bytes that may be used: a number, a text like "2 GiB", or None for half of what is free now. Up to 5,000
        points whose matrix fits, all eigenvalues are computed; otherwise at most 60 steps of Lanczos' method, which
        need 60 vectors (and the matrix itself, where only Python can evaluate the kernel and the matrix fits).
    seed
        Of the random start of Lanczos, the sample of pairs and the pivots of the partial factor.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF, Sigmoid, verdict
    >>> X = np.linspace(-2, 2, 50)[:, None]
    >>> bool(verdict(RBF(scale=1.0), X))
    True
    >>> refuted = verdict(Sigmoid(gamma=1.0, c=-1.0), X)
    >>> a = refuted.witness
    >>> float(a @ Sigmoid(gamma=1.0, c=-1.0)(X) @ a) < 0
    True
    >>> print(verdict([[1.0, 2.0], [2.0, 1.0]]))
    Not positive semidefinite on these 2 points: a'Ka = -1 for a witness a.
      symmetry: largest |K - K'| / |K| is 0, of all pairs
      eigenvalues: -1 to 3, tolerance 6.7e-14; dense eigenvalues
    """
    if tol is not None and not (np.isfinite(tol) and tol >= 0):
        raise ValueError(f"tol must be a number >= 0, relative to the largest |eigenvalue|; it is {tol!r}.")
    bytes_ = Budget(budget) if budget is not None or not isinstance(k_or_matrix, Gram) else k_or_matrix.budget
    values = similarities(k_or_matrix, X, bytes_)
    rounding = max(values.n, 100) * values.eps if tol is None else float(tol)
    # The matrix, its symmetric part, and a copy each for LAPACK and for the transpose.
    if values.n <= _DENSE_POINTS and 4 * 8 * values.n**2 <= bytes_:
        return _by_eigenvalues(values, rounding)
    return _by_lanczos(values, rounding, bytes_, seed)


def _by_eigenvalues(values: Similarities, rounding: float) -> Verdict:
    K = values.dense()
    gap, pair = asymmetry(K)
    H = symmetric_part(K)
    spectrum = eigvalsh(H)
    low, high = float(spectrum[0]), float(spectrum[-1])
    tolerance = _tolerance(rounding, low, high)
    a = eigh(H, subset_by_index=(0, 0))[1][:, 0] if low < -tolerance else None
    return _conclude(
        rounding=rounding,
        gap=gap,
        a=a,
        form=low if a is None else float(a @ (H @ a)),
        exact=True,
        pair=pair,
        pairs="all pairs",
        n=values.n,
        how="dense eigenvalues",
        smallest=low,
        largest=high,
        residual=0.0,
        floor=low - _tolerance(values.n * values.eps, low, high),
        tolerance=tolerance,
        _factorise=lambda: eigen_factor(symmetric_part(values.dense())),
        _diag=np.diag(H).copy(),
    )


def _by_lanczos(values: Similarities, rounding: float, budget: Budget, seed: int) -> Verdict:
    n = values.n
    budget.require(64 * n, f"a verdict on {n} points", "raise the budget, or test fewer points.")
    gap, pair, pairs = values.asymmetry(seed)
    rows = min(n, budget // (16 * n))
    ends = lanczos(values.product, n, min(_LANCZOS_STEPS, rows), seed, rounding)
    diag = values.diag()
    lowest = int(diag.argmin())
    # k(x, x) is a Rayleigh quotient as well, and a single bad point shows in it.
    a = ends.vector if ends.smallest <= diag[lowest] else np.eye(1, n, lowest)[0]
    image = values.product(a)
    low = float(a @ image)
    return _conclude(
        rounding=rounding,
        gap=gap,
        a=a,
        form=low,
        exact=False,
        pair=pair,
        pairs=pairs,
        n=n,
        how=f"Lanczos, {ends.steps} steps" + (" to an invariant subspace" if ends.exhausted else ""),
        smallest=low,
        largest=ends.largest,
        residual=float(np.linalg.norm(image - low * a)),
        floor=min(low, ends.floor),
        tolerance=_tolerance(rounding, low, ends.largest),
        _factorise=lambda: partial_cholesky(diag, values.column, min(_FACTOR_RANK, rows), seed),
        _diag=diag,
    )


def _conclude(
    rounding: float, gap: float, a: np.ndarray | None, form: float, exact: bool, tolerance: float, **rest: Any
) -> Verdict:
    symmetric = gap <= rounding
    refuted = form < -tolerance
    return Verdict(
        psd=symmetric and not refuted,
        conclusive=exact or refuted or not symmetric,
        symmetric=symmetric,
        asymmetry=gap,
        tolerance=tolerance,
        witness=a if refuted else None,
        quadratic_form=form if refuted else None,
        **rest,
    )


def _tolerance(rounding: float, low: float, high: float) -> float:
    size = max(abs(low), abs(high))
    if not np.isfinite(size):
        raise FloatingPointError("the eigenvalues overflow float64; divide the similarities by their largest value.")
    return rounding * size
