"""Derivatives in x of functions sum_j a_j k(x, z_j)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from mercer.gram.derivatives.parameter import STEP, slope
from mercer.gram.derivatives.sensitivity import dense, terms
from mercer.kernels import Kernel
from mercer.kernels.vectors.histogram import non_negative
from mercer.machine.budget import Budget
from mercer.machine.threads import one_thread_each, run
from mercer.points import Comparison, Points
from mercer.points.formulas.derivative import factored, gain, has_jumps, has_poles, partials, watch
from mercer.points.formulas.dual import is_number
from mercer.points.formulas.formula import Formula, Path, PointLeaf, StatLeaf, seen
from mercer.points.formulas.pair import norms, same_width, squared_norms

_ROWS, _COLS = 128, 2048  # of a tile
_UNCHECKED_BYTES = 1 << 26  # of a result that is allocated without asking how much memory is free
_FEWEST_DIFFERENCES = 1 << 17  # pairs times features below which matrix products are no faster than differences
_WIDEST_COORDINATES = 1e3  # about a centre, in units of the scale, up to which products are accurate to 1e-13
_POLE = 1e3  # times the median of a tile: derivatives beyond are near a pole, and products lose three more digits there
_SAMPLE = 4096  # values of a tile that give its median
_HUGE = 1e150  # differences beyond, in units of the scale, stand for infinity


def gradient(kernel: Kernel, X: Any, Z: Any, a: Any) -> np.ndarray:
    r"""Return the gradient of x -> sum_j a_j k(x, z_j) at each row of X.

    .. math:: \nabla f(x) = \sum_j a_j \nabla_x k(x, z_j)

    The kernel's formula is differentiated, so the values are exact to rounding, also through columns, circles and
    directions. For maps and factors given as Python functions, differences of these alone are taken; for kernels that
    symbols cannot follow (a Python function, a Bessel function), differences of the values. With steps of 1e-5 of the
    spread of a feature they are good to about 1e-8, unless the kernel varies much faster than the points do.

    Where x is a centre, a kernel with a kink there (Matern of smoothness 1/2, Wendland of smoothness 0) contributes 0,
    the mean over all directions; so does a sum of absolute differences (Laplacian) in the coordinates that x shares
    with a centre.

    Parameters
    ----------
    kernel
        A kernel of vectors; parameters that wait for data are resolved on Z.
    X
        The points at which the gradient is taken, n rows with d features.
    Z
        The centres, m rows.
    a
        Their coefficients, (m,), or (m, k) for k functions.

    Returns
    -------
    ndarray
        Of shape (n, d), or (n, d, k) for k functions.

    Raises
    ------
    TypeError
        For kernels without a derivative (tests for equality, as of Delta; sums of minima) and for points that are no
        vectors.

    Examples
    --------
    >>> from mercer.gram import gradient
    >>> from mercer.kernels import RBF
    >>> gradient(RBF(scale=1.0), [[1.0], [0.0]], [[0.0]], [2.0]).round(4)  # -2 x exp(-x^2 / 2)
    array([[-1.2131],
           [ 0.    ]])
    """
    x, z = Points.of(X), Points.of(Z, "Z")
    for points in (x, z):
        _must_be_vectors(kernel, points)
    same_width(x, z)
    kernel = kernel.resolve(z)
    a = np.asarray(a, dtype=np.float64)
    if a.ndim not in (1, 2) or a.shape[0] != len(z):
        raise ValueError(f"a has shape {a.shape}; for {len(z)} centres it must be ({len(z)},) or ({len(z)}, k).")
    if not np.isfinite(a).all():
        raise ValueError("a contains NaN or infinite values; coefficients must be finite.")
    columns = a.reshape(len(z), -1)
    shape = len(x), x.width, columns.shape[1]
    if 8 * np.prod(shape) > _UNCHECKED_BYTES:
        Budget(None).require(8 * int(np.prod(shape)), f"a gradient of shape {shape}", "take fewer rows at a time.")
    out, x, z = np.zeros(shape), x.double(), z.double()
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite gets a sentence
        for term in terms(kernel):
            out += _of_term(term, x, z, columns)
    if not np.isfinite(out).all():
        i, j, _ = np.argwhere(~np.isfinite(out))[0]
        raise FloatingPointError(
            f"the gradient at row {i} of {x.name} in feature {j} is outside the range of float64; scale the features "
            "(sklearn.preprocessing.StandardScaler) or the coefficients."
        )
    return out.reshape(*shape[:2], *a.shape[1:])


def _must_be_vectors(kernel: Kernel, points: Points) -> None:
    if points.foreign:
        raise TypeError(
            f"gradient works on NumPy arrays and {points.name} is a {type(points.data).__name__}; pass numpy.asarray "
            "of it, or differentiate the values of the kernel with that library."
        )
    if not points.numeric:
        raise TypeError(
            f"{kernel!r} has no gradient at {points.name}, a {type(points.data).__name__} of points that are no "
            "vectors of numbers: only vectors can be moved a little."
        )


def _of_term(kernel: Kernel, x: Points, z: Points, a: np.ndarray) -> Any:
    """Return the gradients of one term, of shape (n, d, k), or 0 for a constant."""
    formula = watch(kernel.of, x)
    if formula is None:
        return _of_values(kernel, x, z, a)
    if not isinstance(formula, Formula):
        return 0.0
    if has_jumps(formula):
        raise TypeError(f"{kernel!r} has no gradient: it jumps where x equals a centre.")
    derivatives: dict[Any, Any] = {}
    for leaf, derivative in partials(formula).leaves:
        derivatives[leaf] = derivatives.get(leaf, 0.0) + derivative
    gradients: dict[Path, np.ndarray] = {}  # gradients in the points as each path shows them
    parts: list[tuple[Comparison | None, Part]] = []
    values: list[tuple[PointLeaf, float, np.ndarray]] = []
    for leaf, derivative in derivatives.items():
        if isinstance(leaf, PointLeaf) and leaf.side == "col":
            continue
        if isinstance(leaf, StatLeaf) and leaf.kind == "minimum":
            raise TypeError(
                f"{kernel!r} has no gradient: a sum of minima has a kink wherever a coordinate of x equals one of a "
                "centre."
            )
        left, right = seen(x, leaf.path), seen(z, leaf.path)
        out = gradients.setdefault(leaf.path, np.zeros((len(x), left.width, a.shape[1])))
        factor, rest = factored(derivative)
        if isinstance(leaf, StatLeaf):
            part = statistic(leaf, factor, rest, left, right, a, out)
        else:
            total = np.zeros((len(x), a.shape[1]))
            part = sums(a, total)
            values.append((leaf, factor, total))
        parts.append((None if is_number(rest) else Comparison(kernel.of, x, z, rest), part))
    try:
        _run(parts, len(x), len(z))
    except FloatingPointError as error:
        raise FloatingPointError(f"a derivative of {kernel!r} is outside the range of float64: {error}") from None
    for leaf, factor, total in values:
        left, right = seen(x, leaf.path), seen(z, leaf.path)
        gradients[leaf.path] += _of_function(leaf, left, right) * (factor * total)[:, None, :]
    return sum((_pulled(path, x, z, g) for path, g in gradients.items()), start=np.zeros(1))


def _run(parts: list[tuple[Comparison | None, Part]], n: int, m: int) -> None:
    """Hand every tile of every derivative to what adds it up; bands of rows are shared out among threads."""

    def band(r: int) -> None:
        rows = slice(r, min(r + _ROWS, n))
        for c in range(0, m, _COLS):
            cols = slice(c, min(c + _COLS, m))
            for values, add in parts:
                shape = rows.stop - rows.start, cols.stop - cols.start
                add(np.ones(shape) if values is None else values.block(rows, cols), rows, cols)

    with one_thread_each() if n > _ROWS else nullcontext():
        run(band, range(0, n, _ROWS))


def _of_function(leaf: PointLeaf, x: Points, z: Points) -> np.ndarray:
    """Return the gradients of a function of one point, of shape (n, d, 1)."""
    if leaf.function is squared_norms:
        return 2 * dense(x.vectors)[:, :, None]
    if leaf.function is norms:
        v, length = dense(x.vectors), x.values(norms)[:, None]
        return np.divide(v, length, out=np.zeros_like(v), where=length > 0)[:, :, None]

    def value(feature: int, by: float) -> np.ndarray:
        return np.asarray(leaf.function(_moved(x, feature, by)), dtype=np.float64)

    return _rates(value, x, z)[:, :, None]


def _feature_steps(x: Points, z: Points) -> np.ndarray:
    """Return how far to move each feature: little beside its spread over all points, enough beside its size."""
    both = np.vstack([dense(x.vectors), dense(z.vectors)])
    size = np.abs(both).max(axis=0)
    size[size == 0] = 1.0
    spread = (both / size).std(axis=0)
    return STEP * np.where(spread > STEP, spread, 1.0) * size


def _moved(x: Points, feature: int, by: float) -> Points:
    """Return the points after a change of one feature."""
    if hasattr(x.data, "columns"):
        raise TypeError(
            f"this kernel is differentiated by differences, which move {x.name} a little; pass it as an array, not as "
            f"a {type(x.data).__name__}."
        )
    vectors = np.array(dense(x.vectors), dtype=np.float64)
    vectors[:, feature] += by
    return Points(vectors, x.name)


def _rates(value: Callable[[int, float], np.ndarray], x: Points, z: Points) -> np.ndarray:
    """Return the derivatives, by differences, of something in each feature: the second axis."""
    return np.stack([slope(partial(value, k), h) for k, h in enumerate(_feature_steps(x, z))], axis=1)


def _pulled(path: Path, x: Points, z: Points, g: np.ndarray) -> np.ndarray:
    """Return the gradient in the points themselves of one in the points seen through maps."""
    for last in range(len(path) - 1, -1, -1):
        map, before = path[last], seen(x, path[:last])
        if hasattr(map, "pull"):
            g = map.pull(before, g)
        elif map is not non_negative:
            g = _rates(partial(_pairing, map, before, g), before, seen(z, path[:last]))
    return g


def _pairing(map: Any, x: Points, g: np.ndarray, feature: int, by: float) -> np.ndarray:
    """Return <map(x), g> after a change of a feature of x."""
    image = dense(Points(map(_moved(x, feature, by)), x.name).vectors)
    return np.einsum("ij,ijk->ik", image, g)


def _of_values(kernel: Kernel, x: Points, z: Points, a: np.ndarray) -> np.ndarray:
    """Return the gradients of a kernel that symbols cannot follow, by differences of its values."""

    def value(feature: int, by: float) -> np.ndarray:
        product: np.ndarray = Comparison(kernel.of, _moved(x, feature, by), z).matvec(a)
        return product

    return _rates(value, x, z)


# -- gradients in the points from the values of a derivative, tile by tile --------------------------------


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
    if leaf.kind == "l1":
        return _by_differences(u, v, scale, _sign, a, rate, out)
    if leaf.kind != "sqdist":
        return _by_products({"dot": 0, "sqsum": 1}[leaf.kind], u / scale, _over(v, scale), a, rate, out)
    centre = np.zeros(x.width) if sparse.issparse(v) else v.mean(axis=0)
    if not _harmless(leaf, derivative, u, v, centre, scale):
        return _by_differences(u, v, scale, _square_slope, a, rate, out)
    moved = v if sparse.issparse(v) else v - centre
    products = _by_products(-1, (u - centre) / scale, _over(moved, scale), a, rate, out)
    if is_number(derivative) or not has_poles(derivative):
        return products
    return _poles_by_differences(products, u, v, scale, a, rate, out)


def _by_products(sign: int, u: np.ndarray, v: Any, a: np.ndarray, rate: np.ndarray, out: np.ndarray) -> Part:
    """Return the function that adds up the gradients of <u, v> (sign 0) or |u +- v|^2, by matrix products.

    The coefficients are multiplied with the smaller factor, the values or the centres (sparse ones stay as they are),
    for as many functions at once as take no more room than a full tile.
    """
    width = v.shape[1]

    def add(tile: np.ndarray, rows: slice, cols: slice) -> None:
        centres = v[cols]
        by_values = sparse.issparse(v) or len(tile) <= width
        step = max(1, _ROWS // (len(tile) if by_values else width))
        for c in range(0, a.shape[1], step):
            weights = a[cols, c : c + step]
            if by_values:
                across = (tile[:, None, :] * weights.T).reshape(-1, len(weights)) @ centres
            else:
                across = tile @ (weights[:, :, None] * centres[:, None, :]).reshape(len(weights), -1)
            across = across.reshape(len(tile), -1, width)  # rows, functions, features
            if sign:
                across = 2 * ((tile @ weights)[:, :, None] * u[rows, None] + sign * across)
            out[rows, :, c : c + step] += np.moveaxis(across * rate, 1, 2)

    return add


def _poles_by_differences(
    products: Part, u: np.ndarray, v: np.ndarray, scale: np.ndarray, a: np.ndarray, rate: np.ndarray, out: np.ndarray
) -> Part:
    """Return the function that hands all pairs to products, except those near the pole of the derivative.

    Near it the points are so close that sums of G_ij (u_i - v_j) cancel. Such pairs are few, and summed difference by
    difference.
    """

    def add(tile: np.ndarray, rows: slice, cols: slice) -> None:
        # The median of a sample will do, as either sum is right for any pair. About half of all values are as large as
        # this median; beside them, values below the limit lose the digits that _POLE allows and no more. The step is
        # odd, as centres on a grid repeat after even ones.
        limit = _POLE * np.median(np.abs(tile.ravel()[:: tile.size // _SAMPLE | 1]))
        if max(tile.max(), -tile.min()) <= limit:
            products(tile, rows, cols)
            return
        near = np.abs(tile) > limit
        i, j = np.nonzero(near)
        weights, apart = tile[i, j], (u[rows][i] - v[cols][j]) / scale
        products(np.where(near, 0.0, tile), rows, cols)
        for c in range(a.shape[1]):
            np.add.at(out[rows, :, c], i, 2 * rate * apart * (weights * a[cols, c][j])[:, None])

    return add


def _harmless(leaf: StatLeaf, derivative: Any, u: np.ndarray, v: Any, centre: np.ndarray, scale: np.ndarray) -> bool:
    """Return whether sums of G_ij (u_i - v_j) may be taken as differences of sums.

    The error is a unit of the last place of the coordinates about the centre, times G. It is harmless if these
    are small in units of the distance over which G varies.
    """
    if not sparse.issparse(v) and len(u) * v.shape[0] * u.shape[1] <= _FEWEST_DIFFERENCES:
        return False
    extent = float((np.abs(u - centre) / scale).max())
    extent = max(
        extent, float(abs(_over(v, scale)).max() if sparse.issparse(v) else (np.abs(v - centre) / scale).max())
    )
    if is_number(derivative):
        return extent <= _WIDEST_COORDINATES
    if isinstance(leaf.scale, float) and 1e-100 < leaf.scale < 1e100:
        magnified = gain(derivative, leaf.path)
        extent *= max(1.0, leaf.scale * magnified**0.5) if np.isfinite(magnified) else 1.0
    return extent <= _WIDEST_COORDINATES and not (sparse.issparse(v) and has_poles(derivative))


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


def _sign(u: np.ndarray, v: np.ndarray, scale: float) -> np.ndarray:
    """The derivative of |u - v| / s in u / s, and the mean of its sides, 0, where both are equal."""
    return np.sign(u - v)


def _chi2_slope(u: np.ndarray, v: np.ndarray, scale: float) -> np.ndarray:
    """The derivative of (u - v)^2 / (u + v) in u, and 0 where both are 0."""
    total = u + v
    share = np.divide(u - v, total, out=np.zeros_like(total), where=total > 0)
    return share * (2 - share)
