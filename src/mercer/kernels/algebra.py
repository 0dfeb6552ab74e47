"""Closure rules on values: sums, products, powers and limits of kernels (K3)."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from functools import reduce
from typing import Any

from mercer.features import ConvolvedLaw, MixtureLaw, combine
from mercer.kernels.base import Kernel, check_number, is_whole, kernel
from mercer.kernels.proof import Proof
from mercer.points import Pair, Points, diagonal
from mercer.points.dual import number
from mercer.points.formula import NAMESPACE


@kernel
class Sum(Kernel):
    """k1(x, z) + k2(x, z)."""

    left: Kernel
    right: Kernel

    def of(self, pair: Pair) -> Any:
        return self.left.of(pair) + self.right.of(pair)

    def feature_map(self) -> Any:
        return combine.concatenated(self.left.feature_map(), self.right.feature_map())

    def spectral_law(self, dim: int) -> Any:
        # Each part is asked for its law first: k(0, 0) = 0 is also what a kernel without one may have.
        parts = [(part.spectral_law(dim), part.amplitude(dim)) for part in (self.left, self.right)]
        total = sum(amplitude for _, amplitude in parts)
        kept = [(amplitude / total, law) for law, amplitude in parts if amplitude > 0]
        return MixtureLaw([weight for weight, _ in kept], [law for _, law in kept])

    def _proof(self) -> Proof:
        return self._rule("sum", "a'(K1 + K2)a = a'K1a + a'K2a >= 0.", self.left, self.right)

    def __repr__(self) -> str:
        right = f"({self.right!r})" if isinstance(self.right, Sum) else repr(self.right)
        return f"{self.left!r} + {right}"


@kernel
class Product(Kernel):
    """k1(x, z) k2(x, z)."""

    left: Kernel
    right: Kernel

    def of(self, pair: Pair) -> Any:
        return self.left.of(pair) * self.right.of(pair)

    def feature_map(self) -> Any:
        return combine.TensorFeatures(self.left.feature_map(), self.right.feature_map())

    def spectral_law(self, dim: int) -> Any:
        return ConvolvedLaw([self.left.spectral_law(dim), self.right.spectral_law(dim)])

    def _proof(self) -> Proof:
        return self._rule(
            "product",
            "the elementwise product of positive semidefinite matrices is one (Schur).",
            self.left,
            self.right,
        )

    def __repr__(self) -> str:
        left = f"({self.left!r})" if isinstance(self.left, Sum) else repr(self.left)
        right = f"({self.right!r})" if isinstance(self.right, Sum | Product | Scaled) else repr(self.right)
        return f"{left} * {right}"


@kernel
class Scaled(Kernel):
    """a k(x, z) with a >= 0."""

    factor: float
    base: Kernel

    def _validate(self) -> None:
        if isinstance(self.factor, numbers.Real) and self.factor < 0:
            raise ValueError(
                f"{self.factor!r} * k is refused: a negative multiple turns every non-negative eigenvalue "
                "into a non-positive one. "
                "Use a factor >= 0."
            )
        check_number(self, "factor", self.factor, closed=True)

    def of(self, pair: Pair) -> Any:
        return self.base.of(pair) * number(self.factor)

    def feature_map(self) -> Any:
        return combine.multiplied(self.base.feature_map(), float(self.factor))

    def spectral_law(self, dim: int) -> Any:
        return self.base.spectral_law(dim)

    def _proof(self) -> Proof:
        return self._rule("non-negative multiple", "a'(cK)a = c a'Ka >= 0 for c >= 0.", self.base)

    def __repr__(self) -> str:
        base = f"({self.base!r})" if isinstance(self.base, Sum | Product | Scaled) else repr(self.base)
        return f"{float(self.factor)!r} * {base}"


@kernel
class Power(Kernel):
    """k(x, z)^p for a whole number p >= 1."""

    base: Kernel
    power: int

    def _validate(self) -> None:
        if not is_whole(self.power) or self.power < 1:
            raise ValueError(
                f"k ** {self.power!r} is refused: only whole powers p >= 1 are products of kernels; other "
                "powers can lose "
                "positive semidefiniteness. Use Constant(1.0) for the power 0."
            )

    def of(self, pair: Pair) -> Any:
        value, power = self.base.of(pair), int(self.power)
        try:
            return value**power
        except OverflowError:  # of a number; infinity is refused with a sentence
            return math.inf

    def feature_map(self) -> Any:
        base = self.base.feature_map()
        return reduce(lambda done, _: combine.TensorFeatures(done, base), range(int(self.power) - 1), base)

    def spectral_law(self, dim: int) -> Any:
        return ConvolvedLaw([self.base.spectral_law(dim)] * int(self.power))

    def _proof(self) -> Proof:
        return self._rule(
            "product",
            "the elementwise product of positive semidefinite matrices is one (Schur), repeated "
            f"{int(self.power)} times.",
            self.base,
        )

    def __repr__(self) -> str:
        base = f"({self.base!r})" if isinstance(self.base, Sum | Product | Scaled | Power) else repr(self.base)
        return f"{base} ** {int(self.power)}"


class Postfix(Kernel):
    """A kernel written as a method call on its base."""

    def _prefix(self) -> str:
        base: Kernel = self.base  # type: ignore[attr-defined]
        return f"({base!r})" if isinstance(base, Sum | Product | Scaled | Power) else repr(base)


@kernel
class Exponential(Postfix):
    """exp(k(x, z)), the limit of sum_m k^m / m!."""

    base: Kernel

    def of(self, pair: Pair) -> Any:
        value = self.base.of(pair)
        return NAMESPACE.exp(value) if isinstance(value, float) else pair.xp.exp(value)

    def _proof(self) -> Proof:
        return self._rule("limit", "partial sums of k^m / m! are kernels and converge pointwise to exp(k).", self.base)

    def __repr__(self) -> str:
        return f"{self._prefix()}.exp()"


@kernel
class Geometric(Postfix):
    """1 / (1 - k(x, z)), the limit of sum_m k^m where k(x, x) < 1 (then |k(x, z)| < 1 by Cauchy-Schwarz)."""

    base: Kernel

    def of(self, pair: Pair) -> Any:
        below_one = _BelowOne(self.base)
        return pair.outer(below_one) / (1.0 - self.base.of(pair))

    def _proof(self) -> Proof:
        return self._rule(
            "limit",
            "partial sums of k^m are kernels and converge to 1 / (1 - k) where k(x, x) < 1.",
            self.base,
        )

    def __repr__(self) -> str:
        return f"{self._prefix()}.geometric()"


@dataclass(frozen=True)
class _BelowOne:
    """Ones, after checking that the geometric series converges."""

    base: Kernel

    def __call__(self, points: Points) -> Any:
        d = diagonal(self.base.of, points)
        top = float(d.max())
        if top >= 1:
            raise ValueError(
                f"1 / (1 - k) converges only where k(x, x) < 1; here it reaches {top:.6g} at point {int(d.argmax())}. "
                f"Use (a * k).geometric() with a < {1 / top:.6g}, or k.normalized() times a factor below 1."
            )
        return d * 0 + 1
