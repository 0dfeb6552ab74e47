"""Drawings as inline SVG. Colours are classes of the page's style sheet, so that they follow light, dark and print."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Any

import numpy as np

from mercer.machine.words import count
from mercer.report.blocks import Figure, clip, number, tick
from mercer.report.scales import Bands, Linear, Log

LETTER = 6.1  # the width of a letter of a label, on average
STEPS = 10  # shades of the heat scale: classes h0 to h9


def tag(name: str, content: str = "", **attributes: Any) -> str:
    """Return an element; attributes are escaped, the content is markup already.

    Examples
    --------
    >>> tag("rect", x=1.0, y=2.345, class_="bar", stroke_width=2)
    '<rect x="1" y="2.35" class="bar" stroke-width="2"/>'
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_short(v))}"' for key, v in attributes.items() if v is not None
    )
    return f"<{name}{written}>{content}</{name}>" if content else f"<{name}{written}/>"


def _short(value: Any) -> str:
    if isinstance(value, float | np.floating):
        place = float(value)
        return f"{round(place, 2) + 0.0:g}" if abs(place) < 1e5 else f"{place:.0f}"
    return str(value)


def path(xs: Any, ys: Any) -> str:
    """Return the path through points, broken where one is not finite."""
    made, pen = [], "M"
    for x, y in zip(np.asarray(xs, float), np.asarray(ys, float), strict=True):
        if not (np.isfinite(x) and np.isfinite(y)):
            pen = "M"
            continue
        made.append(f"{pen}{_short(x)} {_short(y)}")
        pen = "L"
    return "".join(made)


def shade(value: float, low: float, high: float) -> int:
    """Return which of the heat shades, 0 to 9, stands for a value between low and high."""
    if not high > low:
        return STEPS - 1
    return int(np.clip((value - low) / (high - low) * STEPS, 0, STEPS - 1))


class Chart:
    """A drawing with a frame for the data, axes around it, and a text for those who do not see it.

    Parameters
    ----------
    name
        A word that no other drawing of the page has: its identifiers begin with it.
    title, description
        What is seen, for readers of the screen.
    width, height
        Of the whole, in units of about a pixel.
    left, right, top, bottom
        Room around the frame.

    Examples
    --------
    >>> chart = Chart("demo", "A line <going up>", "From 0 to 1.", height=100)
    >>> x, y = chart.across(0.0, 1.0), chart.up(0.0, 1.0)
    >>> chart.axis_x(x, "time, s")
    >>> chart.line(x([0, 1]), y([0, 1]), "c0")
    >>> "A line &lt;going up&gt;" in chart.svg()
    True
    """

    def __init__(
        self,
        name: str,
        title: str,
        description: str,
        width: float = 420,
        height: float = 280,
        left: float = 56,
        right: float = 16,
        top: float = 14,
        bottom: float = 46,
    ) -> None:
        self.name, self.title, self.description = name, title, description
        self.width, self.height = width, height
        self.x0, self.x1 = left, width - right
        self.y0, self.y1 = height - bottom, top  # y runs downwards in SVG: y0 is the bottom
        self.parts: list[str] = []

    @classmethod
    def of_rows(
        cls,
        name: str,
        title: str,
        description: str,
        names: Sequence[str],
        more: float,
        row: float,
        length: int = 22,
        letter: float = 6.3,
        **room: float,
    ) -> Chart:
        """Return a drawing with a row for each name, and room for that name at the left.

        Parameters
        ----------
        names, length
            The names, and how many of their letters are written.
        more, row
            The height of the whole beside its rows, and of a row.
        letter
            The width of a letter.
        """
        longest = max(len(clip(n, length)) for n in names)
        return cls(name, title, description, height=more + row * len(names), left=16 + letter * longest, **room)

    def figure(self, note: str = "") -> Figure:
        """Return the finished drawing under its title."""
        return Figure(self.title, self.svg(), note)

    # -- scales -----------------------------------------------------------------------------------------

    def across(self, low: float, high: float) -> Linear:
        """Return a scale from left to right."""
        return Linear(low, high, self.x0, self.x1)

    def across_log(self, low: float, high: float) -> Log:
        """Return a logarithmic scale from left to right."""
        return Log(low, high, self.x0, self.x1)

    def up(self, low: float, high: float) -> Linear:
        """Return a scale from bottom to top."""
        return Linear(low, high, self.y0, self.y1)

    # -- axes -------------------------------------------------------------------------------------------

    def axis_x(self, scale: Linear | Log, label: str, marks: Sequence[float] | None = None, grid: bool = True) -> None:
        """Draw the axis below, with thin lines upwards from its marks."""
        for mark in scale.ticks(5) if marks is None else marks:
            x = float(scale(mark))
            if grid:
                self.add("line", x1=x, x2=x, y1=self.y0, y2=self.y1, class_="grid")
            self.text(x, self.y0 + 16, tick(mark), "tick", anchor="middle")
        self.add("line", x1=self.x0, x2=self.x1, y1=self.y0, y2=self.y0, class_="axis")
        self.label_x(label)

    def axis_y(self, scale: Linear | Log, label: str, marks: Sequence[float] | None = None) -> None:
        """Draw the axis at the left, with thin lines across from its marks."""
        for mark in scale.ticks(5) if marks is None else marks:
            y = float(scale(mark))
            self.add("line", x1=self.x0, x2=self.x1, y1=y, y2=y, class_="grid")
            self.text(self.x0 - 7, y + 4, tick(mark), "tick", anchor="end")
        self.label_y(label)

    def label_x(self, label: str) -> None:
        """Name the axis below."""
        self.text((self.x0 + self.x1) / 2, self.height - 8, clip(label, 62), "name", anchor="middle")

    def label_y(self, label: str) -> None:
        """Name the axis at the left, from bottom to top."""
        middle = (self.y0 + self.y1) / 2
        most = max(8, int((self.height - 8) / LETTER))
        content = escape(clip(label, most))
        self.parts.append(
            tag(
                "text",
                content,
                x=12.0,
                y=middle,
                class_="name",
                text_anchor="middle",
                transform=f"rotate(-90 12 {_short(middle)})",
            )
        )

    def names_y(self, bands: Bands, names: Sequence[str], length: int = 22) -> None:
        """Write a name beside each band at the left."""
        for i, name in enumerate(names):
            self.text(self.x0 - 7, bands.middle(i) + 4, clip(name, length), "tick", anchor="end", hint=name)

    def axis_rows(self, scale: Linear, label: str, names: Sequence[str], length: int = 22, most: int = 4) -> Bands:
        """Draw the axis below and a name beside each row, and return where the rows are."""
        bands = Bands(len(names), self.y1, self.y0)
        self.axis_x(scale, label, scale.ticks(most))
        self.names_y(bands, names, length)
        return bands

    # -- marks ------------------------------------------------------------------------------------------

    def add(self, name: str, hint: str = "", **attributes: Any) -> None:
        """Draw an element; `hint` is shown where the pointer rests on it."""
        self.parts.append(tag(name, tag("title", escape(hint)) if hint else "", **attributes))

    def text(self, x: float, y: float, words: str, look: str = "", anchor: str = "start", hint: str = "") -> None:
        """Write words."""
        content = escape(words) + (tag("title", escape(hint)) if hint and hint != words else "")
        if content:
            self.parts.append(tag("text", content, x=x, y=y, class_=look or None, text_anchor=anchor))

    def turned(self, x: float, y: float, words: str) -> None:
        """Write the name of a column that is too narrow for it, slanting down to the left."""
        turn = f"rotate(-45 {_short(float(x))} {_short(float(y))})"
        self.parts.append(tag("text", escape(words), x=x, y=y, class_="tick", text_anchor="end", transform=turn))

    def line(self, xs: Any, ys: Any, look: str) -> None:
        """Draw a line through points."""
        drawn = path(xs, ys)
        if drawn:
            self.add("path", d=drawn, class_=f"line {look}")

    def band(self, xs: Any, low: Any, high: Any, look: str) -> None:
        """Fill the room between two lines."""
        xs, low, high = (np.asarray(v, float) for v in (xs, low, high))
        seen = np.isfinite(xs) & np.isfinite(low) & np.isfinite(high)
        if seen.sum() > 1:
            xs, low, high = xs[seen], low[seen], high[seen]
            ring = path(np.concatenate([xs, xs[::-1]]), np.concatenate([low, high[::-1]]))
            self.add("path", d=ring + "Z", class_=f"band {look}")

    def whisker(self, x1: float, y1: float, x2: float, y2: float, look: str = "") -> None:
        """Draw a straight stroke, such as an interval."""
        self.add("line", x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2), class_=f"whisker {look}".strip())

    def dots(self, xs: Any, ys: Any, look: str, radius: float = 3.0, hints: Sequence[str] | None = None) -> None:
        """Draw points; those that are not finite are left out."""
        for i, (x, y) in enumerate(zip(np.asarray(xs, float), np.asarray(ys, float), strict=True)):
            if np.isfinite(x) and np.isfinite(y):
                self.add("circle", hint=hints[i] if hints else "", cx=x, cy=y, r=radius, class_=f"dot {look}")

    def box(self, x: float, y: float, width: float, height: float, look: str, hint: str = "", **more: Any) -> None:
        """Draw a rectangle from its corner; negative sizes are turned round."""
        if width < 0:
            x, width = x + width, -width
        if height < 0:
            y, height = y + height, -height
        self.add("rect", hint, x=float(x), y=float(y), width=float(width), height=float(height), class_=look, **more)

    def histogram(self, x: Linear, y: Linear, heights: Any, edges: Any, said: Callable[[float], str] = number) -> None:
        """Draw a bar of so many rows between each two edges, which its hint says."""
        for h, a, b in zip(heights, edges[:-1], edges[1:], strict=True):
            left, right, top = float(x(a)), float(x(b)), float(y(h))
            hint = f"{said(a)} to {said(b)}: {count(int(h), 'row')}"
            self.box(left + 0.5, top, max(0.5, right - left - 1), self.y0 - top, "fill c0", hint)

    def svg(self) -> str:
        """Return the drawing as markup."""
        head = tag("title", escape(self.title), id=f"{self.name}-title") + tag(
            "desc", escape(self.description or self.title), id=f"{self.name}-desc"
        )
        return tag(
            "svg",
            head + "".join(self.parts),
            viewBox=f"0 0 {_short(float(self.width))} {_short(float(self.height))}",
            width=1.12 * self.width,
            role="img",
            aria_labelledby=f"{self.name}-title {self.name}-desc",
            class_="chart",
        )
