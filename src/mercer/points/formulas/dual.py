"""Numbers that know how they depend on parameters: what a formula is traced with to be differentiated in them.

A kernel whose parameters are such numbers computes its constants as ever, and each constant then carries its
derivatives. Where they would be lost (a conversion by float, a function of `math`, an operation on arrays, a branch
that only this very value takes) the tape notes which parameters left it; those are differentiated by other means.
"""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

# Functions, and their derivatives at x, where they have the value v.
_FUNCTIONS: dict[str, tuple[Callable[[float], float], Callable[[float, float], float]]] = {
    "exp": (math.exp, lambda x, v: v),
    "log": (math.log, lambda x, v: 1.0 / x),
    "log1p": (math.log1p, lambda x, v: 1.0 / (1.0 + x)),
    "sqrt": (math.sqrt, lambda x, v: 0.5 / v),
    "tanh": (math.tanh, lambda x, v: 1.0 - v * v),
}
_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "power": operator.pow,
}


class Tape:
    """The parameters of one derivation, by number, and those whose trace was lost."""

    def __init__(self) -> None:
        self.lost: set[int] = set()

    def parameters(self, values: Iterable[float]) -> list[Dual]:
        """Return the values as numbers with derivative 1 in themselves."""
        return [Dual(float(v), {i: 1.0}, self) for i, v in enumerate(values)]


class Dual:
    """A value and its derivatives in some of the parameters."""

    __slots__ = ("_tape", "slopes", "value")

    ndim = 0  # a number, to NumPy

    def __init__(self, value: float, slopes: dict[int, float], tape: Tape) -> None:
        self.value, self.slopes, self._tape = value, slopes, tape

    def moved(self, parameter: int, by: float) -> float:
        """Return the value after a small change of one parameter."""
        return self.value + by * self.slopes.get(parameter, 0.0)

    # -- arithmetic -------------------------------------------------------------------------------------

    def _chain(self, value: float, slope: float) -> Dual:
        return Dual(value, {i: slope * s for i, s in self.slopes.items()}, self._tape)

    def _with(self, other: Any, value: Callable[[float, float], float], slopes: Callable[..., Any]) -> Any:
        """Return the value of an operation on two numbers, with `slopes` its derivatives in each."""
        if not is_number(other):
            return NotImplemented
        theirs = other if isinstance(other, Dual) else Dual(float(other), {}, self._tape)
        a, b = self.value, theirs.value
        result = value(a, b)
        mine, its = slopes(a, b)
        return Dual(
            result,
            {
                i: mine * self.slopes.get(i, 0.0) + its * theirs.slopes.get(i, 0.0)
                for i in self.slopes.keys() | theirs.slopes
            },
            self._tape,
        )

    def __add__(self, other: Any) -> Any:
        return self._with(other, operator.add, lambda a, b: (1.0, 1.0))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._with(other, operator.sub, lambda a, b: (1.0, -1.0))

    def __rsub__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: b - a, lambda a, b: (-1.0, 1.0))

    def __mul__(self, other: Any) -> Any:
        return self._with(other, operator.mul, lambda a, b: (b, a))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return self._with(other, operator.truediv, lambda a, b: (1.0 / b, -a / b / b))

    def __rtruediv__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: b / a, lambda a, b: (-b / a / a, 1.0 / a))

    def __pow__(self, other: Any) -> Any:
        return self._with(other, operator.pow, _power_slopes if isinstance(other, Dual) else _base_slope)

    def __rpow__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: b**a, lambda a, b: (b**a * math.log(b), 0.0))

    def __neg__(self) -> Dual:
        return self._chain(-self.value, -1.0)

    def __pos__(self) -> Dual:
        return self

    def __abs__(self) -> Dual:
        return -self if self.value < 0 else self

    def apply(self, name: str) -> Dual:
        """Return a function of the number, by its name in `math`."""
        value = _FUNCTIONS[name][0](self.value)
        return self._chain(value, _FUNCTIONS[name][1](self.value, value))

    # -- where derivatives are lost ---------------------------------------------------------------------

    def _lose(self) -> float:
        self._tape.lost.update(self.slopes)
        return self.value

    def __float__(self) -> float:
        return self._lose()

    def __int__(self) -> int:
        return int(self._lose())

    __trunc__ = __int__

    def __round__(self, digits: int | None = None) -> float:
        return round(self._lose(), digits)

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        return np.asarray(self._lose(), *args, **kwargs)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        name = ufunc.__name__
        if method == "__call__" and not kwargs and all(is_number(x) for x in inputs):
            if name in _FUNCTIONS:
                return self.apply(name)
            if name in _BINARY:
                return _BINARY[name](*(x if isinstance(x, Dual) else float(x) for x in inputs))
        return getattr(ufunc, method)(*(x._lose() if isinstance(x, Dual) else x for x in inputs), **kwargs)

    def __eq__(self, other: object) -> bool:
        """Compare values; where they are equal the caller may go a way that only this value goes."""
        if not is_number(other):
            return False
        same = self.value == (other.value if isinstance(other, Dual) else other)
        if same and other is not self:
            self._lose()
            if isinstance(other, Dual):
                other._lose()
        return same

    def __bool__(self) -> bool:
        return self.value != 0 or bool(self._lose())

    def __hash__(self) -> int:
        return hash(self.value)

    def __lt__(self, other: Any) -> bool:
        return self.value < getattr(other, "value", other)

    def __le__(self, other: Any) -> bool:
        return self.value <= getattr(other, "value", other)

    def __gt__(self, other: Any) -> bool:
        return self.value > getattr(other, "value", other)

    def __ge__(self, other: Any) -> bool:
        return self.value >= getattr(other, "value", other)

    def __repr__(self) -> str:
        return repr(self.value)

    def __format__(self, spec: str) -> str:
        return format(self.value, spec)


numbers.Real.register(Dual)

_NUMBER = (int, float, np.floating, np.integer, Dual)


def _base_slope(a: float, b: float) -> tuple[float, float]:
    return (b * a ** (b - 1) if b != 0 else 0.0), 0.0


def _power_slopes(a: float, b: float) -> tuple[float, float]:
    return _base_slope(a, b)[0], a**b * math.log(a)


def is_number(x: Any) -> bool:
    """Return whether `x` is one real number, with or without derivatives."""
    return isinstance(x, _NUMBER)


def number(x: Any) -> Any:
    """Return a parameter as a float, or as it is while it is being differentiated.

    Kernels write this where they would write float, so that derivatives are not lost.

    Examples
    --------
    >>> number(2)
    2.0
    """
    return x if isinstance(x, Dual) else float(x)


def one_or_each(x: Any) -> Any:
    """Return a parameter that is one number or one per feature: `number` of it, or a tuple of them."""
    return number(x) if is_number(x) else tuple(number(v) for v in x)


# -- in objects -------------------------------------------------------------------------------------------


def substituted(thing: Any, value: Callable[[Dual], Any]) -> Any:
    """Return a copy of nested sequences and dataclasses with `value` of each number; itself where there is none."""
    if isinstance(thing, Dual):
        return value(thing)
    if type(thing) in (list, tuple):
        parts = [substituted(part, value) for part in thing]
        return thing if _same(parts, thing) else type(thing)(parts)
    if is_dataclass(thing) and not isinstance(thing, type):
        own = {f.name: getattr(thing, f.name) for f in fields(thing) if f.init}
        changed = {name: substituted(part, value) for name, part in own.items()}
        return thing if _same(changed.values(), own.values()) else replace(thing, **changed)
    return thing


def plain(thing: Any) -> Any:
    """Return a copy with each number's value in its place."""
    return substituted(thing, lambda dual: dual.value)


def parameters_in(thing: Any) -> set[int]:
    """Return the parameters on which numbers within an object depend."""
    parameters: set[int] = set()

    def note(dual: Dual) -> Dual:
        parameters.update(dual.slopes)
        return dual

    substituted(thing, note)
    return parameters


def _same(parts: Iterable[Any], others: Sequence[Any] | Iterable[Any]) -> bool:
    return all(a is b for a, b in zip(parts, others, strict=True))
