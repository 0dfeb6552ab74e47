"""From a model to plain data: a manifest in JSON, and arrays by name."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from mercer.io.registry import Entry, NotRegistered, entry_of, function_name
from mercer.kernels import Kernel
from mercer.kernels.state import write_kernel
from mercer.points.points import is_foreign
from mercer.points.state import Arrays, write_points

FEW = 16  # entries up to which a list is written out in the manifest
TYPES: dict[str, type] = {
    **{t.__name__: t for t in (bool, int, float, str, object)},
    **{f"numpy.{name}": np.dtype(name).type for name in ("bool", "float16", "float32", "float64")},
    **{f"numpy.{sign}int{bits}": np.dtype(f"{sign}int{bits}").type for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "numpy.object_": np.object_,
    "numpy.str_": np.str_,
}
SPARSE = {
    f"{layout}_{kind}": getattr(sparse, f"{layout}_{kind}") for layout in ("csr", "csc") for kind in ("array", "matrix")
}
GENERATORS = {name: getattr(np.random, name) for name in ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")}
# Places on the machine that fitted, which mean nothing elsewhere and, in a file from a stranger, nothing good.
PLACES = ("checkpoint", "memory")
_LIVE = ("_skl_callbacks", "_parent_callback_ctx")  # who listened to the fit
METHODS = ("fit", "partial_fit", "predict", "predict_proba", "decision_function", "score", "split", "transform")


class Writer:
    """Collects the objects and the arrays of a model, each once however often the model refers to it.

    Attributes
    ----------
    objects
        The records of all objects; others refer to them by number.
    arrays
        The arrays, by the path of attributes that leads to them.
    same
        Other names of arrays that are there already.
    """

    def __init__(self) -> None:
        self.objects: list[Any] = []
        self.arrays: Arrays = {}
        self.same: dict[str, str] = {}
        self._known: dict[int, tuple[Any, Any]] = {}  # by identity; the object is kept, so that its id stays its own

    def write(self, value: Any, path: str) -> Any:
        """Return what JSON can hold of a value.

        Parameters
        ----------
        value
            Data, or an object whose class is registered.
        path
            Which attributes lead to it: the name of its arrays, and what errors call it.
        """
        kind = type(value)
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if isinstance(value, np.generic):
            return self._number(value, path)
        if kind in (list, tuple):
            return self._sequence(value, path)
        if kind is dict:
            return {
                "dict": [[self.write(k, path), self.write(v, f"{path}.{i}")] for i, (k, v) in enumerate(value.items())]
            }
        if kind is slice:
            return {"slice": [self.write(part, path) for part in (value.start, value.stop, value.step)]}
        if id(value) in self._known:
            return self._known[id(value)][1]
        code = self._new(value, path)
        self._known[id(value)] = value, code
        return code

    def _new(self, value: Any, path: str) -> Any:
        """Return the code of something that others may refer to as well."""
        if isinstance(value, np.ndarray):
            return self._array(value, path)
        if sparse.issparse(value):
            return self._sparse(value, path)
        if isinstance(value, np.dtype):
            return {"dtype": value.str}
        if isinstance(value, type):
            return self._type(value, path)
        if isinstance(value, np.random.RandomState | np.random.Generator):
            return self._random(value, path)
        if isinstance(value, Kernel):
            return self._kernel(value, path)
        if is_foreign(value):
            return self.write(np.asarray(value.detach().cpu() if hasattr(value, "detach") else value), path)
        if hasattr(value, "columns") and (hasattr(value, "iloc") or hasattr(value, "vstack")):
            return {"table": self._with_arrays(lambda arrays: write_points(value, path, arrays))}
        name = function_name(value)
        if name is not None:
            return {"function": name}
        return self._object(value, path)

    # -- numbers and lists ------------------------------------------------------------------------------

    def _number(self, value: np.generic, path: str) -> Any:
        if value.dtype.kind == "U" or (value.dtype.kind in "biuf" and value.dtype.itemsize <= 8):
            return {"number": [value.dtype.str, self.write(value.item(), path)]}
        return {"entry": self.write(np.asarray(value), path)}

    def _sequence(self, values: Any, path: str) -> Any:
        packed = self._packed(list(values), path) if len(values) > FEW else None
        if packed is None:
            packed = [self.write(v, f"{path}.{i}") for i, v in enumerate(values)]
        return packed if type(values) is list else {"tuple": packed}

    def _packed(self, values: list[Any], path: str) -> Any:
        """Return a long list as arrays, where its entries are of one kind."""
        kind = type(values[0])
        if any(type(v) is not kind for v in values):
            return None
        if kind is float or (kind is int and all(-(2**63) <= v < 2**63 for v in values)):
            return {"numbers": self._put(np.array(values, dtype=np.float64 if kind is float else np.int64), path)}
        if kind is str:
            return {"texts": self._texts(values, path)}
        if kind is list:
            lengths = self._put(np.array([len(v) for v in values], dtype=np.int64), f"{path}.lengths")
            return {"jagged": lengths, "entries": self.write([v for inner in values for v in inner], path)}
        if kind is tuple and len({len(v) for v in values}) == 1 and len(values[0]):
            columns = [self.write(list(c), f"{path}.{i}") for i, c in enumerate(zip(*values, strict=True))]
            return {"columns": columns}
        entry = entry_of(kind) if hasattr(kind, "_fields") or hasattr(kind, "__dataclass_fields__") else None
        if entry is not None and entry.arguments:
            columns = [self.write([getattr(v, a) for v in values], f"{path}.{a}") for a in entry.arguments]
            return {"columns": columns, "class": entry.name, "arguments": list(entry.arguments)}
        return None

    def _texts(self, values: list[str], path: str) -> str:
        """Put texts into two arrays, of their characters in UTF-8 and of their lengths, and return the first's name."""
        coded = [v.encode("utf-8", "surrogatepass") for v in values]
        name = self._put(np.frombuffer(b"".join(coded), dtype=np.uint8), path)
        self.arrays[f"{name}.lengths"] = np.array([len(c) for c in coded], dtype=np.int64)
        return name

    # -- arrays -----------------------------------------------------------------------------------------

    def _put(self, array: np.ndarray, path: str) -> str:
        name = path
        while name in self.arrays or name in self.same:
            name += "'"
        self.arrays[name] = array
        return name

    def _array(self, value: np.ndarray, path: str) -> Any:
        if isinstance(value, np.ma.MaskedArray):
            raise TypeError(f"{path} is a masked array, which cannot be saved; fill it.")
        a = np.asarray(value)
        kind = a.dtype.kind
        if kind == "O":
            return {"objects": self.write(list(a.ravel()), path), "shape": list(a.shape)}
        if kind not in "biufUSMm" or (kind == "f" and a.dtype.itemsize > 8):
            raise TypeError(f"{path} is an array of {a.dtype}, which cannot be saved; use float64.")
        a = a.astype(a.dtype.newbyteorder("="), copy=False)
        code: dict[str, Any] = {}
        if kind in "USMm":
            code["dtype"] = a.dtype.str
            if not a.size:
                return {"empty": a.dtype.str, "shape": list(a.shape)}
            a = np.array(a, order="C", copy=None)[..., None].view({"U": np.uint32, "S": np.uint8}.get(kind, np.int64))
        elif a.flags.f_contiguous and not a.flags.c_contiguous:  # products of matrices may round by their layout
            a, code["order"] = a.T, "F"
        return {"array": self._put(np.array(a, order="C", copy=None), path), **code}

    def _sparse(self, value: Any, path: str) -> Any:
        kind = type(value).__name__
        if SPARSE.get(kind) is not type(value):
            value = sparse.csr_array(value) if isinstance(value, sparse.sparray) else sparse.csr_matrix(value)
            kind = type(value).__name__
        parts = {part: self.write(getattr(value, part), f"{path}.{part}") for part in ("data", "indices", "indptr")}
        return {"sparse": kind, "shape": [int(n) for n in value.shape], **parts}

    def _with_arrays(self, write: Any) -> Any:
        """Return what `write` makes of an empty dictionary of arrays, and take these over."""
        arrays: Arrays = {}
        code = write(arrays)
        for name, array in arrays.items():
            known = self._known.get(id(array))
            if known is not None and set(known[1]) == {"array"}:  # such as the matrix of a precomputed kernel
                self.same[name] = known[1]["array"]
            else:
                self.arrays[name] = array
                self._known[id(array)] = array, {"array": name}
        return code

    # -- objects ----------------------------------------------------------------------------------------

    def _type(self, value: type, path: str) -> Any:
        for name, known in TYPES.items():
            if value is known:
                return {"type": name}
        raise TypeError(f"{path} is the class {value.__name__}, which is not data; an object of it may be saved.")

    def _random(self, value: Any, path: str) -> Any:
        plain = isinstance(value, np.random.RandomState)
        state = value.get_state(legacy=False) if plain else value.bit_generator.state
        if state["bit_generator"] not in GENERATORS:
            raise TypeError(f"{path} is a generator of random numbers that NumPy does not know; pass a seed.")
        return {"random": "RandomState" if plain else "Generator", "state": self.write(state, path)}

    def _kernel(self, kernel: Kernel, path: str) -> Any:
        def more(value: Any, where: str) -> Any:
            return {"value": self.write(value, where)}

        number = self._record()
        self.objects[number] = self._with_arrays(lambda arrays: write_kernel(kernel, path, arrays, more))
        return {"object": number}

    def _record(self) -> int:
        self.objects.append(None)
        return len(self.objects) - 1

    def _object(self, value: Any, path: str) -> Any:
        entry = entry_of(type(value))
        if entry is None:
            raise _refusal(value, path)
        number = self._record()
        code = {"object": number}
        self._known[id(value)] = value, code  # parts may refer back to it
        if entry.arguments is None:
            self.objects[number] = self._estimator(value, entry, path)
        else:
            missing = [a for a in entry.arguments if not hasattr(value, a)]
            if missing:
                raise TypeError(
                    f"{path} is a {entry.name} whose argument {missing[0]!r} is not kept as an attribute; a class that "
                    "is registered must keep what it was made with."
                )
            given = {a: self.write(getattr(value, a), f"{path}.{a}") for a in entry.arguments}
            self.objects[number] = {"class": entry.name, "arguments": given}
        return code

    def _estimator(self, model: BaseEstimator, entry: Entry, path: str) -> Any:
        parameters = model.get_params(deep=False)
        state = {k: v for k, v in model.__getstate__().items() if k not in parameters and k not in _LIVE}
        state.pop("_sklearn_version", None)
        requests = state.pop("_metadata_request", None)
        prefix = "" if path == "model" else f"{path}."
        record = {
            "class": entry.name,
            "parameters": {k: None if is_place(k, v) else self.write(v, f"{prefix}{k}") for k, v in parameters.items()},
            "state": {k: self.write(v, f"{prefix}{k}") for k, v in state.items()},
        }
        if requests is not None:
            asked = {
                m: getattr(requests, m).requests for m in METHODS if getattr(getattr(requests, m, None), "requests", 0)
            }
            record["requests"] = self.write(asked, f"{prefix}requests")
        return record


def is_place(name: str, value: Any) -> bool:
    """Return whether a parameter is a path, which is not saved."""
    return name in PLACES and value is not None and not isinstance(value, numbers.Number)


def _refusal(value: Any, path: str) -> Exception:
    cls = type(value)
    if callable(value) and hasattr(value, "__qualname__"):
        return TypeError(
            f"{path} is the function {value.__qualname__}, and a model file holds no code. Register it by name, "
            "mercer.io.register(function), here and where the file is loaded; or write it as a class of its own."
        )
    parts = [name for name in ("best_estimator_", "eigenfunctions") if hasattr(value, name)]
    if parts:
        return NotRegistered(f"{path} is a {cls.__qualname__}, which model files do not hold; save its {parts[0]}.")
    return NotRegistered(
        f"{path} is a {cls.__module__}.{cls.__qualname__}, which model files do not know; if it is yours, register it: "
        f"mercer.io.register({cls.__name__}), here and where the file is loaded."
    )
