"""The house style: two class colours told apart by every eye (and by shape), thin lines, no ornament."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

BLUE, RED = "#2a6fbb", "#d1495b"
PALE_BLUE, PALE_RED = "#e6eff8", "#faeaec"
INK, MUTED, EDGE, GRID = "#22303c", "#6b7885", "#b6bfc8", "#e4e8ec"

# The first and the second class, in the order of their labels.
COLOURS = (BLUE, RED)
PALE = (PALE_BLUE, PALE_RED)
MARKERS = ("o", "^")

SEQUENTIAL = LinearSegmentedColormap.from_list("mercer", ["#ffffff", "#a9c8e8", BLUE, "#12304f"])
DIVERGING = LinearSegmentedColormap.from_list("mercer-signed", ["#7a1f2e", RED, "#ffffff", BLUE, "#12304f"])

STRAIGHT: dict[str, Any] = {"color": MUTED, "linewidth": 1.4, "linestyle": (0, (5, 3)), "zorder": 2}
SOLID: dict[str, Any] = {"color": INK, "linewidth": 1.6, "zorder": 2}
FINENESS = 300  # of the grid on which regions are found

_RC: dict[Any, Any] = {
    "figure.dpi": 150,
    "figure.facecolor": "white",
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": EDGE,
    "axes.labelcolor": INK,
    "axes.labelsize": 11,
    "axes.linewidth": 0.8,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 12,
    "axes.titleweight": "bold",
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "legend.frameon": False,
    "legend.fontsize": 9.5,
}


def house() -> AbstractContextManager[None]:
    """Return a context in which new figures, axes and texts have the house style; it leaves no trace.

    Examples
    --------
    >>> from mercer.plots.style import figure, house
    >>> with house():
    ...     axes = figure(4, 3).add_subplot()
    >>> axes.spines["top"].get_visible()
    False
    """
    return rc_context(_RC)


def figure(width: float, height: float) -> Figure:
    """Return an empty figure of a size in inches, outside pyplot's list of figures."""
    return Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.1, wspace=0.04))


def owner(axes: Axes) -> Figure:
    """Return the figure at the root of the axes."""
    return axes.figure.figure


def scatter(axes: Axes, columns: tuple[np.ndarray, ...], classes: np.ndarray, **options: Any) -> None:
    """Draw points in the colours and shapes of their classes, 0 and 1."""
    for c in (0, 1):
        look: dict[str, Any] = {"color": COLOURS[c], "marker": MARKERS[c], "s": 26, "zorder": 3}
        look |= {"edgecolors": "white", "linewidths": 0.5} | options
        axes.scatter(*(column[classes == c] for column in columns), **look)


def on_grid(f: Any, box: Any, fineness: int = FINENESS) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the axes of a grid over a box in the plane, and the values there of a function of points."""
    x, y = (np.linspace(low, high, fineness) for low, high in box)
    values = f(np.column_stack([g.ravel() for g in np.meshgrid(x, y)]))
    return x, y, np.reshape(values, (fineness, fineness))


def limits(values: np.ndarray, margin: float = 0.12) -> tuple[float, float]:
    """Return the range of values, widened on each side by a share of it."""
    low, high = float(values.min()), float(values.max())
    pad = margin * ((high - low) or 1.0)
    return low - pad, high + pad
