"""The parameters of a Gaussian process on a logarithmic scale: which are free, and between which bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse

from mercer.gram import parameters, with_parameters
from mercer.kernels import Kernel
from mercer.points import Points

NOISE = "noise"
_RANGE = 1e5  # factor by which a parameter may move from its start, by default
_SCALES = (1e-3, 1e5)  # bounds of a scale, in units of the spread of the points, or of where it starts
_NOISES = (1e-6, 1e2)  # bounds of the noise, in units of the mean square of the targets
_AMPLITUDES = ("factor", "value", "weight", "weights")  # parameters in units of squared targets
_TINY, _LARGE = 1e-300, 1e300  # within which bounds and their logarithms are finite


@dataclass(frozen=True)
class Space:
    """The parameters of a kernel and the noise variance; the free ones are searched by their logarithms.

    Attributes
    ----------
    kernel
        Where the search starts, with every parameter known.
    noise
        The variance of the noise: a number, a parameter like the others, or one for each point, which are kept.
    names
        What the parameters are called: `base__scale[2]` and, last, `noise`.
    values
        Their values at the start.
    free
        Which of them may move.
    bounds
        Between what, one row (low, high) for each.
    held
        Why the others do not move, by name.
    known
        A variance beside the noise, which is kept: a number, or one for each point.
    """

    kernel: Kernel
    noise: float | np.ndarray
    names: list[str]
    values: np.ndarray
    free: np.ndarray
    bounds: np.ndarray
    held: dict[str, str] = field(default_factory=dict)
    known: float | np.ndarray = 0.0

    @property
    def start(self) -> np.ndarray:
        """The logarithms of the free parameters."""
        return np.log(self.values[self.free])

    @property
    def limits(self) -> np.ndarray:
        """The logarithms of the bounds of the free parameters."""
        return np.log(self.bounds[self.free])

    @property
    def free_names(self) -> list[str]:
        """The names of the free parameters."""
        return [name for name, free in zip(self.names, self.free, strict=True) if free]

    def at(self, theta: np.ndarray) -> tuple[Kernel, float | np.ndarray]:
        """Return the kernel and the variance of each target about f for logarithms of the free parameters."""
        values = self.values.copy()
        values[self.free] = np.exp(theta)
        if np.ndim(self.noise):
            return with_parameters(self.kernel, values), self.noise + self.known
        return with_parameters(self.kernel, values[:-1]), float(values[-1]) + self.known

    def of_rows(self, rows: np.ndarray) -> Space:
        """Return the same parameters for some of the points."""
        noise, known = (v[rows] if isinstance(v, np.ndarray) else v for v in (self.noise, self.known))
        return replace(self, noise=noise, known=known)

    def slopes(self, theta: np.ndarray, kernel: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """Return the slopes in the logarithms from those in the parameters and in the noise of each point."""
        both = kernel if np.ndim(self.noise) else np.append(kernel, noise.sum())
        return np.asarray(both[self.free] * np.exp(theta))

    def at_bounds(self, theta: np.ndarray) -> list[str]:
        """Return, in words, which parameters ended at which bound."""
        warnings = []
        for name, t, (low, high), bounds in zip(
            self.free_names, theta, self.limits, self.bounds[self.free], strict=True
        ):
            for side, at, bound in (("lower", low, bounds[0]), ("upper", high, bounds[1])):
                if low < high and abs(t - at) <= 1e-9 * max(1.0, abs(at)):
                    warnings.append(f"{name} is at its {side} bound {bound:.3g}")
        return warnings


def space_of(
    kernel: Kernel,
    noise: float | np.ndarray,
    points: Points,
    Y: np.ndarray,
    bounds: Mapping[str, Any] | None = None,
    fixed: Sequence[str] = (),
    own: Mapping[str, tuple[float, float]] | None = None,
) -> Space:
    """Return the parameters of a kernel and of the noise, with bounds where none are given taken from the data.

    A name stands for one parameter (`base__scale[2]`), for all entries of one (`base__scale`), or for all whose last
    part it is (`scale`).

    Parameters
    ----------
    kernel
        With every parameter known.
    noise
        The variance to start from, or one for each point, which are kept.
    points, Y
        The training points and targets (n, m).
    bounds
        From names to (low, high).
    fixed
        Names of parameters to keep.
    own
        Bounds that came with the kernel, which those of `bounds` replace; where both ends are the same the parameter is
        kept.

    Examples
    --------
    >>> from mercer import RBF
    >>> kernel, X = 2.0 * RBF(scale=[1.0, 3.0]), Points([[0.0, 1.0], [1.0, 0.0]])
    >>> space = space_of(kernel, 0.1, X, np.ones((2, 1)), fixed=["factor"])
    >>> space.free_names
    ['base__scale[0]', 'base__scale[1]', 'noise']
    """
    params = parameters(kernel)
    names, values = [str(p) for p in params], [p.value for p in params]
    if not np.ndim(noise):
        names, values = [*names, NOISE], [*values, float(noise)]
    start = np.array(values, dtype=np.float64)
    given = _by_name(names, bounds or {}, "bounds")
    kept = _by_name(names, dict.fromkeys(fixed), "fixed")
    for name, pair in (own or {}).items():
        if name not in given:
            (kept if pair[0] == pair[1] else given)[name] = pair
    limits = np.ones((len(names), 2))
    held = {}
    square = float(np.mean(Y**2)) or 1.0
    spread = _spread(points) if any(n not in given for n in names) else None
    for i, name in enumerate(names):
        if name in kept:
            held[name] = "as asked"
        elif not start[i] > 0:
            held[name] = f"it is {start[i]:g}, and a logarithmic scale has no {'zero' if start[i] == 0 else 'sign'}"
        elif name in given:
            limits[i] = _checked(name, given[name])
            start[i] = np.clip(start[i], *limits[i])
        else:
            index = None if i >= len(params) else params[i].index
            limits[i] = _default(name, index, float(start[i]), square, spread)
    free = np.array([name not in held for name in names], dtype=bool)
    return Space(kernel, noise, names, start, free, limits, held)


def last_part(name: str) -> str:
    """Return the last part of a parameter's name, without the number of an entry."""
    return name.rsplit("__", 1)[-1].split("[")[0]


def _by_name(names: list[str], given: Mapping[str, Any], what: str) -> dict[str, Any]:
    """Return what was given for each parameter, by its full name."""
    chosen: dict[str, Any] = {}
    for key in sorted(given, key=lambda key: ("__" in key) + 2 * ("[" in key)):  # the more exact name decides
        matching = [n for n in names if key in (n, n.split("[")[0], last_part(n))]
        if not matching:
            raise ValueError(
                f"{what} names {key!r}, which is no parameter of this model; they are {', '.join(names) or 'none'}."
            )
        chosen.update(dict.fromkeys(matching, given[key]))
    return chosen


def _checked(name: str, bounds: Any) -> tuple[float, float]:
    try:
        low, high = (float(v) for v in bounds)
    except (TypeError, ValueError):
        raise ValueError(f"the bounds of {name} must be two numbers (low, high); they are {bounds!r}.") from None
    if not (0 < low <= high < math.inf):
        raise ValueError(f"the bounds of {name} must satisfy 0 < low <= high < inf; they are {bounds!r}.")
    return low, high


def _default(
    name: str, index: int | None, start: float, square: float, spread: np.ndarray | None
) -> tuple[float, float]:
    """Return bounds from the data and from the start, which they contain."""
    low, high = start / _RANGE, start * _RANGE
    if name == NOISE:
        low, high = _NOISES[0] * square, _NOISES[1] * square
    elif last_part(name) in _AMPLITUDES:
        low, high = min(start, square) / _RANGE, max(start, square) * _RANGE
    elif last_part(name) == "scale" and spread is not None:
        here = spread[index] if index is not None and index < len(spread) else float(np.sqrt(np.mean(spread**2)))
        if here > 0:
            low, high = _SCALES[0] * min(here, start), _SCALES[1] * max(here, start)
    return max(min(low, start), _TINY), min(max(high, start), _LARGE)


def _spread(points: Points) -> np.ndarray | None:
    """Return the standard deviation of each feature, where the points are rows of numbers."""
    if not points.numeric:
        return None
    v = points.vectors
    with np.errstate(over="ignore", invalid="ignore"):
        if sparse.issparse(v):
            mean = np.asarray(v.mean(axis=0)).ravel()
            deviations = np.sqrt(np.maximum(np.asarray(v.multiply(v).mean(axis=0)).ravel() - mean**2, 0.0))
        else:
            deviations = np.asarray(v, dtype=np.float64).std(axis=0)
    return deviations if np.isfinite(deviations).all() else None
