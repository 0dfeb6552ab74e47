"""From plain data back to a model. Nothing of the file is run; every class and every type is looked up in a list."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from sklearn import config_context

from mercer.io import limits
from mercer.io.checks import check
from mercer.io.codes import GENERATORS, METHODS, TYPES, as_attributes, as_text, is_place, strange
from mercer.io.data_reader import DataReader
from mercer.io.registry import Entry, NotRegistered, entry_named, function_named
from mercer.io.scorers import scorer_from_plain
from mercer.io.trial import try_out
from mercer.kernels.state import kernel_from_state, kernel_named, read_law
from mercer.points.state import Arrays

_BUILDING = object()


class Reader(DataReader):
    """Makes the objects of a manifest, each once.

    Parameters
    ----------
    objects, arrays
        As `Writer` collects them.
    versions
        What wrote the file: "mercer", "scikit-learn".
    """

    _KEYS = (*DataReader._KEYS, "type", "kernels", "random", "function", "scorer", "law", "object")

    def __init__(self, objects: list[Any], arrays: Arrays, versions: dict[str, str]) -> None:
        super().__init__(arrays)
        self._records = objects
        self._versions = versions
        self._made: dict[int, Any] = {}
        self._trials = limits.TRIALS

    # -- things with a name -----------------------------------------------------------------------------

    def _type(self, code: dict[str, Any]) -> Any:
        return TYPES[as_text(code["type"])]

    def _kernels(self, code: dict[str, Any]) -> Any:
        name = as_text(code["kernels"])
        found = kernel_named(name)
        if found is None:
            raise NotRegistered(
                f"it names the kernel {name!r:.80}, which is not registered here; import the module that defines it "
                f"and call mercer.io.register({name:.80}) first."
            )
        return found

    def _function(self, code: dict[str, Any]) -> Any:
        return function_named(as_text(code["function"]))

    def _scorer(self, code: dict[str, Any]) -> Any:
        return scorer_from_plain(self.read(code["scorer"]))

    def _law(self, code: dict[str, Any]) -> Any:
        return read_law(code["law"], self._arrays)

    def _random(self, code: dict[str, Any]) -> Any:
        state = self.read(code.get("state"))
        generator = GENERATORS[as_text(state["bit_generator"])](0)
        if code["random"] == "RandomState":
            legacy = np.random.RandomState(generator)
            legacy.set_state(state)
            return legacy
        generator.state = state
        return np.random.Generator(generator)

    # -- objects ----------------------------------------------------------------------------------------

    def _object(self, code: dict[str, Any]) -> Any:
        number = code["object"]
        if type(number) is not int or not 0 <= number < len(self._records):
            raise strange(code)
        if number not in self._made:
            self._made[number] = _BUILDING
            self._made[number] = self._build(number)
        if self._made[number] is _BUILDING:
            raise ValueError(f"object {number} is made of itself")
        return self._made[number]

    def _build(self, number: int) -> Any:
        record = self._records[number]
        if not isinstance(record, dict):
            raise strange(record)
        if "kernel" in record:
            self._build_parts(record)
            return kernel_from_state(record, self._arrays, self._more)
        entry = entry_named(as_text(record.get("class")))
        if entry.arguments is None:
            return self._estimator(number, entry, record)
        given = as_attributes(record.get("arguments"))
        if not set(given) <= set(entry.arguments):
            raise ValueError(
                f"{entry.name} is made with {', '.join(entry.arguments) or 'nothing'}, not {set(given)!r:.80}"
            )
        made = entry.make({name: self.read(value) for name, value in given.items()})
        check(made)
        return made

    def _build_parts(self, record: dict[str, Any]) -> None:
        """Build the kernels that a kernel is made of, the innermost first and without a call for each level."""
        stack = self._parts(record)
        while stack:
            number = stack[-1]
            missing = [] if number in self._made else self._parts(self._records[number])
            if missing:
                stack += missing
                continue
            stack.pop()
            self._object({"object": number})

    def _parts(self, record: dict[str, Any]) -> list[int]:
        """Return the numbers of the kernels in a record that are not made yet."""
        numbers = [n for n in limits.references(record, len(self._records)) if n not in self._made]
        return [n for n in numbers if isinstance(self._records[n], dict) and "kernel" in self._records[n]]

    def _more(self, code: dict[str, Any]) -> Any:
        """Return a parameter of a kernel that is more than a number, a text or a law."""
        return self.read(code.get("value", code))

    def _estimator(self, number: int, entry: Entry, record: dict[str, Any]) -> Any:
        cls = entry.cls
        given = {k: self.read(v) for k, v in as_attributes(record.get("parameters")).items()}
        unknown = set(given) - set(cls._get_param_names())  # type: ignore[attr-defined]
        if unknown:
            raise ValueError(f"{entry.name} has no parameter {sorted(unknown)[0]!r:.80} in this version")
        model = cls(**{k: None if is_place(k, v) else v for k, v in given.items()})
        self._made[number] = model  # its parts may refer back to it
        state = {}
        for name, value in as_attributes(record.get("state")).items():
            name = getattr(cls, "_former", {}).get(name, name)
            usual = "_" in (name[:1], name[-1:]) or not cls.__module__.startswith(("mercer.", "sklearn."))
            if not usual or hasattr(inspect.getattr_static(cls, name, None), "__get__") or name in given:
                raise ValueError(f"{name!r:.80} is no attribute that a fit of {entry.name} sets")
            state[name] = self.read(value)
        vars(model).update(state)
        check(model)
        if cls.__module__.startswith("sklearn."):
            state["_sklearn_version"] = self._versions.get("scikit-learn", "?")  # which warns where it differs
        model.__setstate__(vars(model) | state)
        self._ask(model, self.read(record.get("requests")))
        if self._trials:
            self._trials -= 1
            try_out(model)
        return model

    def _ask(self, model: Any, requests: Any) -> None:
        """Restore which metadata the methods of a model ask for."""
        for method, asked in (requests or {}).items():
            if method not in METHODS or not isinstance(asked, dict) or not all(isinstance(k, str) for k in asked):
                raise strange(requests)
            with config_context(enable_metadata_routing=True):
                getattr(model, f"set_{method}_request")(**asked)
