"""The course of a fit: primal and dual values that meet (M6), and how fast their gap closes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import FillBetweenPolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter
from sklearn.utils.validation import check_is_fitted

from mercer.plots import style
from mercer.plots.display import Display, numbered, title_of

_PRIMAL: dict[str, Any] = {"color": style.BLUE, "linestyle": "-", "marker": "v", "linewidth": 1.7}
_DUAL: dict[str, Any] = {"color": style.RED, "linestyle": (0, (5, 2)), "marker": "^", "linewidth": 1.7}
_GAP: dict[str, Any] = {"color": style.INK, "linestyle": "-", "marker": "o", "linewidth": 2.2}
_MARKED = 60  # looks up to which each has a mark
_WIDE = 50.0  # range of the values, in units of the optimum, from which on a linear axis would hide the end


@dataclass
class _Course(Display):
    """The looks of a solver at a problem: what `ConvergenceDisplay` and `DualityDisplay` share.

    Parameters
    ----------
    title
        What was fitted.
    steps, primal, dual
        Where the fit stood at each look.
    tol
        The relative gap that was asked for; NaN if that is not known.
    """

    title: str
    steps: np.ndarray
    primal: np.ndarray
    dual: np.ndarray
    tol: float = np.nan

    @classmethod
    def from_estimator(cls, model: Any, *, problem: int = 0, ax: Axes | None = None) -> Self:
        """Draw the history of a fit; see the function of the same picture."""
        check_is_fitted(model)
        table = getattr(model, "history_", None)
        name = type(model).__name__
        if table is None:
            raise TypeError(f"the course of a fit is read from its history_; {name} keeps none.")
        tables = table if isinstance(table, tuple) else (table,)
        rows = tables[numbered(problem, len(tables))]
        rows = rows[np.isfinite(rows["primal"]) & np.isfinite(rows["dual"]) & (rows["steps"] > 0)]
        if not len(rows):
            raise ValueError(
                f"the history_ of this {name} tells no pair of a primal and a dual value, so none is drawn."
            )
        title, claim = title_of(model, problem, len(tables)), getattr(model, "certificate_", None)
        return cls(title, rows["steps"], rows["primal"], rows["dual"], getattr(claim, "tol", np.nan)).plot(ax)

    def _line(self, ax: Axes, values: np.ndarray, label: str, look: dict[str, Any]) -> Line2D:
        marked = {"markersize": style.shrunk(4.5, ax)} if len(values) <= _MARKED else {"marker": ""}
        (line,) = ax.plot(self.steps, values, label=label, **(look | marked))
        return line

    def _frame(self, ax: Axes, title: str) -> None:
        ax.set_xscale("log")
        if self.steps[0] == self.steps[-1]:
            ax.set_xlim(self.steps[0] / 2, self.steps[0] * 2)
        ax.xaxis.set_major_formatter(lambda step, _: f"{step:,g}")
        few = self.steps[-1] < 10 * self.steps[0]  # no two powers of ten to read the others by
        ax.xaxis.set_minor_formatter((lambda step, _: f"{step:,g}") if few else NullFormatter())
        ax.set_xlabel("step")
        ax.set_title(title, loc="left", fontsize=style.shrunk(12, ax))


@dataclass
class ConvergenceDisplay(_Course):
    """Primal, dual and gap over the steps, from `ConvergenceDisplay.from_estimator(model)`.

    Parameters
    ----------
    title, steps, primal, dual, tol
        What was fitted, where it stood at each look, and the relative gap that was asked for.

    Attributes
    ----------
    primal_line_, dual_line_, gap_line_
        The three curves.

    Examples
    --------
    >>> from mercer import SVC, plots
    >>> X, y = plots.LIFTS["rings"].sample()
    >>> display = plots.ConvergenceDisplay.from_estimator(SVC().fit(X, y))
    >>> display.ax_.get_xscale(), display.ax_.get_yscale()
    ('log', 'log')
    """

    primal_line_: Line2D = field(init=False, repr=False)
    dual_line_: Line2D = field(init=False, repr=False)
    gap_line_: Line2D = field(init=False, repr=False)

    def _draw(self, ax: Axes) -> None:
        size = max(abs(float(self.primal.min())), abs(float(self.dual.max())), np.finfo(float).tiny)

        def positive(values: np.ndarray) -> np.ndarray:
            return np.where(values > 0, values / size, np.nan)

        self.primal_line_ = self._line(ax, positive(self.primal - self.dual.max()), "primal \u2212 best dual", _PRIMAL)
        self.dual_line_ = self._line(ax, positive(self.primal.min() - self.dual), "best primal \u2212 dual", _DUAL)
        self.gap_line_ = self._line(ax, positive(self.primal - self.dual), "gap: primal \u2212 dual", _GAP)
        ax.set_yscale("log")
        if np.isfinite(self.tol) and self.tol > 0:
            ax.axhline(self.tol, color=style.MUTED, linewidth=1.2, linestyle=(0, (1, 2)), label=f"tol = {self.tol:g}")
        self._frame(ax, self.title)
        ax.set_ylabel("in units of the optimum")
        style.legend(ax, handlelength=2.6)


@dataclass
class DualityDisplay(_Course):
    """Weak duality: primal values above, dual values below, meeting, from `DualityDisplay.from_estimator(model)`.

    Parameters
    ----------
    title, steps, primal, dual, tol
        What was fitted, where it stood at each look, and the relative gap that was asked for.

    Attributes
    ----------
    primal_line_, dual_line_
        The two curves.
    gap_
        The area between them.

    Examples
    --------
    >>> from mercer import SVC, plots
    >>> X, y = plots.LIFTS["rings"].sample()
    >>> display = plots.DualityDisplay.from_estimator(SVC().fit(X, y))
    >>> bool((display.primal_line_.get_ydata() >= display.dual_line_.get_ydata()).all())
    True
    """

    primal_line_: Line2D = field(init=False, repr=False)
    dual_line_: Line2D = field(init=False, repr=False)
    gap_: FillBetweenPolyCollection = field(init=False, repr=False)

    def _draw(self, ax: Axes) -> None:
        low, high = float(self.dual.max()), float(self.primal.min())
        best = max(abs(low), abs(high), np.finfo(float).tiny)
        if float(self.primal.max()) - float(self.dual.min()) > _WIDE * best:
            ax.set_yscale("symlog", linthresh=best)
        self.gap_ = ax.fill_between(self.steps, self.dual, self.primal, color=style.GRID, linewidth=0, label="gap")
        self.primal_line_ = self._line(ax, self.primal, "primal: from above", _PRIMAL)
        self.dual_line_ = self._line(ax, self.dual, "dual: from below", _DUAL)
        digits = 3 + int(np.clip(-np.log10(max((high - low) / best, 1e-9)), 0, 5))
        ends = f"{low:.{digits}g} \u2264 optimum \u2264 {high:.{digits}g}"
        self._frame(ax, f"{self.title}: {ends}" if len(self.title) < 12 else ends)
        ax.set_ylabel("objective")
        style.legend(ax, handlelength=2.6)


def convergence(model: Any, *, problem: int = 0, ax: Axes | None = None) -> Figure:
    """Draw primal, dual and gap over the steps of a fit, on logarithmic axes.

    The optimum is not known, but it lies between the best primal value and the best dual one: how far the primal value
    is above the best dual one bounds its own distance, and in the same way for the dual value. At the last look the
    three curves meet in the gap that the certificate states.

    Parameters
    ----------
    model
        A fitted model whose `history_` has primal and dual values: `SVC`, `SVR`, `LinearSVC`, `Pegasos`,
        `KernelLogisticRegression`, `KernelMachine`, ...
    problem
        Which of several problems, such as the pairs of classes.
    ax
        Axes to draw into; None makes a figure.

    Returns
    -------
    matplotlib.figure.Figure
        The figure that holds the axes.

    Examples
    --------
    >>> from mercer import KernelLogisticRegression, plots
    >>> X, y = plots.LIFTS["rings"].sample()
    >>> figure = plots.convergence(KernelLogisticRegression().fit(X, y))
    >>> figure.axes[0].get_title(loc="left")
    'KernelLogisticRegression'
    """
    return ConvergenceDisplay.from_estimator(model, problem=problem, ax=ax).figure_


def duality(model: Any, *, problem: int = 0, ax: Axes | None = None) -> Figure:
    """Draw weak duality: every primal value lies above every dual value, and a fit brings them together.

    Parameters
    ----------
    model, problem, ax
        As for `convergence`.

    Returns
    -------
    matplotlib.figure.Figure
        The figure that holds the axes.

    Examples
    --------
    >>> from mercer import SVR, plots
    >>> figure = plots.duality(SVR().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0]))
    >>> [line.get_label() for line in figure.axes[0].lines]
    ['primal: from above', 'dual: from below']
    """
    return DualityDisplay.from_estimator(model, problem=problem, ax=ax).figure_
