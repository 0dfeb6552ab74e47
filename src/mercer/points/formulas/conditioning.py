"""The factor by which a formula magnifies an error of the squared distances it reads.

A Gaussian kernel exp(-g |x - z|^2) turns an absolute error of the squared distance into a relative one g times as
large: next to nothing for distances of points that lie close together on the scale of the kernel. So do the Matern
kernels of smoothness 3/2 and 5/2, smooth functions of the squared distance. That of smoothness 1/2 takes a square root,
which at 0 has no derivative: there every digit of a small distance matters.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

from mercer.points.formulas.formula import Formula, Path, StatLeaf


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
    a, c = parts[0], node.const
    if node.op == "mulc" and c != 0:
        low, high = sorted((c * a.low, c * a.high))
        return Bound(low, high, abs(c) * a.absolute, a.relative)
    if node.op == "addc":
        grows = min(a.low, c) >= 0 or max(a.high, c) <= 0
        return Bound(a.low + c, a.high + c, a.absolute, a.relative if grows else math.inf)
    if node.op == "rsubc":
        return Bound(c - a.high, c - a.low, a.absolute, math.inf)
    if node.op == "exp":
        return Bound(_exp(a.low), _exp(a.high), math.inf, a.absolute)
    if node.op == "damp":
        # With r^2 the argument, the derivative is (2p - 1 - p r) / 2 exp(-r): against 1 + r + p r^2, term by term.
        return Bound(0.0, 1.0 if c <= 0.5 else math.inf, math.inf, max(abs(2 * c - 1), c) / 2 * a.absolute)
    if node.op == "log1p" and a.low >= 0:
        return Bound(math.log1p(a.low), math.inf, a.absolute, math.inf)
    if node.op in ("powi", "powc", "sqrt", "rdivc") and a.low >= 0:
        p = {"sqrt": 0.5, "rdivc": -1.0}.get(node.op, c)
        return _power(a, p) if p != 0 and (node.op != "rdivc" or c > 0) else _UNKNOWN
    if node.op in ("mul", "div"):
        low = 0.0 if min(part.low for part in parts) >= 0 else -math.inf
        high = a.high * parts[1].high if node.op == "mul" and low == 0 and min(a.high, parts[1].high) > 0 else math.inf
        return Bound(low, high, math.inf, a.relative + parts[1].relative)
    if node.op == "add" and min(part.low for part in parts) >= 0:
        b = parts[1]
        return Bound(a.low + b.low, a.high + b.high, a.absolute + b.absolute, max(a.relative, b.relative))
    return _UNKNOWN


def _exp(x: float) -> float:
    return math.exp(x) if x < 700 else math.inf


def _power(a: Bound, p: float) -> Bound:
    """Bound c a^p, whose size is left unknown: only its sign and its relative error matter to what follows."""
    return Bound(0.0, math.inf, math.inf, abs(p) * a.relative)
