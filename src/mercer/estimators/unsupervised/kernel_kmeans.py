"""k-means of the images of the data in H."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted

from mercer.estimators.shared.data import Training, positive_weights
from mercer.estimators.shared.fitting import whole_fit
from mercer.estimators.shared.parameters import (
    PAIRWISE_RULES,
    Rules,
    Unnecessary,
    check_parameters,
    is_real,
    whole,
    with_parameters,
)
from mercer.estimators.unsupervised.base import Images, like
from mercer.machine.warn import warn
from mercer.points import Points
from mercer.rkhs import RKHSVector
from mercer.solvers.unsupervised.kmeans import Clusters, Lloyd

_INITS = ("k-means++", "random")


@with_parameters
class KernelKMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, Images):
    r"""Clusters of points that are near each other in H; in the space of the data they may have any shape.

    .. math:: \min_{c_1, \dots, c_n} \; \sum_i w_i \|\phi(x_i) - m_{c_i}\|_H^2, \qquad
              m_c = \frac{\sum_{i \in c} w_i \phi(x_i)}{\sum_{i \in c} w_i}

    With the linear kernel it is k-means.

    Parameters
    ----------
    n_clusters
        How many.
    kernel, gamma, degree, coef0, kernel_params
        As for `KernelRidge`.
    init
        The first centres: "k-means++" (distances in H), "random" points, the numbers of n_clusters samples, n_clusters
        points (whose images they are), or a function init(X, n_clusters, random_state) that returns either.
    n_init
        How often to start; the best is kept. "auto" is 10 for init="random" and a function, and else 1.
    max_iter
        The most steps of a start.
    tol
        Stop when the inertia falls by less than this share of itself; with 0, when no point changes sides.
    random_state
        Of the first centres; drawn as `sklearn.cluster.KMeans` draws them.
    budget
        Bytes that the fit may use, as for `SVC`. A matrix that does not fit is not formed.
    algorithm, copy_x, verbose
        Of scikit-learn's `KMeans`; nothing here depends on them.

    Attributes
    ----------
    labels_
        The cluster of each sample, 0 to n_clusters - 1.
    inertia_
        The sum above.
    n_iter_
        The steps of the best start.
    function_
        The m_c as an `RKHSVector`.
    kernel_, X_fit_
        The kernel with every parameter resolved, and the training points.

    Notes
    -----
    A cluster that loses its last point gets the one farthest from its centre. Where there are fewer different points
    than clusters, some stay empty, with a warning.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from mercer import KernelKMeans
    >>> X, y = make_circles(300, factor=0.3, noise=0.05, random_state=0)
    >>> model = KernelKMeans(2, kernel="rbf", gamma=3.0, n_init=10, random_state=0).fit(X)
    >>> bool(min((model.labels_ != y).mean(), (model.labels_ == y).mean()) == 0)
    True
    """

    n_clusters: int = 8
    _: KW_ONLY
    kernel: Any = "rbf"
    init: Any = "k-means++"
    n_init: int | str = "auto"
    max_iter: int = 300
    tol: float = 0.0
    random_state: Any = None
    algorithm: str = "lloyd"
    copy_x: bool = True
    verbose: int = 0

    _rules: ClassVar[Rules] = PAIRWISE_RULES | {
        "n_clusters": (lambda v: whole(v, 1), "a whole number >= 1"),
        "init": (
            lambda v: v in _INITS if isinstance(v, str) else callable(v) or hasattr(v, "__len__"),
            "'k-means++', 'random', the numbers of n_clusters samples, as many points, or a function that gives either",
        ),
        "n_init": (lambda v: v == "auto" if isinstance(v, str) else whole(v, 1), "a whole number >= 1, or 'auto'"),
        "max_iter": (lambda v: whole(v, 1), "a whole number >= 1"),
        "tol": (lambda v: is_real(v) and 0 <= v < math.inf, "a number >= 0"),
    }
    _unnecessary: ClassVar[Unnecessary] = {
        "algorithm": ("lloyd", "the steps are Lloyd's, and only columns of points that change sides are computed"),
        "copy_x": (True, "X is never changed"),
        "verbose": (0, "a fit is silent; n_iter_ and inertia_ say how it went"),
    }

    # -- fit --------------------------------------------------------------------------------------------

    @whole_fit
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the clusters.

        Parameters
        ----------
        X
            The training points: a matrix (dense or sparse), a table, or whatever the kernel compares; the square matrix
            of similarities for kernel="precomputed".
        y
            Ignored.
        sample_weight
            A weight for each, at least 0; a sample of weight 0 is given the label of the nearest centre.

        Returns
        -------
        self
        """
        self._fit(X, sample_weight)
        return self

    def _fit(self, X: Any, sample_weight: Any) -> np.ndarray:
        """Find the clusters and return the squared distances of the samples to their centres."""
        check_parameters(self)
        data, _ = self._read(X, targets=False)
        training = self._training(data, sample_weight)
        n, k = len(training.points), int(self.n_clusters)
        if n < k:
            raise ValueError(
                f"n_samples={n} should be >= n_clusters={k}: each cluster starts at a sample of its own. Ask for fewer."
            )
        weights = np.ones(n) if training.weights is None else training.weights
        best = self._best(Lloyd(self._gram(training), k, weights), training)
        if not np.isfinite(best.inertia):
            raise FloatingPointError(
                f"distances under {training.kernel!r} exceed the range of float64; scale the data."
            )
        self._keep_data(data, training.kernel)
        self._U, self._squares = best.coefficients, best.squares
        self.labels_, distances = best.labels.astype(np.int32), best.distances
        if training.rows is not None:
            everyone = self.shape_fit_[0]
            self._U = np.zeros((everyone, k))
            self._U[training.rows] = best.coefficients
            distances = np.full((everyone, k), np.nan)
            distances[training.rows] = best.distances
            self._complete(data, distances)
        self.inertia_, self.n_iter_ = best.inertia, best.steps
        clusters = len(np.unique(best.labels))
        if clusters < k:
            warn(
                f"{clusters} clusters were found where n_clusters={k}: the samples have no more than that many "
                "different images in H. Ask for fewer clusters.",
                ConvergenceWarning,
            )
        elif not best.converged and best.steps == self.max_iter:
            warn(
                f"points still changed clusters after max_iter={self.max_iter} steps; raise it, or set tol > 0.",
                ConvergenceWarning,
            )
        return distances

    def _best(self, lloyd: Lloyd, training: Training) -> Clusters:
        rng = check_random_state(self.random_state)
        if not (isinstance(self.init, str) or callable(self.init)):
            return self._from(self.init, lloyd, training)
        starts = 10 if callable(self.init) or self.init == "random" else 1
        best = None
        for _ in range(starts if isinstance(self.n_init, str) else int(self.n_init)):
            if callable(self.init):
                clusters = self._from(self.init(training.points.data, lloyd.k, random_state=rng), lloyd, training)
            elif self.init == "random":
                w = lloyd.weights
                seeds = rng.choice(lloyd.n, size=lloyd.k, replace=False, p=w / w.sum())
                clusters = lloyd.run(seeds, self.max_iter, self.tol)
            else:
                clusters = lloyd.run(lloyd.plus_plus(rng), self.max_iter, self.tol)
            if best is None or clusters.inertia < best.inertia:
                best = clusters
        assert best is not None
        return best

    def _from(self, init: Any, lloyd: Lloyd, training: Training) -> Clusters:
        """Return the clusters from first centres that the user has named."""
        if self._kind == "vectors" and np.ndim(init) == 2:
            centres = Points(check_array(init, dtype=np.float64), "init")
            if len(centres) != lloyd.k or centres.width != training.points.width:
                raise ValueError(
                    f"init has shape {np.shape(init)}; as points it must have one row for each of n_clusters={lloyd.k} "
                    f"and one column for each of the {training.points.width} features."
                )
            distances = lloyd.from_centres(centres)
            return lloyd.run(np.argmin(distances, axis=0), self.max_iter, self.tol, distances)
        return lloyd.run(_numbers(init, lloyd.k, lloyd.n, training.rows), self.max_iter, self.tol)

    def _complete(self, data: Any, distances: np.ndarray) -> None:
        """Fill in the distances and labels of the samples of weight 0."""
        others = np.flatnonzero(np.isnan(distances[:, 0]))
        if self._kind == "similarities":
            some, own = data[others], data[others, others]
        else:
            some = Points(data).take(others).data
            own = self._own(some)
        distances[others] = (own[:, None] + self._relative(some)).clip(min=0.0)
        labels = np.argmin(distances, axis=1).astype(np.int32)
        labels[np.flatnonzero(~np.isin(np.arange(len(labels)), others))] = self.labels_
        self.labels_ = labels

    # -- new points -------------------------------------------------------------------------------------

    def _relative(self, data: Any) -> np.ndarray:
        """Return the squared distances to the centres less k(x, x)."""
        return np.asarray(self._squares - 2.0 * self._sums(data, self._U))

    def predict(self, X: Any) -> np.ndarray:
        """Return the nearest centre of each point.

        Parameters
        ----------
        X
            Points as in `fit`; for kernel="precomputed", their similarities to all training samples.
        """
        check_is_fitted(self)
        return np.argmin(self._relative(self._read_new(X)), axis=1).astype(np.int32)

    def transform(self, X: Any) -> np.ndarray:
        """Return the distances in H to the centres, (points, clusters).

        Parameters
        ----------
        X
            Points as in `fit`.
        """
        check_is_fitted(self)
        return like(X, np.sqrt(self._squared(X)))

    def _squared(self, X: Any) -> np.ndarray:
        data = self._read_new(X)
        return np.asarray((self._own(data)[:, None] + self._relative(data)).clip(min=0.0))

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Find the clusters and return the samples' distances to their centres.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        """
        return like(X, np.sqrt(self._fit(X, sample_weight)))

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Find the clusters and return `labels_`.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        """
        return self.fit(X, sample_weight=sample_weight).labels_

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the weighted sum of squared distances to the nearest centres.

        Parameters
        ----------
        X
            Points as in `fit`.
        y
            Ignored.
        sample_weight
            A weight for each.
        """
        check_is_fitted(self)
        nearest = self._squared(X).min(axis=1)
        weights, rows = positive_weights(sample_weight, len(nearest))
        return -float(nearest.sum() if weights is None else weights @ (nearest if rows is None else nearest[rows]))

    @property
    def function_(self) -> RKHSVector:
        """The centres as functions of H, each on the points of its cluster."""
        check_is_fitted(self)
        return RKHSVector(self.kernel_, self._points_fit, sparse.csc_array(self._U))

    @property
    def _n_features_out(self) -> int:
        return int(self._U.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _numbers(init: Any, k: int, n: int, rows: np.ndarray | None) -> np.ndarray:
    """Return the samples that a user named as first centres, counted among those of positive weight."""
    chosen = np.asarray(init)
    total = n if rows is None else int(rows.max()) + 1
    if chosen.shape != (k,) or chosen.dtype.kind not in "iu":
        raise ValueError(
            f"init has shape {chosen.shape} and type {chosen.dtype}; it must be the numbers of n_clusters={k} samples, "
            "as many points, 'k-means++' or 'random'."
        )
    if len(np.unique(chosen)) < k or chosen.min() < 0 or (rows is None and chosen.max() >= n):
        raise ValueError(f"init={init!r} must name {k} different samples, from 0 to {total - 1}.")
    if rows is None:
        return chosen
    places = np.searchsorted(rows, chosen).clip(max=n - 1)
    if (rows[places] != chosen).any():
        raise ValueError(f"init={init!r} names samples of weight 0, which cannot be centres.")
    return places
