"""From plain data back to a model. Nothing of the file is run; every class and every type is looked up in a list."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
from sklearn import config_context

from mercer.io.checks import check
from mercer.io.registry import Entry, entry_named, function_named
from mercer.io.writer import GENERATORS, METHODS, SPARSE, TYPES, is_place
from mercer.kernels.state import kernel_from_state
from mercer.points.state import Arrays, read_points, stored

_BUILDING = object()
_LARGEST_CHARACTER = 0x10FFFF


class Reader:
    """Makes the objects of a manifest, each once.

    Parameters
    ----------
    objects, arrays
        As `Writer` collects them.
    versions
        What wrote the file: "mercer", "scikit-learn".
    """

    def __init__(self, objects: list[Any], arrays: Arrays, versions: dict[str, str]) -> None:
        self._records = objects
        self._arrays = arrays
        self._versions = versions
        self._made: dict[int, Any] = {}
        self._seen: dict[tuple[str, ...], Any] = {}

    def read(self, code: Any) -> Any:
        """Return the value that `Writer.write` wrote; ValueError for whatever it would not have written."""
        if code is None or isinstance(code, bool | int | float | str):
            return code
        if isinstance(code, list):
            return [self.read(v) for v in code]
        reader = next((r for key, r in _READERS.items() if key in code), None)
        if reader is None:
            raise _strange(code)
        return reader(self, code)

    # -- numbers and lists ------------------------------------------------------------------------------

    def _float(self, code: dict[str, Any]) -> float:
        if code["float"] not in ("inf", "-inf", "nan"):
            raise _strange(code)
        return float(code["float"])

    def _number(self, code: dict[str, Any]) -> Any:
        kind, value = _pair(code["number"])
        dtype = _dtype(kind, "biufU")
        value = self.read(value)
        if not isinstance(value, bool | int | float | str):
            raise _strange(code)
        return dtype.type(value)

    def _entry(self, code: dict[str, Any]) -> Any:
        array = self.read(code["entry"])
        if not isinstance(array, np.ndarray) or array.ndim:
            raise _strange(code)
        return array[()]

    def _tuple(self, code: dict[str, Any]) -> Any:
        return tuple(_list(self.read(code["tuple"])))

    def _dict(self, code: dict[str, Any]) -> Any:
        return {self.read(k): self.read(v) for k, v in map(_pair, _list(code["dict"]))}

    def _slice(self, code: dict[str, Any]) -> Any:
        start, stop, step = (self.read(part) for part in _list(code["slice"]))
        return slice(start, stop, step)

    def _numbers(self, code: dict[str, Any]) -> Any:
        return self._vector(code["numbers"], "fi").tolist()

    def _texts(self, code: dict[str, Any]) -> Any:
        name = code["texts"]
        joined = self._vector(name, "u").tobytes()
        ends = self._ends(f"{name}.lengths", len(joined))
        return [joined[a:b].decode("utf-8", "surrogatepass") for a, b in zip([0, *ends], ends)]

    def _jagged(self, code: dict[str, Any]) -> Any:
        entries = _list(self.read(code.get("entries")))
        ends = self._ends(code["jagged"], len(entries))
        return [entries[a:b] for a, b in zip([0, *ends], ends)]

    def _columns(self, code: dict[str, Any]) -> Any:
        columns = [_list(self.read(c)) for c in _list(code["columns"])]
        rows = list(zip(*columns, strict=True))
        if "class" not in code:
            return rows
        entry, names = entry_named(_text(code["class"])), _list(code.get("arguments"))
        if entry.arguments is None or not set(map(_text, names)) <= set(entry.arguments) or len(names) != len(columns):
            raise _strange(code)
        return [entry.cls(**dict(zip(names, row, strict=True))) for row in rows]

    def _vector(self, name: Any, kinds: str) -> np.ndarray:
        found = stored(self._arrays, name)
        if found.ndim != 1 or found.dtype.kind not in kinds or (kinds == "u" and found.dtype.itemsize > 1):
            raise ValueError(f"the array {name!r:.80} should be a vector and is {found.dtype} of shape {found.shape}")
        return found

    def _ends(self, name: Any, total: int) -> list[int]:
        """Return where the parts of something end, from their lengths."""
        lengths = self._vector(name, "i").tolist()
        if any(n < 0 for n in lengths) or sum(lengths) != total:
            raise ValueError(f"the lengths {name!r:.80} do not add up to the {total} that are there")
        return np.cumsum(lengths, dtype=np.int64).tolist()

    # -- arrays -----------------------------------------------------------------------------------------

    def _array(self, code: dict[str, Any]) -> Any:
        key = str(code["array"]), str(code.get("order")), str(code.get("dtype"))
        if key not in self._seen:
            self._seen[key] = self._new_array(code)
        return self._seen[key]

    def _new_array(self, code: dict[str, Any]) -> np.ndarray:
        array = stored(self._arrays, code["array"])
        if "dtype" not in code:
            return array.T if code.get("order") == "F" else array
        dtype = _dtype(code["dtype"], "USMm")
        raw = np.dtype({"U": np.uint32, "S": np.uint8}.get(dtype.kind, np.int64))
        width = dtype.itemsize // raw.itemsize
        if array.dtype != raw or not array.ndim or array.shape[-1] != width or not width:
            raise _strange(code)
        if dtype.kind == "U" and array.size and array.max() > _LARGEST_CHARACTER:
            raise ValueError(f"the texts {code['array']!r:.80} hold a character that does not exist")
        return np.ascontiguousarray(array).view(dtype)[..., 0]

    def _empty(self, code: dict[str, Any]) -> np.ndarray:
        shape = _shape(code.get("shape"))
        if math.prod(shape):
            raise _strange(code)
        return np.empty(shape, dtype=_dtype(code["empty"], "USMm"))

    def _objects(self, code: dict[str, Any]) -> np.ndarray:
        entries, shape = _list(self.read(code["objects"])), _shape(code.get("shape"))
        if math.prod(shape) != len(entries):
            raise _strange(code)
        found = np.empty(len(entries), dtype=object)
        for i, entry in enumerate(entries):
            found[i] = entry
        return found.reshape(shape)

    def _sparse(self, code: dict[str, Any]) -> Any:
        parts = tuple(self.read(code.get(part)) for part in ("data", "indices", "indptr"))
        if not all(isinstance(p, np.ndarray) and p.ndim == 1 for p in parts) or parts[0].dtype.kind not in "fiub":
            raise _strange(code)
        found = SPARSE[_text(code["sparse"])](parts, shape=_shape(code.get("shape")))
        found.check_format(full_check=True)  # the core trusts the indices
        return found

    def _table(self, code: dict[str, Any]) -> Any:
        return read_points(code["table"], self._arrays)

    # -- objects ----------------------------------------------------------------------------------------

    def _type(self, code: dict[str, Any]) -> Any:
        return TYPES[_text(code["type"])]

    def _dtype(self, code: dict[str, Any]) -> Any:
        return _dtype(code["dtype"], "biufUSMmO")

    def _random(self, code: dict[str, Any]) -> Any:
        state = self.read(code.get("state"))
        generator = GENERATORS[_text(state["bit_generator"])](0)
        if code["random"] == "RandomState":
            legacy = np.random.RandomState(generator)
            legacy.set_state(state)
            return legacy
        generator.state = state
        return np.random.Generator(generator)

    def _function(self, code: dict[str, Any]) -> Any:
        return function_named(_text(code["function"]))

    def _object(self, code: dict[str, Any]) -> Any:
        number = code["object"]
        if type(number) is not int or not 0 <= number < len(self._records):
            raise _strange(code)
        if number not in self._made:
            self._made[number] = _BUILDING
            self._made[number] = self._build(number)
        if self._made[number] is _BUILDING:
            raise ValueError(f"object {number} is made of itself")
        return self._made[number]

    def _build(self, number: int) -> Any:
        record = self._records[number]
        if not isinstance(record, dict):
            raise _strange(record)
        if "kernel" in record:
            return kernel_from_state(record, self._arrays, self._more)
        entry = entry_named(_text(record.get("class")))
        if entry.arguments is None:
            return self._estimator(number, entry, record)
        given = _attributes(record.get("arguments"))
        if not set(given) <= set(entry.arguments):
            raise ValueError(
                f"{entry.name} is made with {', '.join(entry.arguments) or 'nothing'}, not {set(given)!r:.80}"
            )
        made = entry.cls(**{name: self.read(value) for name, value in given.items()})
        check(made)
        return made

    def _more(self, code: dict[str, Any]) -> Any:
        """Return a parameter of a kernel that is more than a number, a text or a law."""
        return self.read(code.get("value", code))

    def _estimator(self, number: int, entry: Entry, record: dict[str, Any]) -> Any:
        cls = entry.cls
        given = {k: self.read(v) for k, v in _attributes(record.get("parameters")).items()}
        unknown = set(given) - set(cls._get_param_names())  # type: ignore[attr-defined]
        if unknown:
            raise ValueError(f"{entry.name} has no parameter {sorted(unknown)[0]!r:.80} in this version")
        model = cls(**{k: None if is_place(k, v) else v for k, v in given.items()})
        self._made[number] = model  # its parts may refer back to it
        state = {}
        for name, value in _attributes(record.get("state")).items():
            if hasattr(inspect.getattr_static(cls, name, None), "__get__") or name in given:
                raise ValueError(f"{name!r:.80} is no attribute that a fit of {entry.name} sets")
            state[name] = self.read(value)
        vars(model).update(state)
        check(model)
        if cls.__module__.startswith("sklearn."):
            state["_sklearn_version"] = self._versions.get("scikit-learn", "?")  # which warns where it differs
        model.__setstate__(vars(model) | state)
        self._ask(model, self.read(record.get("requests")))
        return model

    def _ask(self, model: Any, requests: Any) -> None:
        """Restore which metadata the methods of a model ask for."""
        for method, asked in (requests or {}).items():
            if method not in METHODS or not isinstance(asked, dict) or not all(isinstance(k, str) for k in asked):
                raise _strange(requests)
            with config_context(enable_metadata_routing=True):
                getattr(model, f"set_{method}_request")(**asked)


_READERS = {
    key: getattr(Reader, f"_{key}")
    for key in (
        "float",
        "number",
        "numbers",
        "entry",
        "tuple",
        "dict",
        "slice",
        "texts",
        "jagged",
        "columns",
        "array",
        "empty",
        "objects",
        "sparse",
        "table",
        "type",
        "dtype",
        "random",
        "function",
        "object",
    )
}


def _strange(code: Any) -> ValueError:
    return ValueError(f"{code!r:.80} is nothing that mercer writes")


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise _strange(value)
    return value


def _pair(value: Any) -> tuple[Any, Any]:
    if not isinstance(value, list) or len(value) != 2:
        raise _strange(value)
    return value[0], value[1]


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _strange(value)
    return value


def _shape(value: Any) -> tuple[int, ...]:
    shape = tuple(_list(value))
    if len(shape) > 32 or not all(type(n) is int and 0 <= n < 2**48 for n in shape):
        raise _strange(value)
    return shape


def _dtype(value: Any, kinds: str) -> np.dtype:
    found = np.dtype(_text(value))
    if found.kind not in kinds or found.shape or found.names or found.itemsize > 2**31 or "," in value:
        raise _strange(value)
    return found


def _attributes(value: Any) -> dict[str, Any]:
    """Return attributes by name, unless a name is none or one of Python's own."""
    if not isinstance(value, dict) or not all(k.isidentifier() and not k.startswith("__") for k in value):
        raise _strange(value)
    return value
