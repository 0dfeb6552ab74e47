"""Complementary slackness (M7): the coefficient of each sample against its margin, and where both may lie."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.figure import Figure
from sklearn.base import is_outlier_detector
from sklearn.utils.validation import check_is_fitted

from mercer.estimators.shared.parameters import named_loss
from mercer.plots import style
from mercer.plots.display import Display, numbered, title_of

# Of the four roles, from those without a coefficient to those at the bound; each is named by the tables of `margins`.
_LOOKS: tuple[dict[str, Any], ...] = (
    {"marker": "o", "facecolors": "white", "edgecolors": style.BLUE, "linewidths": 1.1},
    {"marker": "D", "facecolors": style.BLUE, "edgecolors": "white", "linewidths": 0.5},
    {"marker": "^", "facecolors": style.RED, "edgecolors": "white", "linewidths": 0.5},
    {"marker": "x", "color": style.INK, "linewidths": 1.2},
)
_ROLES = {
    "outside": 0,
    "inside the tube": 0,
    "on the margin": 1,
    "on the tube": 1,
    "inside": 2,
    "outside the tube": 2,
    "misclassified": 3,
}
_AT_BOUND = 2  # the first role whose coefficient is as large as it may be


@dataclass
class KKTDisplay(Display):
    """Complementary slackness as a picture, from `KKTDisplay.from_estimator(model, X, y)`.

    Parameters
    ----------
    title
        What was fitted.
    at
        The margin y f of each sample; for a regressor its residual y - f.
    alpha
        Its coefficient; for a regressor with the sign of the residual.
    role
        What the fit calls it.
    kkt
        By how much margin and coefficient contradict each other.
    epsilon
        Half the width of the tube; NaN for a classifier.

    Attributes
    ----------
    points_
        The samples, by role.
    lines_
        The three lines of complementary slackness (for a tube, five).

    Examples
    --------
    >>> from mercer import SVC, plots
    >>> X, y = plots.LIFTS["xor"].sample()
    >>> display = plots.KKTDisplay.from_estimator(SVC().fit(X, y), X, y)
    >>> sorted(display.points_)
    ['inside', 'on the margin', 'outside']
    """

    title: str
    at: np.ndarray
    alpha: np.ndarray
    role: np.ndarray
    kkt: np.ndarray
    epsilon: float = np.nan

    points_: dict[str, PathCollection] = field(init=False, repr=False)
    lines_: LineCollection = field(init=False, repr=False)

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, y: Any, sample_weight: Any = None, *, problem: int = 0, ax: Axes | None = None
    ) -> Self:
        """Draw what a fit says of each sample; see `kkt`."""
        check_is_fitted(model)
        name = type(model).__name__
        if not hasattr(model, "margins") or not hasattr(model, "predict") or is_outlier_detector(model):
            raise TypeError(f"complementary slackness is drawn of a machine with a margin or a tube; {name} is none.")
        if str(getattr(model, "loss", "")).startswith("squared"):
            raise ValueError(
                f"loss={model.loss!r} has no largest coefficient: alpha is 2 C times the slack. The three lines are "
                "those of the hinge and of the tube."
            )
        table = model.margins(X, y, sample_weight)
        parts = [table]
        if table.index.nlevels > 1:
            levels = list(range(table.index.nlevels - 1))
            parts = [part for _, part in table.groupby(level=levels, sort=False)]
        part = parts[numbered(problem, len(parts))]
        if part["alpha"].isna().any():
            raise ValueError(
                "coefficients belong to the samples of the fit: give the X and y that the model was fitted to."
            )
        title = title_of(model, problem, len(parts))
        tube = "residual" in part
        at = part["residual" if tube else "margin"].to_numpy(dtype=float)
        alpha = part["alpha"].to_numpy(dtype=float) * (np.sign(at) if tube else 1.0)
        weight = _weights(model, y, sample_weight)
        if len(parts) == 1 and np.ptp(weight) > 0:  # of the sizes of their bounds
            alpha = alpha / np.where(weight > 0, weight, 1.0)
            title += ", by weight"
        epsilon = _half_width(model) if tube else np.nan
        columns = part["role"].to_numpy(dtype=object), part["kkt"].to_numpy(dtype=float)
        return cls(title, at, alpha, *columns, epsilon).plot(ax)

    def _draw(self, ax: Axes) -> None:
        tube = np.isfinite(self.epsilon)
        codes = np.array([_ROLES[role] for role in self.role])
        full = np.abs(self.alpha)[codes >= _AT_BOUND]
        top = float(full.max()) if len(full) else float(np.abs(self.alpha).max()) or 1.0
        kinks = [-self.epsilon, self.epsilon] if tube else [1.0]
        low, high = style.limits(np.concatenate([self.at, -self.at if tube else [], kinks]), 0.04 if tube else 0.08)
        places = (
            [(kinks[-1], 0.0), (kinks[-1], top), (high, top)]
            if tube
            else [(high, 0.0), (1.0, 0.0), (1.0, top), (low, top)]
        )
        if not len(full):  # a hard margin has no largest coefficient
            places = places[:-1]
        if tube:
            places = [*((-x, -y) for x, y in reversed(places)), *places]
        self.lines_ = LineCollection(
            [np.array(pair) for pair in itertools.pairwise(places)], colors=style.EDGE, linewidths=5, zorder=1
        )
        self.lines_.set_capstyle("round")
        ax.add_collection(self.lines_, autolim=False)
        self.points_ = {}
        size = style.shrunk(30, ax)
        for role in sorted(set(self.role), key=_ROLES.__getitem__):
            own = self.role == role
            label = f"{role} ({int(own.sum())})"
            look = _LOOKS[_ROLES[role]]
            self.points_[role] = ax.scatter(
                self.at[own], self.alpha[own], s=size, zorder=3, label=label, clip_on=False, **look
            )
        ax.set(xlim=(low, high), ylim=(-1.12 * top if tube else -0.08 * top, 1.12 * top))
        ax.set_yticks(
            [-top, 0, top] if tube else [0, top],
            [f"\u2212{top:.3g}", "0", f"{top:.3g}"] if tube else ["0", f"{top:.3g}"],
        )
        ax.set_xlabel("residual y \u2212 f" if tube else "margin y f")
        ax.set_ylabel("coefficient" if tube else "\u03b1")
        ax.set_title(
            f"{self.title}: off the lines by at most {self.kkt.max():.1g}", loc="left", fontsize=style.shrunk(12, ax)
        )
        emptier = "center right" if high - 1.0 > 0.5 * (high - low) else "center left"
        style.legend(ax, loc="upper left" if tube else emptier, handletextpad=0.3)


def _half_width(model: Any) -> float:
    """Return half the width of the tube of a regressor: what it was given, what it found, or what its loss says."""
    for name in ("epsilon_", "epsilon"):
        if hasattr(model, name):
            return float(getattr(model, name))
    return float(named_loss(model.loss).epsilon)


def _weights(model: Any, y: Any, sample_weight: Any) -> np.ndarray:
    """Return the weight of each sample, to which its largest coefficient is proportional."""
    weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    if hasattr(model, "class_weight_"):
        weight = weight * np.asarray(model.class_weight_)[np.searchsorted(model.classes_, np.asarray(y))]
    return weight


def kkt(model: Any, X: Any, y: Any, sample_weight: Any = None, *, problem: int = 0, ax: Axes | None = None) -> Figure:
    """Draw the coefficient of each sample against its margin, with the three lines of complementary slackness.

    A sample outside the margin has no coefficient, one on the margin any, one inside the largest, C. A fit is optimal
    where all points lie on the three lines; the title says how far they are from them. For a regressor the residual
    takes the place of the margin, and the lines go both ways. Coefficients of weighted samples are divided by the
    weight, to which their bounds are proportional.

    Parameters
    ----------
    model
        A fitted machine with a table of `margins`: `SVC`, `SVR`, `LinearSVC`, `Pegasos`, `KernelMachine` with a hinge.
    X, y, sample_weight
        What it was fitted to.
    problem
        Which of several problems, such as the pairs of classes.
    ax
        Axes to draw into; None makes a figure.

    Returns
    -------
    matplotlib.figure.Figure
        The figure that holds the axes.

    Examples
    --------
    >>> from mercer import SVC, plots
    >>> X, y = plots.LIFTS["xor"].sample()
    >>> figure = plots.kkt(SVC().fit(X, y), X, y)
    >>> figure.axes[0].get_xlabel()
    'margin y f'
    """
    return KKTDisplay.from_estimator(model, X, y, sample_weight, problem=problem, ax=ax).figure_
