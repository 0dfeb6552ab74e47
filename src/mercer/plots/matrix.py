"""The Gram matrix as a picture, and its spectrum."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from mercer.gram import Gram
from mercer.kernels import Kernel
from mercer.plots import style
from mercer.rkhs import MercerExpansion


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


_DOUBTFUL = 0.1  # relative error from which on an eigenvalue is drawn hollow
_FINENESS = 120  # of maps of functions of the plane
_INDEX = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


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
    if not isinstance(expansion, MercerExpansion):
        raise TypeError(f"a MercerExpansion is drawn; this is {expansion!r:.80}.")
    if isinstance(functions, bool) or not isinstance(functions, int) or functions < 1:
        raise ValueError(f"functions must be a whole number of at least 1; it is {functions!r}.")
    width = expansion._measure.width
    count = min(functions, len(expansion))
    with style.house():
        if ax is not None:
            _eigenvalues(ax, expansion)
            return style.owner(ax)
        if width == 1:
            figure = style.figure(9.6, 4.4)
            left, right = figure.subplots(1, 2, width_ratios=(1, 1.35))
            _eigenvalues(left, expansion)
            _curves(right, expansion, count)
        elif width == 2:
            figure = style.figure(10.4, 4.4)
            rows = 1 if count <= 3 else 2
            parts: Any = figure.subfigures(1, 2, width_ratios=(1, 1.45))
            _eigenvalues(parts[0].subplots(), expansion)
            _maps(parts[1].subplots(rows, -(-count // rows), squeeze=False).ravel(), expansion, count)
        else:
            figure = style.figure(5.2, 4.4)
            _eigenvalues(figure.subplots(), expansion)
    return figure


def _eigenvalues(axes: Axes, expansion: MercerExpansion) -> None:
    values, errors = expansion.eigenvalues, expansion.errors
    j = np.arange(1, len(values) + 1)
    doubtful = errors > _DOUBTFUL * values
    axes.plot(j, values, color=style.EDGE, linewidth=1.0, zorder=2)
    look: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 4.5, "zorder": 3}
    axes.plot(j[~doubtful], values[~doubtful], color=style.BLUE, **look)
    if doubtful.any():
        look |= {"markerfacecolor": "white", "markeredgecolor": style.BLUE, "label": "not sure to a tenth"}
        axes.plot(j[doubtful], values[doubtful], **look)
        axes.legend(loc="lower left")
    axes.set_yscale("log")
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    share = 1 - expansion.truncation_error().share
    axes.set(xlabel="j", ylabel="eigenvalue λⱼ", xlim=(0.3, len(values) + 0.7))
    axes.set_title(f"{_share(share)} of the trace in {_terms(len(values))}")


def _curves(axes: Axes, expansion: MercerExpansion, count: int) -> None:
    grid = np.asarray(expansion._measure.grid(), dtype=np.float64)
    pad = 0.0 if np.ptp(grid) else 0.5  # about a single point
    x = np.linspace(grid.min() - pad, grid.max() + pad, 801)
    F = np.asarray(expansion.eigenfunctions(x[:, None]))[:, :count]
    F = 0.45 * F / (np.abs(F).max(axis=0) + np.finfo(float).tiny)
    for j in range(count):
        axes.fill_between(x, -j, F[:, j] - j, color=style.PALE_BLUE, linewidth=0, zorder=1)
        axes.axhline(-j, color=style.EDGE, linewidth=0.8, zorder=1.5)
        axes.plot(x, F[:, j] - j, color=style.BLUE, linewidth=1.5, zorder=2)
    if expansion._measure.fixed:
        rug: dict[str, Any] = {"marker": "|", "markersize": 6, "linestyle": "none", "color": style.MUTED, "alpha": 0.5}
        axes.plot(grid[:, 0], np.full(len(grid), -count + 0.38), **rug)
    axes.set_yticks([-j for j in range(count)], [_name(j) for j in range(count)], fontsize=11)
    axes.tick_params(axis="y", labelcolor=style.INK)
    axes.grid(False)
    axes.spines["left"].set_visible(False)
    axes.set(xlabel="x", xlim=(x[0], x[-1]), ylim=(-count + 0.35, 0.6))
    kernel = re.sub(r"\d+\.\d{4,}", lambda number: f"{float(number[0]):.4g}", repr(expansion.kernel))
    axes.set_title(f"eigenfunctions of {kernel}" if len(kernel) < 40 else "eigenfunctions")


def _maps(panels: Any, expansion: MercerExpansion, count: int) -> None:
    grid = np.asarray(expansion._measure.grid(), dtype=np.float64)
    low, high = grid.min(axis=0), grid.max(axis=0)
    x, y = (np.linspace(low[i], high[i], _FINENESS) for i in (0, 1))
    points = np.column_stack([g.ravel() for g in np.meshgrid(x, y)])
    F = np.asarray(expansion.eigenfunctions(points))[:, :count]
    for j, axes in enumerate(panels):
        if j >= count:
            axes.set_visible(False)
            continue
        top = float(np.quantile(np.abs(F[:, j]), 0.995)) or 1.0
        axes.imshow(
            F[:, j].reshape(_FINENESS, _FINENESS),
            origin="lower",
            extent=(low[0], high[0], low[1], high[1]),
            cmap=style.DIVERGING,
            vmin=-top,
            vmax=top,
            aspect="auto",
            interpolation="bilinear",
        )
        if expansion._measure.fixed:
            axes.scatter(*grid.T, s=3, color=style.INK, alpha=0.25, linewidths=0)
        axes.grid(False)
        axes.xaxis.set_major_locator(MaxNLocator(3))
        axes.yaxis.set_major_locator(MaxNLocator(3))
        axes.set_title(f"{_name(j)}   λ = {expansion.eigenvalues[j]:.3g}", fontsize=10, fontweight="normal")


def _name(j: int) -> str:
    return "φ" + str(j + 1).translate(_INDEX)


def _terms(count: int) -> str:
    return "1 term" if count == 1 else f"{count} terms"


def _share(share: float) -> str:
    """Return a share in percent, with as many nines as it has, up to seven digits."""
    missing = 100 * (1 - share)
    digits = 0 if missing >= 1 else int(np.clip(np.floor(-np.log10(max(missing, 1e-9))), 1, 5))
    return f"{np.floor(100 * share * 10**digits) / 10**digits:.{digits}f}%"
