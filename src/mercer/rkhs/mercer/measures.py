"""Measures that a kernel is expanded under (samples, laws, products of laws, boxes), and their quadrature rules."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse, special, stats
from scipy.stats import qmc

from mercer.points import Points

_LINE_NODES = 2048  # nodes on the line, at most
_SPACE_NODES = 2500  # nodes in space, at most
_PRODUCT_AXES = 5  # dimensions up to which nodes are those of a product
_GRID = {1: 401, 2: 41, 3: 13}  # points along an axis on which errors are looked for
_SCATTERED_POINTS = 2000  # points in higher dimensions
_TAIL = 1e-3  # probability on either side of such a grid


class Rule(NamedTuple):
    """Points with masses, and what they are."""

    points: Any
    weights: np.ndarray
    name: str


@dataclass(frozen=True)
class Box:
    """The uniform law on a box with given corners.

    Parameters
    ----------
    low, high
        The corners: numbers for an interval, or one number for each dimension.

    Examples
    --------
    >>> from mercer.rkhs import Box
    >>> Box(0, 1).dim, Box([0, 0], [1, 2]).dim
    (1, 2)
    """

    low: Any
    high: Any

    def __post_init__(self) -> None:
        low, high = (np.atleast_1d(np.asarray(side, dtype=np.float64)) for side in (self.low, self.high))
        if low.ndim != 1 or low.shape != high.shape or not np.isfinite(low + high).all() or not (low < high).all():
            raise ValueError(
                "Box(low, high) needs finite numbers low < high, or as many of one as of the other; it got "
                f"{self.low!r} and {self.high!r}."
            )
        object.__setattr__(self, "low", tuple(low.tolist()))
        object.__setattr__(self, "high", tuple(high.tolist()))

    @property
    def dim(self) -> int:
        """The number of dimensions."""
        return len(self.low)


class Measure(ABC):
    """A probability measure that rules of more and more nodes stand for."""

    width: int | None = None  # the number of coordinates, where points are vectors
    fixed = False  # whether the points are given

    @abstractmethod
    def rules(self, rank: int, most: int | None) -> Iterator[Rule]:
        """Yield rules, each finer than the one before."""

    @abstractmethod
    def other(self, rule: Rule) -> Rule:
        """Return another rule, a little finer than the given one, by which it can be judged."""

    @abstractmethod
    def grid(self) -> Any:
        """Return points that cover the bulk of the measure."""

    @property
    def exact(self) -> bool:
        """Whether a rule is the measure itself."""
        return self.fixed

    def outermost(self, rule: Rule) -> np.ndarray:
        """Return the numbers of nodes at the ends of a law that has none."""
        return np.arange(0)

    def split(self, n: int) -> Callable[[float], Nodes] | None:
        """Return what gives n nodes on each side of a point of the line, for integrands with a kink there."""
        return None


class Sample(Measure):
    """Given points with given weights."""

    fixed = True

    def __init__(self, X: Any, weights: Any) -> None:
        points = Points.of(X)
        n = len(points)
        w = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
        if w.shape != (n,) or not np.isfinite(w).all() or (w < 0).any() or not w.any():
            raise ValueError(
                f"weights must be {n} finite numbers >= 0, one for each point and not all zero; they are "
                f"{weights!r:.80}."
            )
        if not w.all():
            points = Points(points.take(np.flatnonzero(w)).data, points.name)
        w = w[w > 0]
        self._rule = Rule(points.data, w / w.sum(), f"{len(points)} points")
        self.width = points.width if points.numeric else None

    def rules(self, rank: int, most: int | None) -> Iterator[Rule]:
        yield self._rule

    def other(self, rule: Rule) -> Rule:
        return rule

    def grid(self) -> Any:
        points = Points.of(self._rule.points)
        some = np.unique(np.linspace(0, len(points) - 1, _SCATTERED_POINTS).astype(np.intp))
        return points.take(some).data if len(some) < len(points) else self._rule.points


class Independent(Measure):
    """Independent coordinates with laws on the line, mapped affinely: x = shift + root z."""

    def __init__(self, laws: Sequence[Any], shift: np.ndarray | None = None, root: np.ndarray | None = None) -> None:
        self.laws = [Law(law) for law in laws]
        self.dim = len(self.laws)
        self.width = self.dim if root is None else len(root)
        self._shift, self._root = shift, root

    def _placed(self, Z: np.ndarray) -> np.ndarray:
        return Z if self._root is None else self._shift + Z @ self._root.T

    def rules(self, rank: int, most: int | None) -> Iterator[Rule]:
        d = self.dim
        limit = most if most is not None else _LINE_NODES if d == 1 else _SPACE_NODES
        if self.exact:
            yield self._product(1)
            return
        if d > _PRODUCT_AXES:
            size = max(256, 1 << int(np.log2(max(limit, 1))))
            for n in (size // 2, size):
                yield self._scattered(n)
            return
        for along in _sizes(rank, limit, d):
            yield self._product(along)

    @property
    def exact(self) -> bool:
        return all(law.discrete for law in self.laws)

    def other(self, rule: Rule) -> Rule:
        if self.exact:
            return rule
        d, n = self.dim, len(rule.weights)
        if d > _PRODUCT_AXES:
            return self._scattered(n, seed=1)
        along = round(n ** (1 / d))
        return self._product(along + max(1, along // 3))

    def _product(self, along: int) -> Rule:
        sides = [law.nodes(along) for law in self.laws]
        Z = np.stack(np.meshgrid(*(x for x, _ in sides), indexing="ij"), axis=-1).reshape(-1, len(sides))
        w = np.ones(1)
        for _, h in sides:
            w = np.outer(w, h).ravel()
        return Rule(self._placed(Z), w, f"{len(w)} nodes")

    def _scattered(self, n: int, seed: int = 0) -> Rule:
        U = qmc.Sobol(self.dim, scramble=True, seed=seed).random_base2(max(1, int(np.log2(n))))
        U = U.clip(1e-12, 1 - 1e-12)
        Z = np.column_stack([law.quantiles(u, 1 - u) for law, u in zip(self.laws, U.T)])
        return Rule(self._placed(Z), np.full(len(Z), 1 / len(Z)), f"{len(Z)} quasi-random nodes")

    def grid(self) -> np.ndarray:
        d = self.dim
        if d not in _GRID:
            return np.asarray(self._scattered(_SCATTERED_POINTS, seed=2).points)
        sides = [np.linspace(*law.ends(_TAIL), _GRID[d]) for law in self.laws]
        return self._placed(np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1).reshape(-1, d))

    def outermost(self, rule: Rule) -> np.ndarray:
        n = len(rule.weights)
        if self.dim > 1 or self.exact:
            return np.arange(0)
        some = max(1, n // 50)
        below, above = (np.isinf(end) for end in self.laws[0].law.support())
        return np.concatenate([np.arange(some if below else 0), np.arange(n - some if above else n, n)])

    def split(self, n: int) -> Callable[[float], Nodes] | None:
        return self.laws[0].split(n) if self.dim == 1 and self._root is None else None


def _sizes(rank: int, limit: int, d: int) -> list[int]:
    """Return at least two numbers of nodes along an axis, up to the largest that a limit on all nodes allows."""
    top = max(2, int(limit ** (1 / d) + 1e-9))
    sizes = [min(top * 3 // 4, max(64, 4 * rank) if d == 1 else max(4, int((4 * rank) ** (1 / d)) + 1))]
    while sizes[-1] < top:
        sizes.append(min(top, 2 * sizes[-1] if d == 1 else max(sizes[-1] + 1, sizes[-1] * 3 // 2)))
    return sizes


def measure_of(measure: Any, weights: Any = None) -> Measure:
    """Return what a user calls a measure as one, or say why it is none."""
    if _is_law(measure) or isinstance(measure, Box) or _is_normal(measure) or _are_laws(measure):
        if weights is not None:
            raise ValueError("weights belong to the points of a sample; a law or a box has none.")
        if isinstance(measure, Box):
            return Independent([stats.uniform(a, b - a) for a, b in zip(measure.low, measure.high)])
        if _is_normal(measure):
            return _normal(measure)
        return Independent([measure] if _is_law(measure) else list(measure))
    if (
        hasattr(measure, "rvs")
        or hasattr(measure, "pdf")
        or (isinstance(measure, type) and not sparse.issparse(measure))
    ):
        raise TypeError(
            f"measure is {measure!r:.80}, which is no frozen law of scipy.stats on the line such as norm(0, 1), no "
            "list of such laws and no multivariate_normal(mean, cov); pass a sample of it instead."
        )
    return Sample(measure, weights)


def _is_law(law: Any) -> bool:
    known = hasattr(law, "ppf") or hasattr(law, "icdf")
    return known and hasattr(law, "support") and not isinstance(law, stats.rv_continuous | stats.rv_discrete)


def _are_laws(laws: Any) -> bool:
    return isinstance(laws, list | tuple) and len(laws) > 0 and all(_is_law(law) for law in laws)


def _is_normal(law: Any) -> bool:
    return type(law).__name__ == "multivariate_normal_frozen"


def _normal(law: Any) -> Independent:
    cov = np.atleast_2d(np.asarray(law.cov, dtype=np.float64))
    values, U = np.linalg.eigh(cov)
    if values[-1] <= 0:
        raise ValueError("the covariance of multivariate_normal is 0; a kernel has no expansion at a single point.")
    kept = values > len(values) * np.finfo(float).eps * values[-1]
    root = U[:, kept] * np.sqrt(values[kept])
    return Independent([stats.norm()] * int(kept.sum()), np.atleast_1d(law.mean), root)


Nodes = tuple[np.ndarray, np.ndarray]

_GAUSS_NODES = 256  # up to which a law's own Gauss rule is used; beyond, its nodes lie too far apart in the middle
_REACH = 3.8  # of the variable of tanh-sinh: what lies beyond has a probability of 1e-30
_LEAST_WEIGHT = 1e-40  # probabilities that are left out
_ATOMS = 10_000  # of a discrete law, each a node: their kernel matrix takes 800 MB


class Law:
    """A frozen law of scipy.stats on the line, as quadrature sees it.

    Parameters
    ----------
    law
        A frozen law such as ``scipy.stats.norm(0, 2)``, continuous or discrete.
    """

    def __init__(self, law: Any) -> None:
        self.law = law
        self.name = getattr(getattr(law, "dist", None), "name", type(law).__name__)
        self.discrete = hasattr(law, "pmf") and not hasattr(law, "pdf")
        self._ppf = law.icdf if hasattr(law, "icdf") else law.ppf
        self._isf = law.iccdf if hasattr(law, "iccdf") else law.isf

    def quantiles(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the points with probability u below them and v = 1 - u above, each from the smaller of both."""
        low = u <= 0.5
        x = np.empty_like(u)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # far out, where searches for quantiles end
            x[low], x[~low] = self._ppf(u[low]), self._isf(v[~low])
        return x

    def ends(self, tail: float) -> tuple[float, float]:
        """Return the points with a given probability beyond them, or the ends of a support that is finite."""
        low, high = (float(end) for end in self.law.support())
        if not (np.isfinite(low) and np.isfinite(high)):
            low, high = float(self._ppf(tail)), float(self._isf(tail))
        return low, high

    def nodes(self, n: int) -> Nodes:
        """Return about n nodes with weights of sum 1."""
        if self.discrete:
            return self._atoms()
        gauss = _FAMILIES.get(self.name)
        if gauss is not None and (n <= _GAUSS_NODES or self.name == "uniform"):
            x, w = gauss(self.law, n)
        else:
            x, w = self._tanh_sinh(n)
        x, w = x[w > 0], w[w > 0]  # far out, those of Gauss rules vanish
        return x, w / w.sum()

    def _tanh_sinh(self, n: int) -> Nodes:
        """Return the nodes of tanh-sinh quadrature in probabilities (Takahasi and Mori 1974).

        It converges fast for whatever is smooth inside, however the law ends: quantiles may go to infinity.
        """
        u, v, w = _probabilities(n)
        x = self.quantiles(u, v)
        kept = np.isfinite(x) & (w > _LEAST_WEIGHT)
        if not kept.any():
            raise ValueError(f"the quantiles of {self.name} are not finite; a law that can be integrated is needed.")
        return x[kept], w[kept]

    def _atoms(self) -> Nodes:
        low, high = (float(q) for q in (self._ppf(1e-16), self._ppf(1 - 1e-15)))
        if not high - low < _ATOMS:
            raise ValueError(
                f"{self.name} has more than {_ATOMS} atoms, from {low:g} to {high:g}; pass a sample of it instead."
            )
        x = np.arange(low, high + 1)
        w = np.asarray(self.law.pmf(x), dtype=np.float64)
        return x[w > 0], w[w > 0]

    def split(self, n: int) -> Callable[[float], Nodes] | None:
        """Return a function that gives n nodes on each side of a point; None where that would be slow.

        Parameters
        ----------
        n
            Half as many, or fewer, as resolve what is to be integrated on both sides together.
        """
        if self.discrete:
            return None
        if self.name == "uniform":
            low, high = (float(e) for e in self.law.support())
            t, h = special.roots_legendre(n)
            t, h = (t + 1) / 2, h / 2

            def legendre(x: float) -> Nodes:
                z = np.concatenate([low + (x - low) * t, x + (high - x) * t])
                return z, np.concatenate([(x - low) * h, (high - x) * h]) / (high - low)

            return legendre
        if not _has_quantiles(self.law):
            return None
        u, v, w = _probabilities(n)

        def tanh_sinh(x: float) -> Nodes:
            below, above = float(self.law.cdf(x)), float(self.law.sf(x))
            parts = np.concatenate([below * u, below + above * u]), np.concatenate([above + below * v, above * v])
            z = self.quantiles(*parts)
            weights = np.concatenate([below * w, above * w])
            kept = np.isfinite(z) & (weights > _LEAST_WEIGHT)
            return z[kept], weights[kept]

        return tanh_sinh


def _probabilities(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the nodes of tanh-sinh quadrature on [0, 1], what they are short of 1, and their weights."""
    t, step = np.linspace(-_REACH, _REACH, n, retstep=True)
    u, v = special.expit(np.pi * np.sinh(t)), special.expit(-np.pi * np.sinh(t))
    return u, v, step * np.pi * np.cosh(t) * u * v


def _has_quantiles(law: Any) -> bool:
    """Return whether scipy has a formula for the quantiles of a law, rather than a search."""
    dist = getattr(law, "dist", None)
    return dist is not None and type(dist)._ppf is not stats.rv_continuous._ppf


def _hermite(law: Any, n: int) -> Nodes:
    x, w = special.roots_hermitenorm(n)
    return law.mean() + law.std() * x, w


def _legendre(law: Any, n: int) -> Nodes:
    low, high = law.support()
    x, w = special.roots_legendre(n)
    return low + (high - low) * (x + 1) / 2, w


def _laguerre(law: Any, n: int) -> Nodes:
    low = law.support()[0]
    scale = law.var() / (law.mean() - low)
    x, w = special.roots_genlaguerre(n, (law.mean() - low) / scale - 1)
    return low + scale * x, w


def _jacobi(law: Any, n: int) -> Nodes:
    low, high = law.support()
    mean = (law.mean() - low) / (high - low)
    size = mean * (1 - mean) * (high - low) ** 2 / law.var() - 1  # a + b
    x, w = special.roots_jacobi(n, (1 - mean) * size - 1, mean * size - 1)
    return low + (high - low) * (x + 1) / 2, w


_FAMILIES: dict[str, Callable[[Any, int], Nodes]] = {
    "norm": _hermite,
    "uniform": _legendre,
    "expon": _laguerre,
    "gamma": _laguerre,
    "chi2": _laguerre,
    "erlang": _laguerre,
    "beta": _jacobi,
    "arcsine": _jacobi,
}
