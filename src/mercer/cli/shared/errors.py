"""Errors in one line on standard error, with an exit code that scripts can use."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, NoReturn, TypeVar

import typer

from mercer.cli import ENDED, INTERRUPTED

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
    >>> from mercer.cli.shared.errors import shortened
    >>> shortened("there is no column " + "x" * 60 + "; name another.", 50)
    'there is no column xxxxxxxx … xxxxx; name another.'
    """
    if len(message) <= most:
        return message
    end = 2 * most // 5
    return f"{message[: most - end - 3]} … {message[-end:]}"


def guarded(command: C) -> C:
    """Return a command whose errors are sentences; MERCER_TRACEBACK=1 shows where they come from."""

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
