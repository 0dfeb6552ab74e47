"""Gaussian processes against scikit-learn, what more rows buy, and kernel principal components.

Fits: Friedman's first function, RBF with a scale per feature, a factor and noise, three restarts. Both likelihoods are
computed by one float64 program (`likelihood`). Real data from the folder in `MERCER_DATA`, standardised, with
the fixed test masks. Run with `--rows fit2000,pol` for some rows and with `--quick` for tiny sizes; only a full run is
written to results/.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import _gp_kpca
import numpy as np
from _data import Sample, friedman, sample
from _harness import Report, asked, turns, warm_memory
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel
from threadpoolctl import threadpool_limits

import mercer

TEST = 5_000  # new points of a prediction
PATIENCE = 300.0  # seconds that scikit-learn's search may take
LARGE, SMALL, TUNED = 10_000, 3_000, 5_000


# -- what contenders are judged by: formulas in float64 that none of them shares ------------------------------


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


# -- contenders -------------------------------------------------------------------------------------------


def ours(d: int, restarts: int = 0, **more: Any) -> Any:
    """Return the model: a factor, a scale per feature, noise."""
    return mercer.GaussianProcessRegressor(
        1.0 * mercer.RBF(scale=[1.0] * d), noise=0.1, n_restarts_optimizer=restarts, **more
    )


class Late(Exception):
    """scikit-learn's search has taken longer than there is time for."""


class Search:
    """scikit-learn's own search, L-BFGS-B from each start, which remembers the best point and may run out of time."""

    def __init__(self, patience: float) -> None:
        self.end = time.perf_counter() + patience
        self.best, self.theta = np.inf, np.zeros(0)
        self.evaluations = self.finished = 0

    def __call__(self, objective: Any, theta: np.ndarray, bounds: np.ndarray) -> tuple[np.ndarray, float]:
        def watched(theta: np.ndarray) -> Any:
            if time.perf_counter() > self.end:
                raise Late
            value = objective(theta)
            self.evaluations += 1
            if value[0] < self.best:
                self.best, self.theta = value[0], theta.copy()
            return value

        done = minimize(watched, theta, method="L-BFGS-B", jac=True, bounds=bounds)  # as scikit-learn does
        self.finished += 1
        return done.x, done.fun


def theirs(data: Sample, restarts: int, patience: float) -> tuple[Any, float, str]:
    """Return scikit-learn's model of the same from the same start, the seconds it took, and how far it came."""
    kernel = ConstantKernel(1.0) * RBF(np.ones(data.X.shape[1])) + WhiteKernel(0.1)
    search = Search(patience)
    model = GaussianProcessRegressor(kernel, n_restarts_optimizer=restarts, optimizer=search, random_state=0)
    start = time.perf_counter()
    try:
        model.fit(data.X, data.y)
        said = ""
    except Late:
        said = f", stopped after {search.finished} of {1 + restarts} starts"
    seconds = time.perf_counter() - start
    if said:
        model = GaussianProcessRegressor(kernel.clone_with_theta(search.theta), optimizer=None).fit(data.X, data.y)
    return model, seconds, f"{seconds:.1f} s ({search.evaluations} evaluations{said})"


def found(model: Any) -> tuple[float, np.ndarray, float]:
    """Return the factor, the scales and the noise of either model."""
    if isinstance(model, GaussianProcessRegressor):
        k = model.kernel_
        return k.k1.k1.constant_value, np.asarray(k.k1.k2.length_scale), k.k2.noise_level
    return model.kernel_.factor, np.asarray(model.kernel_.base.scale), model.noise_


def fit_row(report: Report, n: int, test: int = TEST, patience: float = PATIENCE) -> None:
    """One fit with three restarts, and predictions with deviations of both models."""
    data = friedman(n, test)
    d = data.X.shape[1]
    models: dict[str, Any] = {}

    def run() -> None:
        models["mercer"] = ours(d, 3).fit(data.X, data.y)

    ours(d, 3).fit(data.X[:300], data.y[:300])  # the code is loaded
    times = turns({"": run}, 3, 20.0)[""]
    models["scikit-learn"], slow, said = theirs(data, 3, patience)
    fast = min(times)
    value = {who: likelihood(data, *found(model)) for who, model in models.items()}
    report.add(
        f"GP fit, {n:,} x {d}, 3 restarts",
        f"{fast:.2f} s",
        said,
        f"{'> ' if 'stopped' in said else ''}{slow / fast:.1f} x",
        ">= 5 x, likelihood no worse",
        slow / fast >= 5 and value["mercer"] >= value["scikit-learn"] - 1e-2,
        quality=", ".join(f"{who} {v:.3f}" for who, v in value.items()) + " (log marginal likelihood)",
    )
    report.raw[f"fit{n}"] = {"mercer": times, "scikit-learn": slow, "likelihood": value, "plan": models["mercer"].plan_}
    _predict(report, f"GP prediction with std, {n:,} x {d}", data, models, ">= 5 x")


def rough_row(report: Report, n: int = 5_000, test: int = TEST) -> None:
    """Predictions where the kernel matrix has no low rank: a triangular solve for both."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n + test, 8))
    y = np.sin(X.sum(axis=1)) + 0.1 * rng.normal(size=len(X))
    data = Sample(X[:n], y[:n], X[n:], y[n:])
    kernel = 1.0 * mercer.RBF(scale=[2.0] * 8)
    models = {
        "mercer": mercer.GaussianProcessRegressor(kernel, noise=0.01, optimizer=None).fit(data.X, data.y),
        "scikit-learn": GaussianProcessRegressor(
            ConstantKernel(1.0) * RBF(np.full(8, 2.0)) + WhiteKernel(0.01), optimizer=None
        ).fit(data.X, data.y),
    }
    _predict(report, f"the same, {n:,} x 8, a kernel of full rank", data, models, "")


def _predict(report: Report, what: str, data: Sample, models: dict[str, Any], bar: str) -> None:
    X = data.X_test
    start = time.perf_counter()
    _, std = models["mercer"].predict(X, return_std=True)
    first = time.perf_counter() - start
    times = turns({who: lambda m=model: m.predict(X, return_std=True) for who, model in models.items()}, 3, 20.0)
    fast, slow = min(times["mercer"]), min(times["scikit-learn"])
    some = slice(0, min(200, len(X)))
    off = float(np.abs(std[some] / spread(data, X[some], *found(models["mercer"])) - 1).max())
    low = getattr(models["mercer"]._known, "_low", None)
    report.add(
        f"{what}, {len(X):,} points",
        f"{fast:.3f} s (the first time {first:.3f} s)",
        f"{slow:.3f} s",
        f"{slow / fast:.1f} x",
        bar,
        slow / fast >= 5 and off <= 1e-5 if bar else None,
        quality=f"std off by {off:.0e}; " + ("by the factor" if low is None else f"rank {low.rank}"),
    )
    report.raw[what] = {"seconds": times, "first": first, "off": off}


def data_row(report: Report, name: str, large: int = LARGE, small: int = SMALL, tuned: int = TUNED) -> None:
    """What more rows buy: here 10,000, in scikit-learn 3,000."""
    data = sample(name, large)
    few, d = data.first(small), data.X.shape[1]
    kernel = 1.0 * mercer.Matern(nu=1.5, scale=[float(d) ** 0.5] * d)
    start = time.perf_counter()
    model = mercer.GaussianProcessRegressor(kernel, noise=0.1, tuning_rows=tuned).fit(data.X, data.y)
    seconds = time.perf_counter() - start
    near = mercer.GaussianProcessRegressor(kernel, noise=0.1).fit(few.X, few.y)
    amplitude, scales = near.kernel_.factor, np.clip(near.kernel_.base.scale, 1e-5, 1e5)
    peer = GaussianProcessRegressor(
        ConstantKernel(amplitude) * Matern(scales, nu=1.5) + WhiteKernel(float(np.clip(near.noise_, 1e-5, 1e5)))
    )
    start = time.perf_counter()
    peer.fit(few.X, few.y)
    slow = time.perf_counter() - start
    mean, std = model.predict(data.X_test, return_std=True, of="target")
    there, wide = peer.predict(data.X_test, return_std=True)
    error = [float(np.sqrt(np.mean((m - data.y_test) ** 2))) for m in (mean, there)]
    nlpd = [density(data.y_test, mean, std), density(data.y_test, there, wide)]
    report.add(
        f"{name}, {d} features, {len(data.y_test):,} test rows",
        f"{len(data.y):,} rows: RMSE {error[0]:.4f}, NLPD {nlpd[0]:.3f}, {seconds:.0f} s",
        f"{len(few.y):,} rows: RMSE {error[1]:.4f}, NLPD {nlpd[1]:.3f}, {slow:.0f} s",
        f"RMSE {error[0] / error[1]:.2f} x, NLPD {nlpd[0] - nlpd[1]:+.2f}",
    )
    report.raw[name] = {"seconds": [seconds, slow], "rmse": error, "nlpd": nlpd, "plan": model.plan_}


ROWS: dict[str, Callable[[Report], None]] = {
    "fit2000": lambda report: fit_row(report, 2_000),
    "fit5000": lambda report: fit_row(report, 5_000),
    "rough": rough_row,
    "pol": lambda report: data_row(report, "pol"),
    "bike": lambda report: data_row(report, "bike"),
    "kin40k": lambda report: data_row(report, "kin40k"),
    "kernel_pca": _gp_kpca.rows,
}
QUICK: dict[str, Callable[[Report], None]] = {
    "fit2000": lambda report: fit_row(report, 400, 300, 2.0),
    "fit5000": lambda report: fit_row(report, 700, 300),
    "rough": lambda report: rough_row(report, 500, 300),
    **{name: lambda report, name=name: data_row(report, name, 600, 200, 400) for name in ("pol", "bike", "kin40k")},  # type: ignore[misc]
    "kernel_pca": lambda report: _gp_kpca.race_row(report, 1_000, 5),
}


def main() -> None:
    """Run the rows that were asked for."""
    options = asked(__doc__, ROWS, quick={"action": "store_true", "help": "tiny sizes: whether it runs"})
    report = Report("gp")
    if not options.quick:
        warm_memory(8)
    with threadpool_limits(2), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # bounds of parameters that do not matter
        there = report.run(options.rows, lambda name: (QUICK if options.quick else ROWS)[name](report))
    report.notes = [
        "Fits: make_friedman1 with 5 features and noise 1, targets standardised, from factor 1, scales 1 and noise "
        f"0.1; both use two threads. scikit-learn runs once, for {PATIENCE:.0f} s at most, and its likelihood is the "
        "best that it has seen by then; mercer runs up to three times, of which the best counts.",
        "Prediction: deviations of f without noise; the peer's include it. mercer writes the kernel matrix as one of "
        "low rank where what is left out cannot change a variance by more than 2e-6 of itself; the row below has a "
        "kernel where it cannot.",
        "Real data: Matern kernel of smoothness 3/2 with a scale per feature. mercer finds its parameters on "
        f"{TUNED:,} of {LARGE:,} rows. scikit-learn starts from what mercer found on its {SMALL:,} rows, which spares "
        "it most of the search. NLPD: mean negative log predictive density of the standardised test targets.",
    ]
    report.finish(save=options.all and there and not options.quick)


if __name__ == "__main__":
    main()
