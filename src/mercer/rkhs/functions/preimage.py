"""Points whose images are nearest to given functions of H."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from mercer.gram import Gram, gradient
from mercer.kernels import RBF, Kernel, Laplacian, Linear
from mercer.kernels.vectors.stationary import Radial
from mercer.points import Points

METHODS = ("distances", "fixed_point", "gradient")
_NEIGHBOURS = 10  # nearest points, by the distances to which a pre-image is placed; farther ones tell less
_TABLE = 4096  # distances at which the profile of a radial kernel is known
_TOGETHER = 16  # points that share the kernel values of a step
_STEP = 1e-7  # of the spread of the centres, at which a search has arrived


@dataclass(frozen=True, eq=False)
class Preimages:
    """Points and how far their images are from what they stand for.

    Attributes
    ----------
    points : ndarray of shape (m, d)
        The points x.
    distances : ndarray of shape (m,)
        |phi(x) - g| in H.
    n_iter : int
        The most steps that a search took.
    method : str
        How they were found.
    """

    points: np.ndarray
    distances: np.ndarray
    n_iter: int
    method: str


def preimages(
    kernel: Kernel, centres: Any, coefficients: np.ndarray, *, method: str = "auto", max_iter: int = 200
) -> Preimages:
    r"""Return, for each g of some functions of H, a point x whose image phi(x) = k(x, .) is close to it.

    .. math:: \min_x \; \|\phi(x) - g\|^2 = k(x, x) - 2 g(x) + \|g\|^2, \qquad g = \sum_i c_i k(x_i, \cdot)

    Most functions are the image of no point, and the problem has local minima. All searches start at the best of the
    centres, or at what the distances say where that is better, and never get worse.

    Parameters
    ----------
    kernel
        The kernel of H, of rows of numbers.
    centres
        The x_i.
    coefficients
        The c_i, one column for each function.
    method
        "distances": g(x_i) = k(x, x_i) gives the distance of x to the 10 nearest centres if the kernel is a decreasing
        function of a scaled distance, and x follows from those (Kwok and Tsang 2004).
        "fixed_point": x becomes the mean of the centres with weights c_i k(x, x_i) until it stays (Mika et al. 1999),
        by shorter steps where that would lead away; Gaussian kernels only.
        "gradient": L-BFGS, for any kernel that has a gradient.
        "auto": a formula for the linear kernel, the fixed point for Gaussian kernels, the gradient for others.
    max_iter
        The most steps of a search.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF
    >>> from mercer.rkhs import preimages
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> result = preimages(RBF(1.0), X, np.eye(50)[:, :3])  # g = phi(x_i) for three of the points
    >>> bool(np.allclose(result.points, X[:3], atol=1e-5)), bool(result.distances.max() < 1e-5)
    (True, True)
    """
    X = dense_rows(centres)
    C = np.asarray(coefficients, dtype=np.float64)
    if C.ndim not in (1, 2) or len(C) != len(X) or not np.isfinite(C).all():
        raise ValueError(
            f"coefficients of shape {C.shape} must be finite numbers, one row for each of the {len(X)} centres and one "
            "column for each function."
        )
    C = C.reshape(len(X), -1)
    kernel = kernel.resolve(Points(X))
    if method == "auto":
        method = "fixed_point" if isinstance(kernel, RBF) else "formula" if isinstance(kernel, Linear) else "gradient"
    elif method not in METHODS:
        raise ValueError(f"method must be 'auto' or one of {', '.join(map(repr, METHODS))}; it is {method!r}.")
    search = _Search(kernel, X, C)
    if method == "formula":
        P, steps = C.T @ X, 0
    elif method == "distances":
        P, steps = _by_distances(search), 0
    elif method == "fixed_point":
        if not isinstance(kernel, RBF):
            raise ValueError(f"'fixed_point' is for RBF kernels; this one is {kernel!r}. Use 'gradient'.")
        P, steps = _fixed_point(search, search.start(), max_iter)
    else:
        try:
            P, steps = _descent(search, search.start(), max_iter)
        except TypeError as error:  # no gradient
            raise TypeError(f"{error} KernelPCA(fit_inverse_transform=True) learns a way back without one.") from error
    return Preimages(P, search.distances(P), steps, method)


def dense_rows(centres: Any) -> np.ndarray:
    """Return points as rows of float64 numbers, none of them left out."""
    rows = Points.of(centres, "centres").vectors
    return np.asarray(rows.toarray() if sparse.issparse(rows) else rows, dtype=np.float64)


class _Search:
    """The functions g and the points they are to be found for."""

    def __init__(self, kernel: Kernel, X: np.ndarray, C: np.ndarray) -> None:
        self.kernel, self.X, self.C = kernel, X, C
        self.centres = Points(X)
        self.at_centres = np.asarray(Gram(kernel, self.centres).matvec(C))  # g_p(x_i)
        self.own = np.asarray(kernel.diag(X))
        self.squares = np.einsum("ip,ip->p", C, self.at_centres).clip(min=0.0)
        self.spread = float(np.abs(X - X.mean(axis=0)).max()) or 1.0

    def start(self) -> np.ndarray:
        """Return for each function the centre whose image is nearest, or the point of the distances if it is nearer."""
        best = np.argmin(self.own[:, None] - 2.0 * self.at_centres, axis=0)
        P = self.X[best]
        if _radial(self.kernel):
            other = _by_distances(self)
            nearer = self.distances(other) < self.distances(P)
            P = np.where(nearer[:, None], other, P)
        return P

    def distances(self, P: np.ndarray) -> np.ndarray:
        """Return |phi(x) - g| for one point per function."""
        values = np.einsum("pi,ip->p", np.asarray(Gram(self.kernel, P, self.centres).dense()), self.C)
        own = np.asarray(self.kernel.diag(P))
        return np.sqrt((own - 2.0 * values + self.squares).clip(min=0.0))


# -- by distances ---------------------------------------------------------------------------------------------


def _radial(kernel: Kernel) -> bool:
    """Return whether a kernel is a decreasing function of a scaled Euclidean distance."""
    return isinstance(kernel, Radial) and not isinstance(kernel, Laplacian)


def _by_distances(search: _Search) -> np.ndarray:
    kernel = search.kernel
    if not _radial(kernel):
        raise ValueError(
            f"'distances' needs a kernel that is a function of the distance, such as RBF or Matern; this one is "
            f"{kernel!r}. Use 'gradient'."
        )
    assert isinstance(kernel, Radial)
    scale = np.asarray(kernel.scale, dtype=np.float64)
    X = search.X / scale
    n = len(X)
    q = min(_NEIGHBOURS, n)
    near = np.argpartition(search.own[:, None] - 2.0 * search.at_centres, q - 1, axis=0)[:q]
    squares = _squared_distances(kernel, np.take_along_axis(search.at_centres, near, axis=0), X.shape[1])
    Z = np.empty((search.C.shape[1], X.shape[1]))
    for p, who in enumerate(near.T):
        some = X[who]
        middle = some.mean(axis=0)
        U, s, Vt = np.linalg.svd(some - middle, full_matrices=False)
        kept = s > 1e-6 * max(float(s[0]), 1e-300)
        about = np.square(some - middle).sum(axis=1)
        # |x - x_i|^2 = |x - m|^2 + |x_i - m|^2 - 2 <x - m, x_i - m>: differences of these are linear in x.
        right = 0.5 * (about - squares[:, p])
        right -= right.mean()
        Z[p] = middle + Vt[kept].T @ ((U[:, kept].T @ right) / s[kept])
    return Z * scale


def _squared_distances(kernel: Radial, values: np.ndarray, width: int) -> np.ndarray:
    """Return the squares of the scaled distances at which a radial kernel has the given values."""
    r = np.concatenate([[0.0], np.geomspace(1e-4, 40.0, _TABLE)])
    line = np.zeros((len(r), width))
    line[:, 0] = r
    unit = kernel.replace(scale=1.0)
    profile = np.asarray(Gram(unit, np.zeros((1, width)), line).dense())[0]
    falling = profile[::-1]
    smallest = max(float(profile[-1]), 1e-12 * float(profile[0]))  # beyond, a value says only: far away
    return np.interp(np.maximum(values, smallest), np.maximum.accumulate(falling), np.square(r)[::-1])


# -- by search ------------------------------------------------------------------------------------------------


def _fixed_point(search: _Search, P: np.ndarray, max_iter: int) -> tuple[np.ndarray, int]:
    """Maximise g(x) for a Gaussian kernel by weighted means, each step halved until g has grown."""
    middle = search.X.mean(axis=0)
    X, enough = search.X - middle, _STEP * search.spread

    def look(P: np.ndarray, who: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return g, and the step to the weighted mean; where the weights nearly cancel, a shorter one uphill."""
        W = np.asarray(Gram(search.kernel, P, search.centres).dense()) * search.C[:, who].T
        g, size = W.sum(axis=1), np.abs(W).sum(axis=1)
        slope = W @ X - g[:, None] * (P - middle)
        weight = np.where(g > 0.1 * size, g, size)
        return g, slope / np.where(weight > 0, weight, 1.0)[:, None]

    P = P.copy()
    active = np.arange(len(P))
    g, step = look(P, active)
    length = np.ones(len(P))
    taken = 0
    while len(active) and taken < max_iter:
        taken += 1
        trial = P[active] + length[active, None] * step[active]
        new_g, new_step = look(trial, active)
        up = new_g > g[active]
        won = active[up]
        P[won], g[won], step[won], length[won] = trial[up], new_g[up], new_step[up], 1.0
        length[active[~up]] *= 0.5
        moving = length[active] * np.abs(step[active]).max(axis=1) > enough
        active = active[moving]
    return P, taken


def _descent(search: _Search, P: np.ndarray, max_iter: int) -> tuple[np.ndarray, int]:
    """Minimise k(x, x) - 2 g(x) by L-BFGS, for a few points together."""
    parts = [range(i, min(i + _TOGETHER, len(P))) for i in range(0, len(P), _TOGETHER)]
    descents = [_descend(search, np.array(part), P[part.start : part.stop], max_iter) for part in parts]
    return np.concatenate([points for points, _ in descents]), max(steps for _, steps in descents)


def _descend(search: _Search, who: np.ndarray, start: np.ndarray, max_iter: int) -> tuple[np.ndarray, int]:
    """Search for some of the functions, in units of the spread of the centres; a point that got worse stays."""
    from scipy.optimize import minimize  # slow to load, and kernels are wanted without it

    kernel, unit = search.kernel, search.spread
    C = np.ascontiguousarray(search.C[:, who])
    each, one = np.arange(len(who)), np.eye(len(who))
    size = np.maximum(float(np.abs(search.own).max()), search.squares[who]).clip(min=1e-300)

    def look(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        g = np.asarray(Gram(kernel, x, search.centres).matvec(C))[each, each]
        values = (np.asarray(kernel.diag(x)) - 2.0 * g) / size
        # By symmetry the derivative of k(x, x) is twice that of k(x, z) in x at z = x.
        slopes = gradient(kernel, x, x, one)[each, :, each] - gradient(kernel, x, search.centres, C)[each, :, each]
        return values, 2.0 * slopes / size[:, None]

    def joint(z: np.ndarray) -> tuple[float, np.ndarray]:
        values, slopes = look(unit * z.reshape(start.shape))
        return float(values.sum()), slopes.ravel() * unit

    settings = {"maxiter": max_iter, "ftol": 1e-15}
    done = minimize(joint, start.ravel() / unit, jac=True, method="L-BFGS-B", options=settings)
    end = unit * done.x.reshape(start.shape)
    better = look(end)[0] < look(start)[0]
    return np.where(better[:, None], end, start), int(done.nit)
