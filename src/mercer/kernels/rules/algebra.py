"""Closure rules on values: sums, products and powers of kernels (K3); their limits are in `series.py`."""

from __future__ import annotations

import math
import numbers
from functools import reduce
from typing import Any

from mercer.features import ConvolvedLaw, MixtureLaw, combine
from mercer.kernels.base import Kernel, check_number, is_whole, kernel
from mercer.kernels.proof import Proof
from mercer.points import Pair
from mercer.points.formulas.dual import number


@kernel
class Sum(Kernel):
    """k1(x, z) + k2(x, z)."""

    left: Kernel
    right: Kernel

    _because = "sum", "a'(K1 + K2)a = a'K1a + a'K2a >= 0."

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

    def __repr__(self) -> str:
        right = f"({self.right!r})" if isinstance(self.right, Sum) else repr(self.right)
        return f"{self.left!r} + {right}"


@kernel
class Product(Kernel):
    """k1(x, z) k2(x, z)."""

    left: Kernel
    right: Kernel

    _because = "product", "the elementwise product of positive semidefinite matrices is one (Schur)."

    def of(self, pair: Pair) -> Any:
        return self.left.of(pair) * self.right.of(pair)

    def feature_map(self) -> Any:
        return combine.TensorFeatures(self.left.feature_map(), self.right.feature_map())

    def spectral_law(self, dim: int) -> Any:
        return ConvolvedLaw([self.left.spectral_law(dim), self.right.spectral_law(dim)])

    def __repr__(self) -> str:
        left = f"({self.left!r})" if isinstance(self.left, Sum) else repr(self.left)
        right = f"({self.right!r})" if isinstance(self.right, Sum | Product | Scaled) else repr(self.right)
        return f"{left} * {right}"


@kernel
class Scaled(Kernel):
    """a k(x, z) with a >= 0."""

    factor: float
    base: Kernel

    _because = "non-negative multiple", "a'(cK)a = c a'Ka >= 0 for c >= 0."

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
