"""Limits of kernels (K3): power series with coefficients c_m >= 0, the exponential and geometric ones by name."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mercer.kernels.base import Kernel, check_number, kernel
from mercer.kernels.proof import Proof
from mercer.kernels.rules.algebra import Postfix
from mercer.kernels.vectors.linear import Constant
from mercer.points import Pair, Points, diagonal
from mercer.points.formulas.formula import NAMESPACE


class Series(Postfix):
    """sum_m c_m k(x, z)^m with c_m >= 0, where k(x, x) is below the radius of convergence.

    Then |k(x, z)| is below it, too, by Cauchy-Schwarz. Partial sums are kernels by the rules of sums and products, and
    limits of kernels are kernels.
    """

    base: Kernel

    @abstractmethod
    def _total(self, value: Any, pair: Pair) -> Any:
        """Return the sum of the series at k = value."""

    def of(self, pair: Pair) -> Any:
        inside = self._inside()
        one = None if inside is None else pair.outer(inside)  # first: outside, the sum may be a division by 0
        total = self._total(self.base.of(pair), pair)
        return total if one is None else one * total

    def _inside(self) -> _Inside | None:
        """Return ones that check the domain; None where the series converges everywhere."""
        return None


@kernel
class Exponential(Series):
    """exp(k(x, z)), the limit of sum_m k^m / m!."""

    base: Kernel

    _because = "limit", "partial sums of k^m / m! are kernels and converge pointwise to exp(k)."

    def _total(self, value: Any, pair: Pair) -> Any:
        return NAMESPACE.exp(value) if isinstance(value, float) else pair.xp.exp(value)

    def __repr__(self) -> str:
        return f"{self._prefix()}.exp()"


@kernel
class Geometric(Series):
    """1 / (1 - k(x, z)), the limit of sum_m k^m where k(x, x) < 1 (then |k(x, z)| < 1 by Cauchy-Schwarz)."""

    base: Kernel

    _because = "limit", "partial sums of k^m are kernels and converge to 1 / (1 - k) where k(x, x) < 1."

    def _total(self, value: Any, pair: Pair) -> Any:
        return 1.0 / (1.0 - value)

    def _inside(self) -> _Inside:
        return _Inside(self.base, 1.0, "1 / (1 - k)", "(a * k).geometric()")

    def __repr__(self) -> str:
        return f"{self._prefix()}.geometric()"


@kernel
class PowerSeries(Series):
    r"""A power series of a kernel with coefficients that are not negative.

    .. math:: \sum_m c_m k(x, z)^m, \quad c_m \ge 0

    It is given by its coefficients, if there are finitely many, or by the function that it sums to.

    Parameters
    ----------
    base
        k.
    coefficients
        :math:`c_0, c_1, \ldots`, none of them negative.
    function
        The sum of the series, elementwise on arrays: `numpy.cosh`, or `lambda t: -numpy.log(1 - t)`. That none of its
        coefficients is negative is then your claim, and the proof says so.
    radius
        The radius of convergence: points need k(x, x) < radius. None where the series converges everywhere.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Linear, PowerSeries
    >>> PowerSeries(Linear(), [1.0, 0.0, 0.5])([[1.0], [2.0]])  # 1 + <x, z>^2 / 2
    array([[1.5, 3. ],
           [3. , 9. ]])
    >>> k = PowerSeries(Linear(), function=np.cosh)
    >>> k([[1.0]]).round(4), k.proof().status
    (array([[1.5431]]), 'unproven')
    """

    _fixed: ClassVar[tuple[str, ...]] = ("coefficients", "radius")

    base: Kernel
    coefficients: Sequence[float] | None = None
    function: Callable[[Any], Any] | None = None
    radius: float | None = None

    def _validate(self) -> None:
        if not isinstance(self.base, Kernel):
            raise TypeError(f"base of PowerSeries must be a kernel; it is {self.base!r}.")
        if (self.coefficients is None) == (self.function is None):
            raise ValueError(
                "PowerSeries takes the coefficients of a series or the function it sums to, one of them; "
                f"it got {'neither' if self.function is None else 'both'}."
            )
        if self.function is not None and not callable(self.function):
            raise TypeError(f"function of PowerSeries must be a function of a number; it is {self.function!r}.")
        if self.coefficients is not None:
            if isinstance(self.coefficients, str) or np.ndim(self.coefficients) != 1 or len(self.coefficients) == 0:
                raise ValueError(
                    f"coefficients of PowerSeries must be a flat list of numbers; they are {self.coefficients!r}."
                )
            for m, c in enumerate(self.coefficients):
                check_number(self, f"coefficient {m}", c, closed=True)
        if self.radius is not None:
            check_number(self, "radius", self.radius)

    def _total(self, value: Any, pair: Pair) -> Any:
        if self.function is not None:
            return self.function(value)
        assert self.coefficients is not None
        *lower, total = map(float, self.coefficients)
        for c in reversed(lower):  # Horner
            total = total * value + c
        return total

    def _inside(self) -> _Inside | None:
        if self.radius is None:
            return None
        return _Inside(self.base, float(self.radius), "the power series", "a * k in place of k")

    def feature_map(self) -> Any:
        if self.coefficients is None:
            return super().feature_map()
        first, *others = map(float, self.coefficients)
        terms = [c * self.base ** (m + 1) for m, c in enumerate(others) if c]
        return sum(terms, start=Constant(first)).feature_map()

    def _proof(self) -> Proof:
        if self.function is None:
            return self._rule("limit", "a sum of powers of k, which are products, with factors c_m >= 0.", self.base)
        reason = (
            "partial sums of c_m k^m are kernels and converge to f(k), if all c_m >= 0: that the function has such a "
            "series is claimed, not shown; verdict(k, X) tests the values on points."
        )
        return Proof(self, "limit", reason, (self.base.proof(),), own="unproven")


@dataclass(frozen=True)
class _Inside:
    """Ones, after checking that k(x, x) is below the radius of convergence."""

    base: Kernel
    radius: float
    what: str
    remedy: str

    def __call__(self, points: Points) -> Any:
        d = diagonal(self.base.of, points)
        top = float(d.max())
        if top >= self.radius:
            raise ValueError(
                f"{self.what} converges only where k(x, x) < {self.radius:g}; here it reaches {top:.6g} at point "
                f"{int(d.argmax())}. Use {self.remedy} with a < {self.radius / top:.6g}, or k.normalized() times a "
                f"factor below {self.radius:g}."
            )
        return d * 0 + 1
