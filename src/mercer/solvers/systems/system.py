"""Equations with the kernel matrix of the training points: one interface, whichever way they are solved."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from mercer.gram import Gram
from mercer.gram.products import Products
from mercer.machine.budget import readable
from mercer.solvers.control import Control
from mercer.solvers.systems.cholesky import Factor
from mercer.solvers.systems.equation import SINGLE, Answer, Equation, Listener
from mercer.solvers.systems.preconditioners.choice import Preconditioners

__all__ = ["METHODS", "Answer", "Systems"]

METHODS = ("auto", "cholesky", "cg")
_COARSE_ERROR = 1e-2  # of a kernel value at points rounded to 16 bits, in units of the shift, at most
_FACTOR_POINTS = 4_000  # up to which a factor is cheaper than finding out how good a preconditioner is


class Systems:
    r"""The kernel matrix K of the training points, and equations with it.

    .. math:: (K + \operatorname{diag}(s)) A = Y

    A factor or a preconditioner that was computed for one equation serves the next where it can.

    Parameters
    ----------
    gram
        The matrix: square, of NumPy data or of objects. Its budget bounds the memory.
    control
        Its time limit and cancellation are obeyed; `precision` "float64" forbids float32.
    method
        "cholesky", "cg" (conjugate gradients, preconditioned by a randomly pivoted Cholesky factor) or "auto".
    rank
        Of the preconditioner; None to weigh its cost against the products it saves.

    Attributes
    ----------
    plan : str
        Which method, why, and the bytes it takes.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF, Gram
    >>> from mercer.solvers import Control
    >>> X = np.linspace(0, 1, 5)[:, None]
    >>> systems = Systems(Gram(RBF(scale=0.5), X), Control())
    >>> answer = systems.solve(0.1, np.sin(6 * X[:, 0]))
    >>> answer.A.round(3), answer.stopped
    (array([-3.279,  5.237,  0.631, -5.375,  2.568]), 'converged')
    """

    def __init__(self, gram: Gram, control: Control, *, method: str = "auto", rank: int | None = None) -> None:
        if method not in METHODS:
            raise ValueError(f"method must be one of {', '.join(map(repr, METHODS))}; it is {method!r}.")
        self.gram, self.control = gram, control
        self.products = Products(gram)
        if control.precision == "float64":
            self.products.single = False
        self.preconditioners = Preconditioners(self.products, rank)
        n = gram.shape[0]
        self.automatic = method == "auto"
        self.fits = 8 * n * n <= gram.budget
        self.method = method if method != "auto" else "cholesky" if n <= _FACTOR_POINTS and self.fits else "cg"
        self.plan = self._explain(n)
        self.buffer: np.ndarray | None = None
        self.factor: tuple[Any, Factor] | None = None
        if not gram.compiled:
            self._hold()

    def _explain(self, n: int) -> str:
        if self.method == "cholesky":
            return (
                f"Cholesky factor of the {n} x {n} matrix, {readable(8 * n * n)}: "
                + ("few points" if n <= _FACTOR_POINTS else "as asked")
                + (", in float32 with corrections in float64" if self.products.single and n >= SINGLE else "")
            )
        why = "as asked" if not self.automatic else "many points" if self.fits else "a factor exceeds the budget"
        return (
            f"conjugate gradients on {n} points, preconditioned by {self.preconditioners.description} ({why}; "
            f"a dense factor would take {readable(8 * n * n)}, the budget is {readable(self.gram.budget)})"
        )

    def _hold(self) -> None:
        """Keep the values that only Python can compute, as exactly as fits beside what else is needed."""
        n = self.gram.shape[0]
        beside = 8 * n * n if self.method == "cholesky" else n * n
        for dtype in (np.float64, np.float32):
            if np.dtype(dtype).itemsize * n * n + beside <= self.gram.budget:
                self.products.hold(dtype)
                self.plan += f"; the kernel's values are held in {np.dtype(dtype).name}"
                return

    @contextmanager
    def in_16_bits(self, shift: float) -> Iterator[None]:
        """Let products in float32 take points in 16 bits, where that is faster and does no harm beside such a shift."""
        products = self.products
        if products.single and products.held is None and products.coarse is not None:
            size = float(np.abs(products.diagonal()).max())
            products.use_coarse = products.coarse.error * size <= _COARSE_ERROR * shift
        try:
            yield
        finally:
            products.use_coarse = False

    def product(self, V: np.ndarray, precise: bool = False) -> np.ndarray:
        """Return K V in float64, with kernel values in float64 if `precise` and else in whatever is fastest.

        Parameters
        ----------
        V
            (n,) or (n, k).
        precise
            Whether a certificate depends on it.
        """
        V = np.asarray(V, dtype=np.float64)
        single = not precise and (self.products.single or self.products.held is not None)
        return self.products(V.reshape(len(V), -1), single).reshape(V.shape)

    def solve(
        self,
        shift: Any,
        Y: np.ndarray,
        *,
        rows: np.ndarray | None = None,
        tol: float | np.ndarray = 1e-10,
        start: np.ndarray | None = None,
        watch: Listener | None = None,
        strict: bool = False,
    ) -> Answer:
        """Return A with (K[rows, rows] + diag(shift)) A = Y.

        Parameters
        ----------
        shift
            At least 0: a number, one number per point (m,), or one per column: (1, k) or (m, k).
        Y
            (m,) or (m, k).
        rows
            The numbers of the points that take part; None for all.
        tol
            The relative residual to reach, one number or one per column.
        start
            The solution of a similar equation, as Y.
        watch
            Called during a long run with the products so far, the relative residuals of the columns still at work,
            their numbers, and the solution so far; what it returns ends the run.
        strict
            Whether to raise `Singular` where the matrix is that to rounding, rather than to take the solution of least
            norm.
        """
        products = self.products.take(rows)
        m = products.n
        Y = np.asarray(Y, dtype=np.float64)
        B = Y.reshape(m, -1)
        S = np.asarray(shift, dtype=np.float64)
        S = np.broadcast_to(S[:, None] if S.ndim == 1 else S, B.shape)
        if not (S >= 0).all() or np.isinf(S).any():
            raise ValueError(f"the shift must be finite and at least 0; it is {S[~((S >= 0) & np.isfinite(S))][0]:g}.")
        if not np.isfinite(B).all():
            raise ValueError("the right-hand side contains NaN or infinite values; it must be finite.")
        size = np.abs(B).max(axis=0, initial=0.0)
        size = np.where(size > 0, size, 1.0)
        A = np.zeros(B.shape) if start is None else np.asarray(start, dtype=np.float64).reshape(B.shape) / size
        run = Equation(self, products, S, B / size, np.broadcast_to(tol, size.shape), A, size, watch, strict)
        try:
            answer = run.dense() if self.method == "cholesky" else run.iterative()
        except KeyboardInterrupt:
            self.control.cancel()
            answer = run.interrupted()
        with np.errstate(over="ignore"):
            A = answer.A * size
        if not np.isfinite(A).all():
            raise FloatingPointError(
                "the solution exceeds the range of float64; scale the right-hand side, or raise the shift."
            )
        return replace(answer, A=A.reshape(Y.shape), product=(answer.product * size).reshape(Y.shape))
