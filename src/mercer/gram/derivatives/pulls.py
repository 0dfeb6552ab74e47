"""How the values of a derivative, tile by tile, add up to gradients in the points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from mercer.gram.derivatives.differences import dense
from mercer.points import Points
from mercer.points.formulas.conditioning import gain
from mercer.points.formulas.derivative import has_poles
from mercer.points.formulas.dual import is_number
from mercer.points.formulas.formula import StatLeaf

_FEW = 1 << 17  # pairs times features below which products bring nothing
_WIDE = 1e3  # coordinates about a centre, in units of the scale, up to which products are accurate to 1e-13
_HUGE = 1e150  # differences beyond, in units of the scale, stand for infinity

Part = Callable[[np.ndarray, slice, slice], None]  # takes a tile of values and its place, and adds what it contributes


def sums(a: np.ndarray, out: np.ndarray) -> Part:
    """Return what adds sum_j G_ij a_j."""

    def add(tile: np.ndarray, rows: slice, cols: slice) -> None:
        out[rows] += tile @ a[cols]

    return add


def statistic(
    leaf: StatLeaf, factor: float, derivative: Any, x: Points, z: Points, a: np.ndarray, out: np.ndarray
) -> Part:
    """Return what adds factor sum_j G_ij a_j d s(x_i, z_j) / d x_i, with s a statistic and G the derivative in it."""
    scale = np.broadcast_to(np.asarray(leaf.scale, dtype=np.float64), (x.width,))
    u, v = dense(x.vectors), z.vectors
    rate = factor / scale
    if leaf.kind == "chi2":
        return _by_differences(u, v, scale, _chi2_slope, a, rate, out)
    if leaf.kind == "sqdist":
        centre = np.zeros(x.width) if sparse.issparse(v) else v.mean(axis=0)
        if not _harmless(leaf, derivative, u, v, centre, scale):
            return _by_differences(u, v, scale, _square_slope, a, rate, out)
        u, v = u - centre, v if sparse.issparse(v) else v - centre
    return _by_products({"dot": 0, "sqdist": -1, "sqsum": 1}[leaf.kind], u / scale, _over(v, scale), a, rate, out)


def _by_products(sign: int, u: np.ndarray, v: Any, a: np.ndarray, rate: np.ndarray, out: np.ndarray) -> Part:
    """Return what takes the gradients of <u, v> (sign 0) or |u +- v|^2 from matrix products."""

    def add(tile: np.ndarray, rows: slice, cols: slice) -> None:
        for c in range(a.shape[1]):
            weighted = tile * a[cols, c]
            across = weighted @ v[cols]
            if sign:
                across = 2 * (weighted.sum(axis=1)[:, None] * u[rows] + sign * across)
            out[rows, :, c] += across * rate

    return add


def _harmless(leaf: StatLeaf, derivative: Any, u: np.ndarray, v: Any, centre: np.ndarray, scale: np.ndarray) -> bool:
    """Return whether sums of G_ij (u_i - v_j) may be taken as differences of sums.

    The error is a unit of the last place of the coordinates about the centre, times G; what counts is their size in
    units of the distance over which G varies.
    """
    if not sparse.issparse(v) and len(u) * v.shape[0] * u.shape[1] <= _FEW:
        return False
    extent = float((np.abs(u - centre) / scale).max())
    extent = max(
        extent, float(abs(_over(v, scale)).max() if sparse.issparse(v) else (np.abs(v - centre) / scale).max())
    )
    if is_number(derivative):
        return extent <= _WIDE
    if isinstance(leaf.scale, float) and 1e-100 < leaf.scale < 1e100:
        magnified = gain(derivative, leaf.path)
        extent *= max(1.0, leaf.scale * magnified**0.5) if np.isfinite(magnified) else 1.0
    return extent <= _WIDE and not has_poles(derivative)


def _by_differences(
    u: np.ndarray,
    v: Any,
    scale: np.ndarray,
    slope: Callable[..., np.ndarray],
    a: np.ndarray,
    rate: np.ndarray,
    out: np.ndarray,
) -> Part:
    """Return what sums over the centres difference by difference, without cancellation."""
    columns: Any = sparse.csc_array(v) if sparse.issparse(v) else np.ascontiguousarray(v.T)

    def add(tile: np.ndarray, rows: slice, cols: slice) -> None:
        for k in range(u.shape[1]):
            right = columns[:, [k]].toarray().ravel()[cols] if sparse.issparse(columns) else columns[k, cols]
            apart = slope(u[rows, k][:, None], right[None, :], scale[k])
            apart *= tile
            out[rows, k] += (apart @ a[cols]) * rate[k]

    return add


def _over(v: Any, scale: np.ndarray) -> Any:
    return sparse.csr_array(v @ sparse.diags_array(1 / scale)) if sparse.issparse(v) else v / scale


def _square_slope(u: np.ndarray, v: np.ndarray, scale: float) -> np.ndarray:
    """The derivative of ((u - v) / s)^2 in u / s."""
    return 2 * np.clip((u - v) / scale, -_HUGE, _HUGE)


def _chi2_slope(u: np.ndarray, v: np.ndarray, scale: float) -> np.ndarray:
    """The derivative of (u - v)^2 / (u + v) in u, and 0 where both are 0."""
    total = u + v
    share = np.divide(u - v, total, out=np.zeros_like(total), where=total > 0)
    return share * (2 - share)
