"""From a model to plain data: a manifest in JSON, and arrays by name."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from mercer.io.codes import GENERATORS, METHODS, TYPES, is_place
from mercer.io.data_writer import DataWriter
from mercer.io.registry import Entry, NotRegistered, entry_of, function_name
from mercer.io.scorers import scorer_to_plain
from mercer.kernels import Kernel
from mercer.kernels.state import kernel_named, write_kernel, write_law
from mercer.points.sets.points import is_foreign
from mercer.points.state import write_points

_LIVE = ("_skl_callbacks", "_parent_callback_ctx")  # who listened to the fit


class Writer(DataWriter):
    """Collects the objects and the arrays of a model, each once however often the model refers to it.

    Attributes
    ----------
    objects
        The records of all objects; others refer to them by number.
    """

    def __init__(self) -> None:
        super().__init__()
        self.objects: list[Any] = []

    def _new(self, value: Any, path: str) -> Any:
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
        for write in (self._function, self._scorer, self._law):
            code = write(value, path)
            if code is not None:
                return code
        return self._object(value, path)

    # -- things with a name -----------------------------------------------------------------------------

    def _type(self, value: type, path: str) -> Any:
        for name, known in TYPES.items():
            if value is known:
                return {"type": name}
        if issubclass(value, Kernel) and kernel_named(value.__name__) is value:
            return {"kernels": value.__name__}
        raise TypeError(f"{path} is the class {value.__name__}, which is not data; an object of it may be saved.")

    def _function(self, value: Any, path: str) -> Any:
        name = function_name(value)
        return None if name is None else {"function": name}

    def _scorer(self, value: Any, path: str) -> Any:
        plain = scorer_to_plain(value)
        return None if plain is None else {"scorer": self.write(plain, path)}

    def _law(self, value: Any, path: str) -> Any:
        code = self._with_arrays(lambda arrays: write_law(value, path, arrays))
        return None if code is None else {"law": code}

    def _random(self, value: Any, path: str) -> Any:
        plain = isinstance(value, np.random.RandomState)
        state = value.get_state(legacy=False) if plain else value.bit_generator.state
        if state["bit_generator"] not in GENERATORS:
            raise TypeError(f"{path} is a generator of random numbers that NumPy does not know; pass a seed.")
        return {"random": "RandomState" if plain else "Generator", "state": self.write(state, path)}

    # -- objects ----------------------------------------------------------------------------------------

    def _kernel(self, kernel: Kernel, path: str) -> Any:
        """Write a kernel after its parts, each of which is an object of its own: a part that two share stays one."""

        def more(value: Any, where: str) -> Any:
            return {"value": self.write(value, where)}

        stack = [(kernel, path)]
        while stack:
            whole, where = stack[-1]
            parts = [(part, f"{where}.{key}") for key, part in whole._params().items() if isinstance(part, Kernel)]
            new = [(part, there) for part, there in parts if id(part) not in self._known]
            if new:
                stack += new
                continue
            stack.pop()
            if id(whole) not in self._known:
                number = self._record()
                self._known[id(whole)] = whole, {"object": number}
                self.objects[number] = self._with_arrays(
                    lambda arrays, whole=whole, where=where: write_kernel(whole, where, arrays, more)
                )
        return self._known[id(kernel)][1]

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
            given = {a: self.write(v, f"{path}.{a}") for a, v in entry.parts(value, path).items()}
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


def _refusal(value: Any, path: str) -> Exception:
    cls = type(value)
    if callable(value) and hasattr(value, "__qualname__"):
        return TypeError(
            f"{path} is the function {value.__qualname__}, and a model file holds no code. Register it by name, "
            "mercer.io.register(function), here and where the file is loaded; or write it as a class of its own."
        )
    if hasattr(value, "best_estimator_"):
        return NotRegistered(
            f"{path} is a {cls.__qualname__}, which model files do not hold; save its best_estimator_."
        )
    if all(hasattr(value, part) for part in ("nodes", "edges", "is_directed")):
        return NotRegistered(
            f"{path} is a {cls.__module__}.{cls.__qualname__}; model files hold graphs as mercer.Graph: fit the model "
            "to [mercer.Graph.of(g) for g in X]."
        )
    if hasattr(value, "__next__"):
        return TypeError(f"{path} is a {cls.__qualname__}, which is used up once it is read; pass a list instead.")
    return NotRegistered(
        f"{path} is a {cls.__module__}.{cls.__qualname__}, which model files do not know; if it is yours, register it: "
        f"mercer.io.register({cls.__name__}), here and where the file is loaded."
    )
