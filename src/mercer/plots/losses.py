"""Losses as functions of the margin, or of the residual."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mercer.losses import Hinge, Logistic, PerceptronLoss, Squared, SquaredHinge, ZeroOne
from mercer.plots import style
from mercer.plots.display import Display

_REACH = 2.6  # of the margin to both sides, in units of the margin
_HIGHEST = 4.0  # value that is drawn: beyond it only the order of the losses at far points could be read
_OF_THE_LECTURES = (ZeroOne(), Hinge(), PerceptronLoss(), Logistic(), Squared(), SquaredHinge())


@dataclass
class LossesDisplay(Display):
    """Losses in one picture, from `LossesDisplay.from_losses`.

    Parameters
    ----------
    at
        The margins y f, or the residuals f - y.
    values
        What each loss costs there, by its name.
    margin
        Whether `at` are margins.

    Attributes
    ----------
    lines_
        The curve of each loss.

    Examples
    --------
    >>> from mercer.losses import Absolute, Huber
    >>> from mercer.plots import LossesDisplay
    >>> LossesDisplay.from_losses([Absolute(), Huber(0.5)]).ax_.get_xlabel()
    'residual f − y'
    """

    at: np.ndarray
    values: dict[str, np.ndarray]
    margin: bool

    lines_: list[Line2D] = field(init=False, repr=False)

    @classmethod
    def from_losses(cls, losses: Sequence[Any] | None = None, *, ax: Axes | None = None) -> Self:
        """Draw losses; see `losses`."""
        chosen = list(_OF_THE_LECTURES if losses is None else losses)
        targets = {getattr(loss, "target", "real") for loss in chosen}
        if not chosen or targets & {"class", "count"}:
            raise ValueError(
                f"losses of a label or of a number have a curve; these have targets {sorted(targets)}. Leave out those "
                "of classes and of counts."
            )
        margin = "label" in targets
        at = np.linspace(-_REACH, _REACH, 1041)
        truth = np.full(len(at), 1.0 if margin else 0.0)
        with np.errstate(over="ignore"):
            values = {repr(loss).removesuffix("()"): np.asarray(loss.value(truth, at), dtype=float) for loss in chosen}
        return cls(at, values, margin).plot(ax)

    def _draw(self, ax: Axes) -> None:
        self.lines_ = []
        for look, (name, values) in zip(itertools.cycle(style.CURVES), self.values.items()):
            jumps = np.flatnonzero(np.abs(np.diff(values)) > 0.5) + 1  # no slope leads from 1 to 0
            x, y = np.insert(self.at, jumps, np.nan), np.insert(values, jumps, np.nan)
            self.lines_ += ax.plot(x, y, label=name, linewidth=1.9, **look)
        ax.axvline(0.0, color=style.EDGE, linewidth=0.9, zorder=0)
        if self.margin:
            ax.axvline(1.0, color=style.EDGE, linewidth=0.9, linestyle=(0, (4, 3)), zorder=0)
        ax.set(xlim=(-_REACH, _REACH), ylim=(-0.08, _HIGHEST), ylabel="loss")
        ax.set_xlabel("margin y f" if self.margin else "residual f \u2212 y")
        style.legend(ax, handlelength=2.6)


def losses(which: Sequence[Any] | None = None, *, ax: Axes | None = None) -> Figure:
    """Draw losses as functions of the margin y f, or those of numbers as functions of the residual.

    A number as the truth, as of `Squared`, is the label 1 where it stands beside losses of labels.

    Parameters
    ----------
    which
        Losses; None for those of the lectures: 0-1, hinge, perceptron, logistic, squared, squared hinge.
    ax
        Axes to draw into; None makes a figure.

    Returns
    -------
    matplotlib.figure.Figure
        The figure that holds the axes.

    Examples
    --------
    >>> from mercer import plots
    >>> len(plots.losses().axes[0].lines) > 6
    True
    """
    return LossesDisplay.from_losses(which, ax=ax).figure_
