"""Derivatives of formulas, which are formulas again: in the statistics they read, and in their constants.

And their conditioning, which bounds what rounding of a statistic does to the values.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from mercer.points.formulas.dual import Dual, is_number, plain
from mercer.points.formulas.formula import NAMESPACE, Formula, Path, PointLeaf, StatLeaf, Traced, Untraceable
from mercer.points.formulas.pair import Pair, PointMap, PointValues
from mercer.points.sets.points import Points

_TINY = 1e-200  # what a root or a logarithm is kept away from: 0 times 1 / sqrt(_TINY) is 0, not NaN
_HUGE = 1e300  # what stands for infinity where it may meet a factor 0


@dataclass
class Partials:
    """The partial derivatives of a formula, each a formula or a number.

    Attributes
    ----------
    constants
        Constants that depend on parameters, and the derivative in each.
    leaves
        The leaves, as they were traced, and the derivative in each. A leaf that was asked for twice stands twice.
    """

    constants: list[tuple[Dual, Any]] = field(default_factory=list)
    leaves: list[tuple[StatLeaf | PointLeaf, Any]] = field(default_factory=list)


def partials(root: Formula) -> Partials:
    """Differentiate a formula in its leaves and in its constants, by reverse accumulation.

    Nodes are told apart by identity: two that have equal constants may depend on different parameters. The derivatives
    are free of such constants, so that equal ones are shared when they are compiled.

    Examples
    --------
    >>> from mercer.kernels import RBF
    >>> from mercer.points import Points, trace
    >>> formula = trace(RBF(scale=2.0).of, Points([[0.0]]))
    >>> [(leaf, derivative)] = partials(formula).leaves
    >>> leaf.kind, derivative == formula * -0.5
    ('sqdist', True)
    """
    order = _children_first(root)
    values: dict[int, Formula] = {}
    for node in order:
        values[id(node)] = _plain_node(node, values)
    derivatives, adjoints = Partials(), {id(root): 1.0}
    for node in reversed(order):
        adjoint = adjoints.pop(id(node), 0.0)
        if _is_zero(adjoint):
            continue
        if node.leaf is not None:
            derivatives.leaves.append((node.leaf, adjoint))  # type: ignore[arg-type]
            continue
        value, args = values[id(node)], [values[id(arg)] for arg in node.args]
        if isinstance(node.const, Dual):
            derivatives.constants.append((node.const, adjoint * _in_constant(node.op, value, args[0])))
        for arg, slope in zip(node.args, _RULES[node.op](value, plain(node.const), *args), strict=True):
            if not _is_zero(slope):
                adjoints[id(arg)] = adjoints.get(id(arg), 0.0) + adjoint * slope
    return derivatives


def has_jumps(root: Formula) -> bool:
    """Return whether a formula asks if something is zero."""
    return any(node.op == "iszero" for node in _children_first(root))


def has_poles(derivative: Formula) -> bool:
    """Return whether a derivative grows without bound near some points, as that of a root does."""
    return any(node.op == "maxc" and node.const == _TINY for node in _children_first(derivative))


def factored(derivative: Any) -> tuple[float, Any]:
    """Return an overall factor and the rest, so that neither a tiny nor a huge one meets the values pair by pair."""
    if is_number(derivative):
        return float(derivative), 1.0
    return (derivative.const, derivative.args[0]) if derivative.op == "mulc" else (1.0, derivative)


def _is_zero(x: Any) -> bool:
    return is_number(x) and x == 0


def _children_first(root: Formula) -> list[Formula]:
    order: list[Formula] = []
    placed: set[int] = set()
    stack: list[tuple[Formula, bool]] = [(root, False)]
    while stack:
        node, ready = stack.pop()
        if id(node) in placed:
            continue
        if ready:
            placed.add(id(node))
            order.append(node)
        else:
            stack.append((node, True))
            stack.extend((arg, False) for arg in reversed(node.args))
    return order


def _plain_node(node: Formula, values: dict[int, Formula]) -> Formula:
    """Return the node with plain numbers for constants; itself if it had no others."""
    args = tuple(values[id(arg)] for arg in node.args)
    leaf, const = plain(node.leaf), plain(node.const)
    if leaf is node.leaf and const is node.const and all(a is b for a, b in zip(args, node.args, strict=True)):
        return node
    return args[0] ** const if node.op == "powc" else Formula(node.op, args, const, leaf)


# -- rules ------------------------------------------------------------------------------------------------

_minimum, _maximum, _exp, _log, _sqrt = (getattr(NAMESPACE, n) for n in ("minimum", "maximum", "exp", "log", "sqrt"))


def _chosen(a: Formula, value: Formula) -> Formula:
    """1 where a minimum or a maximum is its first argument."""
    return Formula("iszero", (a - value,))


def _power(value: Formula, p: float, a: Formula) -> tuple[Any]:
    if 0 < p < 1:
        return (p * value / _maximum(a, _TINY),)
    return (p * a ** (p - 1) if p != 1 else 1.0,)


def _root(value: Formula, _: float, a: Formula) -> tuple[Any]:
    """1 / (2 sqrt(a)), and 0 at 0, where distances have their kink."""
    return (0.5 * _minimum(value, _HUGE**0.5) / _minimum(_maximum(a, _TINY), _HUGE),)


def _damped(value: Formula, p: float, a: Formula) -> tuple[Any]:
    """(2p - 1 - p r) / 2 exp(-r) for (1 + r + p r^2) exp(-r) with r = sqrt(a)."""
    rest = 0.5 * (3 * p - 1)
    slope = -0.5 * p * Formula("damp", (a,), 0.0) if p != 0 else 0.0
    return (slope + rest * _exp(-_sqrt(a)) if abs(rest) > 1e-15 else slope,)


def _angle(value: Formula, _: float, a: Formula, b: Formula) -> tuple[Any, Any]:
    square = _maximum(a * a + b * b, _TINY)
    return b / square, -a / square


_RULES: dict[str, Callable[..., tuple[Any, ...]]] = {
    "add": lambda v, c, a, b: (1.0, 1.0),
    "sub": lambda v, c, a, b: (1.0, -1.0),
    "mul": lambda v, c, a, b: (b, a),
    "div": lambda v, c, a, b: (1.0 / b, -v / b),
    "addc": lambda v, c, a: (1.0,),
    "mulc": lambda v, c, a: (c,),
    "rsubc": lambda v, c, a: (-1.0,),
    "rdivc": lambda v, c, a: (-v / a,),
    "minc": lambda v, c, a: (_chosen(a, v),),
    "maxc": lambda v, c, a: (_chosen(a, v),),
    "min": lambda v, c, a, b: (_chosen(a, v), 1.0 - _chosen(a, v)),
    "max": lambda v, c, a, b: (_chosen(a, v), 1.0 - _chosen(a, v)),
    "powi": _power,
    "powc": _power,
    "sqrt": _root,
    "exp": lambda v, c, a: (v,),
    "log": lambda v, c, a: (1.0 / a,),
    "log1p": lambda v, c, a: (1.0 / (1.0 + a),),
    "tanh": lambda v, c, a: (1.0 - v * v,),
    "atan2": _angle,
    "iszero": lambda v, c, a: (0.0,),
    "damp": _damped,
}


def _in_constant(op: str, value: Formula, a: Formula) -> Any:
    """Return the derivative of an operation in its constant."""
    if op in ("addc", "rsubc"):
        return 1.0
    if op == "mulc":
        return bounded(a)
    if op == "rdivc":
        return 1.0 / a
    if op in ("minc", "maxc"):
        return 1.0 - _chosen(a, value)
    if op in ("powi", "powc"):
        return value * _log(_maximum(a, _TINY))
    raise Untraceable(f"the constant of {op} is not differentiated")


def bounded(a: Formula) -> Formula:
    """Return what a factor 0 makes 0 of: infinity, as of far points on a tiny scale, is replaced by a large number."""
    return _minimum(a, _HUGE)


# -- tracing ----------------------------------------------------------------------------------------------


class _Watched(Traced):
    """A pair of symbols for a kernel with parameters that are being differentiated.

    Maps and functions that hold such numbers in plain sight are kept as they are; the others are called here, on one
    point, so that the tape notes which parameters they use.
    """

    def through(self, map: PointMap) -> Traced:
        return _Watched(self._points.through(plain(map)), (*self._path, map))

    def left(self, function: PointValues) -> Formula:
        self._points.values(plain(function))
        return super().left(function)

    def right(self, function: PointValues) -> Formula:
        self._points.values(plain(function))
        return super().right(function)


def watch(of: Callable[[Pair], Any], points: Points) -> Any:
    """Return what `of` computes on symbols: a formula, a number, or None when symbols cannot follow it."""
    one = Points(points.take(slice(0, 1)).data, points.name)  # what is derived from it is forgotten with it
    try:
        result = of(_Watched(one))
    except (TypeError, AttributeError, ArithmeticError):
        return None
    return result if isinstance(result, Formula) or is_number(result) else None


# -- conditioning: the factor by which a formula magnifies an error of the squared distances it reads --------
#
# A Gaussian kernel exp(-g |x - z|^2) turns an absolute error of the squared distance into a relative one g times as
# large: next to nothing for distances of points that lie close together on the scale of the kernel. So do the Matern
# kernels of smoothness 3/2 and 5/2, smooth functions of the squared distance. That of smoothness 1/2 takes a square
# root, which at 0 has no derivative: there every digit of a small distance matters.


class Bound(NamedTuple):
    """The values that a node takes, and its largest error, absolute and relative, per unit of the distance's error."""

    low: float
    high: float
    absolute: float
    relative: float


_UNKNOWN = Bound(-math.inf, math.inf, math.inf, math.inf)


@lru_cache(maxsize=256)
def gain(formula: Formula, path: Path) -> float:
    """Return the relative error of a formula's values per unit of absolute error of |x - z|^2 on `path`.

    In a sum each term is measured against itself, as the rounding of the sum is. The gain is infinite where the
    formula is ill-conditioned or where nothing is known.

    Examples
    --------
    >>> from mercer.kernels import RBF, Matern
    >>> from mercer.points import Points
    >>> from mercer.points.formulas.formula import trace
    >>> points = Points([[0.0]])
    >>> gain(trace(RBF(scale=2.0).of, points), ())
    0.125
    >>> gain(trace(Matern(0.5, 2.0).of, points), ())
    inf
    """
    if formula.op in ("add", "sub"):
        return max(gain(part, path) for part in formula.args)
    if formula.op in ("mulc", "addc", "rsubc"):
        return gain(formula.args[0], path)
    return _bound(formula, path, {}).relative


def _bound(node: Formula, path: Path, done: dict[Formula, Bound]) -> Bound:
    if node not in done:
        done[node] = _completed(_leaf(node, path) if node.leaf is not None else _rule(node, path, done))
    return done[node]


def _completed(b: Bound) -> Bound:
    """Take one kind of error from the other where the size of the values tells how."""
    most, least = max(abs(b.low), abs(b.high)), max(b.low, -b.high)
    absolute = min(b.absolute, b.relative * most) if 0 < most < math.inf else b.absolute
    relative = min(b.relative, b.absolute / least) if 0 < least < math.inf else b.relative
    return Bound(b.low, b.high, absolute, relative)


def _leaf(node: Formula, path: Path) -> Bound:
    leaf = node.leaf
    if not isinstance(leaf, StatLeaf):
        return Bound(-math.inf, math.inf, 0.0, 0.0)
    low = -math.inf if leaf.kind in ("dot", "minimum") else 0.0
    if leaf.kind != "sqdist" or leaf.path != path:
        return Bound(low, math.inf, 0.0, 0.0)
    return Bound(low, math.inf, leaf.scale**-2, math.inf) if isinstance(leaf.scale, float) else _UNKNOWN


def _rule(node: Formula, path: Path, done: dict[Formula, Bound]) -> Bound:
    parts = [_bound(arg, path, done) for arg in node.args]
    if all(part.absolute == 0 for part in parts):
        return Bound(0.0 if node.op == "exp" else -math.inf, math.inf, 0.0, 0.0)
    return _BOUNDS[node.op](node.const, *parts) if node.op in _BOUNDS else _UNKNOWN


def _scaled(c: float, a: Bound) -> Bound:
    low, high = sorted((c * a.low, c * a.high))
    return Bound(low, high, abs(c) * a.absolute, a.relative) if c != 0 else _UNKNOWN


def _shifted(c: float, a: Bound) -> Bound:
    grows = min(a.low, c) >= 0 or max(a.high, c) <= 0
    return Bound(a.low + c, a.high + c, a.absolute, a.relative if grows else math.inf)


def _bounded_exp(_: float, a: Bound) -> Bound:
    low, high = (math.exp(x) if x < 700 else math.inf for x in (a.low, a.high))
    return Bound(low, high, math.inf, a.absolute)


def _bounded_damp(p: float, a: Bound) -> Bound:
    """With r^2 the argument, the derivative is (2p - 1 - p r) / 2 exp(-r): against 1 + r + p r^2, term by term."""
    return Bound(0.0, 1.0 if p <= 0.5 else math.inf, math.inf, max(abs(2 * p - 1), p) / 2 * a.absolute)


def _bounded_power(p: float, a: Bound) -> Bound:
    """Bound c a^p, whose size is left unknown: only its sign and its relative error matter to what follows."""
    return Bound(0.0, math.inf, math.inf, abs(p) * a.relative) if a.low >= 0 and p != 0 else _UNKNOWN


def _bounded_product(a: Bound, b: Bound, high: float) -> Bound:
    positive = min(a.low, b.low) >= 0
    return Bound(0.0 if positive else -math.inf, high if positive else math.inf, math.inf, a.relative + b.relative)


def _bounded_sum(_: float, a: Bound, b: Bound) -> Bound:
    if min(a.low, b.low) < 0:
        return _UNKNOWN
    return Bound(a.low + b.low, a.high + b.high, a.absolute + b.absolute, max(a.relative, b.relative))


_BOUNDS: dict[str, Callable[..., Bound]] = {
    "mulc": _scaled,
    "addc": _shifted,
    "rsubc": lambda c, a: Bound(c - a.high, c - a.low, a.absolute, math.inf),
    "exp": _bounded_exp,
    "damp": _bounded_damp,
    "log1p": lambda _, a: Bound(math.log1p(a.low), math.inf, a.absolute, math.inf) if a.low >= 0 else _UNKNOWN,
    "powi": _bounded_power,
    "powc": _bounded_power,
    "sqrt": lambda _, a: _bounded_power(0.5, a),
    "rdivc": lambda c, a: _bounded_power(-1.0, a) if c > 0 else _UNKNOWN,
    "mul": lambda _, a, b: _bounded_product(a, b, a.high * b.high if min(a.high, b.high) > 0 else math.inf),
    "div": lambda _, a, b: _bounded_product(a, b, math.inf),
    "add": _bounded_sum,
}
