"""The decision of a two-class machine in the plane: hyperplane, margins, zones, support vectors, slacks."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from contourpy import contour_generator
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.contour import QuadContourSet
from matplotlib.figure import Figure
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from sklearn.utils.validation import check_is_fitted

from mercer.machine.words import count
from mercer.plots import style
from mercer.plots.display import Display
from mercer.plots.style import SOLID, limits, on_grid, scatter

ZONES = ("#d3e2f2", "#ecf3fa", "#fcf0f1", "#f5d9dd")  # f <= -1, -1 < f < 0, 0 <= f < 1, f >= 1
EDGE: dict[str, Any] = {"color": style.MUTED, "linewidth": 1.1, "linestyle": (0, (5, 3)), "zorder": 2}
RING: dict[str, Any] = {"marker": "o", "facecolors": "none", "edgecolors": style.INK, "linewidths": 0.8}
CROSS: dict[str, Any] = {"marker": "x", "color": style.INK, "linewidths": 1.1, "s": 34}
_RING, _LARGEST_RING = 34.0, 95.0  # area in square points of a ring for alpha near 0, and for the largest alpha
_VISIBLE_SLACK = 0.01  # slack below which a segment would be shorter than the point it starts from
_THIN_THREADS = 40  # threads of a class that would hide the picture unless they are thin
_MARGIN_REACH = 0.6  # share of the picture's size within which margins that lie outside of it are looked for


@dataclass
class BoundaryDisplay(Display):
    """The decision of a two-class machine in the plane, from `BoundaryDisplay.from_estimator(model, X, y)`.

    Parameters
    ----------
    title
        What was fitted.
    points, signs
        The points and their classes, -1 and +1.
    f
        The axes of a grid about the points, and the decision function on it.
    wide
        The same on a wider grid, on which margins outside of the picture are looked for; None where no point needs it.
    values
        The decision function at the points.
    alpha
        The size of the coefficient of each point, 0 for those that are no support vectors; None for a model without.
    names
        What the two variables are called.

    Attributes
    ----------
    surface_
        The four zones.
    hyperplane_, margins_
        The lines f = 0, and f = -1 and 1.
    support_, mistakes_
        The rings about support vectors, the larger the larger alpha, and the crosses.
    slacks_
        The threads from points to their margin, one collection for each class.

    Examples
    --------
    >>> from mercer import SVC, plots
    >>> X, y = plots.LIFTS["xor"].sample()
    >>> model = SVC().fit(X, y)
    >>> display = plots.BoundaryDisplay.from_estimator(model, X, y)
    >>> len(display.support_.get_offsets()) == len(model.support_)
    True
    """

    size = (5.6, 5.6)

    title: str
    points: np.ndarray
    signs: np.ndarray
    f: tuple[np.ndarray, np.ndarray, np.ndarray]
    wide: tuple[np.ndarray, np.ndarray, np.ndarray] | None
    values: np.ndarray
    alpha: np.ndarray | None = None
    names: tuple[str, str] = ("$x_1$", "$x_2$")

    surface_: QuadContourSet = field(init=False, repr=False)
    hyperplane_: list[Line2D] = field(init=False, repr=False)
    margins_: list[Line2D] = field(init=False, repr=False)
    support_: PathCollection = field(init=False, repr=False)
    mistakes_: PathCollection = field(init=False, repr=False)
    slacks_: list[LineCollection] = field(init=False, repr=False)

    @classmethod
    def from_estimator(cls, model: Any, X: Any, y: Any, *, explain: bool = True, ax: Axes | None = None) -> Self:
        """Draw what a machine has found; see `boundary`. Without `explain` its signs are not told below it."""
        return cls.of(model, X, y).plot(ax, explain=explain)

    @classmethod
    def of(cls, model: Any, X: Any, y: Any) -> Self:
        """Return what there is to see, without drawing it."""
        points, signs = _data(model, X, y)
        values = _values(model, X, points)
        box = [limits(column, 0.08) for column in points.T]
        short = (signs * values < 1.0 - _VISIBLE_SLACK).any()
        wide = _grid(model, X, box, _MARGIN_REACH) if short else None
        names = (str(X.columns[0]), str(X.columns[1])) if hasattr(X, "columns") else ("$x_1$", "$x_2$")
        alpha = _alpha(model, points) if hasattr(model, "support_") else None
        return cls(_title(model), points, signs, _grid(model, X, box), wide, values, alpha, names)

    def plot(self, ax: Axes | None = None, *, explain: bool = True) -> Self:
        """Draw into axes; None makes a figure. Without `explain` the signs are not told below the picture."""
        self._explained = explain
        return super().plot(ax)

    def _draw(self, ax: Axes) -> None:
        margin = self.signs * self.values
        slack = np.maximum(0.0, 1.0 - margin)
        wrong = (margin < 0) | ((margin == 0) & (self.signs < 0))  # f = 0 belongs to the second class
        x1, x2, f = self.f
        self.surface_ = ax.contourf(x1, x2, f, levels=[-np.inf, -1, 0, 1, np.inf], colors=ZONES, zorder=0)
        lines = contour_generator(x1, x2, f)
        drawn: dict[float, list[Line2D]] = {0.0: [], -1.0: [], 1.0: []}
        for level, curves in drawn.items():
            for curve in lines.lines(level):
                curves += ax.plot(*np.asarray(curve).T, **(EDGE if level else SOLID))
        self.hyperplane_, self.margins_ = drawn[0.0], drawn[-1.0] + drawn[1.0]
        self._threads(ax, slack)
        scatter(ax, (self.points[:, 0], self.points[:, 1]), (self.signs > 0).astype(int), s=style.shrunk(26, ax))
        alpha = np.zeros(len(self.points)) if self.alpha is None else self.alpha
        support = alpha > 0
        share = alpha[support] / (alpha.max() or 1.0)
        sizes = style.shrunk(1.0, ax) * (_RING + (_LARGEST_RING - _RING) * share)
        x, y = self.points[support].T
        self.support_ = ax.scatter(x, y, s=sizes, zorder=4, **RING)
        self.mistakes_ = ax.scatter(*self.points[wrong].T, zorder=5, **CROSS)
        ax.set(xlim=(x1[0], x1[-1]), ylim=(x2[0], x2[-1]), aspect="equal", xlabel=self.names[0], ylabel=self.names[1])
        ax.set_anchor("NW")  # what is told below stays below where the aspect leaves room
        ax.grid(False)
        right = math.floor(100 * float(1 - wrong.mean()) + 1e-9)
        ax.set_title(f"{self.title}: {right}% right", loc="left", fontsize=style.shrunk(12, ax))
        if self._explained:
            rings = None if self.alpha is None else share
            _explain(ax, rings, int((slack > _VISIBLE_SLACK).sum()), int(wrong.sum()))

    def _threads(self, ax: Axes, slack: np.ndarray) -> None:
        """Draw a thread from each point with slack to the nearest place of its margin."""
        self.slacks_ = []
        if self.wide is None:
            return
        lines = contour_generator(*self.wide)
        for i, sign in enumerate((-1.0, 1.0)):
            short = self.points[(self.signs == sign) & (slack > _VISIBLE_SLACK)]
            curves = [np.asarray(curve) for curve in lines.lines(sign)]
            if len(short) and curves:
                places = np.vstack([_nearest(short, curve) for curve in curves]).reshape(len(curves), len(short), 2)
                best = np.argmin(((places - short) ** 2).sum(axis=2), axis=0)
                feet = places[best, np.arange(len(short))]
                look: dict[str, Any] = {"colors": style.COLOURS[i], "linewidths": 0.9, "alpha": 0.7, "zorder": 2.5}
                if len(short) > _THIN_THREADS:
                    look |= {"linewidths": 0.5, "alpha": 0.4}
                threads = LineCollection(list(np.stack([short, feet], axis=1)), **look)
                ax.add_collection(threads, autolim=False)
                self.slacks_.append(threads)


def boundary(model: Any, X: Any, y: Any, ax: Axes | None = None) -> Figure:
    r"""Draw what a machine for two classes has found in the plane.

    - The hyperplane f = 0 (solid) and the margins f = -1 and f = 1 (dashed).
    - The four zones of the decision (M10): deep where the class is sure, |f| >= 1, pale where it is probable.
    - Support vectors are ringed, the wider the larger their alpha, and points on the wrong side of f = 0 are crossed.
    - Slacks: a thread from each point that is short of its margin to the nearest place of the margin. For a linear
      kernel its length is the slack in units of 1 / ‖w‖.

    Parameters
    ----------
    model
        A fitted classifier of two classes with a `decision_function`: `SVC`, `NuSVC`, `LinearSVC`, `Perceptron`,
        `Pegasos`, or another library's. Support vectors are known from `support_`; where there is none, none is ringed.
    X, y
        Points with two features and their classes: those the model was fitted to, whose support vectors they are, or
        others of the same kind, among which nothing is ringed.
    ax
        Axes to draw into; None makes a figure.

    Returns
    -------
    matplotlib.figure.Figure
        The figure that holds the axes.

    Examples
    --------
    >>> from mercer import RBF, SVC, plots
    >>> X, y = plots.LIFTS["rings"].sample()
    >>> figure = plots.boundary(SVC(kernel=RBF(scale=0.5)).fit(X, y), X, y)
    >>> figure.axes[0].get_title(loc="left")
    'RBF(scale=0.5): 100% right'
    """
    return BoundaryDisplay.from_estimator(model, X, y, ax=ax).figure_


# -- what is drawn ----------------------------------------------------------------------------------------


def _data(model: Any, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the points as an array and their classes as -1 and +1."""
    check_is_fitted(model)
    classes = getattr(model, "classes_", None)
    if classes is None or not hasattr(model, "decision_function"):
        raise TypeError(f"boundary draws classifiers with a decision function; {type(model).__name__} is none.")
    if len(classes) != 2:
        raise ValueError(
            f"boundary draws a machine for two classes; this {type(model).__name__} tells {len(classes)} apart. "
            "Fit it to two of them."
        )
    points = np.asarray(X, dtype=float)
    if points.ndim != 2 or points.shape[1] != 2:
        raise ValueError(f"boundary draws points with two features; X has shape {points.shape}.")
    y = np.asarray(y)
    if y.shape != (len(points),):
        raise ValueError(f"X has {len(points)} points and y has {y.size} classes; one each is needed.")
    strange = ~np.isin(y, classes)
    if strange.any():
        raise ValueError(
            f"y contains {y[strange][0].item()!r}, which is none of the classes of this model, {classes.tolist()}."
        )
    return points, np.where(y == classes[1], 1.0, -1.0)


def _values(model: Any, like: Any, points: np.ndarray) -> np.ndarray:
    """Return f at points, handed to the model in the table it knows."""
    table = type(like)(points, columns=like.columns) if hasattr(like, "iloc") else points
    return np.asarray(model.decision_function(table), dtype=float)


def _grid(
    model: Any, like: Any, box: list[tuple[float, float]], wider: float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the axes of a grid over the box (or a wider one), and f on it."""
    wide = [(a - wider * (b - a), b + wider * (b - a)) for a, b in box]
    return on_grid(lambda points: _values(model, like, points), wide)


def support_of(model: Any, points: np.ndarray) -> np.ndarray:
    """Return which of the points are support vectors; none, if these are not the points of the fit."""
    chosen = np.zeros(len(points), dtype=bool)
    index = np.asarray(getattr(model, "support_", []), dtype=int)
    vectors = getattr(model, "support_vectors_", None)
    if not len(index) or index.max() >= len(points):
        return chosen
    if vectors is not None and hasattr(vectors, "toarray"):
        vectors = vectors.toarray()
    if vectors is None or np.array_equal(np.asarray(vectors, dtype=float), points[index]):
        chosen[index] = True
    return chosen


def _alpha(model: Any, points: np.ndarray) -> np.ndarray:
    """Return the size of each point's coefficient; 1 where the model names support vectors without."""
    alpha = support_of(model, points).astype(float)
    coefficients = np.abs(np.asarray(getattr(model, "dual_coef_", np.empty(0)), dtype=float)).ravel()
    index = np.asarray(model.support_, dtype=int)
    if alpha.any() and coefficients.shape == index.shape:
        alpha[index] = np.maximum(coefficients, np.finfo(float).tiny)
    return alpha


def _nearest(points: np.ndarray, curve: np.ndarray) -> np.ndarray:
    """Return the place of a polygonal curve that is nearest to each point."""
    start, step = curve[:-1], np.diff(curve, axis=0)
    length = np.maximum((step**2).sum(axis=1), 1e-300)
    along = ((points[:, None] - start) * step).sum(axis=2) / length
    feet = start + np.clip(along, 0.0, 1.0)[..., None] * step
    best = np.argmin(((feet - points[:, None]) ** 2).sum(axis=2), axis=1)
    return np.asarray(feet[np.arange(len(points)), best])


# -- words ------------------------------------------------------------------------------------------------


def _title(model: Any) -> str:
    kernel = getattr(model, "kernel_", None)
    return type(model).__name__ if kernel is None else style.named(kernel)


def signs(rings: bool = True) -> dict[str, Any]:
    """Return what the signs of a boundary mean, to be put in a legend with `HANDLER`.

    Parameters
    ----------
    rings
        Whether support vectors are known.
    """
    ring: dict[str, Any] = {"marker": "o", "markerfacecolor": "none", "markeredgecolor": style.INK, "linestyle": ""}
    cross: dict[str, Any] = {"marker": "x", "markersize": 6, "markeredgecolor": style.INK, "linestyle": ""}
    handles: dict[str, Any] = {
        "$f = 0$": Line2D([], [], **SOLID),
        r"$f = \pm 1$": Line2D([], [], **EDGE),
        "zones: sure and probable": tuple(Patch(facecolor=z, edgecolor=style.EDGE, linewidth=0.5) for z in ZONES),
    }
    if rings:
        small, large = (Line2D([], [], markersize=0.8 * size**0.5, **ring) for size in (_RING, _LARGEST_RING))
        handles["support vector, \u03b1 small or large"] = (small, large)
    handles["slack"] = Line2D([], [], color=style.MUTED, linewidth=0.9)
    handles["misclassified"] = Line2D([], [], **cross)
    return handles


HANDLER = {tuple: HandlerTuple(ndivide=None, pad=0)}


def _explain(ax: Axes, rings: np.ndarray | None, slack: int, wrong: int) -> None:
    """Say below the picture what its signs mean, and how many there are."""
    handles = signs(rings is not None)
    counted = {"slack": count(slack, "slack"), "misclassified": f"{wrong} misclassified"}
    if rings is not None:
        counted["support vector, \u03b1 small or large"] = count(len(rings), "support vector")
    said = {counted.get(name, name): handle for name, handle in handles.items()}
    style.below(ax, said, 2, handler_map=HANDLER)
