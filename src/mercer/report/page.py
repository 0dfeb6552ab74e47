"""The report: one HTML file that needs nothing else."""

from __future__ import annotations

import math
import os
import platform
import time
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from mercer.machine.clock import Clock, pace
from mercer.machine.files import placed
from mercer.machine.words import brief, count, seconds
from mercer.report.blocks import Code, Facts, Figures, Prose, Section, Table, Tile, clip, number
from mercer.report.columns import dependence_figures, importance_section, measure
from mercer.report.data import data_section
from mercer.report.errors import calibration_section, errors_section
from mercer.report.influence import influence_section
from mercer.report.metric import metric_section
from mercer.report.plane import columns_plane, directions_plane, plane_figure
from mercer.report.search import search_section
from mercer.report.story import Machine, Story, judge
from mercer.report.winner import learning_section, timings_section, winner_section

_FOLDER = Path(__file__).parent
_BOUNDARY_ROWS = 400  # rows from which the picture of the boundary is made, at most


def write_report(path: Any, story: Story, effort: float = 20.0) -> Path:
    """Write a report of a fit: one HTML file, which needs no network and no program but a browser.

    Parameters
    ----------
    path
        Where to; a file that is there is replaced when the new one is complete.
    story
        What is told.
    effort
        Seconds that may be spent on what is computed for the report only: the learning curve, the importance of columns
        and the pictures of the prediction. They look at fewer rows when there is less time. 0 leaves out what is not
        known from the search and the fit.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_iris
    >>> from mercer import auto
    >>> from mercer.report import Story, write_report
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = auto(X, y, cv=3, kernels=["RBF(2.0)"])
    >>> story = Story("Iris", "iris.csv", "", "", model, (X, y.to_numpy()), treatment=model.encoder_.treatment_)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_report(f"{folder}/iris.html", story, effort=1.0)
    ...     path.read_text(encoding="utf-8")[:15]
    '<!doctype html>'
    """
    path = Path(path)
    text = render(story, effort)
    with placed(path) as (draft,):
        draft.write_text(text, encoding="utf-8")
    return path


def render(story: Story, effort: float = 20.0) -> str:
    """Return the page as text.

    Parameters
    ----------
    story
        What is told.
    effort
        Seconds, as for `write_report`.
    """
    if not effort >= 0:
        raise ValueError(f"effort={effort!r} must be a number of seconds >= 0.")
    began = time.perf_counter()
    story = _with_tables(story)
    machine = Machine(story.model)
    sections = _sections(story, machine, Clock(effort)) if effort else _known(story, machine)
    spent = timings_section(story, time.perf_counter() - began)
    made = datetime.now(UTC)
    return str(
        _template().render(
            title=story.title,
            source=story.source,
            headline=_headline(story, machine),
            tiles=_tiles(story, machine),
            sections=[*sections, spent, _reproduce(story)],
            style=(_FOLDER / "page.css").read_text(encoding="utf-8"),
            date=f"{made:%Y-%m-%d %H:%M} UTC",
            version=_versions()["mercer"],
        )
    )


@cache
def _template() -> Any:
    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html")


def _with_tables(story: Story) -> Story:
    """Return the story with its rows as tables of pandas."""
    import pandas

    def table(rows: Any) -> Any:
        if isinstance(rows, pandas.DataFrame):
            return rows
        if hasattr(rows, "to_pandas"):
            return rows.to_pandas()
        rows = np.asarray(rows)
        return pandas.DataFrame(rows, columns=[f"x{i}" for i in range(rows.shape[1])])

    test = None if story.test is None else (table(story.test[0]), np.asarray(story.test[1]))
    treatment = story.treatment or list(getattr(story.model.encoder_, "treatment_", []))
    changed = {"train": (table(story.train[0]), np.asarray(story.train[1])), "test": test, "treatment": treatment}
    return Story(**{**story.__dict__, **changed})


# -- sections ---------------------------------------------------------------------------------------------


def _known(story: Story, machine: Machine) -> list[Section]:
    """Return what needs no further computation."""
    parts = (_scores(story), search_section(story.model), winner_section(machine), metric_section(machine))
    return [section for section in parts if section is not None]


def _sections(story: Story, machine: Machine, clock: Clock) -> list[Section]:
    rng = np.random.default_rng(story.seed)
    frame, y = story.train
    judged = judge(story, machine, clock.part(0.2), rng)
    curve = learning_section(story, machine, clock.part(0.5), rng)
    importance = measure(story, machine, clock.part(0.45), rng)
    order = [importance.names[i] for i in importance.order]
    by_name = {str(column.name): column for column in story.treatment}
    columns = [by_name[name] for name in order if name in by_name]
    parts: list[Section | None] = [
        _scores(story),
        data_section(story, rng),
        search_section(story.model),
        winner_section(machine),
        metric_section(machine),
    ]
    if judged is not None:
        parts += [errors_section(judged, machine, rng), calibration_section(judged, machine)]
    parts += [curve, importance_section(importance, machine), _pictures(story, machine, columns, clock, rng)]
    parts.append(influence_section(machine, frame, y, order, rng))
    return [section for section in parts if section is not None]


def _pictures(
    story: Story, machine: Machine, columns: list[Any], clock: Clock, rng: np.random.Generator
) -> Section | None:
    frame, y = story.train
    each = max(1e-9, pace(machine.values, machine.encode(frame.iloc[:64])))
    planes = clock.part(0.5)
    figures: list[Any] = []
    if machine.classifies and len(columns) != 2:
        some = rng.permutation(len(frame))[:_BOUNDARY_ROWS]
        plane = directions_plane(machine, machine.encode(frame.iloc[some]), y[some], planes, each, rng)
        title = "The boundary, along the two directions that tell the classes apart best"
    else:
        plane = columns_plane(machine, frame, y, columns, planes, each, rng)
        title = "" if plane is None else f"The prediction over {' and '.join(clip(n, 24) for n in plane.names)}"
    if plane is not None:
        figures.append(plane_figure(machine, plane, title))
    figures += dependence_figures(machine, frame, columns, clock, each, rng, 4 - len(figures))
    if not figures:
        return None
    lead = "What the model has learnt: how its prediction goes with the columns that matter most."
    return Section("pictures", "Pictures of the prediction", lead, [Figures(figures)])


def _scores(story: Story) -> Section | None:
    """Return the scores on the test rows, beside those of others."""
    if not story.scores:
        return None
    others: dict[str, dict[str, float]] = {}
    for name, told in (story.peers or {}).items():
        others[str(name)] = dict(told) if isinstance(told, dict) else {next(iter(story.scores)): float(told)}
    rows = [
        (name, number(score, 4), *(number(peer[name], 4) if name in peer else "" for peer in others.values()))
        for name, score in story.scores.items()
    ]
    head = ("score", "this model", *others)
    tested = count(0 if story.test is None else len(story.test[0]), "test row")
    return Section(
        "scores",
        "Scores",
        f"On {tested} that neither the search nor the fit has seen.",
        [Table("Scores on the test rows", head, rows, right=tuple(range(1, len(head))))],
    )


def _reproduce(story: Story) -> Section:
    blocks: list[Any] = []
    if story.command:
        blocks.append(Code("Command", story.command))
    if story.python:
        blocks.append(Code("Python", story.python))
    versions = ", ".join(f"{name} {version}" for name, version in _versions().items())
    machine = f"{platform.system()}, {platform.machine()}, {count(os.cpu_count() or 1, 'core')}"
    blocks.append(Facts([("seed", "", str(story.seed)), ("versions", "", versions), ("machine", "", machine)]))
    blocks.append(
        Prose(
            ["A limit on time makes a search end sooner on a slower machine; then the winner may be another."],
            quiet=True,
        )
    )
    return Section("reproduce", "How to reproduce", "The same rows, seed and versions give the same model.", blocks)


def _versions() -> dict[str, str]:
    import pandas
    import sklearn

    import mercer

    return {
        "mercer": mercer.__version__,
        "Python": platform.python_version(),
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
        "pandas": pandas.__version__,
    }


# -- the top of the page ----------------------------------------------------------------------------------


def _headline(story: Story, machine: Machine) -> str:
    what = f"a classifier of {len(machine.classes)} classes" if machine.classifies else "a regression"
    name, kernel = type(machine.model.estimator_).__name__, repr(story.model.named_kernel_)
    return f"{name}, {what}, with the kernel {clip(brief(kernel), 160)} and {machine.name_of_price()}"


def _tiles(story: Story, machine: Machine) -> list[Tile]:
    model = story.model
    tiles = []
    if story.scores:
        name, score = next(iter(story.scores.items()))
        tiles.append(Tile(f"test {name}", number(score, 4), count(len(story.test[0]), "row") if story.test else ""))
    error = getattr(model, "score_error_", float("nan"))
    spread = f"± {number(error, 2)} standard error" if math.isfinite(error) else ""
    tiles.append(Tile(f"cross-validated {machine.measure}", number(model.best_score_, 4), spread))
    frame = story.train[0]
    tiles.append(Tile("rows learnt", f"{len(frame):,}", count(frame.shape[1], "column")))
    claim = model.certificate_
    gap = f"≤ {number(100 * claim.relative_gap, 2)}%" if claim.relative_gap >= 1e-6 else "< 0.0001%"
    tiles.append(Tile("gap to the optimum", gap, f"asked for {number(100 * claim.tol, 2)}%"))
    timings = {**getattr(model, "timings_", {}), **story.timings}
    if timings:
        tiles.append(Tile("time", seconds(sum(timings.values())), "from reading to the fit"))
    return tiles
