"""A tour of the library: proofs, verdicts, pictures, machines, the thought experiment, and a race of the engine."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import sklearn
from rich.console import Console
from rich.table import Table
from rich.text import Text
from sklearn.metrics.pairwise import rbf_kernel

from mercer import plots
from mercer.cli import output
from mercer.cli.kernels import plain
from mercer.cli.lecture import show_lecture
from mercer.cli.machines import PRICES, show_machines
from mercer.cli.options import save_picture
from mercer.cli.output import code, heading, indented
from mercer.gram import Gram, verdict
from mercer.kernels import RBF, Kernel, Matern, Polynomial, Sigmoid
from mercer.plots import style
from mercer.plots.lifts import best_cut, separate

PICTURES = [f"{name}.png" for name in (*plots.LIFTS, "gram", *(f"{lift}_svc" for lift in PRICES))]


def run(out: Path, quick: bool = False) -> None:
    """Show everything; pictures go to the folder `out`, and `quick` takes fewer digits and small matrices."""
    console = output.terminal()
    start = time.perf_counter()
    kernel = (RBF(1.0) + 0.5 * Polynomial(2)) * Matern(1.5, 2.0)
    heading(console, 1, "A kernel carries its proof")
    console.print(code("k = (RBF(1.0) + 0.5 * Polynomial(2)) * Matern(1.5, 2.0)"))
    show_proof(console, kernel)
    heading(console, 2, "A verdict carries its evidence")
    show_verdicts(console, kernel)
    heading(console, 3, "The classic lifts")
    show_pictures(console, out)
    heading(console, 4, "Support vector machines carry a certificate")
    show_machines(console, out, quick)
    heading(console, 5, "The lectures' thought experiment, at a thirtieth of its size")
    show_lecture(console, 1_000 if quick else 10_000)
    heading(console, 6, "The Gram engine against scikit-learn")
    show_race(console, quick)
    console.print(Text(f"\n{time.perf_counter() - start:.0f} seconds in all.", style="dim"))


def show_proof(console: Console, kernel: Kernel) -> None:
    """Print the proof of a composite kernel, and what the algebra refuses."""
    console.print(code("k.proof()"))
    console.print(indented(output.tree(kernel.proof())))
    console.print()
    console.print(code("RBF(1.0) - RBF(2.0)"))
    try:
        RBF(1.0) - RBF(2.0)
    except TypeError as refused:
        console.print(indented(output.error(refused)))


def show_verdicts(console: Console, kernel: Kernel) -> None:
    """Print a verdict that fails, with its witness, and one that holds, with its factor."""
    X = np.array([[1.0], [2.0], [3.0]])
    console.print(code("verdict(Sigmoid(gamma=1.0), [[1.0], [2.0], [3.0]])"))
    found = verdict(Sigmoid(gamma=1.0), X)
    console.print(indented(Text(str(found))))
    if found.witness is not None:
        K, a = Sigmoid(gamma=1.0)(X), found.witness
        check = Table.grid(padding=(0, 1))
        check.add_row("\n  K =", _matrix(K), "\n  a =", _matrix(a[:, None]), f"\n  a'Ka = {a @ K @ a:.4f} < 0")
        console.print()
        console.print(indented(check))
    rings, _ = plots.LIFTS["rings"].sample()
    console.print()
    console.print(code(f"verdict(k, X)  # k as above, X {len(rings)} points on two rings"))
    found = verdict(kernel, rings)
    console.print(indented(Text(str(found))))
    if found.factor is not None:
        R, K = found.factor, kernel(rings)
        gap = np.abs(K - R.T @ R).max() / np.abs(K).max()
        console.print(indented(f"  factor: R is {R.shape[0]} x {R.shape[1]}, largest |K - R'R| / |K| is {gap:.2g}"))


def show_pictures(console: Console, out: Path) -> None:
    """Draw the lifts and a Gram matrix, and print where they are and what they show."""
    shown = output.table("picture", "data", "lift", "before", "after", right=("before", "after"))
    for column in shown.columns:
        column.no_wrap = True
    with console.status("") as status:
        for name, lift in plots.LIFTS.items():
            path = out / f"{name}.png"
            status.update(f"drawing {path}")
            save_picture(plots.lift(lift), path)
            X, y = lift.sample()
            before, after = best_cut(X, y), separate(lift(X), y)
            image = ", ".join(plain(label.strip("$")).replace("_", "") for label in lift.outputs)
            shown.add_row(path.name, lift.title, f"({image})", before.percent, after.percent)
        path = out / "gram.png"
        status.update(f"drawing {path}")
        draw_gram(path)
    shown.add_row(path.name, "Concentric rings", "their RBF matrix")
    console.print(Text(f"Drawn in {out}:\n"), soft_wrap=True)
    console.print(shown)
    note = "\nPoints that a straight cut gets right: the best one before the lift, a fitted one after it."
    console.print(Text(note, style="dim"))


def draw_gram(path: Path) -> None:
    """Draw the RBF matrix of the two rings as the points come, and grouped by ring and angle."""
    X, y = plots.LIFTS["rings"].sample()
    angle = np.arctan2(X[:, 1], X[:, 0])
    with style.house():
        figure = style.figure(9.6, 4.6)
        figure.suptitle("The RBF matrix of concentric rings", x=0.016, ha="left", fontsize=15, fontweight="bold")
        left, right = figure.subplots(1, 2)
        plots.gram(RBF(scale=0.3), X, ax=left)
        plots.gram(RBF(scale=0.3), X, np.array(["inner ring", "outer ring"])[y], order=np.argsort(angle), ax=right)
        left.set_title("As the points come")
        right.set_title("By ring, then by angle")
    save_picture(figure, path)


def show_race(console: Console, quick: bool) -> None:
    """Time both libraries on the same tasks and print the table."""
    columns = ("mercer", "scikit-learn", "ratio", "difference")
    shown = output.table("task", "size", "type", *columns, right=("size", *columns))
    with console.status("") as status:
        for contest in contests(quick):
            status.update(f"timing {contest.task}, {contest.size}, {contest.dtype}")
            result = timed(contest)
            ratio = Text(f"{result.ratio:.1f}x", style="bold")
            times = (f"{1e3 * seconds:,.{0 if seconds > 0.1 else 1}f} ms" for seconds in (result.ours, result.theirs))
            shown.add_row(contest.task, contest.size, contest.dtype, *times, ratio, f"{result.difference:.0e}")
    console.print(shown)
    note = (
        f"\nBest of up to {ROUNDS} alternating runs after a warm-up, on {cores()} cores; "
        f"scikit-learn {sklearn.__version__}, NumPy {np.__version__}. K v never holds K; scikit-learn's goes by "
        f"blocks of {BLOCK} rows. Difference: the largest, relative to the largest value."
    )
    console.print(Text(note, style="dim"))


def _matrix(values: np.ndarray) -> Text:
    rows = ["  ".join(f"{v:7.4f}" for v in row) for row in values]
    return Text("\n".join(f"[{row} ]" for row in rows))


Work = Callable[[], np.ndarray]
ROUNDS = 3
LIMIT = 8.0  # seconds after which a contest on a slow or busy machine begins no further round
BLOCK = 500  # rows at a time of the peer's product; between 250 and 4,000 it matters little


@dataclass(frozen=True)
class Contest:
    """The same numbers asked of both."""

    task: str
    size: str
    dtype: str
    ours: Work
    theirs: Work


@dataclass(frozen=True)
class Result:
    """The best time of each, in seconds, and the largest difference relative to the largest value."""

    contest: Contest
    ours: float
    theirs: float
    difference: float

    @property
    def ratio(self) -> float:
        """How many times faster mercer is."""
        return self.theirs / self.ours


def contests(quick: bool = False) -> Iterator[Contest]:
    """Yield the contests: a dense matrix and a product with a matrix that is not formed, in both precisions."""
    for dtype in ("float32", "float64"):
        yield _dense(500 if quick else 4000, 26, dtype)
    for dtype in ("float32", "float64"):
        yield _product(1500 if quick else 20_000, 20, dtype)


def timed(contest: Contest) -> Result:
    """Time both in turn, after one run each that warms caches, threads and memory."""
    start = time.perf_counter()
    ours, theirs = contest.ours(), contest.theirs()
    difference = float(np.abs(ours - theirs).max() / np.abs(theirs).max())
    del ours, theirs
    times: list[tuple[float, float]] = []
    while len(times) < ROUNDS and (not times or time.perf_counter() - start < LIMIT):
        times.append((_time(contest.ours), _time(contest.theirs)))
    best = np.min(times, axis=0)
    return Result(contest, float(best[0]), float(best[1]), difference)


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _dense(n: int, d: int, dtype: str) -> Contest:
    X = np.random.default_rng(0).standard_normal((n, d)).astype(dtype)
    kernel, gamma = RBF.from_gamma(1 / d), 1 / d
    return Contest("RBF matrix", f"{n:,} x {d}", dtype, lambda: kernel(X), lambda: rbf_kernel(X, gamma=gamma))


def _product(n: int, d: int, dtype: str) -> Contest:
    rng = np.random.default_rng(0)
    X, v = rng.standard_normal((n, d)).astype(dtype), rng.standard_normal(n).astype(dtype)
    kernel, gamma = RBF.from_gamma(1 / d), 1 / d

    def theirs() -> np.ndarray:
        return np.concatenate([rbf_kernel(X[i : i + BLOCK], X, gamma=gamma) @ v for i in range(0, n, BLOCK)])

    return Contest("RBF K v", f"{n:,} x {d}", dtype, lambda: Gram(kernel, X).matvec(v), theirs)


def _time(work: Work) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
