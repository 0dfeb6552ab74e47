"""Formulas over pairs: what a kernel's `of` computes, written down once and run by the core.

A kernel states its formula with ordinary arithmetic on the statistics of a pair. Handed symbols in place of
arrays, the same code yields the expression itself; equal subexpressions are one node, so five kernels that
ask for the squared distance share it. `program.py` turns the expression into instructions for the core.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from mercer.points.formulas.dual import Dual, is_number, number, one_or_each
from mercer.points.formulas.pair import Pair, PointMap, PointValues
from mercer.points.sets.points import Points

Path = tuple[PointMap, ...]
_OF_NUMBERS: dict[str, Callable[[float, float], float]] = {"min": min, "max": max, "atan2": math.atan2}


class Untraceable(TypeError, AttributeError):
    """A formula does something that symbols cannot follow; it is evaluated on arrays instead."""


@dataclass(frozen=True)
class StatLeaf:
    """A statistic of the points seen through `path`; `scale` divides the differences."""

    kind: str
    path: Path
    scale: float | tuple[float, ...] = 1.0


@dataclass(frozen=True)
class PointLeaf:
    """One number per left (side 'row') or right (side 'col') point."""

    side: str
    path: Path
    function: PointValues


class Formula:
    """A node of an expression: an operation on other nodes (and perhaps a constant), or a leaf."""

    __slots__ = ("_hash", "args", "const", "leaf", "op")

    def __init__(self, op: str, args: tuple[Formula, ...] = (), const: Any = 0.0, leaf: Hashable = None) -> None:
        self.op, self.args, self.const, self.leaf = op, args, const, leaf
        self._hash = hash((op, args, const, leaf))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, Formula)
            and self._hash == other._hash
            and (self.op, self.const, self.leaf, self.args) == (other.op, other.const, other.leaf, other.args)
        )

    # -- arithmetic -------------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Formula:
        return _binary("add", self, other)

    __radd__ = __add__

    def __mul__(self, other: Any) -> Formula:
        return _binary("mul", self, other)

    __rmul__ = __mul__

    def __sub__(self, other: Any) -> Formula:
        return _binary("add", self, -number(other)) if is_number(other) else _binary("sub", self, other)

    def __rsub__(self, other: Any) -> Formula:
        return _with_constant("rsubc", self, _number(other))

    def __truediv__(self, other: Any) -> Formula:
        return _binary("mul", self, 1.0 / number(other)) if is_number(other) else _binary("div", self, other)

    def __rtruediv__(self, other: Any) -> Formula:
        return _with_constant("rdivc", self, _number(other))

    def __neg__(self) -> Formula:
        return _binary("mul", self, -1.0)

    def __pow__(self, power: Any) -> Formula:
        p = _number(power)
        if isinstance(p, Dual):
            return Formula("powc", (self,), p)
        if p == 1:
            return self
        if p == 0.5:
            return Formula("sqrt", (self,))
        whole = p == int(p) and abs(p) <= 1024
        return _with_constant("powi" if whole else "powc", self, p)

    def __rpow__(self, base: Any) -> Formula:
        raise Untraceable("a power with a formula as its exponent has no symbolic form")

    # -- leaving the symbols ----------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Formula:
        function = _UFUNCS.get(ufunc.__name__)
        if method != "__call__" or kwargs or function is None:
            raise Untraceable(f"numpy.{ufunc.__name__} has no symbolic form")
        return function(*inputs)

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        raise Untraceable("a formula has no values before it meets points")

    def __bool__(self) -> bool:
        raise Untraceable("a formula cannot be decided before it meets points")

    def __getattr__(self, name: str) -> Any:
        raise Untraceable(f"formulas have no attribute {name!r}")


def _number(x: Any) -> Any:
    if not is_number(x):
        raise Untraceable(f"{type(x).__name__} is not a number")
    return number(x)


def _with_constant(op: str, a: Formula, c: Any) -> Formula:
    if not isinstance(c, Dual) and (op, c) in (("mulc", 1.0), ("addc", 0.0)):
        return a
    if op == a.op == "mulc":
        return _with_constant(op, a.args[0], a.const * c)
    if op == a.op == "addc":
        return _with_constant(op, a.args[0], a.const + c)
    return Formula(op, (a,), c)


def _binary(op: str, a: Any, b: Any) -> Any:
    if op in _OF_NUMBERS and is_number(a) and is_number(b):
        return _OF_NUMBERS[op](float(a), float(b))
    if op in ("add", "mul", "min", "max"):
        if is_number(a):
            a, b = b, a
        if is_number(b):
            return _with_constant(op + "c", a, number(b))
    if not (isinstance(a, Formula) and isinstance(b, Formula)):
        raise Untraceable(f"cannot combine a formula with {type(b).__name__}")
    return Formula(op, (a, b))


def _unary(op: str, function: Callable[[float], float]) -> Callable[[Any], Any]:
    def apply(a: Any) -> Any:
        if isinstance(a, Formula):
            return Formula(op, (a,))
        try:
            return a.apply(op) if isinstance(a, Dual) else function(_number(a))
        except OverflowError:
            return math.inf  # as of arrays, where the value is then refused with a sentence

    return apply


class _Namespace:
    """The functions of the array API that have a symbolic form."""

    exp = staticmethod(_unary("exp", math.exp))
    log = staticmethod(_unary("log", math.log))
    log1p = staticmethod(_unary("log1p", math.log1p))
    sqrt = staticmethod(_unary("sqrt", math.sqrt))
    tanh = staticmethod(_unary("tanh", math.tanh))
    minimum = staticmethod(lambda a, b: _binary("min", a, b))
    maximum = staticmethod(lambda a, b: _binary("max", a, b))
    atan2 = staticmethod(lambda a, b: _binary("atan2", a, b))

    @staticmethod
    def clip(a: Any, min: float | None = None, max: float | None = None) -> Any:
        if min is not None:
            a = _binary("max", a, min)
        return a if max is None else _binary("min", a, max)

    def __getattr__(self, name: str) -> Any:
        raise Untraceable(f"{name} has no symbolic form")


NAMESPACE = _Namespace()

_UFUNCS: dict[str, Callable[..., Any]] = {
    "exp": NAMESPACE.exp,
    "log": NAMESPACE.log,
    "log1p": NAMESPACE.log1p,
    "sqrt": NAMESPACE.sqrt,
    "tanh": NAMESPACE.tanh,
    "minimum": NAMESPACE.minimum,
    "maximum": NAMESPACE.maximum,
    "arctan2": NAMESPACE.atan2,
    "square": lambda a: a**2,
    "negative": lambda a: -a,
    "add": lambda a, b: a + b if isinstance(a, Formula) else b + a,
    "multiply": lambda a, b: a * b if isinstance(a, Formula) else b * a,
    "subtract": lambda a, b: a - b if isinstance(a, Formula) else b.__rsub__(a),
    "divide": lambda a, b: a / b if isinstance(a, Formula) else b.__rtruediv__(a),
    "power": lambda a, b: a**b if isinstance(a, Formula) else b.__rpow__(a),
}


def _refused(what: str) -> Callable[..., Any]:
    def refuse(self: Traced, *_: Any) -> Any:
        raise Untraceable(f"{what} has no symbolic form")

    return refuse


class Traced(Pair):
    """A pair of symbols, standing for pairs of the given points."""

    def __init__(self, points: Points, path: Path = ()) -> None:
        self._points, self._path = points, path

    @property
    def xp(self) -> Any:
        return NAMESPACE

    def through(self, map: PointMap) -> Traced:
        return Traced(self._points.through(map), (*self._path, map))

    def left(self, function: PointValues) -> Formula:
        return Formula("row", leaf=PointLeaf("row", self._path, function))

    def right(self, function: PointValues) -> Formula:
        return Formula("col", leaf=PointLeaf("col", self._path, function))

    def damped(self, square: Any, p: float) -> Any:
        return Formula("damp", (square,), p) if isinstance(square, Formula) else super().damped(square, p)

    def _stat(self, kind: str, scale: Any = 1.0) -> Formula:
        return Formula("stat", leaf=StatLeaf(kind, self._path, one_or_each(scale)))

    @property
    def width(self) -> int:
        return self._points.width

    @property
    def equal(self) -> Formula:
        if self._points.levels or not self._points.numeric:
            raise Untraceable("equality of objects has no symbolic form")
        return Formula("iszero", (self.l1(),))

    @property
    def sets(self) -> bool:
        return self._points.sets

    common = property(_refused("an intersection of sets"))
    sums = _refused("a sum over the elements of bags")
    call = _refused("a Python function of two points")
    compare = _refused("a rule for two sets of points")
    differences = _refused("a function of the difference vector")
    lookup = _refused("a matrix look-up")


def seen(points: Points, path: Path) -> Points:
    """Return the points after the maps of a path."""
    for map in path:
        points = points.through(map)
    return points


def trace(of: Callable[[Any], Any], points: Points) -> Formula | None:
    """Return the formula that `of` computes on such points, or None when symbols cannot follow it.

    Python itself refuses what symbols do not define (a comparison, abs, a division by zero); on arrays the
    same line either works or raises the error that is worth showing.
    """
    try:
        result = of(Traced(points))
    except (TypeError, AttributeError, ArithmeticError):
        return None
    return _known(result) if isinstance(result, Formula) else None


@lru_cache(maxsize=256)
def _known(formula: Formula) -> Formula:
    """Return the formula equal to this one that was seen first: what is remembered of it is then found at once."""
    return formula


@lru_cache(maxsize=256)
def leaves(formula: Formula) -> tuple[Any, ...]:
    """Return the distinct leaves of a formula, in the order of first use."""
    distinct: dict[Any, None] = {}
    seen: set[Formula] = set()
    stack = [formula]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.leaf is not None:
            distinct[node.leaf] = None
        stack.extend(reversed(node.args))
    return tuple(distinct)


@lru_cache(maxsize=256)
def statistics(formula: Formula) -> tuple[StatLeaf, ...]:
    """Return the distinct statistics that a formula reads."""
    return tuple(leaf for leaf in leaves(formula) if isinstance(leaf, StatLeaf))
