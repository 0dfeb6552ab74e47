"""Derivatives of a kernel in its parameters, contracted with a matrix, for gradients of a likelihood."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from mercer.gram.derivatives.parameter import parameter_step, parameters, slope, stencil, with_parameters
from mercer.gram.derivatives.tiles import Differences, Margins, Products, Spreads, Task, Total, sweep
from mercer.kernels import Kernel, Sum
from mercer.points import Comparison, Points
from mercer.points.formulas.derivative import Partials, bounded, factored, has_poles, partials, watch
from mercer.points.formulas.dual import Dual, Tape, is_number, parameters_in, plain, substituted
from mercer.points.formulas.formula import Formula, PointLeaf, StatLeaf, Untraceable, seen
from mercer.points.formulas.pair import scale_fits

# Coordinates about their mean, in units of the scale, up to which (v_i - v_j)^2 may be taken from products: the error
# of that is 1e-16 times their squares.
_WIDEST_COORDINATES = 1e3


def parameter_gradient(kernel: Kernel, X: Any, W: Any) -> np.ndarray:
    r"""Return the derivatives of sum_ij W_ij k(x_i, x_j) in the continuous parameters of the kernel.

    .. math:: g_p = \sum_{ij} W_{ij} \frac{\partial k(x_i, x_j)}{\partial \theta_p}

    The kernel's formula is differentiated, so the derivatives are exact to rounding. Where a parameter enters by a map
    of points (a period, the diagonal of a normalized kernel), differences of that map alone are taken. Where it
    enters a function that symbols cannot follow (one of Python, of Bessel), those of the values: good to about 1e-9.
    The work is done in tiles of the upper triangle and needs a few tens of megabytes whatever n is.

    Parameters
    ----------
    kernel
        A kernel; parameters that wait for data are resolved on X first.
    X
        The n points.
    W
        A symmetric (n, n) matrix.

    Returns
    -------
    ndarray
        One number per parameter, in the order of `parameters(kernel)`.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import parameter_gradient
    >>> from mercer.kernels import RBF
    >>> X = np.array([[0.0], [1.0]])
    >>> parameter_gradient(2.0 * RBF(scale=1.0), X, np.ones((2, 2))).round(4)  # 2 + 2 exp(-1/2), and 4 exp(-1/2)
    array([3.2131, 2.4261])
    """
    points = Points.of(X)
    if points.foreign:
        raise TypeError(
            f"parameter_gradient works on NumPy arrays and {points.name} is a {type(points.data).__name__}; pass "
            "numpy.asarray of it."
        )
    kernel = kernel.resolve(points)
    W = _weights(W, len(points))
    theta = [p.value for p in parameters(kernel)]
    gradient = np.zeros(len(theta))
    tape = Tape()
    plan = Plan(points.double(), theta, tape)
    for term in terms(with_parameters(kernel, tape.parameters(theta))):
        plan.follow(term)
    try:
        sums = sweep(plan.tasks, W)
    except FloatingPointError as error:
        raise FloatingPointError(f"a derivative of {kernel!r} is outside the range of float64: {error}") from None
    for total, shares in zip(sums, plan.shares, strict=True):
        for parameter, share in shares(total).items():
            gradient[parameter] += share
    if not np.isfinite(gradient).all():
        p = parameters(kernel)[int(np.argmin(np.isfinite(gradient)))]
        raise FloatingPointError(
            f"the derivative of {kernel!r} in {p} is outside the range of float64; scale the features "
            "(sklearn.preprocessing.StandardScaler) or the matrix W."
        )
    return gradient


def _weights(W: Any, n: int) -> np.ndarray:
    W = np.asarray(W, dtype=np.float64)
    if W.shape != (n, n):
        raise ValueError(f"W has shape {W.shape}; for {n} points it must be a symmetric {n} x {n} matrix.")
    i = n // 2  # one row tells most mistakes, and all rows would cost as much as the derivatives
    if not np.isfinite(W[i]).all():
        raise ValueError(f"row {i} of W contains NaN or infinite values; it must be finite.")
    if not np.allclose(W[i], W[:, i], rtol=1e-6, atol=1e-9 * float(np.abs(W[i]).max())):
        raise ValueError(f"W is not symmetric: its row {i} is not its column {i}. Pass (W + W.T) / 2.")
    return W


def terms(kernel: Kernel) -> Iterator[Kernel]:
    """Yield the terms of a sum: symbols follow each of them that they can, whatever the others."""
    if isinstance(kernel, Sum):
        yield from terms(kernel.left)
        yield from terms(kernel.right)
    else:
        yield kernel


def dense(v: Any) -> np.ndarray:
    """Return the vectors as an array."""
    return v.toarray() if sparse.issparse(v) else v


# -- sums over the pairs that give the derivatives of a kernel in its parameters --------------------------


Shares = dict[int, float]  # contributions to the derivatives, by the number of the parameter


class Plan:
    """The sums to be taken over all pairs, and what each of them contributes to the derivatives."""

    def __init__(self, points: Points, theta: list[float], tape: Tape) -> None:
        self.points, self.theta, self.tape = points, theta, tape
        self.tasks: list[Task] = []
        self.shares: list[Callable[[np.ndarray], Shares]] = []

    def follow(self, kernel: Kernel) -> None:
        """Plan the derivatives of one term, whose parameters are on the tape."""
        lost = mine = parameters_in(kernel)
        if not mine:
            return
        self.tape.lost.clear()
        partials = _derivatives(watch(kernel.of, self.points))
        if partials is not None:
            lost = (self.tape.lost & mine) | self._beyond_products(partials)
            self._constants(partials, lost)
            self._scales(partials, lost)
            self._maps(partials, lost)
        for parameter in sorted(lost):
            h = parameter_step(self.theta[parameter])
            for weight, changed in stencil(partial(_after, kernel, parameter), h):
                self._add(Total(Comparison(changed.of, self.points)), _share({parameter: weight}))

    def _add(self, task: Task, shares: Callable[[np.ndarray], Shares]) -> None:
        self.tasks.append(task)
        self.shares.append(shares)

    def _values(self, derivative: Any) -> tuple[float, Comparison | None]:
        """Return a derivative as a factor and its values at the pairs; None stands for ones."""
        factor, rest = factored(derivative)
        return factor, None if is_number(rest) else Comparison(lambda pair: rest, self.points, formula=rest)

    # -- constants and scales ---------------------------------------------------------------------------

    def _constants(self, partials: Partials, lost: set[int]) -> None:
        """Plan one sum for each parameter that enters by constants or by the one scale of a statistic."""
        dependent = [(constant.slopes, 1.0, derivative) for constant, derivative in partials.constants]
        for leaf, derivative in partials.leaves:
            if isinstance(leaf, StatLeaf) and isinstance(leaf.scale, Dual):
                same = plain(leaf)
                change = derivative * bounded(Formula("stat", leaf=same))
                dependent.append((leaf.scale.slopes, -_degree(leaf) / same.scale, change))
        for parameter in sorted({p for slopes, _, _ in dependent for p in slopes} - lost):
            parts = [(slopes[parameter] * factor, d) for slopes, factor, d in dependent if slopes.get(parameter)]
            unit = max((abs(part) for part, _ in parts), default=0.0)
            if unit > 0:
                factor, values = self._values(sum((d * (part / unit) for part, d in parts), start=0.0))
                self._add(Total(values), _share({parameter: factor * unit}))

    def _scales(self, partials: Partials, lost: set[int]) -> None:
        """Plan sums over the pairs, feature by feature, for statistics with a scale for each."""
        groups: dict[Any, tuple[StatLeaf, Any]] = {}  # a statistic that is asked for twice is one
        for leaf, derivative in partials.leaves:
            if isinstance(leaf, StatLeaf) and isinstance(leaf.scale, tuple) and parameters_in(leaf.scale) - lost:
                key = leaf.kind, plain(leaf.path), tuple(id(s) for s in leaf.scale)
                groups[key] = leaf, derivative + (groups[key][1] if key in groups else 0.0)
        for leaf, derivative in groups.values():
            points = seen(self.points, plain(leaf.path))
            scale_fits(leaf.scale, points.width)
            self._feature_by_feature(leaf, derivative, points.vectors, lost)

    def _feature_by_feature(self, leaf: StatLeaf, derivative: Any, v: Any, lost: set[int]) -> None:
        factor, values = self._values(derivative)
        scales: Any = leaf.scale
        scale, power = np.array(plain(scales)), _degree(leaf)
        if sparse.issparse(v):
            v = about = sparse.csr_array(v)
            extent = abs(about).max(axis=0).toarray().ravel()
        else:
            about = v - v.mean(axis=0)
            extent = np.abs(about).max(axis=0)
        wide = (extent > _WIDEST_COORDINATES * scale) | (power == 1)
        for one_by_one in (False, True):
            chosen = np.flatnonzero(wide == one_by_one)
            if len(chosen) == 0:
                continue
            slopes = [scales[k].slopes if isinstance(scales[k], Dual) else {} for k in chosen]
            shares = [
                {p: -power * factor / scale[k] * s for p, s in each.items() if p not in lost}
                for k, each in zip(chosen, slopes, strict=True)
            ]
            unit = 1 / scale[chosen]
            if one_by_one:
                rows = np.ascontiguousarray(dense(v[:, chosen]).T)
                self._add(Differences(values, rows, unit, power), _share(*shares))
            else:
                part = about[:, chosen]
                part = part @ sparse.diags_array(unit) if sparse.issparse(part) else part * unit
                poles = not is_number(derivative) and has_poles(derivative)
                self._add(Spreads(values, part, poles), _share(*shares))

    # -- maps and functions of points -------------------------------------------------------------------

    def _beyond_products(self, partials: Partials) -> set[int]:
        """Return the parameters of maps below statistics that are no sums of products, or below sparse points."""
        return {
            parameter
            for leaf, _ in partials.leaves
            if isinstance(leaf, StatLeaf)
            for parameter in parameters_in(leaf.path)
            if leaf.kind not in ("dot", "sqdist", "sqsum")
            or sparse.issparse(seen(self.points, plain(leaf.path)).vectors)
        }

    def _maps(self, partials: Partials, lost: set[int]) -> None:
        """Plan sums of rows for functions of one point, and products for maps, that hold parameters."""
        for leaf, derivative in partials.leaves:
            moves = {
                parameter: slope(partial(self._seen_after, leaf, parameter), parameter_step(self.theta[parameter]))
                for parameter in sorted(parameters_in(_maps_of(leaf)) - lost)
            }
            moves = {parameter: move for parameter, move in moves.items() if move.any()}
            if not moves:
                continue
            factor, values = self._values(derivative)
            if isinstance(leaf, PointLeaf):
                self._add(Margins(values, axis=1 if leaf.side == "row" else 0), _inner(factor, moves))
            else:
                self._below(leaf, factor, values, moves)

    def _below(self, leaf: StatLeaf, factor: float, values: Comparison | None, moves: dict[int, np.ndarray]) -> None:
        """Plan the derivative of a statistic as its points move."""
        v = seen(self.points, plain(leaf.path)).vectors
        scale = np.asarray(plain(leaf.scale))
        if leaf.kind == "sqdist":
            v = v - v.mean(axis=0)

        def shares(sums: np.ndarray) -> Shares:
            # Of <u, v>: <du, v> + <u, dv>. Of |u +- v|^2: 2 <u +- v, du +- dv>.
            products, margin = sums[:, :-1], sums[:, -1:]
            if leaf.kind == "dot":
                return _inner(2 * factor, moves)(products)
            pull = margin * v + (products if leaf.kind == "sqsum" else -products)
            return _inner(4 * factor, moves)(pull / scale / scale)

        self._add(Products(values, np.hstack([v, np.ones((len(v), 1))])), shares)

    def _seen_after(self, leaf: StatLeaf | PointLeaf, parameter: int, by: float) -> np.ndarray:
        """Return the vectors below a statistic, or the values of a function, after a change of a parameter."""
        points = self.points
        for map in leaf.path:
            changed = _after(map, parameter, by)
            points = points.through(map) if changed is map else Points(changed(points), points.name).double()
        if isinstance(leaf, StatLeaf):
            return np.asarray(points.vectors)
        return np.asarray(_after(leaf.function, parameter, by)(points), dtype=np.float64)


def _derivatives(value: Any) -> Partials | None:
    if isinstance(value, Formula):
        try:
            return partials(value)
        except Untraceable:
            return None
    if value is None:
        return None
    return Partials(constants=[(value, 1.0)] if isinstance(value, Dual) else [])  # the same number for all pairs


def _degree(leaf: StatLeaf) -> int:
    """Return the power of 1 / scale in a statistic."""
    return 2 if leaf.kind == "sqdist" else 1


def _maps_of(leaf: StatLeaf | PointLeaf) -> Any:
    return leaf.path if isinstance(leaf, StatLeaf) else (leaf.path, leaf.function)


def _after(thing: Any, parameter: int, by: float) -> Any:
    """Return a kernel or a map after a change of a parameter, with plain numbers."""
    return substituted(thing, lambda dual: dual.moved(parameter, by))


def _share(*slopes: Shares) -> Callable[[np.ndarray], Shares]:
    """Return what turns sums into contributions: each times its slopes."""

    def shares(sums: np.ndarray) -> Shares:
        out: Shares = {}
        for total, each in zip(sums, slopes, strict=True):
            for parameter, value in each.items():
                out[parameter] = out.get(parameter, 0.0) + value * float(total)
        return out

    return shares


def _inner(factor: float, moves: dict[int, np.ndarray]) -> Callable[[np.ndarray], Shares]:
    """Return the function from sums to contributions: their inner product with the move of each parameter."""
    return lambda sums: {p: factor * float(np.vdot(sums, move)) for p, move in moves.items()}
