"""Densities from samples: windows that integrate to a number, and sums of them in logarithms."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import betaln, gammaln, logsumexp

from mercer.gram import Gram
from mercer.kernels import RBF, Cauchy, Kernel, Laplacian, Matern, RationalQuadratic, Wendland
from mercer.machine.threads import run
from mercer.points import Pair, Points

_TINY = 1e-200  # densities, in units of the window's height, below which they are computed in logarithms
_TILE = 1 << 18  # pairs whose logarithms are held at a time
_SQUARED, _OVERFLOW = 1e140, 1e150  # coordinates, in scales, whose squares stay in range; distances that are too large
PROFILES = ("gaussian", "tophat", "epanechnikov", "exponential", "linear", "cosine")
METRICS = ("euclidean", "manhattan", "chebyshev")


@dataclass(frozen=True)
class Window(ABC):
    """A kernel k(x - z) with a finite integral over x: a density about z, up to a factor.

    Parameters
    ----------
    kernel
        The kernel, with a scale that is a number or one per feature.
    width
        The number of features d.
    """

    kernel: Any
    width: int

    def _scales(self) -> np.ndarray:
        return np.broadcast_to(np.asarray(self.kernel.scale, dtype=np.float64), (self.width,))

    @property
    def log_volume(self) -> float:
        """The logarithm of the integral of k(x - z) over x."""
        return self._log_unit() + float(np.log(self._scales()).sum())

    @abstractmethod
    def _log_unit(self) -> float:
        """Return the logarithm of the integral where the scale is 1."""

    def distance(self, pair: Pair) -> Any:
        """Return the distance in scales for a block of pairs, as an elementwise formula."""
        return pair.xp.sqrt(pair.xp.clip(pair.sqdist(self.kernel.scale), max=_OVERFLOW**2))

    @abstractmethod
    def log_of(self, r: np.ndarray) -> np.ndarray:
        """Return log k at these distances, clear of underflow."""

    @abstractmethod
    def _draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return n points of the density about 0, where the scale is 1."""

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return n points, one per row, drawn from the density about 0."""
        return self._draw(n, rng) * self._scales()

    def _directions(self, n: int, rng: np.random.Generator) -> np.ndarray:
        normals = rng.standard_normal((n, self.width))
        return normals / np.linalg.norm(normals, axis=1, keepdims=True)


class GaussianWindow(Window):
    r"""`RBF`: the integral is :math:`(2 \pi)^{d/2} \prod s_j`."""

    def _log_unit(self) -> float:
        return 0.5 * self.width * math.log(2 * math.pi)

    def log_of(self, r: np.ndarray) -> np.ndarray:
        return -0.5 * r * r

    def _draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        return rng.standard_normal((n, self.width))


class LaplacianWindow(Window):
    r"""`Laplacian`: the integral is :math:`2^d \prod s_j`."""

    def _log_unit(self) -> float:
        return self.width * math.log(2.0)

    def distance(self, pair: Pair) -> Any:
        return pair.xp.clip(pair.l1(self.kernel.scale), max=_OVERFLOW)

    def log_of(self, r: np.ndarray) -> np.ndarray:
        return -r

    def _draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        return rng.laplace(size=(n, self.width))


class MaternWindow(Window):
    r"""`Matern` of nu = 1/2, 3/2, 5/2: :math:`(2 \pi / \nu)^{d/2} \Gamma(\nu + d/2) / \Gamma(\nu) \prod s_j`.

    The density is that of a normal vector with a random variance, whose law is a gamma law of shape nu + d/2: its
    characteristic function is a power of 1 + |w|^2 / (2 nu), as it should be.
    """

    def _log_unit(self) -> float:
        nu, d = float(self.kernel.nu), self.width
        return 0.5 * d * math.log(2 * math.pi / nu) + float(gammaln(nu + 0.5 * d) - gammaln(nu))

    def log_of(self, r: np.ndarray) -> np.ndarray:
        nu = float(self.kernel.nu)
        r = r * math.sqrt(2 * nu)
        if nu == 0.5:
            return -r
        return np.log1p(r) - r if nu == 1.5 else np.logaddexp(np.log1p(r), 2 * _log(r) - math.log(3)) - r

    def _draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        nu = float(self.kernel.nu)
        variance = rng.gamma(nu + 0.5 * self.width, 1.0 / nu, size=(n, 1))
        return np.asarray(np.sqrt(variance) * rng.standard_normal((n, self.width)))


class StudentWindow(Window):
    r"""`RationalQuadratic`, and `Cauchy` in one dimension: a t law of 2 alpha - d > 0 degrees of freedom."""

    @property
    def _alpha(self) -> float:
        return 1.0 if isinstance(self.kernel, Cauchy) else float(self.kernel.alpha)

    @property
    def _stretch(self) -> float:
        """The kernel is (1 + |x - z|^2 / (stretch s)^2)^-alpha."""
        return 1.0 if isinstance(self.kernel, Cauchy) else math.sqrt(2 * self._alpha)

    def _log_unit(self) -> float:
        a, d = self._alpha, self.width
        return d * math.log(self._stretch * math.sqrt(math.pi)) + float(gammaln(a - 0.5 * d) - gammaln(a))

    def log_of(self, r: np.ndarray) -> np.ndarray:
        return np.asarray(-self._alpha * np.logaddexp(0.0, 2 * _log(r / self._stretch)))

    def _draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        freedom = 2 * self._alpha - self.width
        chi = rng.chisquare(freedom, size=(n, 1))
        return np.asarray(self._stretch * rng.standard_normal((n, self.width)) / np.sqrt(chi))


class WendlandWindow(Window):
    """`Wendland`: a polynomial of the distance, whose integral is a sum of beta functions; 0 beyond the scale."""

    def _terms(self) -> tuple[int, np.ndarray]:
        """Return the power of 1 - r, and the logarithms of the coefficients of the powers of r beside it."""
        k = int(self.kernel.smoothness)
        l = self.width // 2 + k + 1  # noqa: E741 - the name in the literature
        coefficients = {0: [1.0], 1: [1.0, l + 1.0], 2: [1.0, l + 2.0, (l * l + 4 * l + 3) / 3]}[k]
        return l + k, np.log(coefficients)

    def _log_parts(self) -> np.ndarray:
        power, logs = self._terms()
        return np.asarray(logs + betaln(self.width + np.arange(len(logs)), power + 1))

    def _log_unit(self) -> float:
        d = self.width
        sphere = math.log(2) + 0.5 * d * math.log(math.pi) - float(gammaln(0.5 * d))
        return sphere + float(logsumexp(self._log_parts()))

    def log_of(self, r: np.ndarray) -> np.ndarray:
        power, logs = self._terms()
        r = r.clip(max=1.0)
        return power * _log(1 - r) + np.log(sum(math.exp(c) * r**j for j, c in enumerate(logs)))

    def _draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        power, logs = self._terms()
        parts = self._log_parts()
        which = rng.choice(len(logs), size=n, p=np.exp(parts - logsumexp(parts)))
        return self._directions(n, rng) * rng.beta(self.width + which, power + 1)[:, None]


@dataclass(frozen=True)
class Profile:
    """A window of scikit-learn: a function of a distance, which need be no positive semidefinite kernel.

    Parameters
    ----------
    name
        One of `PROFILES`.
    metric
        One of `METRICS`.
    scale
        What differences are divided by: a number, one per feature, or "auto" where it is not known yet.
    """

    name: str
    metric: str = "euclidean"
    scale: Any = "auto"

    def __post_init__(self) -> None:
        if self.name not in PROFILES or self.metric not in METRICS:
            raise ValueError(f"{self!r} is no window: names are {', '.join(PROFILES)}, metrics {', '.join(METRICS)}.")

    def replace(self, **changes: Any) -> Profile:
        """Return a copy with some parameters changed."""
        return replace(self, **changes)


class ProfileWindow(Window):
    r"""`Profile`: the integral is :math:`v_d \, d \int_0^\infty r^{d - 1} k(r) \, dr \prod s_j`.

    Here v is the volume of the ball of radius 1 in the metric.
    """

    def _log_unit(self) -> float:
        d, name, metric = self.width, self.kernel.name, self.kernel.metric
        ball = {
            "euclidean": 0.5 * d * math.log(math.pi) - gammaln(0.5 * d + 1),
            "manhattan": d * math.log(2) - gammaln(d + 1),
            "chebyshev": d * math.log(2),
        }[metric]
        shell = {
            "gaussian": 0.5 * d * math.log(2) + gammaln(0.5 * d + 1),
            "tophat": 0.0,
            "epanechnikov": math.log(2 / (d + 2)),
            "exponential": gammaln(d + 1),
            "linear": -math.log(d + 1),
            "cosine": math.log(_mean_cosine(d)) if name == "cosine" else 0.0,
        }[name]
        return float(ball + shell)

    def distance(self, pair: Pair) -> Any:
        if self.kernel.metric == "manhattan":
            return pair.xp.clip(pair.l1(self.kernel.scale), max=_OVERFLOW)
        if self.kernel.metric == "chebyshev":
            return pair.differences(lambda apart: np.abs(apart / self._scales()).max(axis=1).clip(max=_OVERFLOW))
        return super().distance(pair)

    def log_of(self, r: np.ndarray) -> np.ndarray:
        if self.kernel.name == "gaussian":
            return -0.5 * r * r
        if self.kernel.name == "exponential":
            return -r
        inside = r.clip(max=1.0)
        return {
            "tophat": lambda: np.where(r < 1, 0.0, -np.inf),
            "epanechnikov": lambda: _log((1 - inside) * (1 + inside)),
            "linear": lambda: _log(1 - inside),
            "cosine": lambda: _log(np.where(r < 1, np.cos(0.5 * math.pi * inside), 0.0)),
        }[self.kernel.name]()

    def _draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        normals = {
            "euclidean": lambda: rng.standard_normal((n, self.width)),
            "manhattan": lambda: rng.laplace(size=(n, self.width)),
            "chebyshev": lambda: rng.uniform(-1, 1, size=(n, self.width)),
        }[self.kernel.metric]()
        order = {"euclidean": 2, "manhattan": 1, "chebyshev": np.inf}[self.kernel.metric]
        return normals / np.linalg.norm(normals, order, axis=1, keepdims=True) * self._radii(n, rng)[:, None]

    def _radii(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return n draws from the law of the distance, whose density is a multiple of r^(d - 1) k(r)."""
        d = self.width
        if self.kernel.name == "cosine":  # under pi (1 - r) / 2, most draws of which are taken
            radii = np.empty(0)
            while len(radii) < n:
                r = rng.beta(d, 2, size=2 * n)
                taken = rng.random(2 * n) * 0.5 * math.pi * (1 - r) <= np.cos(0.5 * math.pi * r)
                radii = np.concatenate([radii, r[taken]])
            return radii[:n]
        return {
            "gaussian": lambda: np.sqrt(rng.chisquare(d, size=n)),
            "tophat": lambda: rng.beta(d, 1, size=n),
            "epanechnikov": lambda: np.sqrt(rng.beta(0.5 * d, 2, size=n)),
            "exponential": lambda: rng.gamma(d, size=n),
            "linear": lambda: rng.beta(d, 2, size=n),
        }[self.kernel.name]()


def _mean_cosine(d: int) -> float:
    r"""Return :math:`d \int_0^1 r^{d - 1} \cos(\pi r / 2) \, dr`, by the series of the cosine."""
    a = (0.5 * math.pi) ** 2
    return math.fsum((-a) ** k / math.factorial(2 * k) * d / (d + 2 * k) for k in range(16))


def window(kernel: Kernel | Profile, width: int) -> Window:
    """Return the density that a kernel is on `width` features, or say why it is none.

    Examples
    --------
    >>> from mercer import RBF, Linear
    >>> round(window(RBF(0.5), 1).log_volume, 4)  # log(0.5 sqrt(2 pi))
    0.2258
    >>> window(Linear(), 1)
    Traceback (most recent call last):
        ...
    ValueError: Linear() is no density: ...
    """
    if isinstance(kernel, Profile):
        return ProfileWindow(kernel, width)
    if isinstance(kernel, RBF):
        return GaussianWindow(kernel, width)
    if isinstance(kernel, Laplacian):
        return LaplacianWindow(kernel, width)
    if isinstance(kernel, Wendland):
        return WendlandWindow(kernel, width)
    if isinstance(kernel, Matern) and float(kernel.nu) in (0.5, 1.5, 2.5):
        return MaternWindow(kernel, width)
    if isinstance(kernel, Cauchy | RationalQuadratic):
        student = StudentWindow(kernel, width)
        if 2 * student._alpha > width:
            return student
        raise ValueError(
            f"{kernel!r} has no finite integral over {width} features: its tails fall like the distance to the power "
            f"-{2 * student._alpha:g}. RationalQuadratic(alpha) has one for alpha > {width / 2:g}."
        )
    raise ValueError(
        f"{kernel!r} is no density: known with their integrals are RBF, Laplacian, Matern of nu = 0.5, 1.5 and 2.5, "
        "Wendland, RationalQuadratic of alpha > d / 2, and Cauchy on one feature."
    )


def log_density(window: Window, X: Any, Z: Any, log_weights: np.ndarray) -> np.ndarray:
    r"""Return the logarithm of a weighted sum of windows at each point of X.

    .. math:: \log \sum_j w_j \frac{k(x - z_j)}{\int k}

    Where the sum is not tiny it is a product with the kernel matrix, in tiles; elsewhere, far from all z_j (and for a
    window that is no kernel), the terms are added as logarithms, so that it is finite wherever the density is not 0.

    Parameters
    ----------
    window
        The window.
    X, Z
        The points, and the centres z_j.
    log_weights
        log w_j.
    """
    left, right = Points.of(X), Points.of(Z, "Z")
    if isinstance(window.kernel, Profile):
        return np.asarray(_log_sums(window, left, right, lambda rows: log_weights) - window.log_volume)
    sums = np.asarray(Gram(window.kernel, left, right).matvec(np.exp(log_weights)), dtype=np.float64)
    out = _log(sums)
    far = np.flatnonzero(sums < _TINY)
    if len(far):
        out[far] = _log_sums(window, left.take(far), right, lambda rows: log_weights)
    return np.asarray(out - window.log_volume)


def log_left_out(window: Window, X: Any, log_weights: np.ndarray) -> np.ndarray:
    """Return the log density at each x_i of the sum over the other points, with their weights divided by their sum."""
    points = Points.of(X)
    others = np.log1p(-np.exp(log_weights).clip(max=1 - 1e-16))

    def without(rows: slice) -> np.ndarray:
        logs = np.tile(log_weights, (rows.stop - rows.start, 1))
        logs[np.arange(rows.stop - rows.start), np.arange(rows.start, rows.stop)] = -np.inf
        return logs

    return np.asarray(_log_sums(window, points, points, without) - others - window.log_volume)


def _log_sums(window: Window, left: Points, right: Points, logs: Callable[[slice], np.ndarray]) -> np.ndarray:
    """Return log sum_j exp(log w_j + log k(x - z_j)) for each x, a band of rows at a time."""
    n, m = len(left), len(right)
    compared = Gram.of_formula(window.distance, left, right)
    unit, apart = 1.0, compared
    largest = max(left.extent, right.extent) / float(window._scales().min())
    if largest > _SQUARED:
        unit = 2.0 ** math.frexp(min(largest, 1e300))[1]  # dividing by it rounds nothing
        apart = Gram.of_formula(window.distance, Points(left.vectors / unit), Points(right.vectors / unit))

    def band(rows: slice) -> np.ndarray:
        r = np.asarray(compared.block(rows, slice(0, m)), dtype=np.float64)
        if unit > 1:
            r = np.where(r >= _OVERFLOW, unit * apart.block(rows, slice(0, m)), r)
        with np.errstate(over="ignore"):
            return np.asarray(logsumexp(window.log_of(r) + logs(rows), axis=1))

    height = max(1, _TILE // m)
    return np.concatenate(run(band, [slice(i, min(i + height, n)) for i in range(0, n, height)]))


def _log(values: np.ndarray) -> np.ndarray:
    """Return the logarithm, minus infinity at 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(values))
