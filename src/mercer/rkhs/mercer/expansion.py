"""Mercer's theorem as an object: a kernel as a series in the eigenfunctions of its integral operator (K9)."""

from __future__ import annotations

from numbers import Integral
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer.kernels import Kernel
from mercer.kernels.rules.scikit_learn import as_kernel
from mercer.machine.budget import Budget
from mercer.machine.lazy import cached_property
from mercer.points import Points
from mercer.rkhs.functions.function import RKHSFunction
from mercer.rkhs.functions.vector import RKHSVector
from mercer.rkhs.mercer.integral_operator import spectrum
from mercer.rkhs.mercer.measures import Rule, measure_of

_KINDS = (np.float64, np.float32)


class Truncation(NamedTuple):
    """What an expansion leaves out of its kernel.

    Attributes
    ----------
    sup : float
        The largest k(x, x) - k_r(x, x) over some points x; |k - k_r| between any two of them is no larger.
    trace : float
        The integral of k(x, x) - k_r(x, x): the sum of the eigenvalues left out.
    share : float
        That sum as a share of all eigenvalues.
    """

    sup: float
    trace: float
    share: float


class MercerExpansion:
    r"""The leading terms of a kernel's series in orthonormal eigenfunctions (Mercer's theorem).

    .. math:: k(x, z) = \sum_{j \ge 1} \lambda_j \varphi_j(x) \varphi_j(z), \qquad
              \int k(x, z) \varphi_j(z) \, d\mu(z) = \lambda_j \varphi_j(x), \qquad
              \int \varphi_i \varphi_j \, d\mu = \delta_{ij}

    Nodes z_q with weights w_q stand for the measure. The eigenvectors of W^(1/2) K W^(1/2) extend to all x by

    .. math:: \varphi_j(x) = \frac{1}{\lambda_j} \sum_q w_q \varphi_j(z_q) k(x, z_q)

    (Nystroem), so that each function is an `RKHSFunction` of norm :math:`\lambda_j^{-1/2}`. It is positive at the node
    where sqrt(w) times its absolute value is largest, at the last one of several.

    Parameters
    ----------
    kernel
        The kernel. One that takes a parameter from data can have it from a sample, not from a law or a box. One that
        is not proven to be positive semidefinite is refused where it has a negative eigenvalue.
    measure
        What the integrals are over:

        - a sample: whatever the kernel compares, with `weights`;
        - a frozen law of scipy.stats on the line, continuous or discrete, such as ``norm(0, 2)``;
        - a list of such laws, for independent coordinates, or a frozen ``multivariate_normal``;
        - a `Box`, with the uniform law on it.

        Laws and boxes get the Gauss rule that belongs to them (Hermite, Legendre, Laguerre, Jacobi) while few nodes do,
        tanh-sinh quadrature in probabilities where more are needed, products of these up to 5 dimensions, and Sobol
        points beyond. The nodes become more until the eigenvalues have converged, or there are `nodes` of them.
    rank
        How many terms. Eigenvalues that are not told from 0 are left out, so that there may be fewer.
    weights
        One number >= 0 for each point of a sample, divided by their sum; None for equal ones.
    nodes
        The most nodes; None for 2048 on the line and 2500 in space.
    budget
        Bytes that may be used, as for `Gram`.
    seed
        For samples of more than 2500 points, of what `mercer.gram.top_eigenpairs` draws.

    Attributes
    ----------
    kernel : Kernel
        The kernel, resolved.
    eigenvalues : ndarray of shape (rank,)
        Largest first.
    errors : ndarray of shape (rank,)
        About how far they are off: the change when the nodes were last made more, and rounding (for a sample: the
        residuals, and rounding). Where an eigenvalue is not far above its error, do not trust it nor its function.
    eigenfunctions : RKHSVector
        ``eigenfunctions(X)`` has one column for each function, ``eigenfunctions[j]`` is an `RKHSFunction`.
    points, weights
        The nodes, or the sample, and their weights.
    trace : float
        The integral of k(x, x): the sum of all eigenvalues.
    how : str
        By which nodes.

    Notes
    -----
    Kernels that are smooth only off the diagonal, such as min(s, t) and the Matern kernels, make every rule converge
    slowly. On the line rules of more than 512 nodes are therefore corrected on the diagonal, such that they integrate
    k(z_q, .) exactly (by nodes on both sides of z_q). Errors of eigenvalues then go down with the fourth power of the
    number of nodes rather than with the second: of min(s, t) on [0, 1] the first is good to 1e-13 and the twentieth to
    2e-8 of its size. The functions remain sums of kernels at the nodes, with kinks there: the first is good to 2e-7,
    the twentieth to 1e-3, and four times better with twice the `nodes`.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.stats import norm
    >>> from mercer import RBF
    >>> from mercer.rkhs import MercerExpansion
    >>> expansion = MercerExpansion(RBF(scale=1.0), norm(0, 1), rank=5)
    >>> expansion.eigenvalues.round(6)
    array([0.618034, 0.236068, 0.09017 , 0.034442, 0.013156])
    >>> expansion.eigenfunctions[1]([[-1.0], [1.0]]).round(3)
    array([-1.342,  1.342])
    >>> bool(abs(expansion.norm(expansion.eigenfunctions[0]) - 0.618033988749895**-0.5) < 1e-9)
    True
    """

    def __init__(
        self,
        kernel: Kernel,
        measure: Any,
        rank: int = 20,
        *,
        weights: Any = None,
        nodes: int | None = None,
        budget: int | float | str | None = None,
        seed: int = 0,
    ) -> None:
        kernel = as_kernel(kernel)
        if not isinstance(kernel, Kernel):
            raise TypeError(f"kernel must be a kernel object such as RBF(scale=1.0); it is {kernel!r}.")
        _check_count("rank", rank, 1)
        if nodes is not None:
            _check_count("nodes", nodes, 4)
        self.measure, self._given = measure, weights
        self._measure = measure_of(measure, weights)
        eigen = spectrum(kernel, self._measure, int(rank), nodes, Budget(budget), seed)
        self._rule, self._vectors = eigen.rule, eigen.vectors
        self.points, self.weights, self.how = eigen.rule.points, eigen.rule.weights, eigen.how
        self.eigenvalues, self.errors = eigen.values, eigen.errors
        self.eigenfunctions = RKHSVector(kernel, self.points, eigen.coefficients)
        self.kernel = self.eigenfunctions.kernel
        self.trace = float(self.weights @ np.asarray(self.kernel.diag(self.points), dtype=np.float64))

    def _parts(self) -> dict[str, Any]:
        """Return what the expansion consists of, for those who write it down."""
        return {
            "measure": self.measure.data if isinstance(self.measure, Points) else self.measure,
            "given": self._given,
            "eigenvalues": self.eigenvalues,
            "errors": self.errors,
            "eigenfunctions": self.eigenfunctions,
            "vectors": self._vectors,
            "weights": self.weights,
            "rule": self._rule.name,
            "how": self.how,
            "trace": self.trace,
        }

    @classmethod
    def _of_parts(
        cls,
        measure: Any,
        given: Any,
        eigenvalues: np.ndarray,
        errors: np.ndarray,
        eigenfunctions: RKHSVector,
        vectors: np.ndarray,
        weights: np.ndarray,
        rule: str,
        how: str,
        trace: float,
    ) -> MercerExpansion:
        """Return the expansion that `_parts` took apart; nothing is computed."""
        made = cls.__new__(cls)
        made.measure, made._given, made._measure = measure, given, measure_of(measure, given)
        made.eigenvalues, made.errors, made._vectors = eigenvalues, errors, vectors
        made.eigenfunctions, made.kernel, made.points = eigenfunctions, eigenfunctions.kernel, eigenfunctions.points
        made._rule, made.weights = Rule(made.points, weights, rule), weights
        made.how, made.trace = how, trace
        return made

    def __len__(self) -> int:
        return len(self.eigenvalues)

    def __repr__(self) -> str:
        first, last = self.eigenvalues[0], self.eigenvalues[-1]
        return f"<{len(self)} terms of {self.kernel!r}, eigenvalues {first:.4g} to {last:.4g}, from {self.how}>"

    # -- how good it is ---------------------------------------------------------------------------------

    @cached_property
    def orthonormality_error(self) -> float:
        """The largest entry of the integral of phi_i phi_j less the identity.

        For a law or a box the integral is taken over other nodes than those that the functions come from.
        """
        other = self._measure.other(self._rule)
        Phi = np.sqrt(other.weights)[:, None] * np.asarray(self.eigenfunctions(other.points))
        return float(np.abs(Phi.T @ Phi - np.eye(len(self))).max())

    def truncation_error(self, X: Any = None) -> Truncation:
        """Return what is left out of the kernel.

        Parameters
        ----------
        X
            The points among which the largest error is looked for; None for a grid over the measure: its bounded
            support, or what lies between the quantiles of 0.1% and 99.9%; of a sample the points themselves, 2000 at
            most.
        """
        X = self._measure.grid() if X is None else X
        rest = np.asarray(self.kernel.diag(X), dtype=np.float64) - (self.transform(X) ** 2).sum(axis=1)
        left = max(0.0, self.trace - float(self.eigenvalues.sum()))
        return Truncation(max(0.0, float(rest.max())), left, left / self.trace)

    # -- functions --------------------------------------------------------------------------------------

    def coefficients(self, f: Any) -> np.ndarray:
        r"""Return the coefficients of a function.

        .. math:: c_j = \int f \varphi_j \, d\mu = \lambda_j \langle f, \varphi_j \rangle_H

        Parameters
        ----------
        f
            A function that takes points as the kernel does (a matrix with one row per point) and returns a number each,
            such as an `RKHSFunction`, with its offset; it need not lie in H. Or coefficients, which stay what they are.
        """
        if not callable(f):
            c = np.asarray(f, dtype=np.float64)
            if c.shape != self.eigenvalues.shape:
                raise ValueError(
                    f"a function is given by a callable or by {len(self)} coefficients, one for each eigenfunction; "
                    f"got an array of shape {c.shape}."
                )
            return c
        values = np.asarray(f(self.points), dtype=np.float64)
        n = len(self.weights)
        if values.shape not in ((n,), (n, 1)):
            raise ValueError(
                f"f must give one number for each of {n} points; it gave an array of shape {values.shape}."
            )
        if not np.isfinite(values).all():
            raise ValueError("f is not finite at some of the nodes; a function that can be integrated is needed.")
        return np.asarray(self._vectors.T @ (np.sqrt(self.weights) * values.reshape(n)))

    def function(self, c: Any) -> RKHSFunction:
        """Return the function with given coefficients, sum of c_j phi_j."""
        return RKHSFunction(self.kernel, self.points, self.eigenfunctions.coefficients @ self.coefficients(c))

    def projection(self, f: Any) -> RKHSFunction:
        """Return the function in the span of the eigenfunctions that is closest to f, in the mean square and in H."""
        return self.function(self.coefficients(f))

    def inner(self, f: Any, g: Any) -> float:
        r"""Return the inner product in H of two functions, or of their projections where they need more terms.

        .. math:: \langle f, g \rangle_H = \sum_j \frac{c_j d_j}{\lambda_j}

        Parameters
        ----------
        f, g
            Functions or their coefficients.
        """
        return float(np.sum(self.coefficients(f) * self.coefficients(g) / self.eigenvalues))

    def norm(self, f: Any) -> float:
        """Return the norm in H of a function, given as for `inner`; it grows without end with the rank outside of H."""
        return float(np.sqrt(self.inner(f, f)))

    # -- features ---------------------------------------------------------------------------------------

    def transform(self, X: Any) -> np.ndarray:
        r"""Return the truncated feature map.

        .. math:: \Phi(x) = (\sqrt{\lambda_1} \varphi_1(x), \dots, \sqrt{\lambda_r} \varphi_r(x)), \qquad
                  \langle \Phi(x), \Phi(z) \rangle = k_r(x, z)
        """
        return np.asarray(self.eigenfunctions(X), dtype=np.float64) * np.sqrt(self.eigenvalues)

    def feature_map(self) -> MercerFeatures:
        """Return the truncated feature map as a scikit-learn transformer; ``FromFeatures`` makes a kernel of it.

        Examples
        --------
        >>> from mercer import RBF, FromFeatures
        >>> from mercer.rkhs import Box, MercerExpansion
        >>> expansion = MercerExpansion(RBF(scale=0.5), Box(0, 1), rank=12)
        >>> k = FromFeatures(expansion.feature_map())
        >>> bool(abs(k([[0.3]], [[0.7]]) - RBF(scale=0.5)([[0.3]], [[0.7]]))[0, 0] < 1e-9)
        True
        """
        return MercerFeatures(self.kernel, len(self), self.measure)._of(self)


def _check_count(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}; it is {value!r}.")


# -- the truncated Mercer feature map as a scikit-learn transformer (K9) ----------------------------------


class MercerFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""The features whose inner product is closest to a kernel, on average over a measure.

    .. math:: \Phi(x) = (\sqrt{\lambda_1} \varphi_1(x), \dots, \sqrt{\lambda_r} \varphi_r(x))

    Of all r features these leave the least of the kernel's trace. On the training points they are the coordinates of
    kernel principal components without centring.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    n_components : int, default=20
        The number r of features; there are fewer where fewer eigenvalues are told from 0.
    measure : law, Box or None, default=None
        As of `MercerExpansion`; None for the points given to ``fit``.
    random_state : int, default=0
        Of what is drawn to find eigenvectors of more than 2500 points.

    Attributes
    ----------
    expansion_ : MercerExpansion
        The expansion.
    eigenvalues_ : ndarray
        Its eigenvalues.
    n_features_in_ : int
        Number of features seen in ``fit``.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF
    >>> from mercer.rkhs import MercerFeatures
    >>> X = np.random.default_rng(0).uniform(size=(300, 2))
    >>> F = MercerFeatures(RBF(scale=1.0), n_components=25).fit_transform(X)
    >>> F.shape, bool(np.abs(F @ F.T - RBF(scale=1.0)(X)).max() < 1e-4)
    ((300, 25), True)
    """

    def __init__(self, kernel: Any, n_components: int = 20, measure: Any = None, random_state: int = 0) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.measure = measure
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Expand the kernel.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The points, which are the measure unless another is given.
        y : ignored
        sample_weight : array-like of shape (n_samples,), default=None
            The masses of the points.
        """
        X = validate_data(self, X, accept_sparse="csr", dtype=_KINDS)
        if self.measure is None:
            expansion = MercerExpansion(
                self.kernel, X, self.n_components, weights=sample_weight, seed=self.random_state
            )
        else:
            kernel = as_kernel(self.kernel)
            kernel = kernel.resolve(X) if hasattr(kernel, "resolve") else kernel
            expansion = MercerExpansion(kernel, self.measure, self.n_components, weights=sample_weight)
        return self._of(expansion)

    def _of(self, expansion: MercerExpansion) -> Self:
        self.expansion_ = expansion
        self.eigenvalues_ = expansion.eigenvalues
        if not hasattr(self, "n_features_in_"):
            width = expansion._measure.width
            if width is None:
                raise TypeError("the points of this expansion are no vectors; use its own method transform.")
            self.n_features_in_ = width
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the features, of shape (n_samples, n_components), in the precision of X."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=_KINDS, reset=False)
        return self.expansion_.transform(X).astype(X.dtype, copy=False)

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
