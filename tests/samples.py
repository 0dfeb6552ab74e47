"""One sample of every kernel in the library, and of every rule that builds kernels, with points it compares.

A new kernel adds its line here; whatever must hold for all kernels is then tested for it too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.preprocessing import StandardScaler

from graph_samples import molecules
from mercer.features import DiscreteLaw
from mercer.kernels import (
    RBF,
    ArcCosine,
    Categorical,
    Cauchy,
    ChiSquared,
    Constant,
    Cosine,
    Delta,
    EditSimilarity,
    FromDissimilarity,
    FromFeatures,
    FromFunction,
    GappedKmers,
    GlobalAlignment,
    Graphlets,
    Intersection,
    Kendall,
    Kernel,
    Laplacian,
    Linear,
    LocalAlignment,
    Mallows,
    Matern,
    MinMax,
    Mismatch,
    NeighbourhoodHash,
    Periodic,
    Polynomial,
    PowerExponential,
    PowerSeries,
    Precomputed,
    Propagation,
    RandomWalk,
    RationalQuadratic,
    SetKernel,
    ShortestPath,
    Sigmoid,
    SmithWaterman,
    SpectralMixture,
    Spectrum,
    Stationary,
    Subsequence,
    Tanimoto,
    TextNGrams,
    WeightedDegree,
    WeisfeilerLehman,
    Wendland,
    WLOptimalAssignment,
    WLSlicedWasserstein,
)

# -- points -----------------------------------------------------------------------------------------------


def vectors(n: int = 24, d: int = 3, seed: int = 0) -> np.ndarray:
    """Rows with two equal ones, one of zeros, one far away and one next to another."""
    X = np.random.default_rng(seed).normal(size=(max(n, 6), d))
    X[1] = X[0]
    X[2] = 0.0
    X[3] *= 30.0
    X[5] = X[4] * (1 + 1e-9)
    return X[:n]


def histograms(n: int = 24, d: int = 3, seed: int = 0) -> np.ndarray:
    """Non-negative rows, with zeros."""
    return np.abs(vectors(n, d, seed)).round(1)


def words(n: int = 20, seed: int = 0) -> list[str]:
    rng = np.random.default_rng(seed)
    return ["".join(rng.choice(list("abc"), size=rng.integers(1, 6))) for _ in range(n)]


def dna(n: int = 20, seed: int = 0) -> list[str]:
    """Strings of DNA: an empty one, one of one letter, two equal ones."""
    rng = np.random.default_rng(seed)
    found = ["".join(rng.choice(list("ACGT"), size=size)) for size in rng.integers(2, 30, n)]
    return ["", "A", found[0], *found][:n]


def waves(n: int = 20, seed: int = 0) -> list[np.ndarray]:
    """Time series of different lengths, two of them equal."""
    rng = np.random.default_rng(seed)
    found = [rng.normal(size=size).cumsum() for size in rng.integers(1, 12, n)]
    return [found[0], *found][:n]


def indices(n: int = 20, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, len(SIMILARITIES), size=n)


def table(n: int = 20, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.normal(40, 10, n).round(),
            "income": rng.lognormal(10, 1, n),
            "town": rng.choice(["Athens", "Bern", "Montreal"], n),
        }
    )


def rankings(n: int = 20, seed: int = 0) -> np.ndarray:
    """Rows of ranks with ties, two of them equal, one of them all tied."""
    ranks = np.random.default_rng(seed).integers(0, 6, size=(max(n, 3), 5)).astype(float)
    ranks[1] = ranks[0]
    ranks[2] = 3.0
    return ranks[:n]


def letters(n: int = 20, seed: int = 0) -> list[list[str]]:
    """Bags of letters."""
    return [list(word) for word in words(n, seed)]


def letter_sets(n: int = 20, seed: int = 0) -> list[frozenset[str]]:
    """Sets of letters, two of them empty."""
    return [frozenset(), frozenset(), *map(frozenset, words(n, seed))][:n]


def bags(n: int = 20, seed: int = 0) -> list[np.ndarray]:
    """Bags of vectors, one of them empty, two of them equal."""
    rng = np.random.default_rng(seed)
    made = [rng.normal(size=(rng.integers(1, 6), 3)) for _ in range(n)]
    made[1], made[2] = made[0].copy(), np.zeros((0, 3))
    return made


# -- functions that samples are built of ------------------------------------------------------------------


def shared_letters(a: str, b: str) -> float:
    return float(len(set(a) & set(b)))


def length_apart(a: str, b: str) -> float:
    return float(abs(len(a) - len(b)))


def letter_counts(word: str) -> list[float]:
    return [float(word.count(letter)) for letter in "abc"]


def squares(X: Any) -> Any:
    return np.concatenate([X, X**2], axis=1)


def weight(X: Any) -> Any:
    return 1.0 / (1.0 + np.abs(X).sum(axis=1))


def minus_log(t: Any) -> Any:
    return -np.log(1.0 - t)


def length(word: Any) -> float:
    return float(len(word))


_FACTOR = np.random.default_rng(1).normal(size=(6, 4))
SIMILARITIES = _FACTOR @ _FACTOR.T
DISTANCES = np.linalg.norm(_FACTOR[:, None] - _FACTOR[None], axis=-1)
COVARIANCE = np.array([[1.0, 0.3, 0.0], [0.3, 2.0, -0.5], [0.0, -0.5, 0.7]])
SPACES = [  # kernels and points whose functions are looked at
    (RBF(1.5), vectors),
    (Linear(), vectors),
    (Polynomial(2) + Laplacian(2.0), vectors),
    (Matern(scale=[0.5, 1.0, 4.0]), vectors),
    (FromFunction(shared_letters), words),
    (Precomputed(SIMILARITIES), indices),
    (RBF(10.0).on("age") * Delta().on("town"), table),
]


# -- samples ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sample:
    """A kernel and a maker of points for it, called as `points(n, seed=seed)`."""

    kernel: Kernel
    points: Callable[..., Any] = vectors
    name: str = ""

    def __str__(self) -> str:
        return self.name or repr(self.kernel)


CATALOGUE = [
    Sample(Linear()),
    Sample(Polynomial()),
    Sample(Polynomial(degree=2, c1=0.0, c2=0.5)),
    Sample(Polynomial(degree=4, c1=2.0, c2="auto")),
    Sample(RBF()),
    Sample(RBF(scale=1.5)),
    Sample(RBF(scale=[0.5, 1.0, 4.0])),
    Sample(RBF(scale="median")),
    Sample(Laplacian()),
    Sample(Laplacian(scale=2.0)),
    Sample(Laplacian(scale=[0.5, 1.0, 4.0])),
    Sample(Laplacian(scale="median")),
    Sample(Matern(nu=0.5, scale=1.0)),
    Sample(Matern(scale=[0.5, 1.0, 4.0])),
    Sample(Matern(nu=2.5)),
    Sample(Matern(nu=0.8, scale=1.0)),
    Sample(Matern(nu=3.5, scale=[0.5, 1.0, 4.0])),
    Sample(Matern(nu=150.0, scale="median")),
    Sample(PowerExponential(1.3, 2.0)),
    Sample(PowerExponential(0.7, [0.5, 1.0, 4.0])),
    Sample(RationalQuadratic()),
    Sample(RationalQuadratic(alpha=0.7, scale=[0.5, 1.0, 4.0])),
    Sample(RationalQuadratic(alpha=30.0, scale=1.0)),
    Sample(Cauchy()),
    Sample(Cauchy(scale=[0.5, 1.0, 4.0])),
    Sample(Periodic(period=2.0)),
    Sample(Periodic(period=[1.0, 2.0, 5.0], scale=0.7)),
    Sample(Cosine()),
    Sample(ArcCosine(order=0)),
    Sample(ArcCosine(order=1)),
    Sample(ArcCosine(order=2)),
    Sample(ChiSquared(gamma=0.5), histograms),
    Sample(Intersection(), histograms),
    Sample(Intersection(), letter_sets, name="Intersection, of sets"),
    Sample(Tanimoto()),
    Sample(Tanimoto(), letter_sets, name="Tanimoto, of sets"),
    Sample(MinMax(), histograms),
    Sample(MinMax(), letter_sets, name="MinMax, of sets"),
    Sample(Kendall(), rankings),
    Sample(Mallows(), rankings),
    Sample(Mallows(rate=0.2), rankings),
    Sample(Categorical()),
    Sample(Categorical(other=0.3), words, name="Categorical, of words"),
    Sample(FromDissimilarity(length_apart), words),
    Sample(FromDissimilarity(length_apart, scale="median", kind="centred"), words),
    Sample(FromDissimilarity(DISTANCES, scale=2.0), indices, name="FromDissimilarity, of a matrix"),
    Sample(FromDissimilarity(DISTANCES, kind="centred", origin=1), indices, name="FromDissimilarity, centred"),
    Sample(Wendland(smoothness=0, scale=3.0)),
    Sample(Wendland()),
    Sample(Wendland(smoothness=2, scale=[2.0, 3.0, 8.0])),
    Sample(SpectralMixture(weights=[1.0, 0.5], means=[0.2, 1.0], scales=[3.0, 1.0])),
    Sample(
        SpectralMixture(weights=[1.0], means=[[0.1, 0.0, 0.4]], scales=[[1.0, 2.0, 3.0]]), name="SpectralMixture, ARD"
    ),
    Sample(Constant()),
    Sample(Constant(2.5), words, name="Constant, of words"),
    Sample(Delta()),
    Sample(Delta(), words, name="Delta, of words"),
    Sample(Sigmoid()),
    Sample(Sigmoid(gamma=0.1, c=-0.5)),
    Sample(Precomputed(SIMILARITIES), indices, name="Precomputed"),
    Sample(FromFeatures(squares)),
    Sample(FromFeatures(letter_counts, each=True), words),
    Sample(FromFeatures(StandardScaler().fit(vectors())), name="FromFeatures(transformer)"),
    Sample(FromFunction(shared_letters), words),
    Sample(Spectrum(2), words),
    Sample(Spectrum(12, blended=True), dna),
    Sample(TextNGrams(words=None, characters=(1, 2)), words),
    Sample(TextNGrams(words=(1, 2), idf=None, sublinear=False), words),
    Sample(GappedKmers(6, 2), dna),
    Sample(Mismatch(4, 1), dna),
    Sample(WeightedDegree(3), dna),
    Sample(WeightedDegree(2, shift=4), dna),
    Sample(Subsequence(3, 0.7), dna),
    Sample(LocalAlignment(beta=0.3), dna),
    Sample(SmithWaterman(), dna),
    Sample(EditSimilarity(4.0), dna),
    Sample(GlobalAlignment(2.0), waves),
    Sample(GlobalAlignment(2.0, divisible=False), waves),
    Sample(GappedKmers(4, 3, reverse_complement=True), dna),
    Sample(WeisfeilerLehman(), molecules),
    Sample(WeisfeilerLehman(h=2, edge_labels=True, counted="edges"), molecules),
    Sample(WLOptimalAssignment(h=2), molecules),
    Sample(ShortestPath(), molecules),
    Sample(ShortestPath(2.0, weighted=True), molecules),
    Sample(Propagation(), molecules),
    Sample(Propagation(h=1, width=0.5, attributes=True, draws=3), molecules),
    Sample(NeighbourhoodHash(), molecules),
    Sample(NeighbourhoodHash(h=1, counts=False), molecules),
    Sample(Graphlets(), molecules),
    Sample(Graphlets(size=4), molecules),
    Sample(RandomWalk(), molecules),
    Sample(WLSlicedWasserstein(), molecules),
    Sample(WLSlicedWasserstein(h=0, scale=0.5, directions=3), molecules),
    Sample(Stationary.from_spectral(stats.norm()), name="Spectral(norm)"),
    Sample(Stationary.from_spectral(stats.laplace(scale=0.5)), name="Spectral(laplace)"),
    Sample(Stationary.from_spectral(stats.uniform(-1, 2)), name="Spectral(uniform)"),
    Sample(Stationary.from_spectral(stats.multivariate_normal(cov=COVARIANCE)), name="Spectral(multivariate_normal)"),
    Sample(Stationary.from_spectral(stats.multivariate_t(shape=COVARIANCE, df=3)), name="Spectral(multivariate_t)"),
    Sample(Stationary.from_spectral(DiscreteLaw([[0.0, 1.0, 2.0], [1.0, 0.0, -1.0]])), name="Spectral(discrete)"),
]

ALGEBRA = [
    Sample(2.0 * RBF(1.0)),
    Sample(0.0 * Linear(), name="0 * Linear()"),
    Sample(RBF(1.0) + Linear()),
    Sample(1.0 + RBF(1.0) + (Linear() + Delta())),
    Sample(RBF(1.0) * Linear()),
    Sample((RBF(1.0) + 1.0) * (Linear() * Matern(scale=2.0))),
    Sample((0.5 * Linear() + 1.0) ** 3),
    Sample((RBF(2.0) ** 2) ** 2),
    Sample(RBF(1.0).exp()),
    Sample((0.1 * Cosine()).exp() * Laplacian(2.0)),
    Sample((0.9 * RBF(1.0)).geometric()),
    Sample((0.5 * Polynomial(2).normalized()).geometric()),
    Sample(PowerSeries(Linear(), [1.0, 0.0, 0.5, 0.25])),
    Sample(PowerSeries(RBF(1.0), [0.0, 2.0])),
    Sample(PowerSeries(RBF(1.0), function=np.sinh), name="PowerSeries(sinh)"),
    Sample(PowerSeries(0.5 * RBF("median"), function=minus_log, radius=1.0)),
    Sample(SetKernel(RBF("median")), bags),
    Sample(SetKernel(RBF(1.0) + Linear(), kind="sum"), bags),
    Sample(SetKernel(Delta(), kind="sum"), letters),
    Sample(SetKernel(Linear()).normalized() + Delta().compose(length, each=True), bags),
    Sample(Linear().rescaled(weight)),
    Sample((RBF(1.0) + Linear()).rescaled(weight)),
    Sample(FromFunction(shared_letters).rescaled(length, each=True), words),
    Sample(RBF(1.0).compose(squares)),
    Sample(RBF(1.0).transformed([[1.0, 0.5, 0.0], [0.0, -1.0, 2.0]])),
    Sample(Laplacian(1.0).transformed(np.array([2.0, 0.0, 0.3]))),
    Sample(RBF(1.0).ranked([[-1.0, -2.0, 0.0], [0.0, -1.5, 0.0], [0.5, 1.0, 1.0], [2.0, 1.5, 1.0]])),
    Sample(Laplacian(1.0).transformed(np.array([2.0, 1.0, 0.3])).ranked(vectors(12))),
    Sample(Delta().compose(length, each=True), words),
    Sample(RBF(2.0).compose(letter_counts, each=True), words),
    Sample(Polynomial(3).normalized()),
    Sample((Linear() + RBF(1.0)).normalized()),
    Sample(Linear().normalized()),
    Sample(RBF(1.0).on([0, 2])),
    Sample(RBF(1.0).on(0) * Periodic(2.0).on(slice(1, 3)) + 0.1 * Delta().on(-1)),
    Sample(RBF().on([0]) + Laplacian("median").on([1, 2])),
    Sample((RBF("auto") * Linear()).normalized() + Matern(2.5, "median") ** 2),
    Sample(RBF(10.0).on("age") * Delta().on("town") + RBF("median").on(["age", "income"]), table),
    Sample(RBF(10.0).on("age") * Categorical(0.1).on("town"), table),
    Sample(Kendall() * Mallows(0.5) + Tanimoto(), rankings),
    Sample(RBF(1.0) + Sigmoid(gamma=0.1)),
    Sample(Spectrum(3).normalized() + 0.5 * GappedKmers(5, 1).normalized(), dna),
    Sample(0.5 * WeisfeilerLehman(h=1).normalized() + WLOptimalAssignment(h=1) ** 2, molecules),
    Sample(Precomputed(SIMILARITIES) * 0.5 + Delta(), indices, name="Precomputed + Delta"),
]

SAMPLES = CATALOGUE + ALGEBRA


def of_vectors(sample: Sample) -> bool:
    """Whether a sample compares rows of a matrix."""
    return sample.points in (vectors, histograms)
