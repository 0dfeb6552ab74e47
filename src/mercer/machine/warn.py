"""Warnings that point at the line of the caller, however deep in the library they arise."""

from __future__ import annotations

import os
import sys
import warnings
from importlib.util import find_spec

# scikit-learn wraps methods of its estimators, ours among them, and calls them: its lines are not the user's either.
_INSIDE = tuple(os.path.dirname(getattr(find_spec(name), "origin", "")) + os.sep for name in ("mercer", "sklearn"))


def warn(message: str | Warning, category: type[Warning] = UserWarning) -> None:
    """Warn, and name the line outside of this package and scikit-learn from which it was called.

    Parameters
    ----------
    message
        What is not as it should be, and what to do about it; or the warning itself.
    category
        Of a warning that is given by its text.
    """
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INSIDE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
