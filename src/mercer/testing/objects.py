"""Laws of the object, which every kernel obeys as a value with parameters and a proof; and all laws in one call."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, get_args

import numpy as np
import scipy
import sklearn

import mercer.kernels
from mercer.features import spectral
from mercer.features.spectral.law import is_frozen
from mercer.kernels import Kernel, Proof
from mercer.kernels.proof import Status
from mercer.testing import objects, values
from mercer.testing.values import agree, resolved

_WRITTEN_ENTRIES = 64  # entries of an array that a `repr` writes out


def proof(kernel: Kernel, points: Any = None, other: Any = None) -> None:
    """The proof is about this kernel, gives a reason at each step, leans on its parts and survives JSON."""
    tree = kernel.proof()
    if tree.claim != repr(kernel):
        raise AssertionError(f"the proof of {kernel!r} is about another kernel: {tree.claim}.")
    for step in _steps(tree):
        if not (step.claim and step.rule and step.reason and step.own in get_args(Status)):
            raise AssertionError(f"the proof of {kernel!r} has a step without a rule, a reason or a status: {step!r}.")
    for part in _nodes(kernel):
        if tree.proven and not part.proof().proven:
            raise AssertionError(
                f"the proof of {kernel!r} says proven, but its part {part!r} is {part.proof().status}."
            )
    if json.loads(tree.to_json()) != tree.to_dict():
        raise AssertionError(f"the proof of {kernel!r} does not survive JSON.")


def clone(kernel: Kernel, points: Any = None, other: Any = None) -> None:
    """scikit-learn's `clone` gives an equal kernel that shares no part."""
    twin = sklearn.clone(kernel)
    if twin != kernel or hash(twin) != hash(kernel):
        raise AssertionError(f"the clone of {kernel!r} is another kernel: {twin!r}.")
    shared = {id(part) for part in _nodes(kernel)} & {id(part) for part in _nodes(twin)}
    if shared:
        raise AssertionError(f"the clone of {kernel!r} shares a part with it; set_params on one would change both.")


def pickling(kernel: Kernel, points: Any, other: Any = None) -> None:
    """A pickled kernel comes back equal and gives the same values.

    Skipped where Python cannot pickle the class or a parameter itself (a lambda, a class inside a function); the
    values alone are compared where a parameter is an object without equality, such as a fitted transformer.
    """
    if not all(_pickles(type(node)) and all(map(_pickles, _own(node).values())) for node in _nodes(kernel)):
        return
    twin = pickle.loads(pickle.dumps(kernel))
    if _plain(kernel) and (twin != kernel or hash(twin) != hash(kernel)):
        raise AssertionError(f"{kernel!r} comes back from a pickle as another kernel: {twin!r}.")
    k, X, _ = resolved(kernel, points, other)
    agree("pickling", kernel, twin.resolve(X)(X), k(X), 0.0, "the copy", "the kernel")


def representation(kernel: Kernel, points: Any = None, other: Any = None) -> None:
    """`repr` evaluates back to an equal kernel.

    Skipped where a parameter cannot be written out: a lambda, a transformer, an array of more than 64 entries. Named
    functions, spectral laws and the classes of the tree are known by their names.
    """
    if not _plain(kernel):
        return
    names: dict[str, Any] = {"inf": math.inf, "scipy": scipy, **vars(spectral), **vars(mercer.kernels)}
    for node in _nodes(kernel):
        names[type(node).__name__] = type(node)
        names |= {f.__name__: f for f in _own(node).values() if isinstance(f, FunctionType)}
    text = repr(kernel)
    try:
        twin = eval(text, names)
    except Exception as error:
        raise AssertionError(f"repr gives {text!r}, which does not evaluate: {error}") from error
    if twin != kernel:
        raise AssertionError(f"repr gives {text!r}, which evaluates to another kernel: {twin!r}.")


def parameters(kernel: Kernel, points: Any = None, other: Any = None) -> None:
    """What `get_params` names can be set by `set_params`, through the tree, and changes nothing else."""
    before = kernel.get_params()
    for chosen in (before, kernel.get_params(deep=False), *({name: value} for name, value in before.items())):
        twin = sklearn.clone(kernel).set_params(**chosen)
        if twin != kernel:
            raise AssertionError(f"set_params with the parameters {list(chosen)} of {kernel!r} gives {twin!r}.")
    for name, value in before.items():
        if isinstance(value, float):
            moved = value + 2.0**-20 * max(1.0, abs(value))
            try:
                twin = sklearn.clone(kernel).set_params(**{name: moved})
            except ValueError:  # at the end of its domain
                continue
            if twin.get_params()[name] != moved or twin == kernel:
                raise AssertionError(f"set_params({name}={moved!r}) leaves {kernel!r} as {twin!r}.")
    if any(kernel.get_params()[name] is not value for name, value in before.items()):
        raise AssertionError(f"set_params on clones of {kernel!r} has changed the kernel itself.")


def equality(kernel: Kernel, points: Any = None, other: Any = None) -> None:
    """Equal parameters make equal kernels with equal hashes; other things are not equal."""
    twin = type(kernel)(**kernel.get_params(deep=False))
    if not (kernel == twin and hash(kernel) == hash(twin) and len({kernel, twin}) == 1):
        raise AssertionError(f"{kernel!r} is not equal to a kernel of the same class and parameters.")
    if kernel == repr(kernel) or kernel == 2.0 * kernel:
        raise AssertionError(f"{kernel!r} is equal to something that it is not.")


# -- what the laws share ----------------------------------------------------------------------------------


def _steps(tree: Proof) -> Iterator[Proof]:
    yield tree
    for part in tree.parts:
        yield from _steps(part)


def _own(kernel: Kernel) -> dict[str, Any]:
    """The parameters that are not kernels themselves."""
    return {name: v for name, v in kernel.get_params(deep=False).items() if not isinstance(v, Kernel)}


def _nodes(kernel: Kernel) -> Iterator[Kernel]:
    yield kernel
    for value in kernel.get_params(deep=False).values():
        if isinstance(value, Kernel):
            yield from _nodes(value)


def _plain(kernel: Kernel) -> bool:
    """Whether every parameter in the tree is written out by `repr` and compares by value."""
    return all(_is_plain(value) for node in _nodes(kernel) for value in _own(node).values())


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    if isinstance(value, np.ndarray):
        return value.size <= _WRITTEN_ENTRIES
    if isinstance(value, FunctionType):
        return value.__qualname__.isidentifier()
    plain = str | int | float | slice | np.number | spectral.SpectralLaw
    return value is None or isinstance(value, plain) or is_frozen(value)


def _pickles(value: Any) -> bool:
    try:
        pickle.dumps(value)
    except (pickle.PicklingError, AttributeError, TypeError):
        return False
    return True


LAWS: tuple[Callable[..., None], ...] = (
    values.finite,
    values.symmetry,
    values.diagonal,
    values.formula,
    values.blocks,
    values.matvec,
    objects.proof,
    values.positive_semidefinite,
    values.cauchy_schwarz,
    values.float32,
    objects.clone,
    objects.pickling,
    objects.representation,
    objects.parameters,
    objects.equality,
)


def check_kernel(kernel: Kernel, points: Any, other: Any = None) -> None:
    """Raise AssertionError, naming the law and the worst value, unless the kernel obeys every law on these points.

    The laws are functions of `mercer.testing`, listed in `LAWS`; a failure names one, which can then be called by
    itself. What is compared must agree to rounding, as measured by `rounding`.

    Parameters
    ----------
    kernel
        Any kernel: of the catalogue, a composite, or of a class of one's own.
    points
        Points it compares, a few dozen: a matrix, a table, or a sequence of objects. The more telling ones (equal
        points, zeros, far outliers) they include, the more the check says.
    other
        A second set of points; a copy of the first when None.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Kernel, kernel
    >>> from mercer.testing import check_kernel
    >>> @kernel
    ... class Hat(Kernel):
    ...     '''k(x, z) = 1 / (1 + |x - z|^2 / s^2).'''
    ...     scale: float = 1.0
    ...     def of(self, pair):
    ...         return 1 / (1 + pair.sqdist(self.scale))
    ...     def _proof(self):
    ...         return self._axiom("Schoenberg", "a mixture of Gaussian kernels.")
    >>> X = np.random.default_rng(0).normal(size=(20, 3))
    >>> check_kernel(Hat(scale=2.0), X)
    >>> @kernel
    ... class Ball(Hat):
    ...     '''k(x, z) = 1 - |x - z|^2 / s^2, which is no kernel.'''
    ...     def of(self, pair):
    ...         return 1 - pair.sqdist(self.scale)
    >>> check_kernel(Ball(scale=2.0), X)
    Traceback (most recent call last):
        ...
    AssertionError: positive semidefiniteness fails for Ball(scale=2.0): its proof says proven, but the Gram matrix ...
    """
    _, X, Z = values.resolved(kernel, points, other)
    for law in LAWS:
        law(kernel, X, Z)
