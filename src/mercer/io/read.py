"""From plain data back to a model: numbers, lists, arrays and objects, each checked before it is made."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
from sklearn import config_context

from mercer.io import limits
from mercer.io.checks import check
from mercer.io.codes import (
    GENERATORS,
    METHODS,
    SPARSE,
    TYPES,
    as_attributes,
    as_dtype,
    as_list,
    as_pair,
    as_shape,
    as_text,
    is_place,
    scorer_from_plain,
    strange,
)
from mercer.io.registry import Entry, NotRegistered, entry_named, function_named
from mercer.io.trial import try_out
from mercer.kernels.state import kernel_from_state, kernel_named, read_law
from mercer.points.state import Arrays, read_points, stored

_LARGEST_CHARACTER = 0x10FFFF  # of Unicode: a larger number makes NumPy raise where the text is used


_BUILDING = object()


class Reader:
    """Makes the objects of a manifest, each once: what `Writer` writes, and nothing else.

    Nothing of the file is run; every class and every type is looked up in a list. A code that is a dictionary says by
    one of its keys what it is: `_read_array` reads those with the key "array".

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
        self._trials = limits.TRIALS
        self._seen: dict[tuple[str, ...], Any] = {}
        self._entries = 0  # of lists that are kept in arrays
        self._rows = limits.ROWS + sum(a.nbytes for a in arrays.values()) // limits.ROW  # objects that these may make

    def read(self, code: Any) -> Any:
        """Return the value that a writer wrote; ValueError for whatever it would not have written."""
        if code is None or isinstance(code, bool | int | float | str):
            return code
        if isinstance(code, list):
            return [self.read(v) for v in code]
        key = next((key for key in self._KEYS if key in code), None)
        if key is None:
            raise strange(code)
        return getattr(self, f"_read_{key}")(code)

    # -- numbers and lists ------------------------------------------------------------------------------

    def _read_float(self, code: dict[str, Any]) -> float:
        if code["float"] not in ("inf", "-inf", "nan"):
            raise strange(code)
        return float(code["float"])

    def _read_bytes(self, code: dict[str, Any]) -> bytes:
        text = code["bytes"]
        if not isinstance(text, str) or any(ord(letter) > 255 for letter in text):
            raise strange(code)
        return text.encode("latin-1")

    def _read_number(self, code: dict[str, Any]) -> Any:
        kind, value = as_pair(code["number"])
        dtype = as_dtype(kind, "biufU")
        value = self.read(value)
        if not isinstance(value, bool | int | float | str):
            raise strange(code)
        return dtype.type(value)

    def _read_entry(self, code: dict[str, Any]) -> Any:
        array = self.read(code["entry"])
        if not isinstance(array, np.ndarray) or array.ndim:
            raise strange(code)
        return array[()]

    def _read_tuple(self, code: dict[str, Any]) -> Any:
        return tuple(as_list(self.read(code["tuple"])))

    def _read_set(self, code: dict[str, Any]) -> Any:
        return _hashed(set, self.read(code["set"]))

    def _read_frozenset(self, code: dict[str, Any]) -> Any:
        return _hashed(frozenset, self.read(code["frozenset"]))

    def _read_sets(self, code: dict[str, Any]) -> Any:
        kind = frozenset if code.get("frozen") is True else set
        return [_hashed(kind, elements) for elements in as_list(self.read(code["sets"]))]

    def _read_dict(self, code: dict[str, Any]) -> Any:
        return {self.read(k): self.read(v) for k, v in map(as_pair, as_list(code["dict"]))}

    def _read_slice(self, code: dict[str, Any]) -> Any:
        start, stop, step = (self.read(part) for part in as_list(code["slice"]))
        return slice(start, stop, step)

    def _read_numbers(self, code: dict[str, Any]) -> Any:
        vector = self._vector(code["numbers"], "fi")
        if vector.dtype.itemsize < 8:  # of which lists take more memory than the file
            raise strange(code)
        return vector.tolist()

    def _read_texts(self, code: dict[str, Any]) -> Any:
        name = code["texts"]
        joined = self._vector(name, "u").tobytes()
        ends = self._ends(f"{name}.lengths", len(joined))
        return [joined[a:b].decode("utf-8", "surrogatepass") for a, b in zip([0, *ends], ends)]

    def _read_repeated(self, code: dict[str, Any]) -> Any:
        entry, times = self.read(code["repeated"]), code.get("times")
        if entry not in (None, ()) or type(times) is not int or times < 0:
            raise strange(code)
        self._count(times)
        return [entry] * times

    def _read_jagged(self, code: dict[str, Any]) -> Any:
        entries = as_list(self.read(code.get("entries")))
        ends = self._ends(code["jagged"], len(entries))
        return [entries[a:b] for a, b in zip([0, *ends], ends)]

    def _read_columns(self, code: dict[str, Any]) -> Any:
        columns = [as_list(self.read(c)) for c in as_list(code["columns"])]
        self._count(len(columns[0]) if columns else 0)
        if "class" not in code:
            return list(zip(*columns, strict=True))
        entry, names = entry_named(as_text(code["class"])), as_list(code.get("arguments"))
        known = entry.arguments is not None and set(map(as_text, names)) <= set(entry.arguments)
        if not known or len(names) != len(columns):
            raise strange(code)
        self._rows -= len(columns[0]) if columns else 0
        if self._rows < 0:
            raise limits.TooLarge("it makes more objects of its lists than a file of its size can need")
        made = [entry.make(dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True)]
        for one in made:
            check(one)
        return made

    def _count(self, entries: int) -> None:
        self._entries += entries
        limits.require(self._entries, limits.ENTRIES, f"{self._entries:,} texts, lists and tuples")

    def _vector(self, name: Any, kinds: str) -> np.ndarray:
        vector = stored(self._arrays, name)
        if vector.ndim != 1 or vector.dtype.kind not in kinds or (kinds == "u" and vector.dtype.itemsize > 1):
            raise ValueError(f"the array {name!r:.80} should be a vector and is {vector.dtype} of shape {vector.shape}")
        return vector

    def _ends(self, name: Any, total: int) -> list[int]:
        """Return where the parts of something end, from their lengths."""
        lengths = self._vector(name, "i")
        self._count(len(lengths))
        if lengths.size and (lengths.min() < 0 or lengths.max() > total or lengths.sum(dtype=np.float64) != total):
            raise ValueError(f"the lengths {name!r:.80} do not add up to the {total} that are there")
        return np.cumsum(lengths, dtype=np.int64).tolist()

    # -- arrays -----------------------------------------------------------------------------------------

    def _read_array(self, code: dict[str, Any]) -> Any:
        key = str(code["array"]), str(code.get("order")), str(code.get("dtype"))
        if key not in self._seen:
            self._seen[key] = self._new_array(code)
        return self._seen[key]

    def _new_array(self, code: dict[str, Any]) -> np.ndarray:
        array = stored(self._arrays, code["array"])
        if "dtype" not in code:
            return array.T if code.get("order") == "F" else array
        dtype = as_dtype(code["dtype"], "USMm")
        raw = np.dtype({"U": np.uint32, "S": np.uint8}.get(dtype.kind, np.int64))
        width = dtype.itemsize // raw.itemsize
        if array.dtype != raw or not array.ndim or array.shape[-1] != width or not width:
            raise strange(code)
        if dtype.kind == "U" and array.size and array.max() > _LARGEST_CHARACTER:
            raise ValueError(f"the texts {code['array']!r:.80} hold a character that does not exist")
        return np.ascontiguousarray(array).view(dtype)[..., 0]

    def _read_empty(self, code: dict[str, Any]) -> np.ndarray:
        shape = as_shape(code.get("shape"))
        if math.prod(shape):
            raise strange(code)
        limits.check_shape("empty", shape)
        return np.empty(shape, dtype=as_dtype(code["empty"], "USMm"))

    def _read_masked(self, code: dict[str, Any]) -> Any:
        values, mask = self.read(code["masked"]), self.read(code.get("mask"))
        whole = isinstance(values, np.ndarray) and isinstance(mask, np.ndarray)
        if not whole or mask.dtype != np.bool_ or mask.shape != values.shape:
            raise strange(code)
        return np.ma.MaskedArray(values, mask=mask)

    def _read_objects(self, code: dict[str, Any]) -> np.ndarray:
        entries, shape = as_list(self.read(code["objects"])), as_shape(code.get("shape"))
        if math.prod(shape) != len(entries):
            raise strange(code)
        objects = np.empty(len(entries), dtype=object)
        for i, entry in enumerate(entries):
            objects[i] = entry
        return objects.reshape(shape)

    def _read_sparse(self, code: dict[str, Any]) -> Any:
        parts = tuple(self.read(code.get(part)) for part in ("data", "indices", "indptr"))
        if not all(isinstance(p, np.ndarray) and p.ndim == 1 for p in parts) or parts[0].dtype.kind not in "fiub":
            raise strange(code)
        shape = as_shape(code.get("shape"))
        limits.check_sparse(shape, parts[2].size)
        matrix = SPARSE[as_text(code["sparse"])](parts, shape=shape)
        matrix.check_format(full_check=True)  # the core trusts the indices
        return matrix

    def _read_table(self, code: dict[str, Any]) -> Any:
        if not isinstance(code["table"], dict) or code["table"].get("kind") != "table":
            raise strange(code)
        return read_points(code["table"], self._arrays)

    # -- things with a name -----------------------------------------------------------------------------

    def _read_type(self, code: dict[str, Any]) -> Any:
        return TYPES[as_text(code["type"])]

    def _read_kernels(self, code: dict[str, Any]) -> Any:
        name = as_text(code["kernels"])
        cls = kernel_named(name)
        if cls is None:
            raise NotRegistered(
                f"it names the kernel {name!r:.80}, which is not registered here; import the module that defines it "
                f"and call mercer.io.register({name:.80}) first."
            )
        return cls

    def _read_function(self, code: dict[str, Any]) -> Any:
        return function_named(as_text(code["function"]))

    def _read_scorer(self, code: dict[str, Any]) -> Any:
        return scorer_from_plain(self.read(code["scorer"]))

    def _read_law(self, code: dict[str, Any]) -> Any:
        return read_law(code["law"], self._arrays)

    def _read_random(self, code: dict[str, Any]) -> Any:
        state = self.read(code.get("state"))
        generator = GENERATORS[as_text(state["bit_generator"])](0)
        if code["random"] == "RandomState":
            legacy = np.random.RandomState(generator)
            legacy.set_state(state)
            return legacy
        generator.state = state
        return np.random.Generator(generator)

    # -- objects ----------------------------------------------------------------------------------------

    def _read_object(self, code: dict[str, Any]) -> Any:
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
            self._read_object({"object": number})

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

    def _read_dtype(self, code: dict[str, Any]) -> Any:
        return as_dtype(code["dtype"], "biufUSMmO")

    # The first that is found counts; arrays of texts have a dtype, too.
    _KEYS = tuple(name.removeprefix("_read_") for name in list(locals()) if name.startswith("_read_"))


def _hashed(kind: type, elements: Any) -> Any:
    try:
        return kind(as_list(elements))
    except TypeError:  # an element that no set can hold
        raise strange(elements) from None
