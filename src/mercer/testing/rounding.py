"""Bounds on how far rounding may move the values of a kernel.

Two correct ways to evaluate one formula differ by rounding, and a formula such as 1 / (1 - k) magnifies it. How much
is found by experiment: the formula is evaluated in double precision with every operation rounded at random, as
coarsely as the precision in question would (Monte Carlo arithmetic; Parker, 1997).
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import sparse

from mercer.kernels import Kernel
from mercer.kernels.rules.pullback import Columns
from mercer.points import Block, Comparison, Pair, PairRule, PointMap, Points, PointValues

_DRAWS = 8  # random roundings of an evaluation, of whose errors the largest counts
_MARGIN = 16  # the largest of a few draws, times this, bounds what a correct evaluation may be off
# A difference x - z of given numbers is exact to rounding; a sum of products can cancel.
_OF_DIFFERENCES = ("sqdist", "l1", "chi2", "minimum")


@dataclass(frozen=True)
class Rounding:
    """The values k(x_i, z_j) by array operations, and what rounding may do to them.

    Attributes
    ----------
    values : ndarray
        The formula evaluated once in double precision, with nothing added.
    bound : ndarray
        How far a correct evaluation may be from `values`.
    strained : ndarray of bool
        Pairs with an intermediate result so small or large that its square is outside the range of the type:
        there rounding is no longer relative.
    """

    values: np.ndarray
    bound: np.ndarray
    strained: np.ndarray


def rounding(kernel: Kernel, X: Any, Z: Any = None, dtype: Any = None, seed: int = 0) -> Rounding:
    """Return how far rounding in `dtype` (None for the type of the points) may move the values of a kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF
    >>> X = np.array([[0.0], [1.0]])
    >>> bool(rounding(RBF(1.0), X).bound.max() < 1e-14)
    True
    >>> bool(rounding((0.999999 * RBF(1.0)).geometric(), X).bound.max() > 1e-7)  # next to the pole
    True
    """
    left = Points.of(X)
    right = left if Z is None else Points.of(Z)
    info = np.finfo(dtype or np.result_type(left.dtype, right.dtype))
    return _measured(kernel, left, right, info, seed)


@lru_cache(maxsize=8)  # one check asks for the same several times
def _measured(kernel: Kernel, left: Points, right: Points, info: Any, seed: int) -> Rounding:
    inexact = _inexact(kernel, left, right, info.dtype)
    left, right = _in_double(left), _in_double(right)
    values = _evaluate(kernel, left, right, _Arithmetic(0.0, info, seed))[0]
    bound = 4 * float(info.eps) * np.abs(values) + float(info.tiny)  # below `tiny` values vanish
    strained = np.zeros(values.shape, bool)
    for draw in range(_DRAWS):
        moved, left_range = _evaluate(kernel, left, right, _Arithmetic(float(info.eps), info, seed + draw, inexact))
        bound = np.maximum(bound, _MARGIN * np.abs(moved - values))
        strained |= left_range
    return Rounding(values, bound, strained)


def _inexact(kernel: Kernel, left: Points, right: Points, dtype: Any) -> dict[Any, float]:
    """Return the errors of the distances that the engine takes from inner products, in the precision in question."""
    if any(isinstance(p.data, np.ndarray) and p.data.dtype != dtype for p in (left, right)):
        left, right = (Points(np.asarray(p.data, dtype), p.name) for p in (left, right))
    return Comparison(kernel.of, left, right).inexact


def _in_double(points: Points) -> Points:
    single = isinstance(points.data, np.ndarray) or sparse.issparse(points.data)
    return Points(points.data.astype(np.float64), points.name) if single and points.data.dtype == np.float32 else points


def _evaluate(kernel: Kernel, left: Points, right: Points, arithmetic: _Arithmetic) -> tuple[np.ndarray, np.ndarray]:
    shape = len(left), len(right)
    arithmetic.strained = np.zeros(shape, bool)
    block = _RoundedBlock(left, right, arithmetic.near(left), arithmetic.near(right), arithmetic)
    with np.errstate(all="ignore"):
        value = np.asarray(kernel.of(block), dtype=np.float64)
    return np.broadcast_to(value, shape), arithmetic.strained


class _Arithmetic:
    """Rounding at random, and a record of the pairs that come near the ends of the range."""

    strained: np.ndarray

    def __init__(self, eps: float, info: Any, seed: int, inexact: dict[Any, float] | None = None) -> None:
        self.eps, self._inexact = eps, inexact or {}
        self._rng = np.random.default_rng(seed)
        self._low, self._high = float(info.tiny) ** 0.5, float(info.max) ** 0.5

    def shaken(self, values: Any, times: float = 1.0) -> Any:
        return values * (1.0 + times * self.eps * self._rng.uniform(-1, 1, np.shape(values)))

    def near(self, points: Points) -> Points:
        """Points whose coordinates are off by rounding; the same points where they are no matrix."""
        data = points.data
        if isinstance(data, np.ndarray) and data.ndim == 2 and data.dtype.kind == "f":
            return Points(self.shaken(data.astype(np.float64)), points.name)
        return Points(self._near(points.vectors), points.name) if sparse.issparse(data) else points

    def _near(self, v: Any) -> Any:
        if isinstance(v, np.ndarray):
            return self.shaken(v.astype(np.float64))
        return type(v)((self.shaken(v.data.astype(np.float64)), v.indices, v.indptr), shape=v.shape)

    def statistic(self, kind: str, scale: Any, left: Points, right: Points, exact: bool, path: Any) -> Any:
        if not exact:
            left, right = Points(self._near(left.vectors), left.name), Points(self._near(right.vectors), right.name)
        value = Comparison(lambda pair: pair._stat(kind, scale), left, right).dense()
        if kind == "sqdist" and path in self._inexact:
            error = self._inexact[path] / scale**2 / _MARGIN  # of distinct points: equal ones are at distance 0
            value = np.where(value > 0, np.abs(value + error * self._rng.uniform(-2, 2, value.shape)), value)
        return self.result(value, times=left.width**0.5)

    def result(self, value: Any, times: float = 1.0) -> Any:
        value = np.asarray(value, dtype=np.float64)
        size = np.abs(value)
        out = (value != 0) & ~((size >= self._low) & (size <= self._high))
        if out.any():
            self.strained |= out
        rounded = np.asarray(self.shaken(value, times)).view(_RoundedArray)
        rounded.arithmetic = self
        return rounded


class _RoundedArray(np.ndarray):
    """An array whose every elementwise operation is rounded at random."""

    arithmetic: Any = None

    def __array_finalize__(self, obj: Any) -> None:
        self.arithmetic = getattr(obj, "arithmetic", None)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = (), **kwargs: Any) -> Any:
        plain = [np.asarray(x) if isinstance(x, _RoundedArray) else x for x in inputs]
        if ufunc in (np.add, np.subtract):  # a constant is rounded too, and a sum may cancel
            plain = [self.arithmetic.shaken(x) if isinstance(x, float) else x for x in plain]
        result = getattr(ufunc, method)(*plain, **kwargs)
        if out:
            np.copyto(out[0], result)
            return out[0]
        floating = isinstance(result, np.ndarray) and result.dtype.kind == "f"
        return self.arithmetic.result(result) if floating and method == "__call__" else result


class _RoundedBlock(Block):
    """Pairs whose statistics are rounded at random."""

    def __init__(
        self,
        left: Points,
        right: Points,
        near_left: Points,
        near_right: Points,
        arithmetic: _Arithmetic,
        mapped: bool = False,
        path: tuple[PointMap, ...] = (),
    ) -> None:
        super().__init__(left, right)
        self._near = Block(near_left, near_right)
        self._arithmetic, self._mapped, self._path = arithmetic, mapped, path

    def through(self, map: PointMap) -> _RoundedBlock:
        if map not in self._memo:
            left, right = self._near._left.through(map), self._near._right.through(map)
            mapped = not isinstance(map, Columns)
            if mapped:  # the map rounds as well
                left, right = self._arithmetic.near(left), self._arithmetic.near(right)
            exact = self._left.through(map), self._right.through(map)
            self._memo[map] = _RoundedBlock(
                *exact, left, right, self._arithmetic, mapped or self._mapped, (*self._path, map)
            )
        return self._memo[map]

    def left(self, function: PointValues) -> Any:
        return self._arithmetic.result(self._near.left(function))

    def right(self, function: PointValues) -> Any:
        return self._arithmetic.result(self._near.right(function))

    def _compute(self, kind: str, scale: Any) -> Any:
        exact = kind in _OF_DIFFERENCES and not self._mapped
        sides = self if exact else self._near
        return self._arithmetic.statistic(kind, scale, sides._left, sides._right, exact, self._path)

    def _values(self, of: Callable[[Pair], Any], left: Points, right: Points) -> np.ndarray:
        arithmetic = copy(self._arithmetic)
        arithmetic.strained = np.zeros((len(left), len(right)), bool)
        block = _RoundedBlock(left, right, arithmetic.near(left), arithmetic.near(right), arithmetic)
        return np.broadcast_to(np.asarray(of(block), dtype=np.float64), block.shape)

    @property
    def equal(self) -> Any:
        return np.asarray(Block(self._left, self._right).equal)

    def call(self, function: Callable[[Any, Any], float]) -> Any:
        return self._arithmetic.result(self._near.call(function))

    def compare(self, rule: PairRule) -> Any:
        return self._arithmetic.result(self._near.compare(rule))

    def differences(self, function: Callable[[Any], Any]) -> Any:
        return self._arithmetic.result(self._near.differences(function))
