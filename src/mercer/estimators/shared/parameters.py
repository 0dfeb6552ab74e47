"""Parameters of estimators: their domains, and the kernels and losses that names stand for."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from functools import lru_cache
from inspect import signature
from typing import Any, NamedTuple, TypeVar, dataclass_transform

import numpy as np
from scipy import sparse
from sklearn.metrics.pairwise import additive_chi2_kernel

from mercer import losses
from mercer.kernels import (
    RBF,
    Categorical,
    ChiSquared,
    Composed,
    Constant,
    Cosine,
    Delta,
    FromDissimilarity,
    FromFeatures,
    FromFunction,
    Intersection,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    MinMax,
    On,
    Polynomial,
    Precomputed,
    Proof,
    Rescaled,
    SetKernel,
    Sigmoid,
    Tanimoto,
    kernel,
)
from mercer.kernels.base import check_number
from mercer.kernels.rules.scikit_learn import refuse_class
from mercer.machine.budget import Budget
from mercer.machine.warn import warn
from mercer.points import Block, Diagonal, Pair, Points, Untraceable, trace
from mercer.points.formulas.pair import called

KERNEL_NAMES = (
    "additive_chi2",
    "chi2",
    "cosine",
    "laplacian",
    "linear",
    "matern",
    "poly",
    "polynomial",
    "precomputed",
    "rbf",
    "sigmoid",
)
AUTO = "auto"  # the name that asks for a search
_STEP = 64  # points per block whose diagonal is wanted
# Kernels that read rows of numbers and other objects alike: the others they are combined with decide.
_NEUTRAL = (Categorical, Constant, Delta, Intersection, MinMax, Tanimoto)


def named_kernel(
    name: str, points: Points, gamma: float | str | None = "scale", degree: int = 3, coef0: float = 0.0
) -> Kernel:
    """Return the kernel that scikit-learn means by a name; "matern" is that of smoothness 5/2.

    Parameters
    ----------
    name
        One of `KERNEL_NAMES` other than "precomputed".
    points
        The training points.
    gamma
        A number; "scale" for each kernel's own "auto"; "auto" for 1 / features; None for the same, except that it is 1
        for "chi2".
    degree, coef0
        Of polynomials; of the sigmoid.
    """
    if name == "linear":
        return Linear()
    if name == "cosine":
        return Cosine()
    if name == "additive_chi2":
        return FromMatrices(additive_chi2_kernel)
    if name == AUTO:
        raise ValueError("kernel='auto' is found by `fit`, from data and targets; it is no kernel before.")
    if name == "chi2" and (gamma is None or gamma == "scale"):
        return ChiSquared()
    if gamma is None or gamma == "auto":
        gamma = 1.0 / points.width
    rate: Any = "auto" if gamma == "scale" else float(gamma)
    if rate != "auto":
        check_number(RBF(1.0), "gamma", rate)
    if name == "chi2":
        return ChiSquared(rate)
    if name == "laplacian":
        return Laplacian(rate if rate == "auto" else 1.0 / rate).resolve(points)
    if name in ("rbf", "matern"):
        scale = rate if rate == "auto" else math.sqrt(0.5 / rate)
        return (RBF(scale) if name == "rbf" else Matern(2.5, scale)).resolve(points)
    if name == "sigmoid":
        return Sigmoid(rate, float(coef0)).resolve(points)
    if coef0 < 0:
        raise ValueError(
            f"coef0={coef0!r} makes (gamma <x, z> + coef0)^degree indefinite; a polynomial kernel needs coef0 >= 0."
        )
    return Polynomial(degree, float(coef0), rate).resolve(points)


@kernel
class FromMatrices(Kernel):
    """A Python function of two sets of points that returns the matrix of their similarities.

    This is what scikit-learn calls a callable kernel.

    Parameters
    ----------
    f
        f(X, Z) gives the matrix with one row per point of X and one column per point of Z.

    Examples
    --------
    >>> import numpy as np
    >>> FromMatrices(lambda X, Z: X @ Z.T)(np.array([[1.0], [2.0]]))
    array([[1., 2.],
           [2., 4.]])
    """

    f: Callable[[Any, Any], Any]

    def of(self, pair: Pair) -> Any:
        if isinstance(pair, Block):
            return self.matrix(pair._left, pair._right)
        if isinstance(pair, Diagonal):
            points = pair._left
            parts = [points.take(slice(i, i + _STEP)) for i in range(0, len(points), _STEP)]
            return np.concatenate([self.matrix(part, part).diagonal() for part in parts])
        raise Untraceable("a Python function of two sets of points has no symbolic form")

    def matrix(self, left: Points, right: Points) -> np.ndarray:
        """Return the values of one call of the function."""
        values = self.f(left.data, right.data)
        values = np.asarray(values.toarray() if sparse.issparse(values) else values, dtype=np.float64)
        if values.shape != (len(left), len(right)):
            raise ValueError(
                f"the kernel function returned shape {values.shape} for {len(left)} points against {len(right)}; it "
                "must give one row per point of its first argument and one column per point of its second."
            )
        return called(self.f, values, left, right)

    def _proof(self) -> Proof:
        return self._axiom(
            "given function",
            "nothing is known about a Python function; verdict(k, X) tests it on points.",
            own="unproven",
        )


# Kernels that read their points as they are given (strings, tables, indices), and those that read anything.
_RAW = (FromDissimilarity, FromFunction, FromFeatures, FromMatrices, Precomputed, On, Composed, Rescaled, SetKernel)


def compares_vectors(k: Kernel) -> bool:
    """Return whether every part of a kernel reads its points as rows of numbers, so that X may become a matrix."""
    leaves = list(_leaves(k))
    if any(_is_raw(leaf) or not (isinstance(leaf, _NEUTRAL) or _traceable(leaf)) for leaf in leaves):
        return False
    return not all(isinstance(leaf, _NEUTRAL) for leaf in leaves)


def _is_raw(k: Kernel) -> bool:
    return isinstance(k, _RAW) or k._of_objects


def _leaves(k: Kernel) -> Any:
    parts = () if isinstance(k, _RAW) else k.children().values()
    if not parts:
        yield k
    for part in parts:
        yield from _leaves(part)


def _traceable(leaf: Kernel) -> bool:
    if type(leaf).__module__.startswith("mercer.kernels."):
        return True
    dummy = Points(np.eye(2))
    try:
        return trace(leaf.resolve(dummy).of, dummy) is not None
    except Exception:  # a kernel of someone else's: whatever it says to two unit vectors, it wants the points raw
        return False


_LOSSES = {
    "squared": "Squared",
    "absolute": "Absolute",
    "huber": "Huber",
    "pinball": "Pinball",
    "expectile": "Expectile",
    "epsilon_insensitive": "EpsilonInsensitive",
    "squared_epsilon_insensitive": "SquaredEpsilonInsensitive",
    "poisson": "Poisson",
    "logistic": "Logistic",
    "hinge": "Hinge",
    "squared_hinge": "SquaredHinge",
    "smoothed_hinge": "SmoothedHinge",
    "perceptron": "PerceptronLoss",
    "exponential": "Exponential",
    "multinomial": "Multinomial",
}
LOSS_NAMES = tuple(_LOSSES)


def named_loss(loss: Any) -> Any:
    """Return the loss that a name means, with its default parameters; a loss object is returned as it is."""
    return getattr(losses, _LOSSES[loss])() if isinstance(loss, str) else loss


def is_loss(value: Any) -> bool:
    """Return whether an object has a value and a derivative, as every loss and every penalty has."""
    methods = (getattr(value, name, None) for name in ("value", "derivative"))
    return not isinstance(value, type) and all(map(callable, methods))


_Class = TypeVar("_Class", bound=type)
_PLAIN = (int, float)  # asked first: whether a type is registered as a number takes longer
_OF_NAMES = ("gamma", "degree", "coef0", "kernel_params")  # parameters of named kernels
SOLVERS = ("auto", "ridge", "newton", "dual", "proximal")
UNNECESSARY: Unnecessary = {
    "shrinking": (True, "the solver leaves out what cannot change by itself, and looks at all of it before it ends"),
    "cache_size": (200, "`budget` bounds the memory, and the matrix is planned inside it"),
    "copy_X": (True, "X is never changed"),
    "n_jobs": (None, "all processors that the process may use are used; MERCER_NUM_THREADS sets how many"),
}


def is_real(value: Any) -> bool:
    """Return whether the value is a real number; True and False are not."""
    return type(value) in _PLAIN or (isinstance(value, numbers.Real) and not isinstance(value, bool))


def positive(value: Any) -> bool:
    """Return whether the value is a number above 0."""
    return is_real(value) and value > 0


def whole(value: Any, low: int) -> bool:
    """Return whether the value is an integer of at least `low`."""
    if type(value) is int:
        return bool(value >= low)
    return isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) >= low


@dataclass_transform(field_specifiers=(field,))
def with_parameters(cls: _Class) -> _Class:
    """Make the constructor of a class of estimators from its annotated parameters and those of its bases (a dataclass).

    The constructor keeps its arguments and does nothing else, as scikit-learn asks. `_: KW_ONLY` stands before
    parameters that are passed by name only; attributes that are no parameters are `ClassVar` or not annotated.
    """
    return dataclass(eq=False, repr=False)(cls)  # type: ignore[return-value]


@with_parameters
class FitParameters:
    """The common parameters of support vector machines and models of a loss: the kernel, and the limits of a fit."""

    _: KW_ONLY
    kernel: Any = "rbf"
    degree: int = 3
    gamma: float | str = "scale"
    coef0: float = 0.0
    max_iter: int = -1
    time_limit: float | None = None
    verbose: int = 0
    budget: int | float | str | None = None
    checkpoint: Any = None
    warm_start: bool = False
    dtype: str = "auto"


Rules = dict[str, tuple[Any, str]]  # name: (test, what it must be)

BOOLEAN = (lambda v: isinstance(v, bool) or str(v) in ("True", "False"), "True or False")  # np.bool_ is one, too
FINITE_PRICE = (lambda v: positive(v) and v < math.inf, "a finite number > 0")


def kernel_rule(names: tuple[str, ...], function: str = "a function of two sets of points") -> tuple[Any, str]:
    """Return the rule of a parameter `kernel` with these names."""
    return (
        lambda v: v in names if isinstance(v, str) else isinstance(v, Kernel) or callable(v),
        f"a kernel object, {function}, or one of {', '.join(map(repr, names))}",
    )


def one_of(*names: str) -> tuple[Any, str]:
    """Return the rule of a parameter that is one of some names."""
    return lambda v: isinstance(v, str) and v in names, f"one of {', '.join(map(repr, names))}"


PAIRWISE_RULES: Rules = {  # of models that read kernels as `sklearn.metrics.pairwise` does
    "kernel": kernel_rule(KERNEL_NAMES, "a function of two points"),
    "gamma": (lambda v: v is None or (positive(v) and v < math.inf), "a number > 0, or None for the default"),
    "kernel_params": (lambda v: v is None or isinstance(v, dict), "a dictionary, or None"),
}
SEARCHED_KERNEL = kernel_rule((*KERNEL_NAMES, AUTO))  # of models whose kernel can be found by a search

_RULES: Rules = {
    "C": (positive, "a number > 0, or inf for a hard margin"),
    "nu": (lambda v: is_real(v) and 0 < v <= 1, "a number with 0 < nu <= 1"),
    "epsilon": (lambda v: is_real(v) and 0 <= v < math.inf, "a number >= 0"),
    "kernel": kernel_rule(KERNEL_NAMES),
    "degree": (lambda v: whole(v, 1), "a whole number >= 1"),
    "gamma": (
        lambda v: v in ("scale", "auto") if isinstance(v, str) else positive(v) and v < math.inf,
        "a number > 0, 'scale' or 'auto'",
    ),
    "coef0": (lambda v: is_real(v) and math.isfinite(v), "a finite number"),
    "tol": (lambda v: positive(v) and v < 1, "a relative duality gap with 0 < tol < 1"),
    "max_iter": (lambda v: whole(v, -1), "a whole number >= 0, or -1 for no limit"),
    "time_limit": (lambda v: v is None or positive(v), "a number of seconds > 0, or None for no limit"),
    "class_weight": (
        lambda v: v is None or v == "balanced" or isinstance(v, dict),
        "a dictionary of weights by class, 'balanced' or None",
    ),
    "decision_function_shape": (lambda v: v in ("ovr", "ovo"), "'ovr' or 'ovo'"),
    "break_ties": BOOLEAN,
    "probability": BOOLEAN,
    "warm_start": BOOLEAN,
    "dtype": (lambda v: isinstance(v, str) and v in ("auto", "float32", "float64"), "'auto', 'float32' or 'float64'"),
    "loss": (
        lambda v: v in LOSS_NAMES if isinstance(v, str) else is_loss(v),
        f"an object with the methods value(y, f) and derivative(y, f), or one of {', '.join(map(repr, LOSS_NAMES))}",
    ),
    "penalty": (
        lambda v: positive(v) and v < math.inf if isinstance(v, numbers.Real) else is_loss(v),
        "a number > 0 (the strength s of s |f|^2 / 2), or an object with the methods value(t) and derivative(t)",
    ),
    "solver": one_of(*SOLVERS),
    "fit_intercept": BOOLEAN,
    "verbose": (lambda v: isinstance(v, bool) or whole(v, 0), "0 (silent) or 1 (a progress bar)"),
}

Unnecessary = dict[str, tuple[Any, str]]  # name: (scikit-learn's default, why nothing here depends on it)


def warn_unnecessary(estimator: Any) -> None:
    """Warn of parameters of scikit-learn that were set although nothing here depends on them.

    They stand in `UNNECESSARY` for all estimators, and in `_unnecessary` for one. A parameter with a rule in `_rules`
    of an estimator has a meaning there.
    """
    for name, default, reason in _asked_of(estimator.__class__).unnecessary:
        value = getattr(estimator, name)
        if value is not default and value != default:
            warn(f"{name}={value!r} changes nothing in {type(estimator).__name__}: {reason}.")


class _Asked(NamedTuple):
    """What is asked of the parameters of a class of estimators."""

    rules: tuple[tuple[str, Any, str, Any], ...]  # name, test, what it must be, a default that needs no test
    unnecessary: tuple[tuple[str, Any, str], ...]  # name, default, why nothing depends on it
    named: tuple[tuple[str, Any], ...]  # those that belong to named kernels, with their defaults


@lru_cache(maxsize=256)
def _asked_of(cls: Any) -> _Asked:
    parameters = signature(cls).parameters
    own, idle = getattr(cls, "_rules", {}), getattr(cls, "_unnecessary", {})  # `own` mean something else in this model
    rules = {name: own.get(name) or (None if name in idle else _RULES.get(name)) for name in parameters}
    unnecessary = {name: pair for name, pair in {**UNNECESSARY, **idle}.items() if name in parameters}
    return _Asked(
        tuple(
            (name, *rule, default if rule[0](default := parameters[name].default) else _Asked)
            for name, rule in rules.items()
            if rule is not None
        ),
        tuple((name, *pair) for name, pair in unnecessary.items() if name not in own),
        tuple((name, parameters[name].default) for name in _OF_NAMES if name in parameters),
    )


def warn_ignored(estimator: Any) -> None:
    """Warn of parameters of named kernels beside a kernel object or a function: these have their own."""
    kernels = [v for v in (getattr(estimator, "kernel", None), getattr(estimator, "kernel_y", None)) if v is not None]
    if not kernels or any(isinstance(kernel, str) for kernel in kernels):
        return
    objects = all(isinstance(kernel, Kernel) for kernel in kernels)  # a function may take kernel_params
    named = _asked_of(estimator.__class__).named
    defaults = [(name, value) for name, value in named if objects or name != "kernel_params"]
    ignored = [name for name, default in defaults if getattr(estimator, name) != default]
    if ignored:
        said = " and ".join(f"{name}={getattr(estimator, name)!r}" for name in ignored)
        warn(
            f"{said} of {type(estimator).__name__} change{'s' if len(ignored) == 1 else ''} nothing: kernel="
            f"{kernels[0]!r:.80} has its own parameters, and {'this is' if len(ignored) == 1 else 'these are'} for "
            "kernels by name.",
        )


def check_parameters(estimator: Any) -> None:
    """Raise ValueError, naming the parameter and its value, unless every parameter is in its domain."""
    warn_unnecessary(estimator)
    for name in ("kernel", "kernel_y"):
        refuse_class(getattr(estimator, name, None), name)
    for name, test, wanted, default in _asked_of(estimator.__class__).rules:
        if (value := getattr(estimator, name)) is not default and not test(value):
            raise ValueError(f"{name}={value!r} of {type(estimator).__name__} must be {wanted}.")
    warn_ignored(estimator)
    if getattr(estimator, "budget", None) is not None:
        Budget(estimator.budget)
