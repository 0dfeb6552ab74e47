"""The kernel object: a value with parameters, a formula, an algebra and a proof."""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, dataclass_transform

import numpy as np

from mercer.kernels.proof import Proof
from mercer.points import Comparison, Pair, Points, diagonal
from mercer.points.sets.one import is_one_point, of_sets

if TYPE_CHECKING:
    from mercer.rkhs import RKHSFunction

C = TypeVar("C", bound=type)

PENDING = ("auto", "median")

_SHOWN = 64  # entries of an array that `repr` writes out


@dataclass_transform(frozen_default=True)
def kernel(cls: C) -> C:
    """Make a class of kernels of a class body with annotated parameters (a frozen dataclass)."""
    return dataclass(frozen=True, eq=False, repr=False)(cls)  # type: ignore[return-value]


class Kernel(ABC):
    """A symmetric similarity k(x, z), built to be positive semidefinite and able to say why.

    To add one: decorate a subclass with `kernel`, annotate its parameters, write `of` (the formula, in the
    statistics of a pair) and `_because` (its proof). `mercer.testing.check_kernel` then checks the laws that every
    kernel obeys. Parameters annotated as float can be learned (`mercer.gram.parameters`), except those in `_fixed`.

    Examples
    --------
    >>> from mercer.kernels import Kernel, kernel
    >>> @kernel
    ... class Hat(Kernel):
    ...     '''k(x, z) = 1 / (1 + |x - z|^2 / s^2).'''
    ...     scale: float = 1.0
    ...     def of(self, pair):
    ...         return 1 / (1 + pair.sqdist(self.scale))
    >>> Hat(scale=2.0)([[0.0], [2.0]])
    array([[1. , 0.5],
           [0.5, 1. ]])
    """

    _fixed: ClassVar[tuple[str, ...]] = ()  # numbers that choose the formula rather than enter it
    _of_objects: ClassVar[bool] = False  # whether points are strings, graphs, ...: never rows of one matrix
    # Why it is positive semidefinite: an axiom or a rule, the reason, and "unproven" or "refuted" where it may not be.
    _because: ClassVar[tuple[str, ...]] = (
        "none given",
        "the class states no reason; verdict(k, X) tests it on points.",
        "unproven",
    )

    # -- what a kernel defines --------------------------------------------------------------------------

    @abstractmethod
    def of(self, pair: Pair) -> Any:
        """Return k for a block of pairs, as an elementwise formula in the pair's statistics."""

    def _proof(self) -> Proof:
        """Return why the kernel is positive semidefinite: `_because`, given the proofs of its parts."""
        rule, reason, *own = self._because
        parts = () if own else tuple(part.proof() for part in self.children().values())
        return Proof(self, rule, reason, parts, *own)  # type: ignore[arg-type]

    def _validate(self) -> None:
        """Raise ValueError or TypeError for parameters outside their domain."""

    def _seen(self, points: Points) -> Points:
        """Return the points as the kernel's parts see them."""
        return points

    def spectral_law(self, dim: int) -> Any:
        """Return the law of frequencies whose characteristic function is k / k(x, x), on `dim` features."""
        raise TypeError(
            f"{self!r} has no known spectral law: Bochner's theorem speaks of continuous kernels that depend "
            "on x - z alone."
        )

    def amplitude(self, dim: int) -> float:
        """Return k(x, x) of a stationary kernel, the same for every x."""
        return float(self.diag(np.zeros((1, dim)))[0])

    def feature_map(self) -> Any:
        """Return a scikit-learn transformer Phi with <Phi(x), Phi(z)> = k(x, z), where a finite one exists."""
        raise TypeError(
            f"{self!r} has no finite exact feature map; approximate it with RandomFourier if it is stationary, "
            "or with scikit-learn's Nystroem."
        )

    # -- values -----------------------------------------------------------------------------------------

    def __call__(self, X: Any, Z: Any = None) -> Any:
        """Return the matrix k(x_i, z_j) for the points of X against those of Z (X itself when None).

        Of two single points, the number k(x, z). Numbers, texts, dictionaries, graphs and objects without a length are
        single points. So are two flat arrays or lists of numbers where the kernel compares rows of numbers; where it
        compares objects, they are sets of them, and [x] is the set of one.

        Examples
        --------
        >>> from mercer import RBF, Spectrum
        >>> RBF(scale=1.0)([0.0, 0.0], [0.0, 0.0]), Spectrum(2)("abc", "bcd")
        (1.0, 1.0)
        >>> RBF(scale=1.0)([[0.0, 0.0]])
        array([[1.]])
        """
        if Z is None:
            return self._matrix(X, None)
        alone = is_one_point(X), is_one_point(Z)
        if alone[0] != alone[1]:
            one, other, kind = ("X", "Z", type(X)) if alone[0] else ("Z", "X", type(Z))
            raise TypeError(
                f"{one} is a single {kind.__name__} and {other} is a set of points: k(x, z) takes two single points or "
                f"two sets; write [{one.lower()}] for a set of one."
            )
        K, is_pair = of_sets(self._matrix, X, Z)
        return float(K[0, 0]) if is_pair else K

    def _matrix(self, X: Any, Z: Any) -> Any:
        left = Points.of(X)
        k = self if self.resolved else self._resolve_for_call(left, Z)
        return Comparison(k.of, left, None if Z is None or Z is X else Points.of(Z, "Z")).dense()

    def diag(self, X: Any) -> Any:
        """Return k(x_i, x_i) for each point, without the matrix."""
        points = Points.of(X)
        k = self if self.resolved else self._resolve(points)
        return diagonal(k.of, points)

    def at(self, x: Any) -> RKHSFunction:
        r"""Return :math:`k(x, \cdot)`, the function of the kernel's space H whose inner products are values at x.

        .. math:: \langle f, k(x, \cdot) \rangle_H = f(x)

        Parameters
        ----------
        x
            One point, as in k(x, z).

        Returns
        -------
        RKHSFunction
            With x as its only centre.

        Examples
        --------
        >>> from mercer import RBF
        >>> f = RBF(scale=1.0).at(0.0) - 2 * RBF(scale=1.0).at(1.0)
        >>> round(f @ RBF(scale=1.0).at(0.5) - f(0.5), 12)
        0.0
        """
        from mercer.rkhs import RKHSFunction

        if not self.resolved:
            raise ValueError(f"{self!r} takes a parameter from data, and one point is too few: use k.resolve(X) first.")
        points, one = of_sets(self._looked_at, x)
        if not one:
            raise ValueError(
                f"k.at(x) takes one point; x is a set of {len(points)}. RKHSFunction(k, [x], [1.0]) is the function "
                "where a point is itself a list."
            )
        return RKHSFunction(self, points, [1.0])

    def _looked_at(self, X: Any) -> Any:
        self.diag(X)
        return X

    def _resolve_for_call(self, left: Points, Z: Any) -> Kernel:
        if Z is None:
            return self._resolve(left)
        raise ValueError(
            f"{self!r} takes a parameter from the data it is fitted to; with two sets of points say which: "
            "use kernel.resolve(X_train) first."
        )

    def proof(self) -> Proof:
        """Return the argument that the kernel is positive semidefinite, down to axioms."""
        return self._proof()

    # -- data-dependent parameters ----------------------------------------------------------------------

    @property
    def resolved(self) -> bool:
        """Whether no parameter waits for data ("auto", "median")."""
        return not any(
            (isinstance(v, str) and v in PENDING) or (isinstance(v, Kernel) and not v.resolved)
            for v in self._params().values()
        )

    def resolve(self, X: Any) -> Kernel:
        """Return the kernel with its data-dependent parameters computed from X.

        Examples
        --------
        >>> from mercer.kernels import RBF
        >>> RBF(scale="auto").resolve([[0.0], [2.0]])
        RBF(scale=0.7071067811865476)
        """
        return self if self.resolved else self._resolve(Points.of(X))

    def _resolve(self, points: Points) -> Kernel:
        parts = {name: part for name, part in self.children().items() if not part.resolved}
        seen = self._seen(points) if parts else points
        return self.replace(**{name: part._resolve(seen) for name, part in parts.items()})

    # -- parameters -------------------------------------------------------------------------------------

    def __post_init__(self) -> None:
        self._validate()

    def _params(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]

    def children(self) -> dict[str, Kernel]:
        """Return the parameters that are kernels themselves."""
        return {name: value for name, value in self._params().items() if isinstance(value, Kernel)}

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some parameters changed."""
        return type(self)(**{**self._params(), **changes}) if changes else self

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, with those of the parts as `part__name` when `deep`."""
        params = self._params()
        if deep:
            for name, value in list(params.items()):
                if hasattr(value, "get_params") and not isinstance(value, type):
                    params.update({f"{name}__{k}": v for k, v in value.get_params().items()})
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters in place, through the tree, as scikit-learn's searches expect.

        This is the one way a kernel changes; everywhere else it is a value. Prefer `replace`.
        """
        own = self._params()
        nested: dict[str, dict[str, Any]] = {}
        for key, value in params.items():
            name, _, rest = key.partition("__")
            if name not in own:
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(own) or 'none'}.")
            if rest:
                nested.setdefault(name, {})[rest] = value
            else:
                own[name] = value
        for name, sub in nested.items():
            if not hasattr(own[name], "set_params"):
                raise ValueError(
                    f"parameter {name!r} of {type(self).__name__} is {own[name]!r}, which has no parameters of its own."
                )
            part = own[name].__sklearn_clone__() if isinstance(own[name], Kernel) else own[name]
            own[name] = part.set_params(**sub)  # on a copy: the same part may stand elsewhere too
        fresh = type(self)(**own)  # validates before anything changes
        for name, value in fresh._params().items():
            object.__setattr__(self, name, value)
        return self

    def __sklearn_clone__(self) -> Self:
        parts = {name: part.__sklearn_clone__() for name, part in self.children().items()}
        return type(self)(**{**self._params(), **parts})

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._key()))

    def _key(self) -> tuple[Any, ...]:
        return tuple(_frozen(v) for v in self._params().values())

    def __repr__(self) -> str:
        shown = []
        for f in fields(self):  # type: ignore[arg-type]
            value = getattr(self, f.name)
            if value is not f.default and (f.default is MISSING or _frozen(value) != _frozen(f.default)):
                shown.append(f"{f.name}={written(value)}")
        return f"{type(self).__name__}({', '.join(shown)})"

    # -- algebra (K3) -----------------------------------------------------------------------------------

    __array_ufunc__ = None  # NumPy's numbers and arrays leave the arithmetic to the methods below

    def __add__(self, other: Any) -> Kernel:
        from mercer.kernels.rules.algebra import Sum

        right = _as_kernel(other)
        return NotImplemented if right is None else Sum(self, right)

    def __radd__(self, other: Any) -> Kernel:
        from mercer.kernels.rules.algebra import Sum

        left = _as_kernel(other)
        return NotImplemented if left is None else Sum(left, self)

    def __mul__(self, other: Any) -> Kernel:
        from mercer.kernels.rules.algebra import Product, Scaled

        if isinstance(other, Kernel):
            return Product(self, other)
        return Scaled(float(other), self) if isinstance(other, numbers.Real) else NotImplemented

    def __rmul__(self, other: Any) -> Kernel:
        return self.__mul__(other)

    def __truediv__(self, other: Any) -> Kernel:
        if isinstance(other, numbers.Real) and float(other) > 0:
            return self.__mul__(1.0 / float(other))
        raise TypeError(
            "a kernel may be divided by a positive number only: the quotient of two kernels need not be "
            "positive semidefinite."
        )

    def __rtruediv__(self, other: Any) -> Kernel:
        raise TypeError(
            "a / k is refused: the reciprocal of a kernel need not be positive semidefinite; k.geometric() is "
            "1 / (1 - k)."
        )

    def __pow__(self, power: Any) -> Kernel:
        from mercer.kernels.rules.algebra import Power

        return Power(self, power)

    def __sub__(self, other: Any) -> Kernel:
        raise TypeError(
            "k1 - k2 is refused: differences of positive semidefinite kernels need not be one "
            "(k - 2k = -k already has negative eigenvalues). Sums, products and non-negative multiples are safe."
        )

    __rsub__ = __sub__

    def __neg__(self) -> Kernel:
        raise TypeError("-k is refused: its Gram matrices have negative eigenvalues wherever k is not zero.")

    def exp(self) -> Kernel:
        """Return exp(k), the limit of the sums of k^m / m!."""
        from mercer.kernels.rules.power_series import Exponential

        return Exponential(self)

    def geometric(self) -> Kernel:
        """Return 1 / (1 - k), the limit of 1 + k + k^2 + ..., for points with k(x, x) < 1."""
        from mercer.kernels.rules.power_series import Geometric

        return Geometric(self)

    def rescaled(self, f: Callable[..., Any], each: bool = False) -> Kernel:
        """Return f(x) f(z) k(x, z); f takes all points and gives a number each (or one point, with `each`)."""
        from mercer.kernels.rules.pullback import Rescaled

        return Rescaled(self, f, each)

    def compose(self, psi: Callable[..., Any], each: bool = False) -> Kernel:
        """Return k(psi(x), psi(z)); psi takes all points (or one point at a time, with `each`)."""
        from mercer.kernels.rules.pullback import Composed

        return Composed(self, psi, each)

    def normalized(self) -> Kernel:
        """Return k(x, z) / sqrt(k(x, x) k(z, z)), the cosine in feature space."""
        from mercer.kernels.rules.pullback import Normalized

        return Normalized(self)

    def on(self, columns: Any) -> Kernel:
        """Return the kernel on some columns only: indices, a slice, or names when X is a table."""
        from mercer.kernels.rules.pullback import On

        return On(self, columns)

    def transformed(self, matrix: Any) -> Kernel:
        """Return k(A x, A z) for a matrix A with a column for each feature, or one factor for each."""
        from mercer.kernels.rules.pullback import Transformed

        return Transformed(self, matrix)

    def ranked(self, X: Any) -> Kernel:
        """Return k of the normal scores of the columns, by their ranks among the rows of X."""
        from mercer.kernels.rules.pullback import NormalScores, Ranked

        return Ranked(self, NormalScores.sample(X))

    # -- for subclasses ---------------------------------------------------------------------------------

    def _axiom(self, rule: str, reason: str, own: Any = "proven") -> Proof:
        return Proof(self, rule, reason, own=own)

    def _rule(self, rule: str, reason: str, *parts: Kernel) -> Proof:
        return Proof(self, rule, reason, tuple(part.proof() for part in parts))


def _as_kernel(value: Any) -> Kernel | None:
    from mercer.kernels.vectors.linear import Constant

    if isinstance(value, Kernel):
        return value
    return Constant(float(value)) if isinstance(value, numbers.Real) else None


def _frozen(value: Any) -> Any:
    """Return a hashable stand-in that compares by value."""
    if isinstance(value, np.ndarray):
        large = value.ndim > 1 and value.size > _SHOWN
        return (value.shape, value.tobytes()) if large else _frozen(value.tolist())
    if isinstance(value, list | tuple):
        return tuple(_frozen(v) for v in value)
    if isinstance(value, slice):
        return ("slice", value.start, value.stop, value.step)
    return value


def written(value: Any) -> str:
    """Return a parameter as it is written in the text of a kernel."""
    if isinstance(value, np.ndarray):
        large = f"<{' x '.join(map(str, value.shape))} {value.dtype} array>"
        return repr(value.tolist()) if value.size <= _SHOWN else large
    if type(value) is list:
        return f"[{', '.join(map(written, value))}]"
    if type(value) is tuple:
        return f"({', '.join(map(written, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, np.floating | np.integer):
        return repr(value.item())
    if callable(value) and hasattr(value, "__qualname__"):
        return value.__qualname__
    return repr(value)


def check_number(owner: Any, name: str, value: Any, low: float = 0.0, closed: bool = False) -> None:
    """Raise unless `value` is a finite number above `low` (or equal to it, when `closed`)."""
    what = f"{name} of {type(owner).__name__}"
    sign = ">=" if closed else ">"
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{what} must be a number {sign} {low:g}, not {value!r}.")
    number = float(value)
    if not np.isfinite(number) or number < low or (number == low and not closed):
        raise ValueError(f"{what} must be {sign} {low:g} and finite; it is {value!r}.")


def is_whole(value: Any) -> bool:
    """Return whether `value` is a whole number, of whatever type."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and float(value).is_integer()


def check_integer(owner: Any, name: str, value: Any, low: int) -> None:
    """Raise unless `value` is a whole number of at least `low`."""
    what = f"{name} of {type(owner).__name__}"
    if not is_whole(value) or value < low:
        raise ValueError(f"{what} must be a whole number >= {low}; it is {value!r}.")


def check_scales(owner: Any, name: str, value: Any) -> None:
    """Raise unless `value` is a positive number or a sequence of positive numbers."""
    if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str):
        if np.ndim(value) != 1 or len(value) == 0:
            raise ValueError(
                f"{name} of {type(owner).__name__} must be a number or a flat list with one per feature; it "
                f"is {value!r}."
            )
        for v in value:
            check_number(owner, f"every {name}", v)
    else:
        check_number(owner, name, value)
