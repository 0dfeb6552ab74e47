"""The Gram engine against scikit-learn and, where it installs, KeOps on the CPU.

Each pair is measured in turns in one process, best of several runs after one that warms the memory. The limit of a
matrix-free product is what this machine does on one tile with nothing else to do: a matrix product of the tile, by
BLAS, plus an exponential of each entry, the faster of NumPy's and ours, on both cores; twice that rate when symmetry
is used.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from _harness import Report, peak_extra_memory, race
from sklearn.gaussian_process.kernels import Matern as SklearnMatern
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel
from threadpoolctl import threadpool_limits

import mercer
from mercer import RBF, Gram, Laplacian, Linear, Matern, Monomials, Polynomial, RationalQuadratic
from mercer.machine.threads import cores

rng = np.random.default_rng(0)


def dense_rows(report: Report) -> None:
    """Dense symmetric matrices, 13,500 x 26 as in the `pol` data."""
    X64 = rng.standard_normal((13_500, 26))
    for dtype, bar in ((np.float64, 4), (np.float32, 5)):
        X = X64.astype(dtype)
        best = race(
            {
                "ours": lambda X=X: RBF.from_gamma(0.05)(X),
                "peer": lambda X=X: pairwise_kernels(X, metric="rbf", gamma=0.05, n_jobs=None),
            }
        )
        ratio(report, f"RBF matrix 13,500 x 26, {X.dtype}", best, "rbf_kernel", bar)
    for dtype in (np.float64, np.float32):
        X = X64.astype(dtype)
        best = race({"ours": lambda X=X: Matern(1.5, 3.0)(X), "peer": lambda X=X: SklearnMatern(3.0, nu=1.5)(X)}, 3)
        ratio(report, f"Matern 3/2 matrix 13,500 x 26, {X.dtype}", best, "gaussian_process", 5)
        best = race(
            {
                "ours": lambda X=X: Laplacian(20.0)(X),
                "peer": lambda X=X: pairwise_kernels(X, metric="laplacian", gamma=0.05),
            },
            3,
        )
        ratio(report, f"Laplacian matrix 13,500 x 26, {X.dtype}", best, "laplacian_kernel", 5)


def ratio(report: Report, what: str, best: dict[str, float], peer: str, bar: float) -> None:
    """Add a row that compares two times."""
    times = best["peer"] / best["ours"]
    report.add(
        what, f"{best['ours']:.3f} s", f"{best['peer']:.3f} s ({peer})", f"{times:.1f} x", f">= {bar:g} x", times >= bar
    )


def composite_rows(report: Report) -> None:
    """A sum of five kernels against each of them alone."""
    parts = [RBF(5.0), Matern(1.5, 5.0), RationalQuadratic(1.0, 5.0), Polynomial(3, 1.0, 0.05), Linear()]
    five = parts[0] + parts[1] + parts[2] + parts[3] + parts[4]
    for dtype in (np.float64, np.float32):
        X = rng.standard_normal((8_000, 26)).astype(dtype)
        v = rng.standard_normal(8_000).astype(dtype)
        for name, call in (("matrix", lambda k, X=X: k(X)), ("product", lambda k, X=X, v=v: Gram(k, X).matvec(v))):
            best = race({str(k): lambda k=k, call=call: call(k) for k in (*parts, five)}, 5)
            total = best.pop(str(five))
            alone = best[str(parts[0])]
            mean, cheapest = statistics.mean(best.values()), min(best.values())
            report.add(
                f"sum of five kernels, {name} 8,000 x 26, {np.dtype(dtype)}",
                f"{total:.3f} s",
                f"{alone:.3f} s (RBF alone; all five one by one {sum(best.values()):.3f} s)",
                f"{total / alone:.2f} x RBF, {total / mean:.2f} x their mean, {total / cheapest:.2f} x the cheapest",
                "< 2.5 x",
                total / mean < 2.5,
            )


def product_rows(report: Report) -> None:
    """Matrix-free products at n = 100,000, d = 20."""
    n, d = 100_000, 20
    for dtype in (np.float32, np.float64):
        X = rng.standard_normal((n, d)).astype(dtype)
        v = rng.standard_normal(n).astype(dtype)
        K = Gram(RBF.from_gamma(0.5 / d), X)
        best = race({"ours": lambda K=K, v=v: K.matvec(v)}, 5)["ours"]
        peer, block = fastest_blocks(X, v, 0.5 / d)
        times = peer / best
        report.add(
            f"RBF product n = 100,000 d = 20, {np.dtype(dtype)}",
            f"{best:.2f} s ({n * n / best / 1e9:.2f} G pairs/s)",
            f"{peer:.2f} s (rbf_kernel, blocks of {block})",
            f"{times:.1f} x",
            ">= 10 x",
            times >= 10,
        )
        product, exponential = tile_rates(dtype, d)
        limit = 2 / (1 / product + 1 / exponential)
        share = n * n / best / 1e9 / limit
        report.add(
            f"share of the limit, {np.dtype(dtype)}",
            f"{n * n / best / 1e9:.2f} G pairs/s",
            f"limit {limit:.2f}: product {product:.2f}, exp {exponential:.2f} G/s, twice for symmetry",
            f"{share:.0%}",
            ">= 60%",
            share >= 0.6,
        )
    setup = (
        "import numpy as np\nfrom mercer import RBF, Gram\n"
        "X = np.random.default_rng(0).standard_normal((100_000, 20)).astype(np.float32)\nv = X[:, 0].copy()\n"
        "Gram(RBF(3.0), X[:2000]).matvec(v[:2000])"
    )
    extra = peak_extra_memory(setup, "Gram(RBF(3.0), X).matvec(v)")
    report.add("extra memory of that product, float32", f"{extra:.0f} MB", "", "", "< 200 MB", extra < 200)
    keops_row(report)


def fastest_blocks(X: np.ndarray, v: np.ndarray, gamma: float) -> tuple[float, int]:
    """Return the time of the product by scikit-learn's blocks, at the best block size, and that size."""
    rates = {}
    for size in (128, 256, 512, 1024, 2048, 4096):
        rates[size] = race({"peer": lambda s=size: rbf_kernel(X[:s], X, gamma) @ v}, 2)["peer"] / size
    size = min(rates, key=rates.__getitem__)
    start = time.perf_counter()
    for i in range(0, len(X), size):
        rbf_kernel(X[i : i + size], X, gamma) @ v
    # Too long to repeat: where single blocks, measured twice, promise less, that counts.
    return min(time.perf_counter() - start, rates[size] * len(X)), size


def tile_rates(dtype: type, d: int) -> tuple[float, float]:
    """Return the best rates, in G pairs/s on all cores, of a tile's matrix product and of its exponential."""
    product = exponential = 0.0
    with threadpool_limits(1), ThreadPoolExecutor(cores()) as pool:
        for side in (128, 256, 512, 1024):
            tiles = [
                [rng.standard_normal(shape).astype(dtype) for shape in ((side, d), (d, side), (side, side))]
                for _ in range(cores())
            ]

            def multiply(tile: list[np.ndarray]) -> None:
                for _ in range(20):
                    np.matmul(tile[0], tile[1], out=tile[2])

            def exponentiate(tile: list[np.ndarray]) -> None:
                for _ in range(20):
                    np.exp(tile[2], out=tile[2])
                    np.copyto(tile[2], -1.0)

            pairs = 20 * side * side * cores() / 1e9
            product = max(product, pairs / race({"tile": lambda t=tiles: list(pool.map(multiply, t))}, 10)["tile"])
            exponential = max(
                exponential, pairs / race({"tile": lambda t=tiles: list(pool.map(exponentiate, t))}, 10)["tile"]
            )
    # Our own exponential: a one-feature kernel costs little else.
    x = rng.standard_normal((8_000, 1)).astype(dtype)
    ours = race({"exp": lambda: Gram(RBF(1.0), x, x.copy()).matvec(x[:, 0])}, 5)["exp"]
    return product, max(exponential, len(x) ** 2 / ours / 1e9)


def keops_row(report: Report) -> None:
    """KeOps on the CPU, at a tenth of the size: it has no symmetry to use and compiles at first use."""
    try:
        from pykeops.numpy import LazyTensor
    except Exception as error:  # it compiles at import time and fails in many ways
        report.add("KeOps on the CPU", "", f"did not load: {type(error).__name__}", "", "")
        return
    n, d = 20_000, 20
    X = rng.standard_normal((n, d)).astype(np.float32)
    v = rng.standard_normal((n, 1)).astype(np.float32)
    K = Gram(RBF.from_gamma(0.5 / d), X)

    def keops() -> None:
        a, b = LazyTensor(X[:, None, :].copy()), LazyTensor(X[None, :, :].copy())
        (-(((a - b) ** 2).sum(-1)) * (0.5 / d)).exp() @ v

    try:
        best = race({"ours": lambda: K.matvec(v), "peer": keops}, 2)
    except Exception as error:
        report.add("KeOps on the CPU", "", f"did not run: {type(error).__name__}", "", "")
        return
    ratio(report, "RBF product n = 20,000 d = 20, float32", best, "KeOps", 10)


def trick_rows(report: Report) -> None:
    """The kernel trick (K11): O(d) against O(d^p) for the same inner products."""
    X = rng.standard_normal((2_000, 40)) / 40**0.5
    for degree in (2, 3):
        kernel, phi = Polynomial(degree), Monomials(degree).fit(X)

        def explicit(phi: Monomials = phi) -> np.ndarray:
            features = phi.transform(X)
            return features @ features.T

        assert np.allclose(explicit(), kernel(X))
        best = race({"ours": lambda k=kernel: k(X), "peer": explicit}, 3)
        count = Monomials.count(40, degree)
        ratio(report, f"kernel trick: degree {degree}, 2,000 x 40", best, f"{count:,} explicit monomials", degree)


def median_time(call: Callable[[], object], calls: int = 3_000) -> float:
    """Return the median time of one call among many in a row."""
    times = []
    for _ in range(calls):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def small_rows(report: Report) -> None:
    """What a user with a hundred rows waits for."""
    X = rng.standard_normal((100, 5))
    kernel = RBF()
    ours, peer = (1e6 * median_time(call) for call in (lambda: kernel(X), lambda: rbf_kernel(X)))
    report.add(
        "RBF()(X), 100 x 5, median",
        f"{ours:.0f} us",
        f"{peer:.0f} us (rbf_kernel)",
        f"{peer / ours:.1f} x",
        "< 100 us",
        ours < 100,
    )
    program = "import time, sklearn; a = time.perf_counter(); import mercer; print(time.perf_counter() - a)"
    runs = [
        float(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout) for _ in range(5)
    ]
    report.add("import mercer, after import sklearn", f"{min(runs):.2f} s", "", "", "< 0.3 s", min(runs) < 0.3)


def main() -> None:
    """Run all rows."""
    report = Report("gram")
    small_rows(report)
    trick_rows(report)
    dense_rows(report)
    composite_rows(report)
    product_rows(report)
    report.finish()


if __name__ == "__main__":
    print(f"mercer {mercer.__version__}")
    main()
