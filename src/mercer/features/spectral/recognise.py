"""From what a user has at hand to a spectral law."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from mercer.features.spectral.combined import LinearImage
from mercer.features.spectral.discrete import DiscreteLaw
from mercer.features.spectral.frozen import is_frozen
from mercer.features.spectral.gaussian import GaussianScaleMixture
from mercer.features.spectral.independent import IndependentLaw
from mercer.features.spectral.law import Seed, SpectralLaw, check_dim

Floats = NDArray[np.float64]


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
        found = law
    elif is_frozen(law) or isinstance(law, (stats.rv_continuous, stats.rv_discrete)):
        return IndependentLaw(dim, law)
    elif isinstance(law, type(stats.multivariate_normal())):
        found = _elliptical(law.mean, law.cov, np.inf)
    elif isinstance(law, type(stats.multivariate_t())):
        found = _elliptical(law.loc, law.shape, float(law.df))
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
    if found.dim != dim:
        raise ValueError(
            f"The spectral law {found.name!r} lives in dimension {found.dim}, but the points have {dim} features."
        )
    return found


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
