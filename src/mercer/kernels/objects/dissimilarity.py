"""Similarities made of dissimilarities."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from mercer.kernels.base import Kernel, check_number, kernel
from mercer.kernels.objects.given import check_matrix
from mercer.kernels.proof import Proof
from mercer.kernels.vectors.stationary import sample, upper_triangle
from mercer.points import Block, Pair, Points
from mercer.points.formulas.dual import number

Kind = Literal["exp", "centred"]


@kernel
class FromDissimilarity(Kernel):
    r"""A similarity from any dissimilarity d of two points (K10).

    .. math:: k(x, z) = e^{-d(x, z) / s}, \quad \text{or } \frac{d(x, o)^2 + d(z, o)^2 - d(x, z)^2}{2 s^2}

    The second ("centred") is the inner product of x - o and z - o where d is a Euclidean distance (Schoenberg, 1935).
    Another origin o moves all points and changes no difference: a support vector machine with an offset, or a
    `KernelPCA`, which centres the points itself, finds the same. (The double centring of multidimensional scaling puts
    o at the mean of the points at hand; about a point it means the same for points to come.)

    Parameters
    ----------
    distance
        A symmetric function d(x, z) >= 0 of two points of any type, or a square matrix of dissimilarities, into which
        the points are indices.
    scale
        s: a number, or "median" for the median dissimilarity of the training points.
    kind
        "exp" or "centred".
    origin
        o, a point (an index, with a matrix); None for the first training point.

    Notes
    -----
    Nothing is proven: whether k is a kernel depends on d. `verdict` decides on points, and `repair` mends the matrix;
    below for steps around a square, which no points of a Euclidean space have as distances.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import FromDissimilarity, repair, verdict
    >>> FromDissimilarity(lambda a, b: abs(len(a) - len(b)))(["a", "bc"]).round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    >>> circle = np.array([[0, 1, 2, 1], [1, 0, 1, 2], [2, 1, 0, 1], [1, 2, 1, 0]])  # steps around four corners
    >>> k = FromDissimilarity(circle, kind="centred", origin=0)
    >>> bool(verdict(k, np.arange(4)))
    False
    >>> bool(verdict(repair(k(np.arange(4))).matrix))
    True
    """

    _fixed: ClassVar[tuple[str, ...]] = ("distance", "origin")

    distance: Any
    scale: float | Literal["median"] = 1.0
    kind: Kind = "exp"
    origin: Any = None

    def _validate(self) -> None:
        if not callable(self.distance):
            check_matrix(self, "distance", self.distance, "a function of two points, or a square matrix of numbers")
            low = float(np.asarray(self.distance).min())
            if low < 0:
                raise ValueError(f"distance of FromDissimilarity contains {low:.6g}; dissimilarities are >= 0.")
        if self.kind not in get_args(Kind):
            raise ValueError(f"kind of FromDissimilarity must be 'exp' or 'centred'; it is {self.kind!r}.")
        if self.scale != "median":
            check_number(self, "scale", self.scale)
        if self.origin is not None and self.kind == "exp":
            raise ValueError(
                f"origin of FromDissimilarity is {self.origin!r:.60}, for which exp(-d / s) has no use; leave it out, "
                "or set kind='centred'."
            )

    @property
    def resolved(self) -> bool:
        return self.scale != "median" and (self.kind == "exp" or self.origin is not None)

    def _resolve(self, points: Points) -> Kernel:
        changes: dict[str, Any] = {}
        if self.scale == "median":
            some = sample(points)
            apart = upper_triangle(self._apart(Block(some, some)))
            changes["scale"] = (float(np.median(apart)) if len(apart) else 0.0) or 1.0
        if self.kind == "centred" and self.origin is None:
            first = points.items[0]
            changes["origin"] = first.item() if isinstance(first, np.generic) else first
        return self.replace(**changes)

    def of(self, pair: Pair) -> Any:
        apart = self._apart(pair) / number(self.scale)
        if self.kind == "exp":
            return pair.xp.exp(-apart)
        return 0.5 * (pair.left(_FromOrigin(self)) + pair.right(_FromOrigin(self)) - apart**2)

    def _apart(self, pair: Pair) -> Any:
        """Return d(x, z)."""
        if not callable(self.distance):
            return pair.lookup(np.asarray(self.distance, dtype=np.float64))
        distances = pair.call(self.distance)
        if (distances < 0).any():
            name = getattr(self.distance, "__qualname__", repr(self.distance))
            raise ValueError(
                f"the distance {name} returned {distances.min():.6g}; dissimilarities are >= 0: mend the function, or "
                "use FromFunction for a similarity."
            )
        return distances

    def _proof(self) -> Proof:
        what = "d" if self.kind == "exp" else "d^2"
        scales = " for every scale" if self.kind == "exp" else ""
        return self._axiom(
            "given dissimilarity",
            f"a kernel{scales} if and only if {what} is conditionally negative definite (Schoenberg), and nothing is "
            "known of d; verdict(k, X) tests it on points.",
            own="unproven",
        )

    def __hash__(self) -> int:  # without matrix and origin: one is large, the other may be of any type
        named: Hashable = self.distance if callable(self.distance) else np.shape(self.distance)
        return hash((type(self).__name__, named, self.scale, self.kind))


@dataclass(frozen=True)
class _FromOrigin:
    """(d(x, o) / s)^2 for each point."""

    kernel: FromDissimilarity

    def __call__(self, points: Points) -> np.ndarray:
        o = self.kernel.origin
        there = Points(o[None] if isinstance(o, np.ndarray) else [o], "origin")
        return np.asarray((self.kernel._apart(Block(points, there))[:, 0] / float(self.kernel.scale)) ** 2)
