"""Functions of one variable that were fitted, with the quantiles, the tube or the bands that a model has."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from inspect import signature
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import FillBetweenPolyCollection, PathCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from sklearn.base import is_regressor
from sklearn.utils.validation import check_is_fitted

from mercer.machine.words import count
from mercer.plots import style
from mercer.plots.decision import support_of
from mercer.plots.display import Display

_FINENESS = 500  # places of a curve
_SHADE = 0.16  # darkness of a band
_DEVIATIONS = 2.0  # standard deviations to each side that a band of a process spans


@dataclass
class Curve:
    """What a model says along the axis: a middle, and bands about it with their names, the widest first."""

    name: str
    middle: np.ndarray
    bands: list[tuple[str, np.ndarray, np.ndarray]] = field(default_factory=list)
    tube: float = 0.0  # half the width
    support: np.ndarray | None = None  # which of the points are support vectors


@dataclass
class RegressionDisplay(Display):
    """Fitted functions of one variable, from `RegressionDisplay.from_estimator(model, X, y)`.

    Parameters
    ----------
    x, y
        The points.
    at
        Places along the axis.
    curves
        What each model says there.
    label
        What the variable is called.

    Attributes
    ----------
    points_
        The points.
    lines_
        The middle of each model.
    bands_
        The areas of quantiles, or of standard deviations.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelQuantileRegressor, plots
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> y = np.sin(X[:, 0]) + np.random.default_rng(0).normal(0, 0.2, 60)
    >>> model = KernelQuantileRegressor((0.1, 0.5, 0.9)).fit(X, y)
    >>> [band.get_label() for band in plots.RegressionDisplay.from_estimator(model, X, y).bands_]
    ['0.1 to 0.9']
    """

    x: np.ndarray
    y: np.ndarray
    at: np.ndarray
    curves: list[Curve]
    label: str = "x"

    points_: PathCollection = field(init=False, repr=False)
    lines_: list[Line2D] = field(init=False, repr=False)
    bands_: list[FillBetweenPolyCollection] = field(init=False, repr=False)

    @classmethod
    def from_estimator(cls, model: Any, X: Any, y: Any, *, ax: Axes | None = None) -> Self:
        """Draw a fitted regressor, or several; see `regression`."""
        models = list(model) if isinstance(model, Sequence) else [model]
        points = np.asarray(X, dtype=float)
        if points.ndim != 2 or points.shape[1] != 1:
            raise ValueError(f"a function of one variable is drawn; X has shape {points.shape}. Give one column.")
        x, target = points[:, 0], np.asarray(y, dtype=float)
        if target.shape != x.shape:
            raise ValueError(f"X has {len(x)} points and y has shape {target.shape}; one number each is needed.")
        at = np.linspace(*style.limits(x, 0.05), _FINENESS)
        table = type(X)(at[:, None], columns=X.columns) if hasattr(X, "iloc") else at[:, None]
        curves = [_curve(one, table, points) for one in models]
        if len({curve.name for curve in curves}) < len(curves):  # tell them apart by all that they are
            for curve, one in zip(curves, models, strict=True):
                curve.name = style.named(one)
        return cls(x, target, at, curves, str(X.columns[0]) if hasattr(X, "columns") else "x").plot(ax)

    def _draw(self, ax: Axes) -> None:
        size = style.shrunk(18, ax)
        look: dict[str, Any] = {"color": style.MUTED, "edgecolors": "white", "linewidths": 0.4, "zorder": 1.5}
        self.points_ = ax.scatter(self.x, self.y, s=size, **look)
        self.lines_, self.bands_ = [], []
        alone = len(self.curves) == 1
        handles: dict[str, Any] = {}
        for line, curve in zip(itertools.cycle(style.CURVES), self.curves):
            clear = 1.0
            for k, (name, low, high) in enumerate(curve.bands):
                shade: dict[str, Any] = {"color": line["color"], "linewidth": 0}
                alpha = _SHADE if alone else 0.6 * _SHADE
                clear *= 1 - alpha  # bands lie on one another
                band = ax.fill_between(self.at, low, high, label=name, alpha=alpha, zorder=1 + 0.1 * k, **shade)
                self.bands_.append(band)
                if alone:
                    handles[name] = Patch(alpha=1 - clear, **shade)
            (middle,) = ax.plot(self.at, curve.middle, label=curve.name, linewidth=1.9, zorder=2.5, **line)
            self.lines_.append(middle)
            handles[curve.name] = middle
            if curve.tube and alone:
                sides = [ax.plot(self.at, curve.middle + sign * curve.tube, **style.STRAIGHT) for sign in (-1, 1)]
                handles[f"tube: \u00b1 {curve.tube:.3g}"] = sides[0][0]
            if curve.support is not None and alone:
                rings: dict[str, Any] = {"facecolors": "none", "edgecolors": style.INK, "linewidths": 0.8, "zorder": 3}
                ringed = ax.scatter(self.x[curve.support], self.y[curve.support], s=2.6 * size, **rings)
                handles[count(int(curve.support.sum()), "support vector")] = ringed
        ax.set(xlim=(self.at[0], self.at[-1]), xlabel=self.label, ylabel="y")
        style.below(ax, handles, 2, handlelength=2.2)


def _curve(model: Any, table: Any, points: np.ndarray) -> Curve:
    """Return what a model says along the axis."""
    check_is_fitted(model)
    if not is_regressor(model):
        raise TypeError(
            f"a regressor is drawn as a function; {type(model).__name__} is none. plots.boundary draws classifiers."
        )
    kernel = getattr(model, "kernel_", None)
    curve = Curve(type(model).__name__ if kernel is None else style.named(kernel), np.empty(0))
    if "return_std" in signature(model.predict).parameters:
        asked = {"new values": {"of": "target"}} if "of" in signature(model.predict).parameters else {}
        for what, extra in (asked | {"f": {}}).items():
            said = model.predict(table, return_std=True, **extra)
            curve.middle, deviation = (np.asarray(part, dtype=float).ravel() for part in said)
            reach = _DEVIATIONS * deviation
            name = f"{what} \u00b1 {_DEVIATIONS:g} deviations"
            curve.bands.append((name, curve.middle - reach, curve.middle + reach))
        return curve
    values = np.asarray(model.predict(table), dtype=float)
    quantiles = getattr(model, "quantiles_", None)
    if values.ndim == 2 and quantiles is not None:
        order = np.argsort(quantiles)
        values, q = values[:, order], np.asarray(quantiles)[order]
        pairs = [(i, len(q) - 1 - i) for i in range(len(q) // 2)]
        curve.bands = [(f"{q[i]:g} to {q[j]:g}", values[:, i], values[:, j]) for i, j in pairs]
        curve.middle, curve.name = values[:, len(q) // 2], f"{curve.name}: quantile {q[len(q) // 2]:g}"
        return curve
    if values.ndim != 1:
        raise ValueError(f"one target is drawn; this {type(model).__name__} predicts {values.shape[1]}. Fit it to one.")
    curve.middle = values
    if hasattr(model, "support_"):
        curve.tube = float(getattr(model, "epsilon_", getattr(model, "epsilon", 0.0)))
        curve.support = support_of(model, points)
    return curve


def regression(model: Any, X: Any, y: Any, *, ax: Axes | None = None) -> Figure:
    """Draw a fitted function of one variable, with what it knows about its error.

    Quantiles are areas between those that belong together, a Gaussian process has two standard deviations to each side
    (of f, and of new values), a support vector machine its tube and its support vectors. Several models are one curve
    each, such as one kernel at several scales.

    Parameters
    ----------
    model
        A fitted regressor, or a list of them.
    X, y
        Points with one feature and their targets: those of the fit, or others.
    ax
        Axes to draw into; None makes a figure.

    Returns
    -------
    matplotlib.figure.Figure
        The figure that holds the axes.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF, KernelRidge, plots
    >>> X = np.linspace(0, 6, 30)[:, None]
    >>> fits = [KernelRidge(0.1, kernel=RBF(scale)).fit(X, np.sin(X[:, 0])) for scale in (0.1, 1.0, 10.0)]
    >>> figure = plots.regression(fits, X, np.sin(X[:, 0]))
    >>> [line.get_label() for line in figure.axes[0].lines]
    ['RBF(scale=0.1)', 'RBF(scale=1.0)', 'RBF(scale=10.0)']
    """
    return RegressionDisplay.from_estimator(model, X, y, ax=ax).figure_
