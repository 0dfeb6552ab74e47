"""The hook for kernel="auto": the search stands above the estimators, and is loaded when one needs it."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from mercer.kernels import Kernel

AUTO = "auto"
Chooser = Callable[[Any, Any, Any, Any], tuple[Kernel, Any]]

_chooser: list[Chooser] = []


def register_chooser(choose: Chooser) -> None:
    """Let `choose(model, X, y, sample_weight)`, which returns a kernel and an account, answer kernel="auto"."""
    _chooser[:] = [choose]


def chosen_kernel(model: Any, X: Any, y: Any, sample_weight: Any) -> Kernel | None:
    """Return the kernel that a search finds for kernel="auto", and None for every other; sets or removes `account_`."""
    if not asks_for_choice(model.kernel):
        vars(model).pop("account_", None)  # of an earlier fit
        return None
    if not _chooser:
        import_module("mercer.selection")  # registers itself
    kernel, model.account_ = _chooser[0](model, X, y, sample_weight)
    return kernel


def asks_for_choice(kernel: Any) -> bool:
    """Whether a parameter `kernel` says that one is to be found."""
    return isinstance(kernel, str) and kernel == AUTO
