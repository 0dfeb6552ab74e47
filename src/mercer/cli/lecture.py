"""The lectures' thought experiment (S): 314,457,495 monomials, as many examples as one likes, exactly."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial

import numpy as np
from rich.console import Console

from mercer.cli.output import code, facts
from mercer.estimators import KernelMachine, KernelRidge
from mercer.features import Monomials
from mercer.gram import Gram
from mercer.kernels import Polynomial
from mercer.losses import SquaredHinge

FEATURES, DEGREE = 40, 8
MONOMIALS = Monomials.count(FEATURES, DEGREE, exact=True)
NOISE = 0.3
ALPHA = 0.1  # of ridge; the squared hinge is given the same strength
TOL = 1e-4  # relative duality gap of both, and relative residual of ridge
KERNEL = Polynomial(DEGREE, 0.0, 1.0)
TEACHER = 100
RECIPE = {
    "points": f"x = z / |z|, z_j normal with variance 1/j, j = 1..{FEATURES}",
    "kernel": f"k(x, x') = <x, x'>^{DEGREE}: the inner product of all {MONOMIALS:,} monomials of degree {DEGREE}",
    "teacher": f"t(x) = sum of {TEACHER} c_j k(w_j, x), c_j standard normal, w_j drawn like x; shifted and scaled to "
    "mean 0 and variance 1 over the training points",
    "ridge": f"y = t(x) + {NOISE} e, e standard normal",
    "labels": "the sign of that y",
    "draws": "numpy.random.default_rng(seed), in the order training points, test points, w, c, e, e of the tests",
}


@dataclass
class Examples:
    """Training and test examples of the recipe."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray

    @property
    def labels(self) -> tuple[np.ndarray, np.ndarray]:
        """The classes of the training and of the test points."""
        return np.where(self.y > 0, 1, -1), np.where(self.y_test > 0, 1, -1)


def examples(n: int, tests: int, seed: int = 0) -> Examples:
    """Return `n` training and `tests` test examples made by the recipe.

    Examples
    --------
    >>> made = examples(500, 100)
    >>> made.X.shape, made.y_test.shape, bool(abs(np.linalg.norm(made.X, axis=1) - 1).max() < 1e-12)
    ((500, 40), (100,), True)
    """
    random = np.random.default_rng(seed)
    X, X_test, W = (_points(random, count) for count in (n, tests, TEACHER))
    c = random.standard_normal(TEACHER)
    t, t_test = (Gram(KERNEL, points, W).matvec(c) for points in (X, X_test))
    shift, scale = t.mean(), t.std()
    y, y_test = ((v - shift) / scale + NOISE * random.standard_normal(len(v)) for v in (t, t_test))
    return Examples(X, y, X_test, y_test)


def _points(random: np.random.Generator, count: int) -> np.ndarray:
    z = random.standard_normal((count, FEATURES)) / np.sqrt(np.arange(1, FEATURES + 1))
    return z / np.linalg.norm(z, axis=1)[:, None]


@dataclass
class Explicit:
    """What the explicit map would cost, from how fast it makes monomials where there are few enough."""

    values: int
    seconds: float

    @property
    def bytes(self) -> int:
        """The weight of the mapped examples in float64."""
        return 8 * self.values

    def __str__(self) -> str:
        hours = self.seconds / 3_600
        taken = f"{hours:,.1f} hours" if hours < 48 else f"{hours / 24:,.0f} days"
        return f"{self.values:.3g} numbers, {self.bytes / 1e12:,.0f} TB, {taken} to compute"


def explicit(n: int, trial: int = 400) -> Explicit:
    """Return what mapping `n` examples to all monomials would take; the rate is that of 10 features, measured now."""
    X = np.random.default_rng(0).standard_normal((trial, 10))
    mapping = Monomials(DEGREE, exact=True).fit(X)
    mapping.transform(X[:10])
    start = time.perf_counter()
    made = mapping.transform(X).size
    seconds = time.perf_counter() - start
    values = n * MONOMIALS
    return Explicit(values, seconds * values / made)


ridge = partial(KernelRidge, alpha=ALPHA, kernel=KERNEL, residual=TOL)
squared_hinge = partial(KernelMachine, kernel=KERNEL, loss=SquaredHinge(), penalty=ALPHA, tol=TOL, fit_intercept=False)


def show_lecture(console: Console, n: int, tests: int = 2_000) -> None:
    """Train both machines at a fraction of the size, and print what they reach."""
    made = examples(n, tests)
    labels, test_labels = made.labels
    cost = explicit(n)
    facts(console, *RECIPE.items())
    console.print()
    console.print(code(f"KernelRidge(alpha={ALPHA}, kernel={KERNEL!r}).fit(X, y)  # {n:,} examples"))
    start = time.perf_counter()
    model = ridge().fit(made.X, made.y)
    seconds = time.perf_counter() - start
    error = float(np.sqrt(np.mean((model.predict(made.X_test) - made.y_test) ** 2)))
    facts(
        console,
        ("seconds", f"{seconds:.1f}; the explicit map: {cost}"),
        ("test error", f"{error:.3f} (predicting 0: {np.std(made.y_test):.3f}, noise alone: {NOISE})"),
        ("residual", f"{float(np.max(model.residual_)):.1e} of |y|"),
        ("gap, relative", f"{model.certificate_.relative_gap:.1e}"),
        ("plan", model.plan_),
    )
    console.print(code(f"KernelMachine(kernel, SquaredHinge(), {ALPHA}, fit_intercept=False).fit(X, sign(y))"))
    start = time.perf_counter()
    machine = squared_hinge().fit(made.X, labels)
    seconds = time.perf_counter() - start
    facts(
        console,
        ("seconds", f"{seconds:.1f}"),
        ("test accuracy", f"{machine.score(made.X_test, test_labels):.1%}"),
        ("gap, relative", f"{machine.certificate_.relative_gap:.1e}"),
        ("plan", machine.plan_),
    )
