"""Nodes and weights that stand for a law on the line."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

Nodes = tuple[np.ndarray, np.ndarray]

_GAUSS = 256  # nodes up to which a law's own Gauss rule is used; beyond, its nodes lie too far apart in the middle
_REACH = 3.8  # of the variable of tanh-sinh: what lies beyond has a probability of 1e-30
_LIGHT = 1e-40  # probabilities that are left out
_ATOMS = 10_000


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
        if gauss is not None and (n <= _GAUSS or self.name == "uniform"):
            x, w = gauss(self.law, n)
        else:
            x, w = self._tanh_sinh(n)
        x, w = x[w > 0], w[w > 0]  # far out, those of Gauss rules vanish
        return x, w / w.sum()

    def _tanh_sinh(self, n: int) -> Nodes:
        """Return the nodes of tanh-sinh quadrature in probabilities (Takahasi and Mori 1974).

        It converges fast for whatever is smooth inside, however the law ends: quantiles may go to infinity.
        """
        t, step = np.linspace(-_REACH, _REACH, n, retstep=True)
        u, v = special.expit(np.pi * np.sinh(t)), special.expit(-np.pi * np.sinh(t))
        w = step * np.pi * np.cosh(t) * u * v
        x = self.quantiles(u, v)
        kept = np.isfinite(x) & (w > _LIGHT)
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
        t, step = np.linspace(-_REACH, _REACH, n, retstep=True)
        u, v = special.expit(np.pi * np.sinh(t)), special.expit(-np.pi * np.sinh(t))
        w = step * np.pi * np.cosh(t) * u * v

        def tanh_sinh(x: float) -> Nodes:
            below, above = float(self.law.cdf(x)), float(self.law.sf(x))
            parts = np.concatenate([below * u, below + above * u]), np.concatenate([above + below * v, above * v])
            z = self.quantiles(*parts)
            weights = np.concatenate([below * w, above * w])
            kept = np.isfinite(z) & (weights > _LIGHT)
            return z[kept], weights[kept]

        return tanh_sinh


def _has_quantiles(law: Any) -> bool:
    """Return whether scipy has a formula for the quantiles of a law, rather than a search."""
    from scipy.stats import rv_continuous

    dist = getattr(law, "dist", None)
    return dist is not None and type(dist)._ppf is not rv_continuous._ppf


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
