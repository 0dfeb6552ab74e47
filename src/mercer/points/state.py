"""Values and points as plain JSON and NumPy arrays: nothing is pickled, and reading runs no code."""

from __future__ import annotations

import json
import math
import numbers
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from mercer.points.sets.graph import Graph
from mercer.points.sets.points import is_foreign
from mercer.points.sets.vectors import levels_of

Arrays = dict[str, np.ndarray]
Other = Callable[[Any, str], Any]


def write_value(value: Any, name: str, arrays: Arrays, other: Other) -> Any:
    """Return what JSON can hold of a value, and put arrays of numbers into `arrays` under their names.

    Parameters
    ----------
    value
        None, a number, a text, bytes, an array of numbers, a slice, or lists, tuples and sets of such.
    name
        What the value is called, for the names of arrays.
    arrays
        Where they go.
    other
        Called as other(value, name) for whatever is none of these: it returns JSON or raises a sentence.

    Examples
    --------
    >>> arrays = {}
    >>> write_value([1.5, (2, float("inf")), np.zeros(2)], "scale", arrays, None)
    [1.5, {'tuple': [2, {'float': 'inf'}]}, {'array': 'scale.2'}]
    >>> arrays
    {'scale.2': array([0., 0.])}
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, float | np.floating):
        number = float(value)
        return number if math.isfinite(number) else {"float": repr(number)}
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
        arrays[name] = np.ascontiguousarray(value)
        return {"array": name}
    if isinstance(value, bytes):
        return {"bytes": value.decode("latin-1")}
    if isinstance(value, slice):
        return {"slice": [write_value(v, name, arrays, other) for v in (value.start, value.stop, value.step)]}
    if type(value) in (list, tuple):
        parts = [write_value(v, f"{name}.{i}", arrays, other) for i, v in enumerate(value)]
        return parts if type(value) is list else {"tuple": parts}
    if type(value) in (set, frozenset):
        parts = [write_value(v, f"{name}.{i}", arrays, other) for i, v in enumerate(value)]
        return {type(value).__name__: sorted(parts, key=json.dumps)}  # in an order that does not depend on the run
    return other(value, name)


def read_value(code: Any, arrays: Arrays, other: Callable[[dict[str, Any]], Any]) -> Any:
    """Return the value that `write_value` wrote; `other` reads the objects that it does not know.

    Examples
    --------
    >>> read_value([1.5, {"tuple": [2, {"float": "inf"}]}], {}, None)
    [1.5, (2, inf)]
    """
    if isinstance(code, list):
        return [read_value(v, arrays, other) for v in code]
    if not isinstance(code, dict):
        return code
    if len(code) == 1:
        (kind, inside), *_ = code.items()
        if kind == "array":
            return stored(arrays, inside)
        if kind == "float" and inside in ("inf", "-inf", "nan"):
            return float(inside)
        if kind == "bytes" and isinstance(inside, str) and all(ord(c) < 256 for c in inside):
            return inside.encode("latin-1")
        if kind in _CONTAINERS and isinstance(inside, list) and (kind != "slice" or len(inside) == 3):
            parts = [read_value(v, arrays, other) for v in inside]
            try:
                return _CONTAINERS[kind](parts)
            except TypeError:
                raise damaged("the elements of a set can be hashed", inside) from None
    return other(code)


_CONTAINERS: dict[Any, Callable[[list[Any]], Any]] = {
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "slice": lambda parts: slice(*parts),
}


def stored(arrays: Arrays, name: Any) -> np.ndarray:
    """Return an array by its name, or say that it is missing."""
    if not isinstance(name, str) or name not in arrays:
        raise ValueError(
            f"the state is incomplete: its manifest names the array {name!r}, and there are "
            f"{', '.join(map(repr, arrays)) or 'none'}. Pass the arrays that were written with this manifest."
        )
    return np.asarray(arrays[name])


def damaged(what: str, seen: Any) -> ValueError:
    """Return the error for a manifest that says nothing known."""
    return ValueError(f"the state cannot be read: {what}, not {seen!r:.80}. It was written by other code, or changed.")


# -- points -----------------------------------------------------------------------------------------------


def write_points(data: Any, name: str, arrays: Arrays) -> dict[str, Any]:
    """Return the manifest of points, and put their numbers into `arrays`.

    Matrices, sparse matrices, pandas and polars tables, and sequences of texts, numbers, arrays, graphs, or tuples and
    sets of them can be written. Tensors are written as the NumPy arrays they hold.

    Examples
    --------
    >>> arrays = {}
    >>> write_points(np.eye(2), "points", arrays), list(arrays)
    ({'kind': 'array', 'array': 'points'}, ['points'])
    >>> write_points(["a", "b"], "points", {})
    {'kind': 'items', 'container': 'list', 'items': ['a', 'b']}
    """
    if is_foreign(data):
        data = np.asarray(data.detach().cpu() if hasattr(data, "detach") else data)
    if sparse.issparse(data):
        csr = sparse.csr_array(data)
        for part in ("data", "indices", "indptr"):
            arrays[f"{name}.{part}"] = np.ascontiguousarray(getattr(csr, part))
        return {"kind": "sparse", "name": name, "shape": [int(n) for n in csr.shape]}
    if hasattr(data, "columns"):
        return _write_table(data, name, arrays)
    if hasattr(data, "shape"):
        array = np.asarray(data)
        if array.dtype.kind in "fiub":
            arrays[name] = np.ascontiguousarray(array)
            return {"kind": "array", "array": name}
        container = "texts" if array.dtype.kind == "U" else "objects"
        return {"kind": "items", "container": container, "items": _items(list(array), name, arrays)}
    container = "tuple" if isinstance(data, tuple) else "list"
    return {"kind": "items", "container": container, "items": _items(list(data), name, arrays)}


def _items(items: list[Any], name: str, arrays: Arrays) -> list[Any]:
    def other(value: Any, where: str) -> Any:
        if isinstance(value, Graph):
            return {
                "graph": [write_value(part, f"{where}.{i}", arrays, other) for i, part in enumerate(value.arguments)]
            }
        raise TypeError(
            f"{where} is a {type(value).__name__}, {value!r:.60}; only points that are numbers, texts, graphs "
            "(mercer.Graph), arrays of numbers, or tuples and sets of them can be written as plain data. Replace the "
            "points by such, for instance by indices into a list of your own."
        )

    return [write_value(item, f"{name}.{i}", arrays, other) for i, item in enumerate(items)]


def _write_table(table: Any, name: str, arrays: Arrays) -> dict[str, Any]:
    columns: list[dict[str, Any]] = []
    ordered = levels_of(table)
    if len(set(table.columns)) < len(table.columns):
        raise ValueError(f"two columns of the table have one name: {', '.join(map(repr, table.columns))}; rename one.")
    for i, column in enumerate(table.columns):
        if not isinstance(column, str | int):
            raise TypeError(f"the table has a column called {column!r}; only texts and whole numbers can be written.")
        values = np.asarray(table[column])
        if values.dtype.kind in "fiub":
            arrays[f"{name}.{i}"] = np.ascontiguousarray(values)
            columns.append({"name": column, "array": f"{name}.{i}"})
        else:
            columns.append({"name": column, "items": _items(list(values), f"column {column!r}: point", arrays)})
        if column in ordered:
            columns[-1]["levels"] = _items(list(ordered[column]), f"column {column!r}: level", arrays)
    return {"kind": "table", "library": "pandas" if hasattr(table, "iloc") else "polars", "columns": columns}


def read_points(manifest: Any, arrays: Arrays) -> Any:
    """Return the points that `write_points` wrote."""
    kind = manifest.get("kind") if isinstance(manifest, dict) else None
    if kind == "array":
        return stored(arrays, manifest.get("array"))
    if kind == "sparse":
        name = manifest.get("name")
        parts = tuple(stored(arrays, f"{name}.{part}") for part in ("data", "indices", "indptr"))
        csr = sparse.csr_array(parts, shape=tuple(manifest.get("shape", ())))
        csr.check_format(full_check=True)  # the core trusts the indices
        return csr
    if kind == "items":
        return _read_items(manifest, arrays)
    if kind == "table":
        return _read_table(manifest, arrays)
    raise damaged("points are an array, a sparse matrix, items or a table", manifest)


def _plain_items(items: Any, arrays: Arrays) -> list[Any]:
    def other(code: dict[str, Any]) -> Any:
        parts = code.get("graph")
        if len(code) != 1 or not isinstance(parts, list):
            raise damaged("a point is a number, a text, an array, a graph or a tuple of them", code)
        return Graph(*(read_value(part, arrays, other) for part in parts))

    if not isinstance(items, list):
        raise damaged("items are a list", items)
    return [read_value(item, arrays, other) for item in items]


def _read_items(manifest: dict[str, Any], arrays: Arrays) -> Any:
    items, container = _plain_items(manifest.get("items"), arrays), manifest.get("container")
    if container == "objects":
        objects = np.empty(len(items), dtype=object)
        for i, item in enumerate(items):
            objects[i] = item
        return objects
    if container == "texts":
        return np.array(items, dtype=np.str_)
    return tuple(items) if container == "tuple" else items


def _read_table(manifest: dict[str, Any], arrays: Arrays) -> Any:
    columns = {
        c["name"]: stored(arrays, c["array"]) if "array" in c else _plain_items(c.get("items"), arrays)
        for c in manifest.get("columns", [])
    }
    ordered = {c["name"]: _plain_items(c["levels"], arrays) for c in manifest.get("columns", []) if "levels" in c}
    library = manifest.get("library")
    if library not in ("pandas", "polars"):
        raise damaged("a table is one of pandas or polars", library)
    if library == "polars":
        import polars

        schema = {column: polars.Enum(levels) for column, levels in ordered.items()}
        return polars.DataFrame(columns, schema_overrides=schema)
    import pandas as pd

    for column, levels in ordered.items():
        columns[column] = pd.Categorical(columns[column], levels, ordered=True)
    return pd.DataFrame(columns)
