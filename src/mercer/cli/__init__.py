"""The `mercer` command. Little is loaded here, so that Ctrl-C is answered from the first moment on."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from types import FrameType
from typing import NoReturn

INTERRUPTED = 130  # Ctrl-C; the code that shells give
ENDED = "mercer: interrupted before it was done; no file is left half written.\n"


def main() -> None:
    """Run the command line: what is wrong is one line on standard error, and the exit code is for scripts."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where a script ignores it
        signal.signal(signal.SIGINT, leave)
    from mercer.cli.commands import run

    code = run(sys.argv[1:])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is over anyway
    sys.exit(code)


def leave(number: int, frame: FrameType | None) -> NoReturn:
    """End at once. An exception would be lost in the loading of modules; what writes asks for one all the same."""
    with suppress(OSError):
        os.write(2, ENDED.encode())
    os._exit(INTERRUPTED)
