"""Two versions of mercer side by side: what they predict, and the way through the code that a fit takes.

old/.venv/bin/python benchmarks/versions.py record old.npz       every estimator on made data, in each checkout
new/.venv/bin/python benchmarks/versions.py record new.npz
new/.venv/bin/python benchmarks/versions.py compare old.npz new.npz
new/.venv/bin/python benchmarks/versions.py walks                files, functions and depth of four fits
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import mercer
import models

CLOSE = 1e-9  # of the largest prediction: what rounding may change
CHOSEN = ("best_params_", "best_score_", "alpha_", "kernel_", "weights_", "log_marginal_likelihood_value_")


def made(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return points and a curve of them with noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=n)


def larger() -> Iterator[models.Case]:
    """Yield problems whose sizes take the ways of the solvers that small ones do not."""
    X, y = made(3000, 6)
    wide, curve = made(12_000, 6, 1)
    yield models.Case("SVC, 3,000 rows", lambda: mercer.SVC(C=10.0, tol=1e-6), X, y > 0)
    yield models.Case("SVC, 12,000 rows", lambda: mercer.SVC(C=1.0), wide, curve > 0)
    yield models.Case("SVC, hard margin", lambda: mercer.SVC(C=np.inf, kernel=mercer.RBF(0.5)), X[:600], y[:600] > 0)
    yield models.Case("SVR, 3,000 rows", lambda: mercer.SVR(C=10.0, tol=1e-6), X, y)
    yield models.Case("KernelRidge, 3,000 rows", lambda: mercer.KernelRidge(0.1, kernel=mercer.RBF(2.0)), X, y)
    yield models.Case(
        "KernelRidge beyond its budget",
        lambda: mercer.KernelRidge(0.1, kernel=mercer.RBF(2.0), budget="64 MiB"),
        wide,
        curve,
    )
    yield models.Case("KernelMachine, logistic", lambda: mercer.KernelMachine(loss="logistic"), X, np.sign(y))
    yield models.Case("KernelQuantileRegressor", lambda: mercer.KernelQuantileRegressor(), X[:1500], y[:1500])
    yield models.Case("LinearSVC, 12,000 rows", lambda: mercer.LinearSVC(), wide, curve > 0)
    yield models.Case(
        "GaussianProcessRegressor, 800 rows",
        lambda: mercer.GaussianProcessRegressor(1.0 * mercer.RBF(1.0)),
        X[:800],
        y[:800],
    )


def seeded(case: models.Case) -> Any:
    """Return the model of a case, which draws the same numbers in both versions."""
    model = case.make()
    parameters = model.get_params() if hasattr(model, "get_params") else {}
    return model.set_params(random_state=0) if parameters.get("random_state", 0) is None else model


def record(path: str) -> None:
    """Fit everything, and write down predictions, objectives and what was chosen."""
    found: dict[str, np.ndarray] = {}
    for case in (*models.CASES, *larger()):
        sys.stderr.write(f"{case.name}\n")
        model = replace(case, make=partial(seeded, case)).fitted()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for key, value in models.answers(model, case.X).items():
                dense = value.toarray() if sparse.issparse(value) else value
                found[f"{case.name}: {key}"] = np.asarray(dense, dtype="U" if isinstance(dense, str) else None)
        for key in CHOSEN:
            if hasattr(model, key):
                found[f"{case.name}: {key}"] = np.asarray(str(getattr(model, key)))
        claims = getattr(model, "certificate_", None)
        for i, claim in enumerate(claims if isinstance(claims, list | tuple) else [claims]):
            if claim is not None and claim.primal is not None:
                found[f"{case.name}: primal {i}"] = np.asarray([claim.primal, claim.tol])
    np.savez_compressed(path, **{k: v.astype("U") if v.dtype == object else v for k, v in found.items()})


def compare(old: str, new: str) -> int:
    """Print what differs by more than rounding, objectives by more than the tolerance; return how much does."""
    a, b = (dict(np.load(path)) for path in (old, new))
    wrong = [f"only in one: {key}" for key in sorted(set(a) ^ set(b))]
    for key in sorted(set(a) & set(b)):
        x, y = a[key], b[key]
        if x.shape != y.shape or x.dtype.kind != y.dtype.kind:
            wrong.append(f"{key}: {x.dtype}{x.shape} and {y.dtype}{y.shape}")
        elif ": primal " in key:
            off = abs(x[0] - y[0]) / max(abs(x[0]), 1e-300)
            wrong += [f"{key}: {x[0]!r} and {y[0]!r}"] * bool(off > x[1])
        elif x.dtype.kind == "f":
            off = float(np.abs(x - y).max(initial=0.0)) / max(float(np.abs(x).max(initial=0.0)), 1e-300)
            wrong += [f"{key}: off by {off:.1e}"] * bool(not off <= CLOSE)
        elif not np.array_equal(x, y):
            wrong.append(f"{key}: {np.count_nonzero(x != y)} of {x.size} differ")
    sys.stdout.write("\n".join([*wrong, f"{len(a)} results, {len(wrong)} differ", ""]))
    return len(wrong)


def walk(call: Callable[[], Any]) -> tuple[int, int, int]:
    """Return how many files and functions of mercer a call crosses, and how deep its calls of them are nested."""
    home = str(Path(mercer.__file__).parent)
    seen: set[tuple[str, str]] = set()
    depth = deepest = 0

    def watch(frame: FrameType, event: str, _: Any) -> None:
        nonlocal depth, deepest
        if not frame.f_code.co_filename.startswith(home):
            return
        if event == "call":
            depth += 1
            deepest = max(deepest, depth)
            seen.add((frame.f_code.co_filename, frame.f_code.co_qualname))
        elif event == "return":
            depth -= 1

    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        call()  # modules are loaded, caches are filled
        sys.setprofile(watch)
        try:
            call()
        finally:
            sys.setprofile(None)
    return len({file for file, _ in seen}), len(seen), deepest


def walks() -> None:
    """Print the ways of four fits."""
    from mercer.cli.commands import run

    X, y = made(200, 6)
    wide, curve = made(12_000, 6, 1)
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.csv"
        pd.DataFrame(X).assign(y=y).rename(columns=str).to_csv(table, index=False)
        command = [
            "fit",
            str(table),
            "-y",
            "y",
            "--out",
            f"{folder}/m.mercer",
            "--report",
            f"{folder}/m.html",
            "--force",
        ]
        for name, call in {
            "SVC, 200 rows": lambda: mercer.SVC().fit(X, y > 0),
            "KernelRidge beyond its budget": lambda: mercer.KernelRidge(
                0.1, kernel=mercer.RBF(2.0), budget="64 MiB"
            ).fit(wide, curve),
            "KernelMachine": lambda: mercer.KernelMachine(loss="logistic").fit(X, np.sign(y)),
            "mercer fit": lambda: run(command),
        }.items():
            files, functions, depth = walk(call)
            sys.stdout.write(f"{name}: {files} files, {functions} functions, {depth} deep\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["record", "compare", "walks"])
    parser.add_argument("files", nargs="*")
    given = parser.parse_args()
    if given.what == "compare":
        return int(compare(*given.files) > 0)
    if given.what == "record":
        record(*given.files)
    else:
        walks()
    return 0


if __name__ == "__main__":
    sys.exit(main())
