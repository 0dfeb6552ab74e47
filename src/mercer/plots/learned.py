"""The picture of a learned metric: columns and directions by which its kernel compares rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from mercer.estimators.features.learned import learned_metric
from mercer.kernels import Metric
from mercer.plots import style
from mercer.plots.display import Display

_ROW = 0.26  # inches, of a name
_ROOM = 0.26  # for the number beside the longest bar of a direction, in units of its entries
_SAID = 0.1  # from which size on an entry is written beside its bar
_NUMBER = 0.55  # inches of the number beside a bar
_LETTERS = 34  # of a name


@dataclass
class MetricDisplay(Display):
    """By which columns a learned metric compares rows, from `MetricDisplay.from_estimator(model)`.

    Parameters
    ----------
    shares
        The share of each column in the metric, the largest first.
    loadings
        The shares of the leading directions, the columns that they move and their entries; None where the metric mixes
        no columns.

    Attributes
    ----------
    axes_
        The axes of the columns and, in a figure of their own, of the directions.
    bars_
        The bars of the columns.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF, KernelRidge, plots
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> model = KernelRidge(kernel=RBF((1.0, 2.0, 9.0))).fit(X, X[:, 0])
    >>> [f"{share:.2f}" for share in plots.MetricDisplay.from_estimator(model).shares.values()]
    ['0.87', '0.12', '0.01']
    """

    shares: dict[str, float]
    loadings: tuple[np.ndarray, list[str], np.ndarray] | None = None

    axes_: list[Axes] = field(init=False, repr=False)
    bars_: BarContainer = field(init=False, repr=False)

    @classmethod
    def from_estimator(cls, model: Any, columns: int = 15, *, ax: Axes | None = None) -> Self:
        """Draw the metric of a model; see `metric`."""
        if isinstance(columns, bool) or not isinstance(columns, int) or columns < 1:
            raise ValueError(f"columns must be a whole number of at least 1; it is {columns!r}.")
        learned = model if isinstance(model, Metric) else learned_metric(model)
        if learned is None:
            raise ValueError(
                f"the kernel of this {type(model).__name__} has no metric to draw: it treats all columns alike."
            )
        return cls(learned.by_column(columns), learned.loadings(columns) if learned.mixes else None).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the columns into axes; None makes a figure, with the directions beside them."""
        if ax is not None:
            return super().plot(ax)
        with style.house():
            if self.loadings is None:
                figure = style.figure(5.6, 1.1 + _ROW * len(self.shares))
                return super().plot(figure.subplots())
            sizes, names, entries = self.loadings
            figure = style.figure(9.0 + 1.3 * len(sizes), 1.1 + _ROW * max(len(self.shares), len(names), 4))
            left, right = figure.subplots(1, 2, width_ratios=(1, 0.4 + 0.4 * len(sizes)))
            super().plot(left)
            _signed(right, sizes, names, entries)
            self.axes_.append(right)
        return self

    def _draw(self, ax: Axes) -> None:
        self.axes_, self.bars_ = [ax], _bars(ax, self.shares)


def metric(model: Any, columns: int = 15, *, ax: Axes | None = None) -> Figure:
    """Draw by which columns a learned metric compares rows, and along which directions.

    Bars are the columns' shares in the metric, the largest first. A share is the mean square of the slope of
    predictions along a column, in units of its deviation, as a fit before the last has seen it. What became of one
    column of a table, such as its categories, is summed. Where the metric mixes columns, its leading directions are
    drawn beside them, with the share of each: along a direction all columns move at once, each by so many of its
    deviations as its entry says.

    Parameters
    ----------
    model
        A fitted model whose kernel has a metric, such as `FeatureLearningRegressor` or `AutoClassifier`; or a
        `mercer.kernels.Metric`.
    columns
        How many columns have a bar of their own, at most; the others share one.
    ax
        Axes to draw the bars into, without the directions; None makes a figure of both.

    Returns
    -------
    matplotlib.figure.Figure
        The figure that holds the axes.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import FeatureLearningRegressor, plots
    >>> X = np.random.default_rng(0).normal(size=(200, 6))
    >>> model = FeatureLearningRegressor(families="RBF").fit(X, np.sin(X[:, 4] + X[:, 1]))
    >>> bars, directions = plots.metric(model).axes
    >>> sorted(label.get_text() for label in bars.get_yticklabels()[:2])
    ['x1', 'x4']
    """
    return MetricDisplay.from_estimator(model, columns, ax=ax).figure_


def _bars(axes: Axes, shares: dict[str, float]) -> BarContainer:
    sizes = np.array(list(shares.values()))
    colours = [style.EDGE if name.endswith(" others") else style.BLUE for name in shares]
    bars = axes.barh(np.arange(len(shares)), sizes, height=0.72, color=colours, zorder=2)
    letters = style.shrunk(9, axes)
    for place, size in enumerate(sizes):
        axes.annotate(_percent(size), (size, place), (4, 0), textcoords="offset points", va="center", fontsize=letters)
    axes.set_xlim(0, (1.0 + _NUMBER / style.extent(axes)[0]) * sizes.max())
    axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_formatter(lambda share, _: f"{100 * share:g}%")
    axes.set_xlabel("share of the metric")
    axes.set_title("columns", loc="left")
    _named(axes, list(shares))
    return bars


def _signed(axes: Axes, sizes: np.ndarray, names: list[str], entries: np.ndarray) -> None:
    """Draw directions side by side, each about an axis of its own."""
    room = _ROOM * len(sizes)  # units are shorter where there are several
    low, high = min(0.0, float(entries.min())) - room, max(0.0, float(entries.max())) + room
    for j, part in enumerate(entries.T):
        middle = (high - low) * j
        colours = [style.BLUE if entry > 0 else style.RED for entry in part]
        axes.barh(np.arange(len(names)), part, left=middle, height=0.72, color=colours, zorder=2)
        axes.axvline(middle, color=style.MUTED, linewidth=0.9, zorder=3)
        for place, entry in enumerate(part):
            if abs(entry) >= _SAID:
                look: dict[str, Any] = {"ha": "left" if entry > 0 else "right", "va": "center", "fontsize": 8}
                text, offset = f"{entry:+.2f}".replace("-", "\u2212"), (3 if entry > 0 else -3, 0)
                axes.annotate(text, (middle + entry, place), offset, textcoords="offset points", **look)
    axes.set_xticks((high - low) * np.arange(len(sizes)), [_percent(size) for size in sizes])
    axes.set_xlim(low, (high - low) * (len(sizes) - 1) + high)
    axes.set_xlabel("share of the metric")
    axes.set_title("leading direction" if len(sizes) == 1 else "leading directions", loc="left")
    _named(axes, names)
    axes.grid(False)
    axes.spines["left"].set_visible(False)


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%" if 0.0095 <= share < 0.9905 else f"{100 * share:.1f}%"


def _named(axes: Axes, names: list[str]) -> None:
    """Write a name beside each row, from the top down; long ones without their middle, since many begin alike."""
    half = _LETTERS // 2
    shown = [name if len(name) <= _LETTERS else f"{name[:half]}\u2026{name[-half:]}" for name in names]
    letters = max(4.5, min(style.shrunk(9, axes), 0.8 * 72 * style.extent(axes)[1] / len(names)))
    axes.set_yticks(np.arange(len(names)), [name.replace("$", r"\$") for name in shown], fontsize=letters)
    axes.tick_params(axis="y", labelcolor=style.INK)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(False, axis="y")
