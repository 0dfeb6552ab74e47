"""Boundaries on the same data side by side: by kernel, by scale, by price (M15)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.base import clone

from mercer.plots import style
from mercer.plots.decision import HANDLER, BoundaryDisplay, signs

_PANEL = 3.1  # inches of width of a picture
_AROUND = 0.75  # inches of it for title and labels
_SHAPES = (0.5, 1.3)  # height of a picture over its width
_ACROSS = 4  # pictures in a row, at most
_SIGNS = 0.6  # inches of what the signs mean, below


@dataclass
class BoundariesDisplay:
    """Boundaries on the same data, from `BoundariesDisplay.from_estimator(model, X, y, C=[1, 9])`.

    Parameters
    ----------
    displays
        A `BoundaryDisplay` for each machine.

    Attributes
    ----------
    figure_, axes_
        The figure, and the axes of each.

    Examples
    --------
    >>> from mercer import RBF, SVC, plots
    >>> X, y = plots.LIFTS["rings"].sample()
    >>> display = plots.BoundariesDisplay.from_estimator(SVC(), X, y, kernel=[RBF(s) for s in (0.05, 0.5, 5.0)])
    >>> [axes.get_title(loc="left") for axes in display.axes_]
    ['RBF(scale=0.05): 100% right', 'RBF(scale=0.5): 100% right', 'RBF(scale=5.0): 75% right']
    """

    displays: list[BoundaryDisplay]

    figure_: Figure = field(init=False, repr=False)
    axes_: list[Axes] = field(init=False, repr=False)

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, y: Any, *, axes: Sequence[Axes] | None = None, **values: Sequence[Any]
    ) -> Self:
        """Fit a machine with each value of a parameter, and draw what each has found; see `boundaries`."""
        if len(values) != 1:
            raise ValueError(f"one parameter is varied, such as kernel=[...] or C=[...]; these are {sorted(values)}.")
        ((name, each),) = values.items()
        displays = []
        for value in each:
            fitted = clone(model).set_params(**{name: value}).fit(X, y)
            display = BoundaryDisplay.of(fitted, X, y)
            if name not in ("kernel", "estimator"):
                display.title = f"{name}={style.named(value)}"
            displays.append(display)
        made = cls(displays)
        return made.plot(axes)

    def plot(self, axes: Any = None) -> Self:
        """Draw into as many axes as there are machines; None makes a figure, which tells what the signs mean."""
        with style.house():
            if axes is None:
                across = min(len(self.displays), _ACROSS)
                down = -(-len(self.displays) // across)
                tall = np.ptp(self.displays[0].f[1]) / np.ptp(self.displays[0].f[0])
                height = _AROUND + (_PANEL - _AROUND) * float(np.clip(tall, *_SHAPES))
                figure = style.figure(_PANEL * across, height * down + _SIGNS)
                places = list(figure.subplots(down, across, squeeze=False).ravel())
                for place in places[len(self.displays) :]:
                    place.set_axis_off()
                rings = any(display.alpha is not None for display in self.displays)
                handles = signs(rings)
                look = {"ncols": min(len(handles), 3 * max(1, across // 2)), "handler_map": HANDLER, "fontsize": 9}
                figure.legend(handles.values(), handles.keys(), loc="outside lower left", **look)
            else:
                places = list(np.ravel(np.asarray(axes, dtype=object)))
            if len(places) < len(self.displays):
                raise ValueError(f"{len(self.displays)} machines are drawn; give as many axes, not {len(places)}.")
            for display, ax in zip(self.displays, places):
                display.plot(ax, explain=False)
        self.axes_ = places[: len(self.displays)]
        self.figure_ = style.owner(self.axes_[0])
        return self


def boundaries(model: Any, X: Any, y: Any, *, axes: Sequence[Axes] | None = None, **values: Sequence[Any]) -> Figure:
    """Draw side by side what a machine finds with each value of a parameter: its kernel, its scale, its price.

    A small scale makes every point its own neighbourhood, a large one a smooth boundary (M15).

    Parameters
    ----------
    model
        A classifier, fitted or not: copies of it are fitted.
    X, y
        Points with two features and their two classes.
    axes
        As many axes as values; None makes a figure.
    **values
        A parameter and the values to take: kernel=[Linear(), Polynomial(2), RBF(0.5)], or C=[0.1, 10].

    Returns
    -------
    matplotlib.figure.Figure
        The figure that holds the axes.

    Examples
    --------
    >>> from mercer import SVC, Linear, Polynomial, plots
    >>> X, y = plots.LIFTS["rings"].sample()
    >>> figure = plots.boundaries(SVC(), X, y, kernel=[Linear(), Polynomial(2)])
    >>> [axes.get_title(loc="left") for axes in figure.axes]
    ['Linear(): 57% right', 'Polynomial(degree=2): 100% right']
    """
    return BoundariesDisplay.from_estimator(model, X, y, axes=axes, **values).figure_
