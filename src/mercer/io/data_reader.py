"""From plain data back to numbers, texts, lists and arrays, each checked before it is made."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mercer.io import limits
from mercer.io.checks import check
from mercer.io.codes import SPARSE, as_dtype, as_list, as_pair, as_shape, as_text, strange
from mercer.io.registry import entry_named
from mercer.points.state import Arrays, read_points, stored

_LARGEST_CHARACTER = 0x10FFFF


class DataReader:
    """Reads what `DataWriter` writes.

    Parameters
    ----------
    arrays
        The arrays of the file.
    """

    _KEYS: tuple[str, ...] = (  # which say what a code is; the first that is found counts
        "float",
        "number",
        "numbers",
        "entry",
        "tuple",
        "set",
        "frozenset",
        "sets",
        "dict",
        "slice",
        "texts",
        "repeated",
        "jagged",
        "columns",
        "bytes",
        "masked",
        "array",
        "empty",
        "objects",
        "sparse",
        "table",
        "dtype",
    )

    def __init__(self, arrays: Arrays) -> None:
        self._arrays = arrays
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
        return getattr(self, f"_{key}")(code)

    # -- numbers and lists ------------------------------------------------------------------------------

    def _float(self, code: dict[str, Any]) -> float:
        if code["float"] not in ("inf", "-inf", "nan"):
            raise strange(code)
        return float(code["float"])

    def _bytes(self, code: dict[str, Any]) -> bytes:
        text = code["bytes"]
        if not isinstance(text, str) or any(ord(letter) > 255 for letter in text):
            raise strange(code)
        return text.encode("latin-1")

    def _number(self, code: dict[str, Any]) -> Any:
        kind, value = as_pair(code["number"])
        dtype = as_dtype(kind, "biufU")
        value = self.read(value)
        if not isinstance(value, bool | int | float | str):
            raise strange(code)
        return dtype.type(value)

    def _entry(self, code: dict[str, Any]) -> Any:
        array = self.read(code["entry"])
        if not isinstance(array, np.ndarray) or array.ndim:
            raise strange(code)
        return array[()]

    def _tuple(self, code: dict[str, Any]) -> Any:
        return tuple(as_list(self.read(code["tuple"])))

    def _set(self, code: dict[str, Any]) -> Any:
        return _hashed(set, self.read(code["set"]))

    def _frozenset(self, code: dict[str, Any]) -> Any:
        return _hashed(frozenset, self.read(code["frozenset"]))

    def _sets(self, code: dict[str, Any]) -> Any:
        kind = frozenset if code.get("frozen") is True else set
        return [_hashed(kind, elements) for elements in as_list(self.read(code["sets"]))]

    def _dict(self, code: dict[str, Any]) -> Any:
        return {self.read(k): self.read(v) for k, v in map(as_pair, as_list(code["dict"]))}

    def _slice(self, code: dict[str, Any]) -> Any:
        start, stop, step = (self.read(part) for part in as_list(code["slice"]))
        return slice(start, stop, step)

    def _numbers(self, code: dict[str, Any]) -> Any:
        found = self._vector(code["numbers"], "fi")
        if found.dtype.itemsize < 8:  # of which lists take more memory than the file
            raise strange(code)
        return found.tolist()

    def _texts(self, code: dict[str, Any]) -> Any:
        name = code["texts"]
        joined = self._vector(name, "u").tobytes()
        ends = self._ends(f"{name}.lengths", len(joined))
        return [joined[a:b].decode("utf-8", "surrogatepass") for a, b in zip([0, *ends], ends)]

    def _repeated(self, code: dict[str, Any]) -> Any:
        entry, times = self.read(code["repeated"]), code.get("times")
        if entry not in (None, ()) or type(times) is not int or times < 0:
            raise strange(code)
        self._count(times)
        return [entry] * times

    def _jagged(self, code: dict[str, Any]) -> Any:
        entries = as_list(self.read(code.get("entries")))
        ends = self._ends(code["jagged"], len(entries))
        return [entries[a:b] for a, b in zip([0, *ends], ends)]

    def _columns(self, code: dict[str, Any]) -> Any:
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
        found = stored(self._arrays, name)
        if found.ndim != 1 or found.dtype.kind not in kinds or (kinds == "u" and found.dtype.itemsize > 1):
            raise ValueError(f"the array {name!r:.80} should be a vector and is {found.dtype} of shape {found.shape}")
        return found

    def _ends(self, name: Any, total: int) -> list[int]:
        """Return where the parts of something end, from their lengths."""
        lengths = self._vector(name, "i")
        self._count(len(lengths))
        if lengths.size and (lengths.min() < 0 or lengths.max() > total or lengths.sum(dtype=np.float64) != total):
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
        dtype = as_dtype(code["dtype"], "USMm")
        raw = np.dtype({"U": np.uint32, "S": np.uint8}.get(dtype.kind, np.int64))
        width = dtype.itemsize // raw.itemsize
        if array.dtype != raw or not array.ndim or array.shape[-1] != width or not width:
            raise strange(code)
        if dtype.kind == "U" and array.size and array.max() > _LARGEST_CHARACTER:
            raise ValueError(f"the texts {code['array']!r:.80} hold a character that does not exist")
        return np.ascontiguousarray(array).view(dtype)[..., 0]

    def _empty(self, code: dict[str, Any]) -> np.ndarray:
        shape = as_shape(code.get("shape"))
        if math.prod(shape):
            raise strange(code)
        limits.check_shape("empty", shape)
        return np.empty(shape, dtype=as_dtype(code["empty"], "USMm"))

    def _masked(self, code: dict[str, Any]) -> Any:
        values, mask = self.read(code["masked"]), self.read(code.get("mask"))
        whole = isinstance(values, np.ndarray) and isinstance(mask, np.ndarray)
        if not whole or mask.dtype != np.bool_ or mask.shape != values.shape:
            raise strange(code)
        return np.ma.MaskedArray(values, mask=mask)

    def _objects(self, code: dict[str, Any]) -> np.ndarray:
        entries, shape = as_list(self.read(code["objects"])), as_shape(code.get("shape"))
        if math.prod(shape) != len(entries):
            raise strange(code)
        found = np.empty(len(entries), dtype=object)
        for i, entry in enumerate(entries):
            found[i] = entry
        return found.reshape(shape)

    def _sparse(self, code: dict[str, Any]) -> Any:
        parts = tuple(self.read(code.get(part)) for part in ("data", "indices", "indptr"))
        if not all(isinstance(p, np.ndarray) and p.ndim == 1 for p in parts) or parts[0].dtype.kind not in "fiub":
            raise strange(code)
        shape = as_shape(code.get("shape"))
        limits.check_sparse(shape, parts[2].size)
        found = SPARSE[as_text(code["sparse"])](parts, shape=shape)
        found.check_format(full_check=True)  # the core trusts the indices
        return found

    def _table(self, code: dict[str, Any]) -> Any:
        if not isinstance(code["table"], dict) or code["table"].get("kind") != "table":
            raise strange(code)
        return read_points(code["table"], self._arrays)

    def _dtype(self, code: dict[str, Any]) -> Any:
        return as_dtype(code["dtype"], "biufUSMmO")


def _hashed(kind: type, elements: Any) -> Any:
    try:
        return kind(as_list(elements))
    except TypeError:  # an element that no set can hold
        raise strange(elements) from None
