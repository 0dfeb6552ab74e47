"""The Mercer spectrum and its eigenfunctions (K9)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, MaxNLocator

from mercer.plots import style
from mercer.plots.display import Display
from mercer.rkhs import MercerExpansion

_DOUBTFUL = 0.1  # relative error from which on an eigenvalue is drawn hollow
_LEGIBLE = 5.5  # points of the smallest letters of a title
_FINENESS = 120  # of maps of functions of the plane
_INDEX = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


@dataclass
class SpectrumDisplay(Display):
    """Eigenvalues on a logarithmic scale, from `SpectrumDisplay.from_expansion(expansion)`.

    Parameters
    ----------
    eigenvalues, errors
        Of the expansion, and by how much they may be wrong.
    share
        The share of the trace that they add up to.

    Attributes
    ----------
    points_
        The eigenvalues, and those that are not sure to a tenth of them.

    Examples
    --------
    >>> from scipy.stats import norm
    >>> from mercer import RBF, MercerExpansion, plots
    >>> display = plots.SpectrumDisplay.from_expansion(MercerExpansion(RBF(scale=1.0), norm(0, 1), rank=15))
    >>> display.ax_.get_yscale()
    'log'
    """

    size = (5.2, 4.4)

    eigenvalues: np.ndarray
    errors: np.ndarray
    share: float

    points_: list[Line2D] = field(init=False, repr=False)

    @classmethod
    def from_expansion(cls, expansion: MercerExpansion, *, ax: Axes | None = None) -> Self:
        """Draw the eigenvalues of an expansion; see `spectrum`."""
        _require(expansion)
        share = 1 - expansion.truncation_error().share
        return cls(expansion.eigenvalues, expansion.errors, share).plot(ax)

    def _draw(self, ax: Axes) -> None:
        values = self.eigenvalues
        j = np.arange(1, len(values) + 1)
        doubtful = self.errors > _DOUBTFUL * values
        ax.plot(j, values, color=style.EDGE, linewidth=1.0, zorder=2)
        look: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": style.shrunk(4.5, ax), "zorder": 3}
        self.points_ = ax.plot(j[~doubtful], values[~doubtful], color=style.BLUE, **look)
        if doubtful.any():
            look |= {"markerfacecolor": "white", "markeredgecolor": style.BLUE, "label": "not sure to a tenth"}
            self.points_ += ax.plot(j[doubtful], values[doubtful], **look)
            style.legend(ax, loc="lower left")
        ax.set_yscale("log")
        ax.yaxis.set_major_locator(LogLocator(numticks=max(3, int(style.shrunk(9, ax)))))
        ax.xaxis.set_major_locator(MaxNLocator(8, integer=True))
        ax.set(xlabel="j", ylabel="eigenvalue λⱼ", xlim=(0.3, len(values) + 0.7))
        title = f"{_share(self.share)} of the trace in {_terms(len(values))}"
        ax.set_title(title, loc="left", fontsize=style.shrunk(12, ax))


@dataclass
class EigenfunctionsDisplay(Display):
    """The first eigenfunctions of an expansion, from `EigenfunctionsDisplay.from_expansion(expansion)`.

    Parameters
    ----------
    kernel
        What the kernel is called.
    eigenvalues
        Of the functions shown.
    axes
        The places along the line, or along both axes of the plane.
    values
        Of each function (a column each) at all places.
    points
        Those of the sample whose measure it is; none for a measure with a density.

    Attributes
    ----------
    axes_
        The axes of each function of the plane; of the line they share one.
    artists_
        A curve or a map for each function.

    Examples
    --------
    >>> from scipy.stats import norm
    >>> from mercer import RBF, MercerExpansion, plots
    >>> expansion = MercerExpansion(RBF(scale=1.0), norm(0, 1), rank=15)
    >>> len(plots.EigenfunctionsDisplay.from_expansion(expansion, 4).artists_)
    4
    """

    size = (6.4, 4.4)

    kernel: str
    eigenvalues: np.ndarray
    axes: tuple[np.ndarray, ...]
    values: np.ndarray
    points: np.ndarray

    axes_: list[Axes] = field(init=False, repr=False)
    artists_: list[Line2D] | list[AxesImage] = field(init=False, repr=False)

    @classmethod
    def from_expansion(cls, expansion: MercerExpansion, functions: int = 6, *, ax: Axes | None = None) -> Self:
        """Draw the first functions of an expansion; see `eigenfunctions`."""
        _require(expansion, functions)
        width = expansion._measure.width
        if width not in (1, 2):
            raise ValueError(f"functions of one or two variables are drawn; those of this expansion have {width}.")
        grid = np.asarray(expansion._measure.grid(), dtype=np.float64)
        low, high = grid.min(axis=0), grid.max(axis=0)
        if width == 1:
            pad = 0.0 if np.ptp(grid) else 0.5  # about a single point
            axes: tuple[np.ndarray, ...] = (np.linspace(low[0] - pad, high[0] + pad, 801),)
        else:
            axes = tuple(np.linspace(low[i], high[i], _FINENESS) for i in (0, 1))
        places = np.column_stack([g.ravel() for g in np.meshgrid(*axes)])
        count = min(functions, len(expansion))
        values = np.asarray(expansion.eigenfunctions(places))[:, :count]
        points = grid if expansion._measure.fixed else grid[:0]
        return cls(style.named(expansion.kernel), expansion.eigenvalues[:count], axes, values, points).plot(ax)

    def _draw(self, ax: Axes) -> None:
        (self._curves if len(self.axes) == 1 else self._maps)(ax)

    def _curves(self, ax: Axes) -> None:
        x, count = self.axes[0], self.values.shape[1]
        F = 0.45 * self.values / (np.abs(self.values).max(axis=0) + np.finfo(float).tiny)
        lines: list[Line2D] = []
        for j in range(count):
            ax.fill_between(x, -j, F[:, j] - j, color=style.PALE_BLUE, linewidth=0, zorder=1)
            ax.axhline(-j, color=style.EDGE, linewidth=0.8, zorder=1.5)
            lines += ax.plot(x, F[:, j] - j, color=style.BLUE, linewidth=1.5, zorder=2)
        self.axes_, self.artists_ = [ax], lines
        if len(self.points):
            rug: dict[str, Any] = {"marker": "|", "markersize": 6, "linestyle": "none", "color": style.MUTED}
            ax.plot(self.points[:, 0], np.full(len(self.points), -count + 0.38), alpha=0.5, **rug)
        ax.set_yticks([-j for j in range(count)], [_name(j) for j in range(count)], fontsize=style.shrunk(11, ax))
        ax.tick_params(axis="y", labelcolor=style.INK)
        ax.grid(False)
        ax.spines["left"].set_visible(False)
        ax.set(xlabel="x", xlim=(x[0], x[-1]), ylim=(-count + 0.35, 0.6))
        title = f"eigenfunctions of {self.kernel}" if len(self.kernel) < 40 else "eigenfunctions"
        ax.set_title(title, loc="left", fontsize=style.shrunk(12, ax))

    def _maps(self, ax: Axes) -> None:
        """Draw a map for each function in parts of the place that the axes have."""
        count = self.values.shape[1]
        rows = 1 if count <= 3 else 2
        columns = -(-count // rows)
        ax.set_axis_off()
        place = ax.get_subplotspec()
        if place is None:
            raise ValueError("several maps share the place of axes that were made by subplots; these were not.")
        grid, width = place.subgridspec(rows, columns), 0.8 * style.extent(ax)[0] / columns
        (x, y), self.axes_ = self.axes, []
        images: list[AxesImage] = []
        for j in range(count):
            panel = self.figure_.add_subplot(grid[j // columns, j % columns])
            values = self.values[:, j].reshape(_FINENESS, _FINENESS)
            top = float(np.quantile(np.abs(values), 0.995)) or 1.0
            extent = (x[0], x[-1], y[0], y[-1])
            look: dict[str, Any] = {"cmap": style.DIVERGING, "vmin": -top, "vmax": top}
            image = panel.imshow(values, origin="lower", extent=extent, aspect="auto", interpolation="bilinear", **look)
            if len(self.points):
                panel.scatter(self.points[:, 0], self.points[:, 1], s=3, color=style.INK, alpha=0.25, linewidths=0)
            panel.grid(False)
            panel.xaxis.set_major_locator(MaxNLocator(3))
            panel.yaxis.set_major_locator(MaxNLocator(3))
            title = f"{_name(j)}   λ = {self.eigenvalues[j]:.3g}"
            letters = style.fitting(10, title, width)
            if letters < _LEGIBLE:
                title, letters = _name(j), style.shrunk(10, ax)
            panel.set_title(title, loc="left", fontsize=letters, fontweight="normal")
            panel.tick_params(labelsize=style.shrunk(9, ax))
            self.axes_.append(panel)
            images.append(image)
        self.artists_ = images


def spectrum(expansion: MercerExpansion, functions: int = 6, *, ax: Axes | None = None) -> Figure:
    """Draw the eigenvalues of an expansion on a logarithmic scale, and its first eigenfunctions beside them.

    The faster the eigenvalues fall, the fewer features do for the kernel. Eigenvalues whose error is more than a tenth
    of them are hollow. Functions on the line are drawn one below the other, each to its own height about its own 0, and
    functions on the plane as maps, with the points of a sample.

    Parameters
    ----------
    expansion
        The expansion.
    functions
        How many eigenfunctions, at most.
    ax
        Axes to draw the eigenvalues into, without the functions; None makes a figure of both.

    Returns
    -------
    matplotlib.figure.Figure
        The figure that holds the axes.

    Examples
    --------
    >>> from scipy.stats import norm
    >>> from mercer import RBF, plots
    >>> from mercer.rkhs import MercerExpansion
    >>> figure = plots.spectrum(MercerExpansion(RBF(scale=1.0), norm(0, 1), rank=15), functions=4)
    >>> [len(axes.lines) > 0 for axes in figure.axes]
    [True, True]
    """
    _require(expansion, functions)
    width = expansion._measure.width
    if ax is not None or width not in (1, 2):
        return SpectrumDisplay.from_expansion(expansion, ax=ax).figure_
    with style.house():
        figure = style.figure(9.6 if width == 1 else 10.4, 4.4)
        left, right = figure.subplots(1, 2, width_ratios=(1, 1.35 if width == 1 else 1.45))
    SpectrumDisplay.from_expansion(expansion, ax=left)
    return EigenfunctionsDisplay.from_expansion(expansion, functions, ax=right).figure_


def eigenfunctions(expansion: MercerExpansion, functions: int = 6, *, ax: Axes | None = None) -> Figure:
    """Draw the first eigenfunctions of an expansion: curves of one variable, maps of two.

    Parameters
    ----------
    expansion
        The expansion.
    functions
        How many, at most.
    ax
        Axes to draw into, which maps divide among themselves; None makes a figure.

    Returns
    -------
    matplotlib.figure.Figure
        The figure that holds the axes.

    Examples
    --------
    >>> from mercer import RBF, MercerExpansion, plots
    >>> from mercer.rkhs import Box
    >>> figure = plots.eigenfunctions(MercerExpansion(RBF(scale=0.5), Box(0, 2), 8), 3)
    >>> [tick.get_text() for tick in figure.axes[0].get_yticklabels()]
    ['φ₁', 'φ₂', 'φ₃']
    """
    return EigenfunctionsDisplay.from_expansion(expansion, functions, ax=ax).figure_


def _require(expansion: Any, functions: int = 1) -> None:
    if not isinstance(expansion, MercerExpansion):
        raise TypeError(f"a MercerExpansion is drawn; this is {expansion!r:.80}.")
    if isinstance(functions, bool) or not isinstance(functions, int) or functions < 1:
        raise ValueError(f"functions must be a whole number of at least 1; it is {functions!r}.")


def _name(j: int) -> str:
    return "φ" + str(j + 1).translate(_INDEX)


def _terms(count: int) -> str:
    return "1 term" if count == 1 else f"{count} terms"


def _share(share: float) -> str:
    """Return a share in percent, with as many nines as it has, up to seven digits."""
    missing = 100 * (1 - share)
    digits = 0 if missing >= 1 else int(np.clip(np.floor(-np.log10(max(missing, 1e-9))), 1, 5))
    return f"{np.floor(100 * share * 10**digits) / 10**digits:.{digits}f}%"
