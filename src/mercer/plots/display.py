"""The base of all pictures: axes in, axes and artists out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Self

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mercer.plots import style


class Display(ABC):
    """A picture of something fitted, in the manner of scikit-learn's displays.

    `from_estimator` (or `from_kernel`, `from_search`, ...) computes what is to be seen and draws it; `plot` draws it
    again elsewhere without computing it again. In axes of a figure without a layout engine, such as those of a plain
    `plt.subplots()`, the figure is laid out once so that nothing is cut off.

    Attributes
    ----------
    figure_, ax_
        The figure and the axes of the last drawing.
    """

    size: ClassVar[tuple[float, float]] = (5.6, 4.4)  # of a figure of its own, in inches
    figure_: Figure
    ax_: Axes

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw into axes; None makes a figure."""
        with style.house():
            self.ax_ = style.figure(*self.size).add_subplot() if ax is None else ax
            self.figure_ = style.owner(self.ax_)
            self._draw(self.ax_)
            style.lay_out(self.figure_)
        return self

    @abstractmethod
    def _draw(self, ax: Axes) -> None:
        """Draw, and keep the artists as attributes whose names end in an underscore."""


def numbered(problem: int, count: int) -> int:
    """Return the number of one of the problems of a fit, such as its pairs of classes, or say which there are."""
    if isinstance(problem, bool) or not isinstance(problem, int) or not 0 <= problem < count:
        raise ValueError(f"problem must be a number from 0 to {count - 1}, the last of this fit; it is {problem!r}.")
    return problem


def title_of(model: object, problem: int, count: int) -> str:
    """Return the name of a model, and which of its problems is drawn."""
    name = type(model).__name__
    return name if count == 1 else f"{name}, problem {problem + 1} of {count}"
