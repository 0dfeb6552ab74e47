"""The house style: two class colours told apart by every eye (and by shape), thin lines, no ornament."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colorbar import Colorbar
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.legend import Legend
from matplotlib.transforms import ScaledTranslation

from mercer.machine.words import brief

BLUE, RED = "#2a6fbb", "#d1495b"
PALE_BLUE, PALE_RED = "#e6eff8", "#faeaec"
INK, MUTED, EDGE, GRID = "#22303c", "#6b7885", "#b6bfc8", "#e4e8ec"

# Several curves in one picture: told apart by colour (after Okabe and Ito, 2008), and without it by their dashes.
CURVES: tuple[dict[str, Any], ...] = (
    {"color": BLUE, "linestyle": "-"},
    {"color": RED, "linestyle": (0, (5, 2))},
    {"color": INK, "linestyle": (0, (1.2, 1.2))},
    {"color": "#0f8a6d", "linestyle": (0, (6, 2, 1.2, 2))},
    {"color": "#c98a00", "linestyle": (0, (9, 2))},
    {"color": "#8a63b8", "linestyle": (0, (3, 1.2, 1, 1.2, 1, 1.2))},
    {"color": MUTED, "linestyle": (0, (2.5, 1))},
)

# The first and the second class, in the order of their labels.
COLOURS = (BLUE, RED)
PALE = (PALE_BLUE, PALE_RED)
MARKERS = ("o", "^")

SEQUENTIAL = LinearSegmentedColormap.from_list("mercer", ["#ffffff", "#a9c8e8", BLUE, "#12304f"])
DIVERGING = LinearSegmentedColormap.from_list("mercer-signed", ["#7a1f2e", RED, "#ffffff", BLUE, "#12304f"])

STRAIGHT: dict[str, Any] = {"color": MUTED, "linewidth": 1.4, "linestyle": (0, (5, 3)), "zorder": 2}
SOLID: dict[str, Any] = {"color": INK, "linewidth": 1.6, "zorder": 2}
FINENESS = 300  # of the grid on which regions are found
_LONG = re.compile(r"\d+\.\d{4,}")  # numbers that nobody reads to the end
_ROOMY = 3.0  # inches, as width and as height, that letters of full size need
_LETTER = 0.6  # width of a letter in units of its size
_BELOW = -0.5  # inches from axes to what stands below their labels
_HANDLE = 5  # letters as wide as the mark beside a name and the space about it
_OVERHANG = 1.3  # width of a legend over that of its axes, at most
_SMALLEST = 0.72  # share of the full size at which letters can still be read

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


def lay_out(figure: Figure) -> None:
    """Give texts the room they need in a figure without a layout engine, such as that of a plain `plt.subplots()`."""
    if figure.get_layout_engine() is None:
        ConstrainedLayoutEngine().execute(figure)


def extent(axes: Axes) -> tuple[float, float]:
    """Return width and height in inches of the place that axes were made for, however they are laid out since."""
    figure, grid = owner(axes), axes.get_subplotspec()
    place = axes.get_position() if grid is None else grid.get_position(figure)
    return float(place.width * figure.get_figwidth()), float(place.height * figure.get_figheight())


def fitting(size: float, text: str, width: float) -> float:
    """Return a size of letters, at most the one given, in which a text is not wider than so many inches."""
    return min(size, 72 * width / (_LETTER * max(1, len(text))))


def shrunk(size: float, axes: Axes) -> float:
    """Return a size of letters or marks, smaller in axes that share a figure with others."""
    width, height = extent(axes)
    return size * min(1.0, max(_SMALLEST, (width * height) ** 0.5 / _ROOMY))


def legend(axes: Axes, *handles: Any, **options: Any) -> Legend:
    """Write what the marks mean where they hide least, on a ground that shows through."""
    look = {"loc": "best", "framealpha": 0.8, "frameon": True, "edgecolor": "none", "fontsize": shrunk(9.5, axes)}
    return axes.legend(*handles, **(look | options))


def below(axes: Axes, handles: dict[str, Any], columns: int, **options: Any) -> Legend:
    """Write below the axes and their labels what the marks mean, in fewer columns where there is no room."""
    letters = shrunk(9, axes)
    column = (_HANDLE + max(map(len, handles))) * _LETTER * letters
    room = int(_OVERHANG * 72 * extent(axes)[0] / column)
    look: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (0, 0), "borderaxespad": 0, "borderpad": 0}
    look |= {"bbox_transform": axes.transAxes + ScaledTranslation(0, _BELOW, owner(axes).dpi_scale_trans)}
    look |= {"ncols": max(1, min(columns, room)), "labelcolor": MUTED, "fontsize": letters}
    look |= {"handlelength": 1.5, "handletextpad": 0.5, "columnspacing": 1.6, "frameon": False}
    return axes.legend(handles.values(), handles.keys(), **(look | options))


def scale(axes: Axes, colours: ScalarMappable, title: str, **options: Any) -> Colorbar:
    """Put the scale of colours beside axes."""
    # A place that is taken from the grid of subplots could not be laid out afterwards.
    bar = owner(axes).colorbar(colours, ax=axes, use_gridspec=False, pad=0.02, **options)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=shrunk(9, axes))
    bar.set_label(title, fontsize=shrunk(9, axes), color=MUTED)
    return bar


def named(thing: Any, most: int = 42) -> str:
    """Return a kernel or a model as text, with short numbers, and without its middle where it is long.

    Examples
    --------
    >>> from mercer.plots.style import named
    >>> named("RBF(scale=0.8410980266557957)")
    'RBF(scale=0.8411)'
    """
    text = _LONG.sub(lambda number: f"{float(number[0]):.4g}", brief(thing if isinstance(thing, str) else repr(thing)))
    return text if len(text) <= most else f"{text[: most // 2 - 1]}\u2026{text[-(most // 2) :]}"


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
