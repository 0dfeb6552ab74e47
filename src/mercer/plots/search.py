"""The map of a search: the score of every kernel and price (M14)."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colorbar import Colorbar
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from sklearn.utils.validation import check_is_fitted

from mercer.kernels import Kernel
from mercer.plots import style
from mercer.plots.display import Display
from mercer.report.search import Cell, cells_of, chosen_of, shaded_range

_ROW = 0.19  # inches of a kernel
_LETTERS = 26  # of the name of a family
_PRICE = 0.55  # inches along the axis that a price needs to be named
_TEN = 1e-6  # difference of a logarithm from a whole one that rounding may leave
_PALEST = 0.08  # share of the range of scores by which the lowest differs from white
_UNTRIED: dict[str, Any] = {"facecolor": "white", "edgecolor": style.EDGE, "hatch": "/////", "linewidth": 0}


@dataclass
class SearchDisplay(Display):
    """Cross-validated scores of kernels and prices, from `SearchDisplay.from_search(search)`.

    Parameters
    ----------
    cells
        The candidates.
    chosen
        The one that became the model.
    price
        What the price of errors is called.
    scoring
        What the score is called.

    Attributes
    ----------
    mesh_, colorbar_
        The scores, and the scale of their colours.
    ring_
        The frame about the chosen one.

    Examples
    --------
    >>> from mercer import RBF, SVC, KernelSearchCV, plots
    >>> X, y = plots.LIFTS["rings"].sample()
    >>> search = KernelSearchCV(SVC(), [RBF], cv=3).fit(X, y)
    >>> plots.SearchDisplay.from_search(search).mesh_.get_array().shape
    (10, 11)
    """

    cells: list[Cell]
    chosen: Cell
    price: str
    scoring: str

    mesh_: QuadMesh = field(init=False, repr=False)
    colorbar_: Colorbar = field(init=False, repr=False)
    ring_: Rectangle = field(init=False, repr=False)

    @classmethod
    def from_search(cls, search: Any, *, ax: Axes | None = None) -> Self:
        """Draw the candidates of a search; see `search`."""
        check_is_fitted(search)
        results = getattr(search, "results_", None)
        if results is None:
            results = _results(search)
        cells, price = cells_of(results)
        tried = [cell for cell in cells if cell.tried]
        if not tried:
            raise ValueError(
                f"no candidate of this {type(search).__name__} was tried to an end, so there is no score to draw."
            )
        chosen = chosen_of(results, int(search.best_index_), tried, price)
        scoring = getattr(search, "scoring_", getattr(search, "scoring", None))
        return cls(cells, chosen, price, scoring if isinstance(scoring, str) else "score").plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw into axes; None makes a figure as high as there are kernels."""
        if ax is None:
            with style.house():
                kernels = len({cell.kernel for cell in self.cells})
                ax = style.figure(6.4, max(2.6, 1.5 + _ROW * kernels)).add_subplot()
        return super().plot(ax)

    def _draw(self, ax: Axes) -> None:
        groups: dict[str, list[Cell]] = {}
        for cell in self.cells:
            groups.setdefault(cell.family, []).append(cell)
        rows = [kernel for group in groups.values() for kernel in _by_scale(group)]
        prices = sorted({cell.price for cell in self.cells})
        scores = np.full((len(rows), len(prices)), np.nan)
        row, column = {kernel: r for r, kernel in enumerate(rows)}, {value: c for c, value in enumerate(prices)}
        tried = [cell for cell in self.cells if cell.tried]
        for cell in tried:
            scores[row[cell.kernel], column[cell.price]] = cell.score
        low, high = shaded_range(tried)
        ax.patch.set(**_UNTRIED)
        edges = np.arange(len(prices) + 1) - 0.5, np.arange(len(rows) + 1) - 0.5
        masked = np.ma.masked_invalid(np.maximum(scores, low))
        look: dict[str, Any] = {
            "cmap": style.SEQUENTIAL,
            "vmin": low - _PALEST * (high - low),
            "vmax": high,
            "edgecolors": "white",
            "linewidth": 0.6,
        }
        self.mesh_ = ax.pcolormesh(*edges, masked, **look)
        close = [
            cell for cell in tried if cell.score >= self.chosen.score - _error(self.chosen) and cell is not self.chosen
        ]
        dots = np.array([(column[cell.price], row[cell.kernel]) for cell in close]).reshape(-1, 2)
        ax.scatter(
            dots[:, 0], dots[:, 1], s=style.shrunk(9, ax), color="white", edgecolors=style.INK, linewidths=0.5, zorder=3
        )
        at = column[self.chosen.price] - 0.5, row[self.chosen.kernel] - 0.5
        self.ring_ = Rectangle(at, 1, 1, fill=False, edgecolor=style.RED, linewidth=2.2, zorder=4, clip_on=False)
        ax.add_patch(self.ring_)
        self._axes_of(ax, groups, prices)
        below = "min" if np.nanmin(scores) < low else "neither"
        self.colorbar_ = style.scale(ax, self.mesh_, self.scoring, extend=below)
        said = f", {self.price} = {self.chosen.price:.3g}: {self.chosen.score:.4g}"
        kernel = style.named(self.chosen.kernel)
        name = kernel if len(kernel) <= _LETTERS else style.named(self.chosen.family, _LETTERS)
        ax.set_title(name + said, loc="left", fontsize=style.shrunk(11, ax))
        self._explain(ax, bool(len(dots)), bool(np.ma.count_masked(masked)))

    def _axes_of(self, ax: Axes, groups: dict[str, list[Cell]], prices: list[float]) -> None:
        """Name families and prices; a line parts families."""
        names, middles, end = [], [], 0
        for name, group in groups.items():
            scales = sorted({cell.scale for cell in group if math.isfinite(cell.scale)})
            size = len({cell.kernel for cell in group})
            span = f"\nscale {scales[-1]:.2g}\nto {scales[0]:.2g}" if len(scales) > 3 else ""
            names.append(style.named(name, _LETTERS) + span)
            middles.append(end + (size - 1) / 2)
            end += size
            if len(groups) < 12:
                ax.axhline(end - 0.5, color=style.INK, linewidth=0.8)
        room = 72 * style.extent(ax)[1] / max(1, end)
        letters = max(4.5, min(style.shrunk(9, ax), 0.85 * room * (end / len(names))))
        ax.set_yticks(middles, names, fontsize=letters, color=style.INK)
        tens = [c for c, value in enumerate(prices) if value > 0 and abs(math.log10(value) % 1.0) < _TEN]
        named = tens if len(tens) > 1 else list(range(len(prices)))
        named = named[:: -(-len(named) // max(2, int(style.extent(ax)[0] / _PRICE)))]
        ax.set_xticks(named, [f"{prices[c]:g}" for c in named], fontsize=style.shrunk(9, ax))
        ax.set(xlabel=f"{self.price} (price of errors)" if self.price == "C" else self.price)
        ax.set_xlim(-0.5, len(prices) - 0.5)
        ax.set_ylim(end - 0.5, -0.5)
        ax.grid(False)

    def _explain(self, ax: Axes, close: bool, untried: bool) -> None:
        handles: dict[str, Any] = {"chosen": Patch(facecolor="none", edgecolor=style.RED, linewidth=2)}
        if close:
            dot: dict[str, Any] = {
                "marker": "o",
                "markersize": 3.5,
                "markerfacecolor": "white",
                "markeredgecolor": style.INK,
            }
            handles["within one standard error"] = Line2D([], [], linestyle="", **dot)
        if untried:
            handles["not tried"] = Patch(**_UNTRIED)
        style.below(ax, handles, len(handles))


def _by_scale(group: list[Cell]) -> list[str]:
    """Return the kernels of a family, those of the largest scale first."""
    scales = {cell.kernel: cell.scale for cell in group}
    return sorted(scales, key=lambda kernel: -scales[kernel] if math.isfinite(scales[kernel]) else math.inf)


def _error(cell: Cell) -> float:
    return 0.0 if math.isnan(cell.error) else cell.error


def _results(search: Any) -> dict[str, Any]:
    """Return `cv_results_` of a grid search as the columns that an automatic one has."""
    table = getattr(search, "cv_results_", None)
    if table is None:
        raise TypeError(
            f"a search is drawn, such as KernelSearchCV or AutoClassifier; {type(search).__name__} is none."
        )
    params = table["params"]
    price = next((name for name in ("C", "alpha") if name in params[0]), None)
    if price is None:
        raise ValueError(
            f"a map has a price of errors, C or alpha, along one axis; this search tried {sorted(params[0])}."
        )
    metric = search.refit if isinstance(search.refit, str) else "score"
    columns: dict[str, list[Any]] = {"kernel": [], "family": [], "scale": []}
    for candidate in params:
        rest = {name: value for name, value in candidate.items() if name != price}
        kernel = rest.pop("kernel", "")
        scale = getattr(kernel, "scale", next((v for v in rest.values() if isinstance(v, numbers.Real)), math.nan))
        single = isinstance(scale, numbers.Real)
        columns["scale"].append(float(scale) if single else math.nan)
        columns["kernel"].append(", ".join([str(kernel), *(f"{k}={v!r}" for k, v in rest.items())]).removeprefix(", "))
        known = type(kernel).__name__ if isinstance(kernel, Kernel) and single else str(kernel)
        columns["family"].append(known or ", ".join(rest))
    folds = np.sum([np.isfinite(table[f"split{k}_test_{metric}"]) for k in range(search.n_splits_)], axis=0)
    scores = {f"{part}_test_score": table[f"{part}_test_{metric}"] for part in ("mean", "std")}
    return {**columns, price: [float(candidate[price]) for candidate in params], **scores, "folds": folds}


def search(which: Any, *, ax: Axes | None = None) -> Figure:
    """Draw the score of every candidate of a search: kernels downwards, by family and scale, prices across.

    Parameters
    ----------
    which
        A fitted `KernelSearchCV`, `AutoClassifier` or `AutoRegressor`.
    ax
        Axes to draw into; None makes a figure.

    Returns
    -------
    matplotlib.figure.Figure
        The figure that holds the axes.

    Examples
    --------
    >>> from mercer import RBF, SVC, KernelSearchCV, Polynomial, plots
    >>> X, y = plots.LIFTS["xor"].sample()
    >>> figure = plots.search(KernelSearchCV(SVC(), [RBF, Polynomial(2)], cv=3).fit(X, y))
    >>> figure.axes[0].get_xlabel()
    'C (price of errors)'
    """
    return SearchDisplay.from_search(which, ax=ax).figure_
