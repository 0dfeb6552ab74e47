"""The tree of rules and axioms that makes a kernel one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.text import Text
from matplotlib.textpath import text_to_path

from mercer.kernels import Kernel, Proof
from mercer.plots import style
from mercer.plots.display import Display

_MOST_STEPS = 40  # of a proof that are drawn: more could not be read
_ROW = 0.44  # inches of a step: the kernel, and below it the rule
_INDENT = 0.26  # inches by which the parts of a step stand to the right of it
_LONGEST = 90  # letters of a kernel
# How a step looks, and what the sign means: shapes tell it without colour.
_SIGNS = {
    "proven": ("o", style.BLUE, style.BLUE),
    "unproven": ("o", "white", style.RED),
    "refuted": ("X", style.RED, "white"),
}


@dataclass
class ProofDisplay(Display):
    """A proof as a tree, from `ProofDisplay.from_kernel(kernel)`.

    Parameters
    ----------
    steps
        How deep each step stands, the place of the step it is a part of (-1 for the first), and the step.
    left_out
        How many more there are.

    Attributes
    ----------
    claims_, reasons_
        The kernels, and why each is one.

    Examples
    --------
    >>> from mercer import RBF, Linear, plots
    >>> display = plots.ProofDisplay.from_kernel(RBF(1.0) + Linear() ** 2)
    >>> [text.get_text() for text in display.claims_]
    ['RBF(scale=1.0) + Linear() ** 2', 'RBF(scale=1.0)', 'Linear() ** 2', 'Linear()']
    """

    steps: list[tuple[int, int, Proof]]
    left_out: int = 0

    claims_: list[Text] = field(init=False, repr=False)
    reasons_: list[Text] = field(init=False, repr=False)

    @classmethod
    def from_kernel(cls, kernel: Kernel | Proof, *, ax: Axes | None = None) -> Self:
        """Draw the proof of a kernel; see `proof`."""
        proof = kernel.proof() if isinstance(kernel, Kernel) else kernel
        if not isinstance(proof, Proof):
            raise TypeError(f"the proof of a kernel is drawn; {kernel!r:.80} is neither a kernel nor a proof.")
        steps: list[tuple[int, int, Proof]] = []

        def walk(step: Proof, depth: int, above: int) -> None:
            place = len(steps)
            steps.append((depth, above, step))
            for part in step.parts:
                walk(part, depth + 1, place)

        walk(proof, 0, -1)
        return cls(steps[:_MOST_STEPS], max(0, len(steps) - _MOST_STEPS)).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw into axes; None makes a figure as high as the proof is long."""
        if ax is None:
            with style.house():
                figure = style.figure(7.6, 0.75 + _ROW * (len(self.steps) + bool(self.left_out)))
                figure.set_layout_engine("none")
                ax = figure.add_axes((0.02, 0.02, 0.96, 1 - 0.6 / figure.get_figheight()))
        return super().plot(ax)

    def _draw(self, ax: Axes) -> None:
        ax.set_axis_off()
        count = len(self.steps) + bool(self.left_out)
        width, height = style.extent(ax)
        row = height / count
        letters = max(4.0, min(10.0, 0.36 * 72 * row))
        indent = min(_INDENT, 0.5 * width / (1 + max(depth for depth, _, _ in self.steps)))
        ax.set(xlim=(-0.12, width), ylim=(count - 0.45, -0.5))
        self.claims_, self.reasons_ = [], []
        for k, (depth, above, step) in enumerate(self.steps):
            x = indent * depth
            if above >= 0:
                elbow = indent * (depth - 1)
                look: dict[str, Any] = {"color": style.EDGE, "linewidth": 1.1, "zorder": 1}
                ax.plot([elbow, elbow, x], [above, k, k], solid_joinstyle="round", **look)
            marker, face, edge = _SIGNS[step.status]
            ax.plot(
                [x], [k], marker=marker, markersize=0.8 * letters, markerfacecolor=face, markeredgecolor=edge, zorder=2
            )
            start = x + 0.014 * letters
            said = "" if step.status == "proven" else f"   {step.status}"
            claim, reason = style.named(step.claim, _LONGEST), f"{step.rule}: {step.reason}"
            bold: dict[str, Any] = {"fontsize": letters, "fontweight": "bold", "va": "center", "color": style.INK}
            thin: dict[str, Any] = {"fontsize": 0.86 * letters, "va": "center", "color": style.MUTED}
            claim = _within(width - start, claim, letters, "bold", said)
            reason = _within(width - start, reason, 0.86 * letters, "normal", "")
            self.claims_.append(ax.text(start, k - 0.02, claim, **bold))
            self.reasons_.append(ax.text(start, k + 0.42, reason, **thin))
        if self.left_out:
            ax.text(
                0, count - 1, f"\u2026 and {self.left_out} more steps", fontsize=letters, va="center", color=style.MUTED
            )
        whole = self.steps[0][2].status
        ax.set_title(f"positive semidefinite: {whole}", loc="left", fontsize=style.shrunk(12, ax))


def _within(inches: float, text: str, size: float, weight: str, end: str) -> str:
    """Return a text with its end, cut so that both are not wider than so many inches."""

    def width(shown: str) -> float:
        look = FontProperties(weight=weight, size=size)
        return float(text_to_path.get_text_width_height_descent(shown, look, ismath=False)[0]) / 72

    shown = text.replace("$", r"\$") + end
    while len(text) > 1 and width(shown) > inches:
        text = text[: min(len(text) - 1, int(len(text) * inches / width(shown)))].rstrip(" \u2026")
        shown = text.replace("$", r"\$") + "\u2026" + end
    return shown


def proof(kernel: Kernel | Proof, *, ax: Axes | None = None) -> Figure:
    """Draw why a kernel is one: a tree from the kernel through closure rules down to axioms.

    A full circle is proven, a hollow one is not, a cross is refuted by a counterexample.

    Parameters
    ----------
    kernel
        A kernel, or its proof.
    ax
        Axes to draw into; None makes a figure.

    Returns
    -------
    matplotlib.figure.Figure
        The figure that holds the axes.

    Examples
    --------
    >>> from mercer import RBF, Polynomial, plots
    >>> plots.proof(RBF(1.0) * Polynomial(2)).axes[0].get_title(loc="left")
    'positive semidefinite: proven'
    """
    return ProofDisplay.from_kernel(kernel, ax=ax).figure_
