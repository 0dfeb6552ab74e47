"""What goes wrong is said in one line on standard error, with an exit code that scripts can use."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, NoReturn, TypeVar

import typer

WRONG_USE = 2  # of the command, or an input that cannot be used
CHECK_FAILED = 1  # verify and check: the answer is no
INTERRUPTED = 130  # Ctrl-C before there was a result

C = TypeVar("C", bound=Callable[..., Any])


def fail(sentence: str, code: int = WRONG_USE) -> NoReturn:
    """Say what is wrong, and end."""
    print(f"mercer: {sentence}", file=sys.stderr)
    raise typer.Exit(code)


def guarded(command: C) -> C:
    """Return a command whose errors are sentences; MERCER_TRACEBACK=1 shows where they come from."""

    @wraps(command)
    def run(*args: Any, **options: Any) -> Any:
        try:
            return command(*args, **options)
        except KeyboardInterrupt:
            fail("interrupted before there was a result; nothing was written.", INTERRUPTED)
        except BrokenPipeError:
            raise  # whoever read our output has had enough: no error of ours
        except (ValueError, TypeError, ArithmeticError, MemoryError, OSError) as error:
            if os.environ.get("MERCER_TRACEBACK"):
                raise
            fail(sentence_of(error))

    return run  # type: ignore[return-value]


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


def no_column(name: str, source: str, columns: Iterable[object], asked: str = "") -> NoReturn:
    """Say that a table has no such column, which one may have been meant, and which there are."""
    names = [str(column) for column in columns]
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    same = [other for other in names if other.lower() == name.lower()]
    hint = f"; did you mean {(same or close)[0]!r}?" if same or close else f": {listed(names)}."
    fail(f"{source} has no column {name!r}{asked}{hint}")


def listed(names: list[str], most: int = 12) -> str:
    """Return names in a row, the first of many."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return "its columns are " + ", ".join(names[:most]) + more
