"""The data of `gp.py`, and what its contenders are judged by: formulas in float64 that none of them shares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from _svm_data import Missing, file
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.spatial.distance import cdist
from sklearn.datasets import make_friedman1

__all__ = ["Missing", "Sample", "density", "friedman", "likelihood", "sample", "spread"]


@dataclass
class Sample:
    """Training and test rows, standardised."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray

    def first(self, n: int) -> Sample:
        """Return the same with fewer training rows."""
        return Sample(self.X[:n], self.y[:n], self.X_test, self.y_test)


def friedman(n: int, test: int, d: int = 5) -> Sample:
    """Return Friedman's first function of d features, five of which matter, with noise of deviation 1."""
    X, y = make_friedman1(n + test, n_features=d, noise=1.0, random_state=0)
    y = (y - y[:n].mean()) / y[:n].std()
    return Sample(X[:n], y[:n], X[n:], y[n:])


def sample(name: str, n: int) -> Sample:
    """Return n training rows, drawn at random, and all test rows of one of the regression sets, by its fixed mask."""
    data = np.load(file(f"{name}.npz"))
    X, y, test = data["X"].astype(float), data["y"].astype(float).ravel(), data["test"].astype(bool)
    rows = np.random.default_rng(0).permutation(np.flatnonzero(~test))[:n]
    center, unit = X[rows].mean(axis=0), np.maximum(X[rows].std(axis=0), 1e-12)
    middle, height = y[rows].mean(), y[rows].std()
    return Sample(
        (X[rows] - center) / unit, (y[rows] - middle) / height, (X[test] - center) / unit, (y[test] - middle) / height
    )


def _rbf(X: np.ndarray, Z: np.ndarray, amplitude: float, scales: Any) -> np.ndarray:
    K = cdist(X / scales, Z / scales, "sqeuclidean")
    K *= -0.5
    np.exp(K, out=K)
    K *= amplitude
    return K


def likelihood(data: Sample, amplitude: float, scales: Any, noise: float) -> float:
    """Return the log marginal likelihood under amplitude * RBF(scales) and noise."""
    K = _rbf(data.X, data.X, amplitude, scales)
    K.flat[:: len(K) + 1] += noise
    L = cholesky(K, lower=True, overwrite_a=True, check_finite=False)
    half = solve_triangular(L, data.y, lower=True, check_finite=False)
    return float(-0.5 * half @ half - np.log(L.diagonal()).sum() - 0.5 * len(K) * np.log(2 * np.pi))


def spread(data: Sample, X: np.ndarray, amplitude: float, scales: Any, noise: float) -> np.ndarray:
    """Return the standard deviation of f at some points."""
    K = _rbf(data.X, data.X, amplitude, scales)
    K.flat[:: len(K) + 1] += noise
    L = cholesky(K, lower=True, overwrite_a=True, check_finite=False)
    k = _rbf(data.X, X, amplitude, scales)
    return np.sqrt(amplitude - np.einsum("ij,ij->j", k, cho_solve((L, True), k, check_finite=False)))


def density(y: np.ndarray, mean: np.ndarray, std: np.ndarray) -> float:
    """Return the mean negative log predictive density."""
    return float(np.mean(0.5 * ((y - mean) / std) ** 2 + np.log(std)) + 0.5 * np.log(2 * np.pi))
