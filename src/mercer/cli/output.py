"""Output of the commands: text, tables and JSON to standard output; notes, bars and errors to standard error."""

from __future__ import annotations

import difflib
import json
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import date
from functools import wraps
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import numpy as np
import typer
from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from mercer.certify import Certificate
from mercer.cli import ENDED, INTERRUPTED
from mercer.kernels import Metric, Proof

WRONG_USE = 2  # of the command, or an input that cannot be used
CHECK_FAILED = 1  # verify and check: the answer is no
CLOSED_PIPE = 141  # whoever read our output has had enough; the code that shells give
_LONGEST_MESSAGE = 600  # characters of a message

C = TypeVar("C", bound=Callable[..., Any])


def fail(sentence: str, code: int = WRONG_USE) -> NoReturn:
    """Say what is wrong, and end."""
    print(shortened(f"mercer: {sentence}"), file=sys.stderr)
    raise typer.Exit(code)


def shortened(message: str, most: int = _LONGEST_MESSAGE) -> str:
    """Return a message without its middle where it is long: it begins with what is wrong and ends with what to do.

    Examples
    --------
    >>> from mercer.cli.output import shortened
    >>> shortened("there is no column " + "x" * 60 + "; name another.", 50)
    'there is no column xxxxxxxx … xxxxx; name another.'
    """
    if len(message) <= most:
        return message
    end = 2 * most // 5
    return f"{message[: most - end - 3]} … {message[-end:]}"


def guarded(*examples: str) -> Callable[[C], C]:
    """Return a decorator of commands: errors are sentences, and `epilog` has what one would type.

    MERCER_TRACEBACK=1 shows where errors come from.
    """

    def guard(command: C) -> C:
        @wraps(command)
        def run(*args: Any, **options: Any) -> Any:
            try:
                return command(*args, **options)
            except KeyboardInterrupt:
                print(ENDED, end="", file=sys.stderr)
                raise typer.Exit(INTERRUPTED) from None
            except BrokenPipeError:
                raise typer.Exit(CLOSED_PIPE) from None
            except (ValueError, TypeError, ArithmeticError, MemoryError, OSError) as error:
                if os.environ.get("MERCER_TRACEBACK"):
                    raise
                fail(sentence_of(error))

        lines = [f"  {line}".replace("[", r"\[") for line in examples]
        run.epilog = "\n".join(["Examples:", *lines]) if lines else None  # type: ignore[attr-defined]
        return run  # type: ignore[return-value]

    return guard


def sentence_of(error: BaseException) -> str:
    """Return what an exception says, as a sentence that starts with the file where there is one."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    if isinstance(error, KeyError):  # its text is only the key
        return f"{error.args[0]!r} is missing."
    said = str(error).strip()
    if isinstance(error, MemoryError) and not said:
        return "there is not enough memory; set a smaller --search-rows, or take fewer rows."
    return said or f"{type(error).__name__} without a word; MERCER_TRACEBACK=1 shows where."


def require_columns(wanted: Iterable[object], source: str, columns: Iterable[object], asked: str = "") -> None:
    """Say which column a table does not have, which one may have been meant, and which there are."""
    names = [str(column) for column in columns]
    known = set(names)
    for name in map(str, wanted):
        if name not in known:
            close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
            same = [other for other in names if other.lower() == name.lower()]
            hint = f"; did you mean {(same or close)[0]!r}?" if same or close else f": {listed(names)}."
            fail(f"{source} has no column {name!r}{asked}{hint}")


def listed(names: list[str], most: int = 12) -> str:
    """Return names in a row, the first of many."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return "its columns are " + ", ".join(names[:most]) + more


# A warning that tells the user nothing about the data or the model.
_SILENT = (DeprecationWarning, PendingDeprecationWarning, FutureWarning, ResourceWarning, RuntimeWarning)


def aside() -> Console:
    """Return the console for standard error, without colours when piped."""
    return Console(stderr=True, highlight=False)


def watched() -> bool:
    """Whether someone looks at standard error, so that a bar makes sense."""
    return sys.stderr.isatty()


@contextmanager
def noted() -> Iterator[list[str]]:
    """Say warnings once each, as lines on standard error, and keep them.

    Examples
    --------
    >>> import warnings
    >>> from mercer.cli.output import noted
    >>> with noted() as notes:
    ...     for _ in range(2):
    ...         warnings.warn("three values of age are no numbers.")
    >>> notes
    ['three values of age are no numbers.']
    """
    notes: list[str] = []

    def show(message: Warning | str, category: type[Warning], *place: Any) -> None:
        said = " ".join(str(message).split())
        if not issubclass(category, _SILENT) and said not in notes:
            notes.append(said)
            aside().print(Text.assemble(("note: ", "yellow"), shortened(said, 590)), soft_wrap=True)

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show  # type: ignore[assignment]
        yield notes


@contextmanager
def summed() -> Iterator[None]:
    """Say once, after all pieces of a table, which of their cells are not like those of the fit."""
    from mercer.tables.cells import StrangeCells

    heard, say = StrangeCells({}), warnings.showwarning

    def show(message: Warning | str, *place: Any) -> None:
        nonlocal heard
        if isinstance(message, StrangeCells):
            heard += message
        else:
            say(message, *place)

    with warnings.catch_warnings():
        warnings.showwarning = show  # type: ignore[assignment]
        yield
    if heard.cells:
        warnings.warn(heard)


def say_json(found: dict[str, Any]) -> None:
    """Print one JSON object to standard output."""
    print(json.dumps(plain(found), indent=2, ensure_ascii=False, allow_nan=False))


def plain(value: Any) -> Any:
    """Return a value in the types of JSON; what is no number is null.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.cli.output import plain
    >>> plain({"rows": np.int64(3), "score": float("nan"), "classes": np.array(["a", "b"])})
    {'rows': 3, 'score': None, 'classes': ['a', 'b']}
    """
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str | int | bool) or value is None:
        return value
    return value.isoformat() if isinstance(value, date) else str(value)


def certificate_facts(claim: Certificate) -> dict[str, Any]:
    """Return what a certificate says, as plain data."""
    names = ("primal", "dual", "gap", "relative_gap", "kkt", "tol", "converged", "solver", "iterations", "seconds")
    found = {name: getattr(claim, name) for name in names}
    texts = {name: getattr(claim, name) for name in ("precision", "stopped", "stationary")}
    return {**found, **texts, "problems": max(1, len(claim.parts))}


_COLUMNS_SAID = 5  # columns of a metric that are named


def metric_line(metric: Metric) -> str:
    """Return by which columns a learned metric compares rows, in one line.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF
    >>> from mercer.kernels import Metric
    >>> metric_line(Metric.of(RBF((1.0, 2.0)), np.eye(2), ["age", "wealth"]))
    'Rows are compared by age 80%, wealth 20%.'
    """
    shares = metric.by_column(_COLUMNS_SAID).items()
    return f"Rows are compared by {', '.join(f'{name} {100 * share:.0f}%' for name, share in shares)}."


def size(path: str | Path) -> str:
    """Return how large a file is."""
    amount = float(Path(path).stat().st_size)
    for unit in ("bytes", "kB", "MB"):
        if amount < 1000 or unit == "MB":
            break
        amount /= 1000
    return f"{amount:.0f} {unit}" if unit != "MB" else f"{amount:.1f} MB"


WIDTH = 100
STATUS = {"proven": "green", "unproven": "yellow", "refuted": "red"}


class _Terminal(Console):
    """A console that passes a closed pipe on to the command, whose exit code says it."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def terminal() -> Console:
    """Return the console for standard output: at most 100 columns wide, without colours when piped."""
    console = _Terminal(highlight=False)
    console.width = min(console.width, WIDTH)
    return console


def heading(console: Console, number: int, words: str) -> None:
    """Print the title of a section."""
    console.print()
    console.rule(Text.assemble((f"{number}  ", "dim"), (words, "bold")), align="left", style="dim")
    console.print()


def code(line: str) -> Text:
    """Return a line of Python as it would be typed."""
    return Text.assemble((">>> ", "dim"), (line, "cyan"))


def error(raised: Exception) -> Text:
    """Return an exception as the interpreter would end its report."""
    return Text.assemble((f"{type(raised).__name__}: ", "bold red"), str(raised))


def indented(what: RenderableType) -> Padding:
    """Return the renderable four columns to the right."""
    return Padding(what, (0, 0, 0, 4), expand=False)


def facts(console: Console, *rows: tuple[str, str]) -> None:
    """Print names and what is known of them, in two columns."""
    grid = Table.grid(padding=(0, 2))
    for name, value in rows:
        grid.add_row(Text(name, style="dim"), value)
    console.print(indented(grid))


def status(word: str) -> Text:
    """Return the status of a proof in its colour."""
    return Text(word, style=STATUS[word])


def tree(proof: Proof) -> Tree:
    """Return a proof as a tree: under each kernel the rule that makes it one, then the kernels it is made from.

    Examples
    --------
    >>> from rich.console import Console
    >>> from mercer import Linear
    >>> from mercer.cli.output import tree
    >>> Console(width=110, force_terminal=False).print(tree((Linear() + 1.0).proof()))
    Linear() + Constant()  proven
    sum: a'(K1 + K2)a = a'K1a + a'K2a >= 0.
    ├── Linear()  proven
    │   inner product: k(x, z) = <x, z> is the inner product itself; the feature map is the identity.
    └── Constant()  proven
        feature map: Phi(x) = sqrt(c) for every x, so a'Ka = c (sum a_i)^2 >= 0.
    """
    root = Tree(_step(proof), guide_style="dim")
    _grow(root, proof)
    return root


def _grow(node: Tree, proof: Proof) -> None:
    for part in proof.parts:
        _grow(node.add(_step(part)), part)


def _step(proof: Proof) -> Group:
    claim = Text.assemble((proof.claim, "bold"), "  ", status(proof.status))
    return Group(claim, Text.assemble((proof.rule, "italic"), (f": {proof.reason}", "dim")))


def table(*columns: str, right: tuple[str, ...] = ()) -> Table:
    """Return an empty table with a rule under its header and no other lines."""
    made = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False, header_style="bold")
    for column in columns:
        made.add_column(column, justify="right" if column in right else "left")
    return made


def certificate_lines(claim: Any) -> list[str]:
    """Return what a certificate means, and its numbers."""
    if claim.stationary:
        means = f"A stationary point, which need not be the optimum: {claim.stationary}."
    elif not claim.converged:
        means = (
            f"Not converged ({claim.stopped}): the objective may be {claim.relative_gap:.1e} of it above the optimum."
        )
    elif claim.relative_gap:
        means = (
            "No function of this kernel's space has an objective lower than this one's by more than "
            f"{claim.relative_gap:.1e} of it ({claim.tol:.0e} was asked for)."
        )
    else:
        means = (
            f"No function of this kernel's space has a lower objective, up to rounding ({claim.tol:.0e} was asked for)."
        )
    return [means, *str(claim).splitlines()]


def measure_name(scoring: object) -> str:
    """Return what scikit-learn's name of a score is called here: a negated error is the error."""
    name = str(scoring).removeprefix("neg_").replace("_", " ")
    return {
        "r2": "R²",
        "root mean squared error": "RMSE",
        "mean absolute error": "MAE",
        "roc auc": "ROC area",
    }.get(name, name)
