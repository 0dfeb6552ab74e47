"""The continuous parameters of a kernel as one list of numbers, and derivatives in them."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, TypeVar, get_type_hints

import numpy as np

from mercer.kernels import Kernel

K = TypeVar("K", bound=Kernel)
T = TypeVar("T")

STEP = 1e-5  # of a parameter or of the spread of a feature: the errors of truncation and of rounding are both small
# Steps and weights of differences whose error is of the fourth order in the step.
_CENTRAL = ((1, 8 / 12), (-1, -8 / 12), (2, -1 / 12), (-2, 1 / 12))
_FORWARD = ((0, -25 / 12), (1, 48 / 12), (2, -36 / 12), (3, 16 / 12), (4, -3 / 12))


@dataclass(frozen=True)
class Parameter:
    """One number that a kernel depends on.

    Attributes
    ----------
    name
        Where it stands, as in `get_params`: `left__base__scale`.
    index
        Which entry of a list it is, counted through lists of lists; None for a number by itself.
    value
        Its value.
    """

    name: str
    index: int | None
    value: float

    def __str__(self) -> str:
        return self.name if self.index is None else f"{self.name}[{self.index}]"


def parameters(kernel: Kernel) -> list[Parameter]:
    """Return the continuous parameters of a kernel and of its parts, in the order of their fields.

    They are the numbers in fields annotated as float (or as a list of them). Those that choose the formula, such as nu
    of Matern, do not count; a class names them in `_fixed`. Whole numbers (a degree, a power) and functions have no
    derivative and are not listed. Parameters that wait for data are listed once they are resolved.

    Examples
    --------
    >>> from mercer.gram import parameters
    >>> from mercer.kernels import RBF, Constant
    >>> [(str(p), p.value) for p in parameters(2.0 * RBF(scale=[1.0, 3.0]) + Constant(0.5))]
    [('left__factor', 2.0), ('left__base__scale[0]', 1.0), ('left__base__scale[1]', 3.0), ('right__value', 0.5)]
    """
    entries = []
    for prefix, part, name in _places(kernel):
        value = getattr(part, name)
        if isinstance(value, numbers.Real):
            entries.append(Parameter(prefix + name, None, float(value)))
        else:
            entries += [Parameter(prefix + name, i, float(v)) for i, v in enumerate(_flat(value))]
    return entries


def with_parameters(kernel: K, values: Sequence[Any] | np.ndarray) -> K:
    """Return the kernel with other values of its continuous parameters, in the order of `parameters`.

    Examples
    --------
    >>> from mercer.gram import with_parameters
    >>> from mercer.kernels import RBF
    >>> with_parameters(2.0 * RBF(scale=1.0), [3.0, 0.5])
    3.0 * RBF(scale=0.5)
    """
    needed = sum(1 for prefix, part, name in _places(kernel) for _ in _flat(getattr(part, name)))
    if len(values) != needed:
        raise ValueError(f"{kernel!r} has {needed} continuous parameters; {len(values)} values were given.")
    return _filled(kernel, iter(values))


def _filled(kernel: K, values: Iterator[Any]) -> K:
    changes: dict[str, Any] = {}
    continuous = _continuous(kernel)
    for f in fields(kernel):  # type: ignore[arg-type]
        value = getattr(kernel, f.name)
        if isinstance(value, Kernel):
            changes[f.name] = _filled(value, values)
        elif f.name in continuous:
            changes[f.name] = _like(value, values)
    return kernel.replace(**changes)


def _places(kernel: Kernel, prefix: str = "") -> Iterator[tuple[str, Kernel, str]]:
    """Yield each field that holds continuous parameters: the prefix of its name, its kernel, its name."""
    continuous = _continuous(kernel)
    for f in fields(kernel):  # type: ignore[arg-type]
        value = getattr(kernel, f.name)
        if isinstance(value, Kernel):
            yield from _places(value, f"{prefix}{f.name}__")
        elif f.name in continuous:
            yield prefix, kernel, f.name


def _continuous(kernel: Kernel) -> set[str]:
    """Return the names of the kernel's own fields that hold real numbers."""
    hints = _hints(type(kernel))
    return {
        name
        for name, value in kernel._params().items()
        if name not in kernel._fixed
        and _are_numbers(value)
        and ("float" in hints[name] or ("Any" in hints[name] and isinstance(value, float)))
    }


@lru_cache(maxsize=256)
def _hints(cls: type[Kernel]) -> dict[str, str]:
    """Return the annotations of the fields, as text."""
    try:
        hints = {name: str(hint) for name, hint in get_type_hints(cls).items()}
    except (NameError, TypeError):  # names that only the place of the definition knows
        hints = {}
    return {f.name: hints.get(f.name, str(f.type)) for f in fields(cls)}  # type: ignore[arg-type]


def _are_numbers(value: Any) -> bool:
    if isinstance(value, list | tuple | np.ndarray):
        return len(value) > 0 and all(_are_numbers(v) for v in value)
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple | np.ndarray):
        for v in value:
            yield from _flat(v)
    else:
        yield value


def _like(value: Any, values: Iterator[Any]) -> Any:
    """Return the next values in the shape of this one."""
    if isinstance(value, np.ndarray):
        items = [_like(v, values) for v in value]
        return np.array(items) if all(isinstance(v, float) for v in items) else items
    if isinstance(value, list):
        return [_like(v, values) for v in value]
    if isinstance(value, tuple):
        return tuple(_like(v, values) for v in value)
    new = next(values)
    return float(new) if isinstance(new, np.generic) else new


# -- derivatives by differences, for what symbols cannot follow -------------------------------------------


def stencil(at: Callable[[float], T], step: float) -> list[tuple[float, T]]:
    """Return weights and neighbours, at(0.0) being the middle, whose weighted sum is the derivative.

    Four on both sides, or five on one where the other raises ValueError: the border of a domain.

    Examples
    --------
    >>> round(sum(weight * value for weight, value in stencil(lambda t: (1 + t) ** 3, 1e-3)), 9)
    3.0
    """
    try:
        return [(c / step, at(i * step)) for i, c in _CENTRAL]
    except ValueError:
        return [(c / step, at(i * step)) for i, c in _FORWARD]


def slope(at: Callable[[float], Any], step: float) -> Any:
    """Return the derivative of an array that depends on one number."""
    return sum(weight * value for weight, value in stencil(at, step))


def parameter_step(value: float) -> float:
    """Return how far to move a parameter."""
    return STEP * abs(value) or STEP
