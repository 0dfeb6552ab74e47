"""The Gram matrix as a picture."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mercer.gram import Gram
from mercer.kernels import Kernel
from mercer.plots import style


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
        Indices that say in which order the points are shown (within their class, with y); None for that of X.
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
    matrix = Gram(kernel, X)
    n = matrix.shape[0]
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
    K = np.asarray(matrix.dense())[np.ix_(order, order)]
    with style.house():
        if ax is None:
            ax = style.figure(5.6, 4.9).add_subplot()
        signed = K.min() < 0
        top = float(np.abs(K).max()) or 1.0
        picture = ax.imshow(
            K,
            cmap=style.DIVERGING if signed else style.SEQUENTIAL,
            vmin=-top if signed else 0.0,
            vmax=top,
            interpolation="nearest" if n <= 600 else "antialiased",
        )
        ax.grid(False)
        for spine in ax.spines.values():
            spine.set_visible(True)
        for edge in edges[:-1]:
            ax.axhline(edge - 0.5, color=style.INK, linewidth=0.8)
            ax.axvline(edge - 0.5, color=style.INK, linewidth=0.8)
        if labels:
            middles = [(a + b - 1) / 2 for a, b in zip([0, *edges[:-1]], edges)]
            ax.set_xticks(middles, labels)
            ax.set_yticks(middles, labels, rotation=90, va="center")
        figure = style.owner(ax)
        bar = figure.colorbar(picture, ax=ax, shrink=0.85, pad=0.02)
        bar.outline.set_visible(False)
        bar.ax.set_title("k(x, z)", loc="left", fontsize=9, fontweight="normal", color=style.MUTED)
        ax.set_title(repr(matrix.kernel))
    return figure
