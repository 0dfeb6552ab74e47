"""What encoders of tables, searches and expansions must be, whatever a file says."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from mercer.rkhs import MercerExpansion, RKHSVector

_USED = ("number", "yes/no", "category", "ordered category", "date")
_DROPPED = ("constant", "identifier")
_STRINGS = ("text", "sequence")  # dropped, or kept as they are
_PARTS = {"time": 1, "season": 2, "weekday": 2, "hour": 2}  # columns that each part of a date becomes
_POSITIVE = ("spread", "unit", "scale")  # by which an encoder divides, or which it multiplies with


def require(right: Any, what: str) -> None:
    """Raise ValueError unless what is written is right."""
    if not right:
        raise ValueError(f"{what}, and what is written is not")


def finite(value: Any) -> bool:
    """Return whether something is a finite number, and no truth value."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)


def texts(value: Any) -> bool:
    """Return whether something is a list of texts."""
    return isinstance(value, list) and all(isinstance(entry, str) for entry in value)


# -- tables -----------------------------------------------------------------------------------------------


def check_columns(columns: Any, name: str) -> None:
    """Check what an encoder has learned about the columns of a table."""
    right = isinstance(columns, list) and len(columns) > 0 and all(isinstance(c, dict) for c in columns)
    require(right, f"columns_ of {name} is a list of dictionaries")
    for column in columns:
        called = column.get("name")
        require(isinstance(called, str) and isinstance(column.get("said"), str), "a column has a name and a sentence")
        require(column.get("kind") in _USED + _DROPPED + _STRINGS, f"the kind of column {called!r:.40} is a known one")
        require(texts(column.get("made")), f"what column {called!r:.40} became is a list of names")
        if column["kind"] in _DROPPED:
            require(not column["made"], f"column {called!r:.40} was dropped and became nothing")
        elif column["kind"] in _STRINGS:
            require(column["made"] in ([], [called]), f"column {called!r:.40} was dropped, or kept as it is")
        else:
            require(len(column["made"]) == _width(column), f"column {called!r:.40} became as many as its kind makes")
    require(any(c["made"] for c in columns), f"columns_ of {name} make at least one column")


def _width(column: dict[str, Any]) -> int:
    """Return how many columns a column becomes, once its numbers are seen to be some."""
    called = f"of column {column['name']!r:.40}"
    for key, value in column.items():
        if key in ("median", "centre", "mean", *_POSITIVE):
            require(finite(value) and (value > 0 or key not in _POSITIVE), f"{key} {called} is a number that serves")
    right = isinstance(column.get("missing"), bool) and "scale" in column
    require(right, f"it is known whether cells {called} were missing")
    missing = int(column["missing"])
    if "kept" in column:
        require(texts(column["kept"]) and isinstance(column.get("other"), bool), f"categories {called} are texts")
        width = len(column["kept"]) + column["other"] + missing
        return 1 if width == 2 else width
    if "levels" in column or column["kind"] == "ordered category":
        levels = column.get("levels", [])
        require(texts(levels) and 1 < len(set(levels)) == len(levels), f"levels {called} are different texts")
    require({"median", "centre", "spread"} <= set(column), f"numbers {called} have a centre and a spread")
    if column["kind"] == "date":
        parts = column.get("parts", [])
        require(texts(parts) and set(parts) <= set(_PARTS), f"parts {called} are {', '.join(_PARTS)}")
        require(isinstance(column.get("format"), str), f"the format {called} is a text")
        return sum(_PARTS[part] for part in parts) + missing
    require(
        column.get("shape") in ("plain", "log") and {"unit", "mean"} <= set(column), f"numbers {called} have a shape"
    )
    return 1 + missing


# -- searches ---------------------------------------------------------------------------------------------


def check_search(found: dict[str, Any], name: str) -> None:
    """Check the results of a search: columns of one length, and the place of the best among them."""
    results = found["cv_results_"]
    right = isinstance(results, dict) and isinstance(results.get("params"), list) and len(results["params"]) > 0
    require(right and all(isinstance(key, str) for key in results), f"cv_results_ of {name} is a table with params")
    rows = len(results["params"])
    require(all(isinstance(params, dict) for params in results["params"]), f"params of {name} are dictionaries")
    for key, column in results.items():
        require(
            isinstance(column, list | np.ndarray) and len(column) == rows, f"{key:.40} of {name} has {rows} entries"
        )
    if "best_index_" in found:
        best = found["best_index_"]
        require(isinstance(best, numbers.Integral) and 0 <= int(best) < rows, f"best_index_ of {name} is below {rows}")
    if "best_estimator_" in found:
        require(isinstance(found["best_estimator_"], BaseEstimator), f"best_estimator_ of {name} is an estimator")


def check_automatic(found: dict[str, Any], name: str) -> None:
    """Check what a model that has chosen its kernel knows beside it: its account, and what was held out."""
    account = found["account_"]
    parts = [getattr(account, part, None) for part in ("seen", "kernels", "tried", "chosen", "model")]
    right = type(account).__name__ == "Account" and all(isinstance(part, str) for part in parts)
    require(right and isinstance(account.facts, dict), f"account_ of {name} consists of sentences and facts")
    if "encoder_" in found:
        require(hasattr(found["encoder_"], "columns_"), f"encoder_ of {name} is a fitted encoder")
    if "estimator_" in found:
        require(isinstance(found["estimator_"], BaseEstimator), f"estimator_ of {name} is an estimator")
    if "results_" in found:
        columns = found["results_"]
        right = isinstance(columns, dict) and all(isinstance(c, list | np.ndarray) for c in columns.values())
        require(right and len({len(c) for c in columns.values()}) == 1, f"results_ of {name} has columns of one length")
    if "residuals_" in found:
        rest = found["residuals_"]
        require(_numbers(rest, 1) and len(rest) > 0, f"residuals_ of {name} are numbers")
        require((rest[:-1] <= rest[1:]).all(), f"residuals_ of {name} are in ascending order")
    if "target_scale_" in found:
        require(found["target_scale_"] in ("identity", "log"), f"target_scale_ of {name} is 'identity' or 'log'")


def check_maps(maps: Any, classes: int, name: str) -> None:
    """Check what makes probabilities of margins: a map for each pair of classes, and the power of them all."""
    pairs = classes * (classes - 1) // 2
    right = isinstance(maps, dict) and {"slope", "offset"} <= set(maps)
    right = right and all(_numbers(maps[key], 1) and len(maps[key]) == pairs for key in ("slope", "offset"))
    require(right and (maps["slope"] > 0).all(), f"calibration_ of {name} has a rising map for each of {pairs} pairs")
    power = maps.get("power", np.ones(1))
    require(_numbers(power, 1) and power.shape == (1,) and power[0] > 0, f"the power of {name} is a number above 0")


# -- expansions -------------------------------------------------------------------------------------------


def check_series(thing: MercerExpansion) -> None:
    """Check a kernel's series: eigenvalues above 0, one function each, and masses for the nodes."""
    values, functions = thing.eigenvalues, thing.eigenfunctions
    require(_numbers(values, 1) and len(values) > 0 and (values > 0).all(), "eigenvalues are numbers above 0")
    require(_numbers(thing.errors, 1) and thing.errors.shape == values.shape, "each eigenvalue has an error")
    require(isinstance(functions, RKHSVector) and len(functions) == len(values), "each eigenvalue has a function")
    nodes = functions.coefficients.shape[0]
    require(_numbers(thing.weights, 1) and thing.weights.shape == (nodes,), "each node has a weight")
    require(_numbers(thing._vectors, 2) and thing._vectors.shape == (nodes, len(values)), "vectors have their shape")
    require(finite(thing.trace) and thing.trace > 0, "the trace is a number above 0")
    require(isinstance(thing.how, str) and isinstance(thing._rule.name, str), "it is said in words how it was made")


def _numbers(value: Any, ndim: int) -> bool:
    right = isinstance(value, np.ndarray) and value.ndim == ndim and value.dtype == np.float64
    return right and bool(np.isfinite(value).all())
