"""Looks at every row of a linear model, in the core: sums that the solvers of many rows need, in one pass of memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from mercer import _core
from mercer.machine.threads import run
from mercer.solvers.linear.problem import LinearProblem

_CHUNK = 2**16  # rows a thread takes at a time; sums are added up in their order, whoever was first
_MOST = 256  # columns whose matrix of products a thread keeps in its caches


@dataclass
class Sweep:
    """What a look at all rows from v found.

    Parameters
    ----------
    risk, gain, square
        The sums of the losses, of target alpha and, of squares, of alpha² / cost.
    pull
        A'(sign alpha).
    curved
        The number of rows with curvature.
    gram
        Their Hessian, if it was asked for.
    band
        Their numbers, if alpha was asked for.
    """

    risk: float
    gain: float
    square: float
    pull: np.ndarray
    curved: int
    gram: np.ndarray | None
    band: np.ndarray | None


class Sweeper:
    """Looks at the rows of a problem.

    Parameters
    ----------
    problem
        One that `suits`.
    """

    def __init__(self, problem: LinearProblem) -> None:
        self.rows = problem.rows
        target, cost = problem.target, problem.cost
        self._terms = (
            np.ascontiguousarray(problem.sign),
            np.ascontiguousarray(target[:, :1] if target.strides[1] == 0 else target),
            np.ascontiguousarray(cost[:1] if cost.strides[0] == 0 else cost),
            problem.squared,
        )
        self._inverse = 1 / self.rows.scale

    @staticmethod
    def suits(problem: LinearProblem) -> bool:
        """Return whether the core reads the rows as they are."""
        X = problem.rows.X
        return not sparse.issparse(X) and X.flags.c_contiguous and 0 < X.shape[1] <= _MOST and len(X) < 2**31

    def sweep(self, v: np.ndarray, half: float, thin: int = 0, alpha: np.ndarray | None = None) -> Sweep:
        """Return the sums at v for alpha = cost clip(1/2 + z / (2 half), 0, 1), or 2 cost max(0, z) of squares.

        Parameters
        ----------
        v
            The model.
        half
            Up to which slack a row has curvature; squares have it wherever they are not zero.
        thin
            Find the Hessian from every so many-th row with curvature, drawn at random; 0: do not.
        alpha
            Where to put alpha, if it is wanted.
        """
        rows, d = self.rows, len(self.rows.scale)
        n, width = rows.shape[0], (d + 8) // 8 * 8
        w, shift = rows.model(v)

        def part(first: int) -> tuple[tuple[float, ...], np.ndarray, np.ndarray | None, np.ndarray | None]:
            last = min(n, first + _CHUNK)
            pull = np.zeros(d + 1)
            gram = np.zeros((width, width)) if thin else None
            band = None if alpha is None else np.empty(last - first, np.int32)
            where = (*self._terms, first, last, w, shift, half, pull, alpha, band, gram)
            sums = _core.linear_sweep(rows.X, *where, rows.centre, self._inverse, max(1, thin))
            return sums, pull, gram, None if band is None else band[: sums[3]]

        found = run(part, range(0, n, _CHUNK))
        risk, gain, square, curved = np.sum([sums for sums, *_ in found], axis=0)
        gram = sum(g for _, _, g, _ in found) * thin if thin else None
        band = None if alpha is None else np.concatenate([b for *_, b in found])
        if gram is not None:
            size = rows.shape[1]  # without the ones where there is no offset
            gram = np.triu(gram[:size, :size])
            gram += np.triu(gram, 1).T
        return Sweep(risk, gain, square, self._pull([p for _, p, *_ in found]), int(curved), gram, band)

    def proof(
        self, v: np.ndarray, alpha: np.ndarray, pull: np.ndarray, unit: float
    ) -> tuple[float, float, float, np.ndarray]:
        """Return primal and dual value, the worst KKT residual and the pull of alpha, all from X itself.

        Parameters
        ----------
        v, alpha
            What is to be proved good.
        pull
            A'(sign alpha) as the solver knows it, which says what w alpha implies.
        unit
            The mean of |x|², which makes a change of f of one of alpha.
        """
        rows = self.rows
        n, k = rows.shape[0], rows.penalised
        apart = np.zeros_like(v)
        apart[:k] = pull[:k] / rows.penalty[:k] - v[:k]
        ends = (*rows.model(v), *rows.model(apart), alpha, unit)

        def part(first: int) -> tuple[tuple[float, ...], np.ndarray]:
            sums = np.zeros(len(rows.scale) + 1)
            return _core.linear_proof(rows.X, *self._terms, first, min(n, first + _CHUNK), *ends, sums), sums

        found = run(part, range(0, n, _CHUNK))
        risk, gain, square = np.sum([out[:3] for out, _ in found], axis=0)
        pull = self._pull([p for _, p in found])
        primal = 0.5 * float(rows.penalty @ (v * v)) + risk
        dual = gain - 0.5 * float((pull[:k] ** 2 / rows.penalty[:k]).sum()) - 0.25 * square
        return primal, dual, max(max(out[3:]) for out, _ in found), pull

    def _pull(self, parts: list[np.ndarray]) -> np.ndarray:
        total = np.sum(parts, axis=0)
        pull = (total[:-1] - self.rows.centre * total[-1]) / self.rows.scale
        return np.append(pull, total[-1]) if self.rows.ones else pull
