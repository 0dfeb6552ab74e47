"""Random Fourier features of any kernel with a spectral law."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import qmc
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer.features.spectral.law import Seed, generator, open_uniforms

Floats = NDArray[np.float64]
_KINDS = (np.float64, np.float32)


class RandomFourier(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Random features whose inner product is close to a stationary kernel.

    Phi(x) = sqrt(1/m) [cos(w_1 . x), ..., cos(w_m . x), sin(w_1 . x), ..., sin(w_m . x)], so that

    <Phi(x), Phi(z)> = 1/m sum over i of cos(w_i . (x - z)), close to E cos(w . (x - z)) = k(x, z),

    with w_i from the spectral law of k (Bochner; Rahimi and Recht, 2007). All is multiplied by sqrt(k(x, x)), and
    <Phi(x), Phi(x)> is exactly that. An odd number of features ends with one sqrt(2/m) cos(w_m . x + b), b uniform.

    Parameters
    ----------
    kernel : kernel
        A kernel with a spectral law: ``kernel.resolve(X)`` fixes what depends on the data,
        ``kernel.spectral_law(d)`` is a law of :mod:`mercer.features.spectral`, ``kernel.diag(X)`` gives k(x, x).
    n_components : int, default=500
        Number 2m of features: a cosine and a sine for each frequency.
    sampling : {"plain", "orthogonal", "qmc"}, default="plain"
        "plain": independent frequencies, error of order 1/sqrt(m).
        "orthogonal": orthogonal in blocks of d, each with the same law as before, and with a smaller variance
        (Yu et al., 2016); only for laws made from Gaussian vectors.
        "qmc": a scrambled Sobol sequence, the best in low dimension (Yang et al., 2014).
    random_state : int, RandomState, Generator or None, default=None
        Seed of the frequencies.

    Attributes
    ----------
    frequencies_ : ndarray of shape (m, n_features_in_)
        The frequencies w_i.
    amplitude_ : float
        k(x, x), the same at every point.
    kernel_ : kernel
        The kernel with its data-dependent parameters fixed.
    n_features_in_ : int
        Number of features seen in ``fit``.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF, RandomFourier
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0]])
    >>> F = RandomFourier(RBF(1.0), n_components=2048, sampling="qmc", random_state=0).fit_transform(X)
    >>> abs((F @ F.T)[0, 1] - np.exp(-0.5)).item() < 1e-2
    True
    """

    def __init__(
        self,
        kernel: Any,
        n_components: int = 500,
        sampling: Literal["plain", "orthogonal", "qmc"] = "plain",
        random_state: Seed = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.sampling = sampling
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the frequencies.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Points, which set the dimension and the kernel's data-dependent parameters.
        y : ignored
        """
        m = self._n_frequencies()
        rng = generator(self.random_state)
        X = validate_data(self, X, accept_sparse="csr", dtype=_KINDS)
        for method in ("resolve", "spectral_law"):
            if not hasattr(self.kernel, method):
                raise TypeError(
                    f"kernel must be a stationary kernel, but {type(self.kernel).__name__} has no method "
                    f"{method!r}: use one with a spectral law, such as RBF or Matern."
                )
        self.kernel_ = self.kernel.resolve(X)
        law = self.kernel_.spectral_law(self.n_features_in_)
        self.frequencies_ = np.asarray(_DRAW[self.sampling](law, m, rng), dtype=X.dtype)
        self.phase_ = rng.uniform(0, 2 * np.pi) if self.n_components % 2 else 0.0
        self.amplitude_ = float(self.kernel_.diag(np.zeros((1, self.n_features_in_)))[0])
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Evaluate the features.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Points.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            Of the precision of ``X``.
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=_KINDS, reset=False)
        phase = safe_sparse_dot(X, self.frequencies_.astype(X.dtype, copy=False).T, dense_output=True)
        m, pairs = len(self.frequencies_), self._n_features_out // 2
        features = np.empty((len(phase), self._n_features_out), dtype=X.dtype)
        np.cos(phase[:, :pairs], out=features[:, :pairs])
        np.sin(phase[:, :pairs], out=features[:, pairs : 2 * pairs])
        if pairs < m:
            features[:, -1] = np.sqrt(2.0) * np.cos(phase[:, -1] + self.phase_)
        features *= X.dtype.type((self.amplitude_ / m) ** 0.5)
        return features

    @property
    def _n_features_out(self) -> int:
        return 2 * len(self.frequencies_) - (self.phase_ > 0)

    def _n_frequencies(self) -> int:
        n = self.n_components
        if isinstance(n, bool) or not isinstance(n, Integral) or n < 1:
            raise ValueError(f"n_components must be a whole number of at least 1; got {n!r}.")
        if self.sampling not in _DRAW:
            raise ValueError(f"sampling must be one of {', '.join(map(repr, _DRAW))}; got {self.sampling!r}.")
        return (int(n) + 1) // 2

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _draw_plain(law: Any, m: int, rng: np.random.Generator) -> Floats:
    return np.asarray(law.sample(m, rng))


def _draw_qmc(law: Any, m: int, rng: np.random.Generator) -> Floats:
    if law.n_uniforms > qmc.Sobol.MAXDIM:
        raise ValueError(
            f"sampling='qmc' reaches {qmc.Sobol.MAXDIM} dimensions, but the law needs {law.n_uniforms} "
            "uniforms for a frequency: use sampling='orthogonal' or 'plain'."
        )
    sobol = qmc.Sobol(law.n_uniforms, scramble=True, seed=rng)
    # A whole power of two is what Sobol points are balanced for; the first m of it are the best we can take.
    U = sobol.random_base2(int(np.ceil(np.log2(m))))[:m]
    return np.asarray(law.frequencies(open_uniforms(U)))


def _draw_orthogonal(law: Any, m: int, rng: np.random.Generator) -> Floats:
    if not hasattr(law, "from_gaussian"):
        raise ValueError(
            f"sampling='orthogonal' turns Gaussian vectors, but the spectral law of this kernel, "
            f"{law.name!r}, is not made from them: use sampling='qmc' or 'plain'."
        )
    d = law.dim
    blocks = []
    for _ in range(-(-m // d)):
        Q, R = np.linalg.qr(rng.standard_normal((d, d)))
        # The signs make Q uniform over the orthogonal group (Mezzadri, 2007).
        Q *= np.where(np.diag(R) < 0, -1.0, 1.0)
        blocks.append(Q.T * np.sqrt(rng.chisquare(d, size=(d, 1))))
    G = np.concatenate(blocks)[:m]
    return np.asarray(law.from_gaussian(G, open_uniforms(rng.random((m, law.n_uniforms - d)))))


_DRAW = {"plain": _draw_plain, "orthogonal": _draw_orthogonal, "qmc": _draw_qmc}
