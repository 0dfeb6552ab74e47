"""Support vector machines, shown in the terminal and in pictures."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from mercer import plots
from mercer.certify import Certificate
from mercer.cli import output
from mercer.cli.options import save_picture
from mercer.cli.output import code, facts, indented
from mercer.estimators import SVC
from mercer.kernels import RBF, Linear, Polynomial
from mercer.plots import style
from mercer.solvers import Infeasible

ROLES = ("outside", "on the margin", "inside", "misclassified")
PRICES = {"rings": 1.0, "xor": 0.1}  # C, low enough for slacks to be seen
KERNELS = (Linear(), Polynomial(2), RBF(scale=1.0))


def show_machines(console: Console, out: Path, quick: bool) -> None:
    """Show the digits, the two classic examples and the hard margin; pictures go to the folder `out`."""
    show_digits(console, 600 if quick else 1797)
    for name in PRICES:
        console.print()
        show_example(console, name, out)
    console.print()
    show_kernels(console, out)
    console.print()
    show_hard_margin(console)


def show_digits(console: Console, count: int) -> None:
    """Train on scikit-learn's digits, and check the claim of the fit by code that it does not share."""
    X, y = load_digits(return_X_y=True)
    train, test, y_train, y_test = train_test_split(X[:count], y[:count], test_size=0.25, random_state=0)
    console.print(code(f"model = SVC(C=10.0).fit(X, y)  # {len(train):,} of scikit-learn's digits, 8 x 8 pixels"))
    model = SVC(C=10.0).fit(train, y_train)
    facts(
        console,
        ("model.score", f"{model.score(test, y_test):.1%} of {len(test)} digits it has not seen"),
        ("model.support_", f"{len(model.support_)} of {len(train):,} points are support vectors"),
        ("model.plan_", model.plan_),
    )
    console.print(code("model.certificate_, model.certificate_.verify(X, y)"))
    console.print(indented(certificates(model.certificate_, model.certificate_.verify(train, y_train))))


def show_example(console: Console, name: str, out: Path) -> None:
    """Train on two rings, or on exclusive or: certificate, margin width, margins table and picture."""
    lift, C, kernel = plots.LIFTS[name], PRICES[name], KERNELS[1 if name == "xor" else 2]
    X, y = lift.sample()
    console.print(code(f"model = SVC(C={C:g}, kernel={kernel!r}).fit(X, y)  # {lift.title}"))
    model = SVC(C=C, kernel=kernel).fit(X, y)
    facts(
        console,
        ("model.margin_width_", f"{model.margin_width_:.4f} between f = -1 and f = 1 in feature space"),
        ("model.support_", f"{len(model.support_)} of {len(X)} points are support vectors"),
    )
    console.print(code("model.certificate_, model.certificate_.verify(X, y)"))
    console.print(indented(certificates(model.certificate_, model.certificate_.verify(X, y))))
    console.print(code("model.margins(X, y)  # the first two of each role"))
    try:
        console.print(indented(margins(model.margins(X, y))))
    except ImportError as missing:
        console.print(indented(output.error(missing)))
    draw_kernels(out / f"{name}_svc.png", name)


def show_kernels(console: Console, out: Path) -> None:
    """Print what three kernels make of the two examples, and where the pictures are."""
    columns = ("C", "right", "width", "outside", "on it", "inside", "wrong")
    shown = output.table("picture", "kernel", *columns, right=columns)
    for name, C in PRICES.items():
        X, y = plots.LIFTS[name].sample()
        for i, kernel in enumerate(KERNELS):
            model = SVC(C=C, kernel=kernel).fit(X, y)
            counts = (str(n) for n in _role_counts(model, X, y))
            right = f"{math.floor(100 * model.score(X, y) + 1e-9)}%"
            words = repr(kernel).replace("degree=", "").replace("scale=", "")
            shown.add_row("" if i else f"{name}_svc.png", words, f"{C:g}", right, f"{model.margin_width_:.2f}", *counts)
    console.print(Text(f"Drawn in {out}, linear, polynomial and Gaussian kernel side by side:\n"), soft_wrap=True)
    console.print(shown)
    note = (
        "\nWidth: of the margin, 2 / |w|. Points outside the margin have alpha = 0 and y f >= 1; on it 0 < alpha < C "
        "and y f = 1; inside it, or on the wrong side, alpha = C."
    )
    console.print(Text(note, style="dim"))


def show_hard_margin(console: Console) -> None:
    """Print the widest margin without slack, and the refusal where there is none."""
    X, y = plots.LIFTS["rings"].sample()
    console.print(code(f"SVC(C=inf, kernel=RBF(1.0)).fit(X, y)  # {len(X)} points, no slack"))
    model = SVC(C=math.inf, kernel=RBF(1.0)).fit(X, y)
    smallest = float((np.where(y == 1, 1.0, -1.0) * model.decision_function(X)).min())
    facts(
        console,
        ("model.margin_width_", f"{model.margin_width_:.4f}, the widest there is, up to the gap"),
        ("smallest y f(x)", f"{smallest:.4f}"),
        ("gap, relative", f"{model.certificate_.relative_gap:.1e}"),
    )
    console.print(code("SVC(C=inf, kernel=Linear()).fit(X, y)"))
    try:
        SVC(C=math.inf, kernel=Linear()).fit(X, y)
    except Infeasible as refused:
        console.print(indented(output.error(refused)))


# -- tables -----------------------------------------------------------------------------------------------


def certificates(claim: Certificate, checked: Certificate) -> Table:
    """Return a claim and its check side by side.

    Examples
    --------
    >>> from rich.console import Console
    >>> from mercer import Certificate
    >>> from mercer.cli.machines import certificates
    >>> claim = Certificate(primal=10.001, dual=10.0, kkt=2e-4, tol=1e-3, solver="SMO")
    >>> Console(width=80, force_terminal=False).print(certificates(claim, claim))
                        claimed by the fit  verified in float64
    ───────────────────────────────────────────────────────────
    primal objective            10.0010000           10.0010000
    dual objective              10.0000000           10.0000000
    gap, relative                  1.0e-04              1.0e-04
    worst KKT residual             2.0e-04              2.0e-04
    tol                            1.0e-03              1.0e-03
    converged                          yes                  yes
    """
    columns = ("claimed by the fit", "verified in float64")
    shown = output.table("", *columns, right=columns)
    both = (claim, checked)
    shown.add_row("primal objective", *(f"{c.primal:.9g}" if c.primal > 1e6 else f"{c.primal:.7f}" for c in both))
    shown.add_row("dual objective", *(f"{c.dual:.9g}" if c.dual > 1e6 else f"{c.dual:.7f}" for c in both))
    shown.add_row("gap, relative", *(f"{c.relative_gap:.1e}" for c in both))
    shown.add_row("worst KKT residual", *(f"{c.kkt:.1e}" for c in both))
    shown.add_row("tol", *(f"{c.tol:.1e}" for c in both))
    shown.add_row("converged", *("yes" if c.converged else "no" for c in both))
    return shown


def margins(table: Any, each: int = 2) -> Table:
    """Return the first samples of each role from the table of `model.margins(X, y)`."""
    columns = ("sample", "alpha", "margin", "slack")
    shown = output.table(*columns, "role", "kkt", right=(*columns, "kkt"))
    for role in ROLES:
        for sample, row in table[table["role"] == role].head(each).iterrows():
            numbers = (f"{row[column]:.4f}" for column in columns[1:])
            shown.add_row(str(sample), *numbers, role, f"{row['kkt']:.0e}" if row["kkt"] > 0 else "0")
    return shown


def _role_counts(model: SVC, X: np.ndarray, y: np.ndarray) -> list[int]:
    """Return how many points have each of the roles, from the coefficients and values alone."""
    alpha = np.zeros(len(X))
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    wrong = np.where(y == 1, 1.0, -1.0) * model.decision_function(X) <= 0
    full = alpha >= model.C * (1 - 1e-9)
    return [int(part.sum()) for part in (alpha == 0, (alpha > 0) & ~full, full & ~wrong, full & wrong)]


# -- pictures ---------------------------------------------------------------------------------------------


def draw_kernels(path: Path, name: str) -> None:
    """Draw the decision of three kernels on the same data, side by side."""
    lift, C = plots.LIFTS[name], PRICES[name]
    X, y = lift.sample()
    with style.house():
        figure = style.figure(12.6, 5.6)
        figure.set_layout_engine("none")  # legends below the axes are wider than the columns of a grid
        title = f"{lift.title}: linear, polynomial and Gaussian kernel, C = {C:g}"
        figure.suptitle(title, x=0.016, y=0.965, ha="left", fontsize=15, fontweight="bold")
        axes = figure.subplots(1, 3, gridspec_kw={"left": 0.05, "right": 0.975, "bottom": 0.25, "top": 0.86})
        for ax, kernel in zip(axes, KERNELS, strict=True):
            plots.boundary(SVC(C=C, kernel=kernel).fit(X, y), X, y, ax=ax)
    save_picture(figure, path)
