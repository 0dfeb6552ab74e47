"""The base of spectral laws, the law on given frequencies, and how frozen laws of scipy.stats are read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from sklearn.utils import check_random_state

Floats = NDArray[np.float64]
Sampler = Callable[[int, np.random.Generator], ArrayLike]
Seed = int | np.random.RandomState | np.random.Generator | None

# Half of the least positive uniform that generators draw, and the largest float64 below 1.
_SMALLEST_UNIFORM = 2.0**-54
_LARGEST_UNIFORM = 1.0 - 2.0**-53


class SpectralLaw(ABC):
    """A probability law on frequencies w in R^d.

    Its characteristic function E cos(w . delta) is a stationary kernel k(x, x') = phi(x - x') with
    phi(0) = 1, and every continuous stationary kernel with phi(0) = 1 arises so (Bochner, 1932).

    A law is immutable. A subclass sets ``dim`` and ``n_uniforms`` and writes ``name``, ``frequencies``
    and ``characteristic``; a law made from Gaussian vectors also writes ``from_gaussian(G, U)``, where
    ``U`` holds the ``n_uniforms - dim`` uniforms that are left, and can then be sampled orthogonally.

    Attributes
    ----------
    dim : int
        Dimension d of the frequencies.
    n_uniforms : int
        How many uniforms make one frequency.
    """

    dim: int
    n_uniforms: int

    @property
    @abstractmethod
    def name(self) -> str:
        """The law in words, as a proof quotes it."""

    @abstractmethod
    def frequencies(self, U: Floats) -> Floats:
        """Map uniforms in (0, 1), shape (n, n_uniforms), to frequencies, shape (n, dim)."""

    @abstractmethod
    def characteristic(self, delta: ArrayLike) -> Floats:
        """E cos(w . delta) for each row of ``delta``, shape (m, dim)."""

    @abstractmethod
    def _parameters(self) -> dict[str, Any]:
        """The arguments that build this law again."""

    def sample(self, n: int, random_state: Seed = None) -> Floats:
        """Draw n independent frequencies, shape (n, dim)."""
        if not isinstance(n, Integral) or n < 1:
            raise ValueError(f"The number of frequencies must be a positive integer, not {n!r}.")
        rng = generator(random_state)
        return self.frequencies(open_uniforms(rng.random((int(n), self.n_uniforms))))

    def _differences(self, delta: ArrayLike) -> Floats:
        array = np.asarray(delta, dtype=np.float64)
        if array.ndim != 2 or array.shape[1] != self.dim:
            raise ValueError(
                f"Differences must have shape (m, {self.dim}), one row per difference, for this law on "
                f"R^{self.dim}; got shape {array.shape}."
            )
        return array

    def _uniforms(self, U: ArrayLike, n_columns: int) -> Floats:
        array = np.asarray(U, dtype=np.float64)
        if array.ndim != 2 or array.shape[1] != n_columns:
            raise ValueError(
                f"Uniforms must have shape (n, {n_columns}) for the law {self.name!r}; got shape {array.shape}."
            )
        return array

    def __repr__(self) -> str:
        arguments = ", ".join(f"{key}={_show(value)}" for key, value in self._parameters().items())
        return f"{type(self).__name__}({arguments})"

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        assert isinstance(other, SpectralLaw)
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash((type(self), self._key()))

    def _key(self) -> Hashable:
        return tuple(_freeze(value) for value in self._parameters().values())


class DiscreteLaw(SpectralLaw):
    """Finitely many frequencies w_i with probabilities p_i.

    E cos(w . delta) = sum of p_i cos(w_i . delta): exact, and a kernel with 2 features per frequency.

    Parameters
    ----------
    frequencies : array_like of shape (m, dim)
        The frequencies, in radians per unit of x.
    weights : array_like of shape (m,), optional
        Their probabilities; equal when left out.

    Examples
    --------
    >>> import numpy as np
    >>> law = DiscreteLaw([[0.0], [np.pi]], [0.25, 0.75])
    >>> law.characteristic([[0.0], [1.0]]).tolist()
    [1.0, -0.5]
    """

    def __init__(self, frequencies: ArrayLike, weights: ArrayLike | None = None) -> None:
        points = np.array(frequencies, dtype=np.float64)
        if points.ndim != 2 or 0 in points.shape:
            raise ValueError(
                f"frequencies must have shape (m, dim) with at least one row and column; got shape {points.shape}."
            )
        if not np.isfinite(points).all():
            raise ValueError("frequencies must be finite, but some are NaN or infinite: leave those rows out.")
        points.flags.writeable = False
        self.points = points
        self.weights = check_weights(np.full(len(points), 1 / len(points)) if weights is None else weights, len(points))
        self.dim = points.shape[1]
        self.n_uniforms = 1

    @classmethod
    def from_sampler(cls, sampler: Sampler, dim: int, n: int = 4096, random_state: Seed = None) -> DiscreteLaw:
        """The empirical law of n draws of ``sampler(n, rng)``, which returns an array of shape (n, dim)."""
        dim = check_dim(dim)
        drawn = np.asarray(sampler(n, generator(random_state)), dtype=np.float64)
        if drawn.shape != (n, dim):
            raise ValueError(
                f"The sampler was asked for {n} frequencies in dimension {dim} and must return shape "
                f"({n}, {dim}); it returned shape {drawn.shape}. It is called as sampler(n, rng), with rng a "
                "numpy Generator."
            )
        return cls(drawn)

    @property
    def name(self) -> str:
        return f"discrete law on {len(self.points)} frequencies"

    def frequencies(self, U: Floats) -> Floats:
        U = self._uniforms(U, 1)
        chosen = np.searchsorted(np.cumsum(self.weights), U[:, 0], side="right")
        # Rounding may leave the cumulated weights a hair below 1.
        return np.asarray(self.points[np.minimum(chosen, np.flatnonzero(self.weights)[-1])])

    def characteristic(self, delta: ArrayLike) -> Floats:
        delta = self._differences(delta)
        value = np.empty(len(delta))
        for start in range(0, len(delta), 1024):
            part = slice(start, start + 1024)
            value[part] = np.cos(delta[part] @ self.points.T) @ self.weights
        return value

    def _parameters(self) -> dict[str, Any]:
        return {"frequencies": self.points, "weights": self.weights}


def generator(random_state: Seed) -> np.random.Generator:
    """Turn whatever scikit-learn takes for ``random_state``, or a Generator, into a Generator."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(check_random_state(random_state).randint(0, 2**31 - 1, size=4))


def open_uniforms(U: Floats) -> Floats:
    """Keep uniforms off 0 and 1, where quantile functions are infinite."""
    return np.clip(U, _SMALLEST_UNIFORM, _LARGEST_UNIFORM)


def check_dim(dim: Any) -> int:
    """A dimension as an int of at least 1, or a sentence."""
    if isinstance(dim, bool) or not isinstance(dim, Integral) or dim < 1:
        raise ValueError(f"The dimension of a spectral law must be a positive integer, not {dim!r}.")
    return int(dim)


def check_scale(scale: Any, dim: int) -> float | Floats:
    """A positive float, or a read-only array of one positive float per coordinate, or a sentence."""
    try:
        array = np.array(scale, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"scale must be a positive number, or {dim} of them; got {scale!r}.") from None
    if array.ndim > 1 or (array.ndim == 1 and array.shape != (dim,)):
        raise ValueError(
            f"scale must be one number or one per coordinate, here {dim}; got shape {array.shape}. "
            "Give a float to scale all coordinates alike."
        )
    if not (np.isfinite(array).all() and (array > 0).all()):
        raise ValueError(f"scale must be positive and finite, not {scale!r}; a typical distance is a good start.")
    if array.ndim == 0:
        return float(array)
    array.flags.writeable = False
    return array


def check_weights(weights: ArrayLike, n: int) -> Floats:
    """A read-only array of n probabilities, or a sentence."""
    array = np.array(weights, dtype=np.float64)
    if array.shape != (n,):
        raise ValueError(f"There must be one weight for each of the {n} parts; got shape {array.shape}.")
    if not (np.isfinite(array).all() and (array >= 0).all()):
        raise ValueError(f"Weights are probabilities and cannot be negative or infinite; got {array.min():g}.")
    if abs(array.sum() - 1.0) > 1e-9:
        raise ValueError(f"Weights must sum to 1, but these sum to {array.sum():g}: divide them by their sum.")
    if abs(array.sum() - 1.0) > n * np.finfo(float).eps:  # weights that were divided before stay as they are
        array /= array.sum()
    array.flags.writeable = False
    return array


def _show(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return repr(value.tolist())
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_show(item) for item in value) + "]"
    return describe(value) if is_frozen(value) else repr(value)


def _freeze(value: Any) -> Hashable:
    if isinstance(value, np.ndarray):
        return (value.shape, value.tobytes())
    if isinstance(value, (list, tuple)):
        return tuple(_freeze(item) for item in value)
    return fingerprint(value) if is_frozen(value) else value


def is_frozen(law: Any) -> bool:
    """Whether ``law`` is a frozen univariate law of scipy.stats, such as ``stats.cauchy(scale=2)``."""
    return isinstance(getattr(law, "dist", None), (stats.rv_continuous, stats.rv_discrete)) and hasattr(law, "ppf")


def check_frozen(law: Any, role: str) -> Any:
    """Return a frozen continuous law with scalar parameters, or raise a sentence.

    A law that needs no shape, such as ``stats.norm``, may come unfrozen: it means ``stats.norm()``.
    """
    if isinstance(law, (stats.rv_continuous, stats.rv_discrete)):
        if law.numargs:
            raise ValueError(
                f"{role} is scipy.stats.{law.name} without its shape parameters ({law.shapes}): "
                f"call it first, as in scipy.stats.{law.name}({law.shapes})."
            )
        law = law()
    if not is_frozen(law):
        raise TypeError(
            f"{role} must be a frozen univariate law of scipy.stats, such as scipy.stats.cauchy(scale=2); "
            f"got {type(law).__name__}."
        )
    if isinstance(law.dist, stats.rv_discrete):
        raise TypeError(
            f"{role} is scipy.stats.{law.dist.name}, a discrete law: give its points and probabilities to "
            "DiscreteLaw(frequencies, weights) instead."
        )
    for key, value in parameters(law).items():
        if np.ndim(value):
            raise ValueError(
                f"{role} has an array as its parameter {key!r}: use one number, and `scale` of the spectral "
                "law for one scale per coordinate."
            )
    if not np.isfinite(law.ppf(0.5)):
        raise ValueError(f"{role}, {describe(law)}, has parameters outside its domain: its median is not a number.")
    return law


def parameters(law: Any) -> dict[str, Any]:
    """Shapes, loc and scale of a frozen law, by name, defaults filled in."""
    shapes = [name.strip() for name in (law.dist.shapes or "").split(",") if name.strip()]
    named = dict(zip([*shapes, "loc", "scale"], law.args, strict=False))
    values = {"loc": 0.0, "scale": 1.0} | named | law.kwds
    return {key: values[key] for key in [*shapes, "loc", "scale"]}


def describe(law: Any) -> str:
    """A frozen law as the expression that builds it."""
    shown = []
    for key, value in parameters(law).items():
        if (key, value) not in (("loc", 0.0), ("scale", 1.0)):
            shown.append(f"{key}={value.item() if isinstance(value, np.generic) else value!r}")
    return f"scipy.stats.{law.dist.name or type(law.dist).__name__}({', '.join(shown)})"


def fingerprint(law: Any) -> Hashable:
    """Equal for equal laws; a few quantiles tell apart those whose parameters do not, such as histograms."""
    quantiles = law.ppf(np.linspace(0.05, 0.95, 7))
    return (type(law.dist), tuple(map(float, parameters(law).values())), quantiles.tobytes())


def quantile_rule(law: Any, n_points: int) -> tuple[Floats, Floats]:
    """Points and weights with sum(weights * g(points)) close to E g(law), for bounded smooth g.

    The double-exponential rule (Takahasi and Mori, 1974) in the probability u: u = 1 / (1 + exp(-pi sinh t)),
    trapezoids in t, points = quantiles. The weights are positive and sum to one, so that the rule is itself a
    law, and a kernel built on it is exactly positive semi-definite.
    """
    t = np.linspace(-3.2, 3.2, n_points)
    lower = 1.0 / (1.0 + np.exp(np.pi * np.sinh(np.abs(t))))
    weights = np.cosh(t) * lower * (1.0 - lower)
    # The upper half goes through the survival function: 1 - u would lose the tail to rounding.
    points = np.where(t <= 0, law.ppf(lower), law.isf(lower))
    usable = np.isfinite(points)
    points, weights = points[usable], weights[usable]
    return points, weights / weights.sum()
