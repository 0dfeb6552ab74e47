"""The Gram matrix as a picture, ordered by class or by cluster."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colorbar import Colorbar
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from scipy.cluster.hierarchy import leaves_list, linkage, optimal_leaf_ordering
from scipy.spatial.distance import squareform

from mercer.gram import Gram
from mercer.kernels import Kernel
from mercer.plots import style
from mercer.plots.display import Display

CLUSTER = "cluster"  # the order in which similar points lie together
_REORDERED = 800  # points whose clusters are turned so that neighbours are near: the time grows with their cube


@dataclass
class GramDisplay(Display):
    """Kernel values between points, from `GramDisplay.from_kernel(kernel, X, y)`.

    Parameters
    ----------
    title
        The kernel.
    values
        The matrix in the order shown.
    order
        Which point each row is.
    edges
        Where each class ends.
    labels
        What the classes are called; none for one part.

    Attributes
    ----------
    image_, colorbar_
        The matrix, and the scale of its colours.

    Examples
    --------
    >>> from mercer import RBF, plots
    >>> X, y = plots.LIFTS["rings"].sample()
    >>> display = plots.GramDisplay.from_kernel(RBF(scale=0.3), X, order="cluster")
    >>> sorted(display.order) == list(range(220))
    True
    """

    size = (5.6, 4.9)

    title: str
    values: np.ndarray
    order: np.ndarray
    edges: list[int] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)

    image_: AxesImage = field(init=False, repr=False)
    colorbar_: Colorbar = field(init=False, repr=False)

    @classmethod
    def from_kernel(cls, kernel: Kernel, X: Any, y: Any = None, *, order: Any = None, ax: Axes | None = None) -> Self:
        """Draw the matrix of a kernel; see `gram`."""
        matrix = Gram(kernel, X)
        n = matrix.shape[0]
        K = np.asarray(matrix.dense())
        if isinstance(order, str):
            if order != CLUSTER:
                raise ValueError(f"order is {order!r}; it is {CLUSTER!r}, indices, or None.")
            order = _by_cluster(K)
        order = np.arange(n) if order is None else np.asarray(order)
        if order.shape != (n,) or not np.array_equal(np.sort(order), np.arange(n)):
            raise ValueError(f"order must hold each of the indices 0 to {n - 1} once.")
        edges: list[int] = []
        labels: list[str] = []
        if y is not None:
            names, classes = np.unique(np.asarray(y), return_inverse=True)
            if classes.shape != (n,):
                raise ValueError(f"X has {n} points and y has {classes.size} classes; one each is needed.")
            order = order[np.argsort(classes[order], kind="stable")]
            edges = np.cumsum(np.bincount(classes)).tolist()
            labels = [str(name) for name in names]
        return cls(style.named(matrix.kernel), K[np.ix_(order, order)], order, edges, labels).plot(ax)

    def _draw(self, ax: Axes) -> None:
        signed = self.values.min() < 0
        top = float(np.abs(self.values).max()) or 1.0
        self.image_ = ax.imshow(
            self.values,
            cmap=style.DIVERGING if signed else style.SEQUENTIAL,
            vmin=-top if signed else 0.0,
            vmax=top,
            interpolation="nearest" if len(self.values) <= 600 else "antialiased",
        )
        ax.grid(False)
        for spine in ax.spines.values():
            spine.set_visible(True)
        for edge in self.edges[:-1]:
            ax.axhline(edge - 0.5, color=style.INK, linewidth=0.8)
            ax.axvline(edge - 0.5, color=style.INK, linewidth=0.8)
        if self.labels:
            starts = [0, *self.edges[:-1]]
            middles = [(a + b - 1) / 2 for a, b in zip(starts, self.edges)]
            inch = min(style.extent(ax)) / len(self.values)
            each = zip(self.labels, starts, self.edges)
            letters = max(4.0, min(style.fitting(9, f" {name} ", (b - a) * inch) for name, a, b in each))
            ax.set_xticks(middles, self.labels, fontsize=letters)
            ax.set_yticks(middles, self.labels, rotation=90, va="center", fontsize=letters)
        self.colorbar_ = style.scale(ax, self.image_, "k(x, z)", shrink=0.85)
        ax.set_title(self.title, loc="left", fontsize=style.shrunk(12, ax))


def _by_cluster(K: np.ndarray) -> np.ndarray:
    """Return the leaves of a tree of clusters, by mean distance in feature space."""
    if len(K) < 3:
        return np.arange(len(K))
    squares = np.add.outer(K.diagonal(), K.diagonal()) - 2.0 * K
    apart = squareform(np.sqrt(np.maximum(0.0, (squares + squares.T) / 2)), checks=False)
    tree = linkage(apart, "average")
    return np.asarray(leaves_list(optimal_leaf_ordering(tree, apart) if len(K) <= _REORDERED else tree))


def gram(
    kernel: Kernel,
    X: Any,
    y: Any = None,
    *,
    order: Any = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw the matrix of kernel values between points.

    A kernel that suits the classes shows them as dark blocks on the diagonal.

    Parameters
    ----------
    kernel
        The kernel; parameters that wait for data are resolved on X.
    X
        The points.
    y
        Classes, by which the points are grouped and the matrix is divided; None to leave them as they come.
    order
        Indices that say in which order the points are shown (within their class, with y), or "cluster" for one in which
        similar points lie together; None for that of X.
    ax
        Axes to draw into; None makes a figure.

    Returns
    -------
    matplotlib.figure.Figure
        The figure that holds the axes.

    Examples
    --------
    >>> from mercer import RBF, plots
    >>> X, y = plots.LIFTS["rings"].sample()
    >>> figure = plots.gram(RBF(scale=0.3), X, y)
    >>> figure.axes[0].images[0].get_array().shape
    (220, 220)
    """
    return GramDisplay.from_kernel(kernel, X, y, order=order, ax=ax).figure_
