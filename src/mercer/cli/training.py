"""The main job: from a table to a chosen, certified, tested and saved model."""

from __future__ import annotations

import platform
import shlex
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import rich

from mercer.cli.options import interruptible, written
from mercer.cli.output import certificate_facts, plain, sentence_of, watched
from mercer.cli.rows import Examples, answers, examples, name_of, placed, read, split, strata
from mercer.cli.scores import Score, scores_of
from mercer.machine.clock import Clock
from mercer.machine.warn import warn

if TYPE_CHECKING:
    from mercer.cli.fit import Teller

_REPORT_SECONDS = 20.0  # seconds that the pictures of a report may take


@dataclass
class Settings:
    """What `mercer fit` was asked to do."""

    data: str
    target: str | None = None
    task: str = "auto"
    kernels: list[Any] = field(default_factory=list)
    cv: int = 5
    time: float | None = None
    out: Path = Path("model.mercer")
    report: Path | None = None
    test: str | None = None
    test_size: float = 0.2
    drop: list[str] = field(default_factory=list)
    search_rows: int | None = None
    seed: int = 0
    reading: dict[str, str] = field(default_factory=dict)
    command: list[str] = field(default_factory=list)

    @property
    def line(self) -> str:
        """The command as one would type it."""
        return shlex.join(["mercer", *self.command])

    @property
    def options(self) -> dict[str, Any]:
        """What `auto` is told."""
        told: dict[str, Any] = {"cv": self.cv, "time_limit": self.time, "random_state": self.seed}
        told |= {"kernels": self.kernels} if self.kernels else {}
        return told | ({} if self.search_rows is None else {"search_rows": self.search_rows})


@dataclass
class Trained:
    """The fitted model of `mercer fit`, with its rows, scores and times."""

    settings: Settings
    model: Any
    train: Examples
    test: Examples | None
    scores: list[Score]
    timings: dict[str, float]
    notes: list[str]
    interrupted: bool = False
    date: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))

    @property
    def stratified(self) -> bool:
        """Whether the split took the classes in equal parts."""
        if self.test is None or self.train.task != "classify":
            return False
        return strata(np.concatenate([self.train.y, self.test.y]), len(self.test.y))

    @property
    def facts(self) -> dict[str, Any]:
        """What the model file says about where the model comes from."""
        import sklearn

        import mercer

        settings, model = self.settings, self.model
        versions = {"mercer": mercer.__version__, "scikit-learn": sklearn.__version__, "numpy": np.__version__}
        found = {
            "command": settings.line,
            "date": self.date,
            "source": name_of(settings.data),
            "target": settings.target,
            "task": self.train.task,
            "classes": getattr(model, "classes_", None),
            "columns": [vars_of(column) for column in model.encoder_.treatment_],
            "dropped": settings.drop,
            "train_rows": len(self.train.y),
            "test_rows": 0 if self.test is None else len(self.test.y),
            "test": settings.test,
            "test_size": settings.test_size,
            "seed": settings.seed,
            "digest": self.train.digest,
            "kernel": repr(model.named_kernel_),
            "account": str(model.account_),
            "cross_validation": {
                "scoring": str(model.scoring_),
                "score": model.best_score_,
                "error": model.score_error_,
                "folds": settings.cv,
            },
            "scores": {score.name: {"value": score.value, "error": score.error} for score in self.scores},
            "certificate": certificate_facts(model.certificate_),
            "timings": self.timings,
            "notes": self.notes,
            "interrupted": self.interrupted,
            "versions": {**versions, "python": platform.python_version()},
        }
        return dict(plain(found))

    @property
    def python(self) -> str:
        """The program that does the same."""
        settings, kind = self.settings, type(self.model).__name__
        options = {name: value for name, value in settings.options.items() if value is not None}
        if settings.kernels:
            written = [f"mercer.{k.__name__}" if isinstance(k, type) else repr(repr(k)) for k in settings.kernels]
            options["kernels"] = _Written(f"[{', '.join(written)}]")
        given = ", ".join(f"{name}={value!r}" for name, value in options.items())
        lines = ["import mercer", "from mercer.tables import read_table, target_of"]
        told = [f"{name}={value!r}" for name, value in settings.reading.items()]
        learned = f"model = mercer.{kind}({given}).fit(X, y)"
        if self.test is not None and settings.test is None:
            lines.append("from sklearn.model_selection import train_test_split")
            stratify = ", stratify=y" if self.stratified else ""
            learned = (
                f"train, test = map(sorted, train_test_split(range(len(y)), test_size={len(self.test.y)}, "
                f"random_state={settings.seed}{stratify}))\n"
                f"model = mercer.{kind}({given}).fit(X.iloc[train], y[train])\n"
                "print(model.score(X.iloc[test], y[test]))"
            )
        lines += [
            "",
            f"table = read_table({', '.join([repr(settings.data), *told])})",
            f"target = target_of(table[{settings.target!r}], {self.train.task!r})",
            f"X, y = table.iloc[target.rows].drop(columns={[settings.target, *settings.drop]!r}), target.values",
            learned,
            "print(model.account_)",
            f"mercer.save(model, {settings.out.name!r})",
        ]
        return "\n".join(lines)


class _Written(str):
    """A piece of a program: its `repr` is itself."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def vars_of(column: Any) -> dict[str, Any]:
    """Return what was done to a column, as plain data."""
    return {name: plain(getattr(column, name)) for name in ("name", "kind", "made", "said")}


def train(settings: Settings, tell: Teller, notes: list[str]) -> Trained:
    """Read, split, search, fit, test, and write model and report, telling each as it is known."""
    import mercer
    from mercer.tables.cells import ABSENT

    if settings.report:
        import mercer.report  # loaded before anything could be lost with it

    clock = Clock()
    with clock("read"):
        frame = read(settings.data, **settings.reading)
        if settings.target is None and ABSENT in frame.attrs:  # svmlight has one target, without a name
            settings.target = "target"
        whole = examples(frame, settings.target, settings.task, settings.drop, settings.data)
        learn, test = _parts(settings, whole)
    kind = mercer.AutoClassifier if learn.task == "classify" else mercer.AutoRegressor
    with clock("look at columns"):  # before the search: a column read wrongly is seen at once
        encoder = kind(**settings.options).new_encoder().fit(learn.X)
        settings.kernels = [placed(kernel, encoder, name_of(settings.data)) for kernel in settings.kernels]
    tell.data(settings, frame, whole, learn, test)
    tell.columns(encoder.treatment_)
    del frame, whole
    tell.searching(settings)
    bars = watched() and tell.watching
    if bars:
        rich.reconfigure(stderr=True)  # bars are no part of what a pipe gets
    model = kind(**settings.options, verbose=int(bars))
    made = Trained(settings, model, learn, test, [], clock.spent, notes)
    with interruptible():
        model.fit_encoded(learn.X, learn.y, encoder)
        clock.spent |= {name: float(value) for name, value in model.timings_.items()}
        made.interrupted = bool(getattr(model, "interrupted_", False))
        tell.chosen(model)
        if test is not None:
            with clock("test"):
                _test(made, test)
        tell.scores(model, settings, learn, test, made.scores)
        tell.certificate(model)
        _write(made, clock)
    tell.written(made)
    return made


def _test(made: Trained, test: Examples) -> None:
    """Score the test rows; Ctrl-C leaves the scores out, and the model stays."""
    try:
        made.scores += scores_of(made.model, test.X, test.y)
    except KeyboardInterrupt:
        made.interrupted = True
        warn("interrupted: the test rows were not scored; the model is kept.")


def _write(made: Trained, clock: Clock) -> None:
    """Write model and report, which appear together."""
    import mercer

    report = made.settings.report
    with written(made.settings.out, *([report] if report else [])) as drafts:
        if report:
            with clock("report"):
                _report(made, drafts[1])
        mercer.save(made.model, drafts[0], facts=made.facts)


def _parts(settings: Settings, whole: Examples) -> tuple[Examples, Examples | None]:
    """Return the rows to learn from and those to test on."""
    if settings.test is not None:
        other = read(settings.test, **settings.reading)
        labels = np.unique(whole.y) if whole.task == "classify" else None
        return whole, answers(other, str(settings.target), labels, settings.test)
    train_rows, test_rows = split(whole, settings.test_size, settings.seed)
    return whole.part(train_rows), whole.part(test_rows) if len(test_rows) else None


def _report(made: Trained, path: Path) -> None:
    """Write the report; a short one after Ctrl-C, or when the long one fails: the model does not depend on it."""
    from mercer.report import write_report

    try:
        write_report(path, _story(made), 0.0 if made.interrupted else _REPORT_SECONDS)
    except (KeyboardInterrupt, ValueError, ArithmeticError, MemoryError) as error:
        made.interrupted |= isinstance(error, KeyboardInterrupt)
        why = "interrupted" if isinstance(error, KeyboardInterrupt) else sentence_of(error).rstrip(".")
        warn(f"{why}: the report tells only what the search and the fit have found.")
        write_report(path, _story(made), 0.0)


def _story(made: Trained) -> Any:
    """Return what the report tells."""
    from mercer.report import Story

    settings, model = made.settings, made.model
    return Story(
        title=f"{settings.target} from {Path(name_of(settings.data)).name}",
        source=name_of(settings.data),
        command=settings.line,
        python=made.python,
        model=model,
        train=(made.train.X, made.train.y),
        test=None if made.test is None else (made.test.X, made.test.y),
        scores={score.name: score.value for score in made.scores},
        timings=dict(made.timings),
        seed=settings.seed,
        peers=None,
        treatment=list(model.encoder_.treatment_),
        notes=[*made.train.said, *made.notes],
    )
