"""Kernels as plain data: the names of their classes and their parameters, in JSON and arrays."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeVar

import numpy as np
from scipy import stats

from mercer.features import spectral
from mercer.features.spectral.law import SpectralLaw, is_frozen, parameters
from mercer.kernels.base import Kernel
from mercer.points.state import Arrays, Other, damaged, read_value, write_value

C = TypeVar("C", bound=type[Kernel])
More = Callable[[dict[str, Any]], Any]

_REGISTERED: dict[str, type[Kernel]] = {}
# Laws on several frequencies: what is read off a frozen one, and what it is made with.
_SEVERAL = {"multivariate_normal": ("mean", "cov"), "multivariate_t": ("loc", "shape", "df")}
_DIMENSION = 1_000  # of such a law in a state: its matrix is decomposed when it is made


class NotRegistered(ValueError):
    """A state names a class that this process does not know."""


def register_kernel(cls: C) -> C:
    """Let kernels of a class of one's own be written by name and read again; to be used as a decorator.

    A state names classes and never brings code along, so that reading one is safe: it can only make kernels whose class
    this process has registered. All classes of mercer are.

    Parameters
    ----------
    cls
        A class made with `kernel`.

    Examples
    --------
    >>> from mercer.kernels import Kernel, kernel, kernel_from_state, kernel_to_state, register_kernel
    >>> @register_kernel
    ... @kernel
    ... class Hat(Kernel):
    ...     scale: float = 1.0
    ...     def of(self, pair):
    ...         return 1 / (1 + pair.sqdist(self.scale))
    >>> kernel_from_state(*kernel_to_state(2.0 * Hat(3.0)))
    2.0 * Hat(scale=3.0)
    """
    if not (inspect.isclass(cls) and issubclass(cls, Kernel) and is_dataclass(cls)):
        raise TypeError(f"register_kernel takes a class of kernels made with the decorator kernel; it got {cls!r}.")
    known = kernel_named(cls.__name__)
    if known is not None and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
        raise ValueError(
            f"{known.__module__}.{known.__qualname__} is registered as {cls.__name__!r} already; give "
            f"{cls.__module__}.{cls.__qualname__} another name."
        )
    if cls.__name__ not in _classes():
        _REGISTERED[cls.__name__] = cls
    return cls


def kernel_to_state(kernel: Kernel) -> tuple[dict[str, Any], Arrays]:
    """Return a kernel as plain data.

    Parameters
    ----------
    kernel
        A kernel whose classes are mercer's or registered, and whose parameters are data: no Python function.

    Returns
    -------
    manifest
        What `json` can write: class names and parameters, nested as the kernel is.
    arrays
        NumPy arrays by name, for what is too large for JSON.

    Examples
    --------
    >>> from mercer.kernels import RBF, kernel_to_state
    >>> kernel_to_state(2.0 * RBF(scale=1.5))[0]
    {'kernel': 'Scaled', 'parameters': {'factor': 2.0, 'base': {'kernel': 'RBF', 'parameters': {'scale': 1.5}}}}
    """
    arrays: Arrays = {}
    if not isinstance(kernel, Kernel):
        raise TypeError(f"kernel_to_state takes a kernel such as RBF(scale=1.0); it got {kernel!r}.")
    return write_kernel(kernel, "kernel", arrays), arrays


def kernel_from_state(manifest: Any, arrays: Arrays, more: More | None = None) -> Kernel:
    """Return the kernel that `kernel_to_state` wrote; no code comes with a state, and none of it is run.

    Parameters
    ----------
    manifest, arrays
        As returned by `kernel_to_state`; `arrays` may hold others too.
    more
        Reads what the `more` of `write_kernel` wrote.

    Examples
    --------
    >>> from mercer.kernels import RBF, Linear, kernel_from_state, kernel_to_state
    >>> kernel_from_state(*kernel_to_state(RBF(scale=[1.0, 2.0]) + Linear()))
    RBF(scale=[1.0, 2.0]) + Linear()
    """
    kernel = read_value(manifest, arrays, lambda code: _read(code, arrays, more))
    if not isinstance(kernel, Kernel):
        raise damaged("a kernel has the keys 'kernel' and 'parameters'", manifest)
    return kernel


# -- writing ----------------------------------------------------------------------------------------------


def write_kernel(kernel: Kernel, name: str, arrays: Arrays, more: Other | None = None) -> dict[str, Any]:
    """Return the manifest of a kernel, and put its arrays into `arrays` under names that begin with `name`.

    Parameters that are neither plain data nor laws (other kernels, fitted transformers) are written by `more`, where it
    is given.
    """
    cls = type(kernel)
    if kernel_named(cls.__name__) is not cls:
        raise TypeError(
            f"{cls.__module__}.{cls.__qualname__} is not registered, so that {kernel!r} cannot be written by name; "
            "decorate the class with mercer.kernels.register_kernel, here and where the state is read."
        )

    def other(value: Any, where: str) -> Any:
        if isinstance(value, Kernel):
            return write_kernel(value, where, arrays) if more is None else more(value, where)
        if isinstance(value, SpectralLaw):
            return _write_law(value, where, arrays, other)
        code = _write_scipy(value, where, arrays, other)
        if code is None and more is not None:
            return more(value, where)
        if code is None:
            raise TypeError(
                f"{where.removeprefix(name + '.')} of {kernel!r} is {value!r:.80}, which is not plain data: a state "
                "holds numbers, texts and arrays, no code. Write the kernel as a class of its own (decorators "
                "register_kernel and kernel), whose code stays in your program."
            )
        return code

    return {
        "kernel": cls.__name__,
        "parameters": {key: write_value(v, f"{name}.{key}", arrays, other) for key, v in kernel._params().items()},
    }


def _write_law(law: SpectralLaw, name: str, arrays: Arrays, other: Any) -> dict[str, Any]:
    kind = type(law).__name__
    if getattr(spectral, kind, None) is not type(law):
        raise TypeError(f"the law {law!r:.80} is no class of mercer.features and cannot be written by name.")
    given = {key: write_value(v, f"{name}.{key}", arrays, other) for key, v in law._parameters().items()}
    return {"law": kind, "parameters": given}


def _write_scipy(law: Any, name: str, arrays: Arrays, other: Any) -> dict[str, Any] | None:
    """Return the manifest of a law of scipy.stats, or None for anything else."""
    if is_frozen(law):
        kind, values = law.dist.name, parameters(law)
        if type(getattr(stats, str(kind), None)) is not type(law.dist):
            return None
        if isinstance(law.dist, stats.rv_discrete):
            del values["scale"]  # which such laws do not have
    else:
        kinds = [kind for kind in _SEVERAL if isinstance(law, type(getattr(stats, kind)()))]
        if not kinds:
            return None
        kind = kinds[0]
        values = {key: getattr(law, key) for key in _SEVERAL[kind]}
        dimension = len(values[_SEVERAL[kind][0]])
        if dimension > _DIMENSION:
            raise ValueError(
                f"{name} is a law in {dimension:,} dimensions; a state holds those in up to {_DIMENSION:,}."
            )
    return {
        "scipy.stats": kind,
        "parameters": {key: write_value(v, f"{name}.{key}", arrays, other) for key, v in values.items()},
    }


def write_law(law: Any, name: str, arrays: Arrays) -> dict[str, Any] | None:
    """Return the manifest of a frozen law of scipy.stats or of a law of mercer.features; None for anything else.

    Examples
    --------
    >>> from scipy.stats import norm
    >>> read_law(write_law(norm(0, 2), "law", {}), {}).std()
    np.float64(2.0)
    """

    def other(value: Any, where: str) -> Any:
        code = write_law(value, where, arrays)
        if code is None:
            raise TypeError(f"{where} is {value!r:.80}, which is not plain data; a law is written by its numbers.")
        return code

    if isinstance(law, SpectralLaw):
        return _write_law(law, name, arrays, other)
    return _write_scipy(law, name, arrays, other)


# -- reading ----------------------------------------------------------------------------------------------


def read_law(manifest: Any, arrays: Arrays) -> Any:
    """Return the law that `write_law` wrote."""
    if not isinstance(manifest, dict) or not set(manifest) & {"law", "scipy.stats"}:
        raise damaged("a law has a name and parameters", manifest)
    return _read(manifest, arrays, None)


def _read(code: dict[str, Any], arrays: Arrays, more: More | None) -> Any:
    """Return the kernel or the law that an object of the manifest names."""
    kind = next((key for key in ("kernel", "law", "scipy.stats") if key in code), "")
    if not kind and more is not None:
        return more(code)
    name, given = code.get(kind), code.get("parameters")
    if not kind or set(code) != {kind, "parameters"} or not isinstance(name, str) or not isinstance(given, dict):
        raise damaged("an object is a kernel or a law with its parameters", code)
    made = {key: read_value(value, arrays, lambda inner: _read(inner, arrays, more)) for key, value in given.items()}
    if kind == "kernel":
        return _constructed(name, made)
    if kind == "law" and name in spectral.__all__ and inspect.isclass(getattr(spectral, name)):
        return getattr(spectral, name)(**made)
    law = getattr(stats, name, None) if kind == "scipy.stats" else None
    if name in _SEVERAL:
        _check_several(name, made)
    if name in _SEVERAL or isinstance(law, stats.rv_continuous | stats.rv_discrete):
        return law(**made)  # type: ignore[misc]
    raise damaged("a law is one of mercer.features or of scipy.stats", name)


def _check_several(name: str, made: dict[str, Any]) -> None:
    """Refuse laws on several variables whose matrix is not given: scipy would make one of whatever size is asked."""
    shapes = [np.shape(made.get(key, 0.0)) for key in _SEVERAL[name][:2]]  # of the centre and of the matrix
    if len(shapes[0]) != 1 or shapes[1] != shapes[0] * 2 or not 0 < shapes[0][0] <= _DIMENSION:
        raise damaged(f"{name} has a centre in up to {_DIMENSION:,} dimensions and a matrix", f"{made!r:.200}")


def _constructed(name: str, made: dict[str, Any]) -> Kernel:
    cls = kernel_named(name)
    if cls is None:
        raise NotRegistered(
            f"the state names the kernel {name!r}, which is not registered here; import the module that defines it and "
            f"call mercer.kernels.register_kernel({name}) first."
        )
    names = {f.name for f in fields(cls)}  # type: ignore[arg-type]
    if set(made) - names:
        raise damaged(
            f"{name} has the parameters {', '.join(sorted(names)) or '(none)'}", ", ".join(sorted(set(made) - names))
        )
    for f in fields(cls):  # type: ignore[arg-type]
        if f.type in ("Kernel", Kernel) and f.name in made and not isinstance(made[f.name], Kernel):
            raise damaged(f"{f.name} of {name} is a kernel", made[f.name])
    return cls(**made)


def kernel_named(name: str) -> type[Kernel] | None:
    """Return the class of kernels that is written by a name, mercer's own or a registered one."""
    return kernel_classes().get(name)


def kernel_classes() -> dict[str, type[Kernel]]:
    """Return all classes of kernels by name, mercer's own and registered ones."""
    return {**_REGISTERED, **_classes()}


@cache
def _classes() -> dict[str, type[Kernel]]:
    """The classes of kernels in mercer, by name."""
    import mercer.kernels

    everything = {name: getattr(mercer.kernels, name) for name in mercer.kernels.__all__}
    return {
        name: value
        for name, value in everything.items()
        if inspect.isclass(value) and issubclass(value, Kernel) and is_dataclass(value)
    }
