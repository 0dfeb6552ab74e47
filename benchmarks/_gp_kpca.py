"""The rows of gp.py about kernel principal components.

Digits-like data: images of scikit-learn's `load_digits`, drawn with replacement, each moved by a random half pixel or
less in both directions (linear interpolation) with noise of deviation 0.5 added and clipped to 0..16.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from _harness import Report, fresh_process, turns
from sklearn.datasets import load_digits
from sklearn.decomposition import KernelPCA
from sklearn.metrics.pairwise import rbf_kernel

import mercer

GAMMA = 1e-3
HERE = str(Path(__file__).parent)


def digits_like(n: int, seed: int = 0) -> np.ndarray:
    """Return n images of 64 pixels that look like handwritten digits."""
    rng = np.random.default_rng(seed)
    images = load_digits().images
    images = images[rng.integers(len(images), size=n)]
    for axis in (1, 2):
        shift = rng.uniform(-0.5, 0.5, size=(n, 1, 1))
        moved = np.where(shift > 0, np.roll(images, 1, axis), np.roll(images, -1, axis))
        images = (1 - np.abs(shift)) * images + np.abs(shift) * moved
    noisy = images + rng.normal(scale=0.5, size=images.shape)
    return np.asarray(noisy.clip(0, 16).reshape(n, 64))


def residuals(model: Any, X: np.ndarray) -> np.ndarray:
    """Return |H K H v - lambda v| of each component in float64, relative to the largest eigenvalue."""
    V = model.eigenvectors_ - model.eigenvectors_.mean(axis=0)
    out = np.empty(V.shape)
    for i in range(0, len(X), 1024):
        out[i : i + 1024] = rbf_kernel(X[i : i + 1024], X, gamma=GAMMA) @ V
    out -= out.mean(axis=0)
    left = np.linalg.norm(out - model.eigenvectors_ * model.eigenvalues_, axis=0)
    return np.asarray(left / model.eigenvalues_[0])


def race_row(report: Report, n: int = 10_000, k: int = 20) -> None:
    """20 components of 10,000 rows, against both of scikit-learn's iterative solvers."""
    X = digits_like(n)
    models: dict[str, Any] = {
        "mercer": mercer.KernelPCA(k, kernel="rbf", gamma=GAMMA),
        "arpack": KernelPCA(k, kernel="rbf", gamma=GAMMA, eigen_solver="arpack", random_state=0),
        "randomized": KernelPCA(k, kernel="rbf", gamma=GAMMA, eigen_solver="randomized", random_state=0),
    }
    for model in models.values():
        model.fit(X[:1000])  # the code is loaded
    times = turns({who: lambda model=model: model.fit(X) for who, model in models.items()}, 3, 30.0)
    best = {who: min(seconds) for who, seconds in times.items()}
    peer = min(("arpack", "randomized"), key=best.__getitem__)
    left = {who: float(residuals(model, X).max()) for who, model in models.items()}
    exact = models["arpack"].eigenvalues_
    off = {who: float(np.abs(model.eigenvalues_ / exact - 1).max()) for who, model in models.items()}
    ratio = best[peer] / best["mercer"]
    report.add(
        f"KernelPCA of digits, {n:,} x 64, {k} components",
        f"{best['mercer']:.2f} s",
        ", ".join(f"{who} {best[who]:.2f} s" for who in ("arpack", "randomized")),
        f"{ratio:.1f} x",
        ">= 5 x, eigenvalues to 1e-6",
        ratio >= 5 and (off["mercer"] <= 1e-6 or left["mercer"] <= left[peer]),
        residual=", ".join(f"{who} {value:.1e}" for who, value in left.items()),
        eigenvalues=f"off ARPACK's by {off['mercer']:.1e} (randomized: {off['randomized']:.1e})",
    )
    report.raw["kernel_pca"] = {"seconds": times, "residual": left, "eigenvalues": off, "how": models["mercer"].plan_}


def budget_row(report: Report, n: int = 20_000, k: int = 10, mebibytes: int = 512) -> None:
    """10 components of 20,000 rows, in a budget that the matrix exceeds even in float32."""
    setup = (
        f"import sys, time\nsys.path.insert(0, {HERE!r})\nimport mercer\n"
        f"from _gp_kpca import GAMMA, digits_like, residuals\nX = digits_like({n})\n"
        f"model = mercer.KernelPCA({k}, kernel='rbf', gamma=GAMMA, budget='{mebibytes} MiB').fit(X[:100])"
    )
    work = "start = time.perf_counter()\nmodel.fit(X)\nseconds = time.perf_counter() - start"
    megabytes, said = fresh_process(setup, work, "seconds, residuals(model, X).max()")
    seconds, left = map(float, said.split())
    report.add(
        f"KernelPCA of digits, {n:,} x 64, {k} components, budget {mebibytes} MiB",
        f"{seconds:.2f} s, {megabytes:.0f} MiB",
        f"the matrix alone: {8 * n * n / 2**20:,.0f} MiB",
        f"residual {left:.1e}",
        f"<= {mebibytes} MiB, residual <= 1e-6",
        megabytes <= mebibytes and left <= 1e-6,
    )
    report.raw["kernel_pca_budget"] = {"seconds": seconds, "MiB": megabytes, "residual": left}


def rows(report: Report) -> None:
    """Add both rows."""
    race_row(report)
    budget_row(report)


if __name__ == "__main__":
    own = Report("kpca")
    rows(own)
    own.finish(save=False)
