"""New laws from old: mixtures (sums of kernels), sums of frequencies (products) and linear images (linear maps)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from sklearn.utils.metaestimators import available_if

from mercer.features.spectral.gaussian import GaussianScaleMixture
from mercer.features.spectral.independent import IndependentLaw
from mercer.features.spectral.law import DiscreteLaw, Floats, Seed, SpectralLaw, check_dim, check_weights, is_frozen

_Method = TypeVar("_Method", bound=Callable[..., Floats])

# A combined law has `from_gaussian` when all its parts do, so that `hasattr` tells.
_for_gaussian_parts: Callable[[_Method], _Method] = available_if(lambda law: law._is_gaussian())


class MixtureLaw(SpectralLaw):
    """One of several laws, chosen at random.

    E cos(w . delta) = sum over i of p_i phi_i(delta): a convex combination of the kernels of the parts.

    Parameters
    ----------
    weights : array_like of shape (m,)
        Probabilities p_i of the parts.
    laws : sequence of SpectralLaw
        The parts, all in the same dimension.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.features.spectral import DiscreteLaw
    >>> law = MixtureLaw([0.5, 0.5], [DiscreteLaw([[0.0]]), DiscreteLaw([[np.pi]])])
    >>> law.characteristic([[1.0]]).tolist()
    [0.0]
    """

    def __init__(self, weights: ArrayLike, laws: Sequence[SpectralLaw]) -> None:
        self.laws = tuple(laws)
        if not self.laws:
            raise ValueError("A mixture needs at least one law; got none.")
        dims = sorted({law.dim for law in self.laws})
        if len(dims) > 1:
            raise ValueError(f"The laws of a mixture must have the same dimension; got dimensions {dims}.")
        self.weights = check_weights(weights, len(self.laws))
        self.dim = dims[0]
        self.n_uniforms = 1 + max(law.n_uniforms for law in self.laws)

    @property
    def name(self) -> str:
        return "mixture of " + ", ".join(f"{p:.3g} {law.name}" for p, law in zip(self.weights, self.laws, strict=True))

    def frequencies(self, U: Floats) -> Floats:
        U = self._uniforms(U, self.n_uniforms)
        return self._choose(U, lambda law, rows: law.frequencies(U[rows, 1 : 1 + law.n_uniforms]))

    @_for_gaussian_parts
    def from_gaussian(self, G: Floats, U: Floats) -> Floats:
        """Frequencies from standard normal rows ``G`` and uniforms: one to choose, the rest for the part."""

        def part(law: Any, rows: NDArray[np.intp]) -> Floats:
            return np.asarray(law.from_gaussian(G[rows], U[rows, 1 : 1 + law.n_uniforms - self.dim]))

        return self._choose(U, part)

    def characteristic(self, delta: ArrayLike) -> Floats:
        delta = self._differences(delta)
        value = np.zeros(len(delta))
        for weight, law in zip(self.weights, self.laws, strict=True):
            value += weight * law.characteristic(delta)
        return value

    def _is_gaussian(self) -> bool:
        return all(hasattr(law, "from_gaussian") for law in self.laws)

    def _choose(self, U: Floats, part: Callable[[SpectralLaw, NDArray[np.intp]], Floats]) -> Floats:
        chosen = np.searchsorted(np.cumsum(self.weights), U[:, 0], side="right")
        chosen = np.minimum(chosen, np.flatnonzero(self.weights)[-1])
        W = np.empty((len(U), self.dim))
        for i, law in enumerate(self.laws):
            rows = np.flatnonzero(chosen == i)
            if rows.size:
                W[rows] = part(law, rows)
        return W

    def _parameters(self) -> dict[str, Any]:
        return {"weights": self.weights, "laws": self.laws}


class ConvolvedLaw(SpectralLaw):
    """The law of +- v_1 +- v_2 +- ..., with independent parts and fair signs.

    E cos(w . delta) = product over i of phi_i(delta): the product of the kernels. The signs do not change the
    parts' own kernels, but make each part symmetric, without which the product would not follow.

    Parameters
    ----------
    laws : sequence of SpectralLaw
        The parts, all in the same dimension.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.features.spectral import DiscreteLaw
    >>> wave = DiscreteLaw([[1.0]])
    >>> bool(np.isclose(ConvolvedLaw([wave, wave]).characteristic([[0.5]])[0], np.cos(0.5) ** 2))
    True
    """

    def __init__(self, laws: Sequence[SpectralLaw]) -> None:
        self.laws = tuple(laws)
        dims = sorted({law.dim for law in self.laws})
        if len(dims) != 1:
            raise ValueError(
                f"The laws of a sum must be at least one and have the same dimension; got dimensions {dims}."
            )
        self.dim = dims[0]
        self.n_uniforms = sum(law.n_uniforms + 1 for law in self.laws)

    @property
    def name(self) -> str:
        return "sum of " + ", ".join(law.name for law in self.laws)

    def frequencies(self, U: Floats) -> Floats:
        ends = np.cumsum([law.n_uniforms + 1 for law in self.laws])
        parts = np.split(self._uniforms(U, self.n_uniforms), ends[:-1], axis=1)
        W = np.zeros((len(U), self.dim))
        for law, part in zip(self.laws, parts, strict=True):
            W += np.where(part[:, :1] < 0.5, -1.0, 1.0) * law.frequencies(part[:, 1:])
        return W

    def characteristic(self, delta: ArrayLike) -> Floats:
        delta = self._differences(delta)
        return np.asarray(np.prod([law.characteristic(delta) for law in self.laws], axis=0))

    def _parameters(self) -> dict[str, Any]:
        return {"laws": self.laws}


class LinearImage(SpectralLaw):
    """The law of A v, with v from another law.

    E cos(w . delta) = phi(A^T delta): the kernel of v after the linear map A^T, as in Mahalanobis distances.

    Parameters
    ----------
    matrix : array_like of shape (dim, law.dim)
        The matrix A.
    law : SpectralLaw
        The law of v.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.features.spectral import DiscreteLaw
    >>> LinearImage([[2.0], [0.0]], DiscreteLaw([[np.pi]])).characteristic([[0.5, 7.0]]).tolist()
    [-1.0]
    """

    def __init__(self, matrix: ArrayLike, law: SpectralLaw) -> None:
        self.matrix = np.array(matrix, dtype=np.float64)
        if self.matrix.ndim != 2 or self.matrix.shape[1] != law.dim or not np.isfinite(self.matrix).all():
            raise ValueError(
                f"matrix must be finite, with {law.dim} columns, the dimension of the law; "
                f"got shape {self.matrix.shape}."
            )
        self.matrix.flags.writeable = False
        self.law = law
        self.dim = self.matrix.shape[0]
        self.n_uniforms = law.n_uniforms

    @property
    def name(self) -> str:
        return f"linear image of {self.law.name}"

    def frequencies(self, U: Floats) -> Floats:
        return np.asarray(self.law.frequencies(U) @ self.matrix.T)

    @_for_gaussian_parts
    def from_gaussian(self, G: Floats, U: Floats) -> Floats:
        """Frequencies from standard normal rows ``G`` and the uniforms left for the inner law."""
        inner: Any = self.law
        return np.asarray(inner.from_gaussian(G, U) @ self.matrix.T)

    def characteristic(self, delta: ArrayLike) -> Floats:
        return self.law.characteristic(self._differences(delta) @ self.matrix)

    def _is_gaussian(self) -> bool:
        return hasattr(self.law, "from_gaussian") and self.dim == self.law.dim

    def _parameters(self) -> dict[str, Any]:
        return {"matrix": self.matrix, "law": self.law}


def as_law(law: Any, dim: int, *, n_samples: int = 4096, random_state: Seed = 0) -> SpectralLaw:
    """Recognise a spectral law on R^dim.

    Parameters
    ----------
    law : SpectralLaw, scipy.stats law or callable
        One of: a law of this module; a frozen univariate law of scipy.stats, for independent coordinates;
        a frozen ``multivariate_normal`` or ``multivariate_t`` of mean zero; a sampler, called once as
        ``law(n_samples, rng)``, whose draws become a :class:`DiscreteLaw`.
    dim : int
        Dimension of the frequencies.
    n_samples : int, default=4096
        How many frequencies to draw from a sampler.
    random_state : int, RandomState, Generator or None, default=0
        Seed of those draws; fixed by default, so that the same sampler gives the same kernel.

    Returns
    -------
    SpectralLaw

    Examples
    --------
    >>> from scipy import stats
    >>> as_law(stats.laplace(), dim=1).name
    'laplace'
    >>> as_law(lambda n, rng: rng.normal(size=(n, 2)), dim=2).name
    'discrete law on 4096 frequencies'
    """
    dim = check_dim(dim)
    if isinstance(law, SpectralLaw):
        spectral = law
    elif is_frozen(law) or isinstance(law, (stats.rv_continuous, stats.rv_discrete)):
        return IndependentLaw(dim, law)
    elif isinstance(law, type(stats.multivariate_normal())):
        spectral = _elliptical(law.mean, law.cov, np.inf)
    elif isinstance(law, type(stats.multivariate_t())):
        spectral = _elliptical(law.loc, law.shape, float(law.df))
    elif isinstance(law, (type(stats.multivariate_normal), type(stats.multivariate_t))):
        raise TypeError(
            f"{type(law).__name__.removesuffix('_gen')} is not frozen: call it with its parameters, as in "
            "scipy.stats.multivariate_normal(cov=covariance)."
        )
    elif callable(law):
        return DiscreteLaw.from_sampler(law, dim, n_samples, random_state)
    else:
        raise TypeError(
            f"A spectral law cannot be made from {law!r:.60}: give a frozen law of scipy.stats, such as "
            "scipy.stats.cauchy(), a law of mercer.features, or a sampler(n, rng) that returns frequencies of shape "
            "(n, dim)."
        )
    if spectral.dim != dim:
        raise ValueError(
            f"The spectral law {spectral.name!r} lives in dimension {spectral.dim}, but the points have {dim} features."
        )
    return spectral


def _elliptical(mean: Floats, shape: Floats, df: float) -> SpectralLaw:
    mean, shape = np.atleast_1d(mean), np.atleast_2d(shape)
    if np.any(mean != 0):
        raise ValueError(
            f"The law has mean {mean.tolist()}, but a spectral law is symmetric about 0: use "
            "ShiftedGaussian(dim, mean, scale) for a pair of bumps at +mean and -mean."
        )
    variances = np.diag(shape)
    if np.array_equal(shape, np.diag(variances)) and (variances > 0).all():
        return _radial(len(shape), 1.0 / np.sqrt(variances), df)
    eigenvalues, vectors = np.linalg.eigh(shape)
    root = vectors * np.sqrt(np.maximum(eigenvalues, 0.0))
    return LinearImage(root, _radial(len(shape), 1.0, df))


def _radial(dim: int, scale: float | Floats, df: float) -> GaussianScaleMixture:
    if isinstance(scale, np.ndarray) and np.all(scale == scale[0]):
        scale = float(scale[0])
    if np.isinf(df):
        return GaussianScaleMixture.gaussian(dim, scale)
    return GaussianScaleMixture.student(dim, scale, 0.5 * df)
