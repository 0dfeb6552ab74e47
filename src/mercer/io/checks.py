"""Checks of the parts of a fitted model, whatever a file says, before anything is computed with them."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from mercer.certify import Certificate
from mercer.estimators.svm.machine import Recheck
from mercer.features.combine import ConstantColumn, Times
from mercer.kernels import Kernel
from mercer.kernels.rules.pullback import Applied, Columns
from mercer.rkhs import MercerExpansion, RKHSVector
from mercer.rkhs.functions.centres import size_of
from mercer.rkhs.functions.sums import Expansion
from mercer.tables.sparse import SparseEncoder

# What models compute with, as arrays (or single numbers) that are finite.
_NUMBERS: tuple[str, ...] = (
    "coef_",
    "dual_coef_",
    "intercept_",
    "eigenvectors_",
    "eigenvalues_",
    "theta_",
    "frequencies_",
    "offset_",
)
_NUMBERS += ("_A", "_b", "_U", "_squares", "_row_means", "_data", "_log_weights", "_normalised", "_unit", "noise_")
_POINTS = ("X_fit_", "support_vectors_")
_KINDS = ("vectors", "similarities", "anything", "function")
_USED = ("number", "yes/no", "category", "ordered category", "date")
_DROPPED = ("constant", "identifier")
_STRINGS = ("text", "sequence")  # dropped, or kept as they are
_PARTS = {"time": 1, "season": 2, "weekday": 2, "hour": 2}  # columns that each part of a date becomes
_POSITIVE = ("spread", "unit", "scale")  # by which an encoder divides, or which it multiplies with


def check(thing: Any) -> None:
    """Raise ValueError where a part of a model of mercer is not of its kind or does not fit the others."""
    if isinstance(thing, Expansion):
        _check_expansion(thing)
    elif isinstance(thing, Certificate):
        _check_certificate(thing)
    elif isinstance(thing, MercerExpansion):
        check_series(thing)
    elif isinstance(thing, Applied | Columns | ConstantColumn | Times):
        _check_map(thing)
    elif type(thing).__module__.startswith("mercer."):
        _check_model(thing)
    elif type(thing).__module__.startswith("sklearn."):
        _check_composition(thing)


def _finite(value: Any) -> bool:
    if sparse.issparse(value):
        value = value.data
    if isinstance(value, numbers.Real):
        return math.isfinite(value)
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fiu" or value.dtype == np.float16:
        return False
    return bool(np.isfinite(value).all())


def _check_expansion(thing: Expansion) -> None:
    require(isinstance(thing.kernel, Kernel), "the kernel of an expansion is a kernel")
    blocks = thing.blocks
    whole = isinstance(blocks, list) and len(blocks) > 0 and all(isinstance(b, np.ndarray) for b in blocks)
    require(whole and all(b.ndim == 2 for b in blocks), "the coefficients of an expansion are matrices")
    require(all(map(_finite, blocks)), "the coefficients of an expansion are finite numbers")
    require(len({b.shape[1] for b in blocks}) == 1, "the coefficients of an expansion have equal widths")
    require(isinstance(thing.single, bool), "`single` is True or False")
    _size(thing.support)


def _check_map(thing: Applied | Columns | ConstantColumn | Times) -> None:
    """What the maps between kernels and their features are made of."""
    if isinstance(thing, Applied):
        require(callable(thing.map) and not isinstance(thing.map, type), "a map of points is a function")
    elif isinstance(thing, Columns):
        plain = isinstance(thing.columns, tuple) and all(isinstance(c, str | int) for c in thing.columns)
        require(isinstance(thing.columns, slice) or plain, "columns are indices, names or a slice")
    else:
        require(finite(getattr(thing, "factor", getattr(thing, "value", None))), "a feature is multiplied by a number")


def _check_certificate(thing: Certificate) -> None:
    for name in ("primal", "dual", "kkt", "tol", "iterations", "seconds", "rounding"):
        require(isinstance(getattr(thing, name), numbers.Real), f"{name} of a certificate is a number")
    for name in ("solver", "precision", "stopped", "stationary"):
        require(isinstance(getattr(thing, name), str), f"{name} of a certificate is a text")
    parts = thing.parts
    require(isinstance(parts, tuple) and all(isinstance(p, Certificate) for p in parts), "its parts are certificates")
    check = thing.check
    right = check is None or (isinstance(check, Recheck) and hasattr(check.model, "_rechecked"))
    require(right, "a certificate is checked by its model")


def _check_model(model: Any) -> None:
    attributes, name = getattr(model, "__dict__", {}), type(model).__name__
    for key in _NUMBERS:
        if attributes.get(key) is not None:
            require(_finite(attributes[key]), f"{key} of {name} holds finite numbers")
    if "n_features_in_" in attributes:
        width = attributes["n_features_in_"]
        require(isinstance(width, numbers.Integral) and int(width) > 0, f"n_features_in_ of {name} counts something")
        if isinstance(attributes.get("coef_"), np.ndarray):
            require(
                attributes["coef_"].shape[-1:] == (width,), f"coef_ of {name} has a weight for each of {width} features"
            )
    if "_kind" in attributes or attributes.get("kernel_") is not None:
        require(isinstance(attributes.get("kernel_"), Kernel), f"kernel_ of {name} is a kernel")
    if "classes_" in attributes:
        classes = attributes["classes_"]
        right = isinstance(classes, np.ndarray) and classes.ndim == 1 and len(classes) > 1
        require(
            right and bool(np.all(classes[:-1] < classes[1:])), f"classes_ of {name} is a vector in ascending order"
        )
    if "intercept_" in attributes:
        require(np.size(attributes["intercept_"]) > 0, f"intercept_ of {name} is not empty")
    if "_certificates" in attributes:
        parts = attributes["_certificates"]
        right = isinstance(parts, list) and len(parts) > 0 and all(isinstance(p, Certificate) for p in parts)
        require(right, f"_certificates of {name} is a list of certificates")
    if "_kind" in attributes:
        require(attributes["_kind"] in _KINDS, f"_kind of {name} is one of {', '.join(_KINDS)}")
        _check_points(attributes, name)
    if "names_" in attributes:
        names = attributes["names_"]
        right = callable(attributes.get("map")) and isinstance(names, np.ndarray) and names.dtype == np.int64
        right = right and names.ndim == 1 and bool(np.all(names[:-1] < names[1:]))
        require(right, f"names_ of {name} are whole numbers in ascending order")
    if "shape_fit_" in attributes:
        _check_shapes(attributes, name)
    if "_normalised" in attributes:
        _check_process(attributes, name)
    if "columns_" in attributes:
        check_columns(attributes["columns_"], name)
    if "cv_results_" in attributes:
        check_search(attributes, name)
    if "account_" in attributes:
        check_automatic(attributes, name)
    if "calibration_" in attributes:
        check_maps(attributes["calibration_"], len(attributes.get("classes_", ())), name)
    if "expansion_" in attributes:
        require(isinstance(attributes["expansion_"], MercerExpansion), f"expansion_ of {name} is an expansion")


def _check_points(attributes: dict[str, Any], name: str) -> None:
    """The points are a matrix of finite numbers with the features of the fit, or whatever the kernel compares."""
    kind, expansion = attributes["_kind"], attributes.get("_expansion")
    given = {key: attributes[key] for key in _POINTS if key in attributes}
    if expansion is not None:
        require(isinstance(expansion, Expansion), f"_expansion of {name} is an expansion")
        total, size = sum(map(len, expansion.blocks)), _size(expansion.support)
        require(total in (0, size) or kind == "similarities", f"{name} has a coefficient for each support vector")
        given["its support vectors"] = expansion.support
    if kind != "vectors":
        return
    for key, points in given.items():
        require(_finite(points) and points.ndim == 2, f"{key} of {name} is a matrix of finite numbers")
        width = attributes.get("n_features_in_", points.shape[1])
        require(points.shape[1] == width, f"{key} of {name} has {width} columns")


def _check_shapes(attributes: dict[str, Any], name: str) -> None:
    shape = attributes["shape_fit_"]
    right = isinstance(shape, tuple) and len(shape) > 0 and all(type(n) is int and 0 < n < 2**40 for n in shape)
    require(right, f"shape_fit_ of {name} is a shape")
    coefficients = attributes.get("dual_coef_")
    if "X_fit_" in attributes:
        require(_size(attributes["X_fit_"]) == shape[0], f"X_fit_ of {name} has {shape[0]} points")
        if isinstance(coefficients, np.ndarray):
            require(coefficients.shape[:1] == shape[:1], f"dual_coef_ of {name} has one row for each point")
    if "support_" in attributes:
        support = attributes["support_"]
        right = isinstance(support, np.ndarray) and support.ndim == 1 and support.dtype.kind in "iu"
        require(right, f"support_ of {name} is a vector of places")
        inside = not support.size or (support.min() >= 0 and support.max() < shape[0])
        require(bool(inside), f"support_ of {name} stays within the {shape[0]} samples")
        if isinstance(coefficients, np.ndarray):
            right = coefficients.ndim == 2 and coefficients.shape[1] == len(support)
            require(right, f"dual_coef_ of {name} has a column for each support vector")


def _check_process(attributes: dict[str, Any], name: str) -> None:
    """What a Gaussian process computes variances with: targets, their units, noise, and the course of its search."""
    rows, targets, unit = attributes["shape_fit_"][0], attributes["_normalised"], attributes.get("_unit")
    right = isinstance(targets, np.ndarray) and targets.ndim == 2 and len(targets) == rows
    require(right, f"_normalised of {name} has a row for each of {rows} points")
    require(isinstance(unit, np.ndarray) and unit.shape == targets.shape[1:], f"_unit of {name} is one for each target")
    for key in ("noise_", "jitter_"):
        value = attributes.get(key, np.nan)
        require(_finite(value) and np.shape(value) in ((), (rows,)), f"{key} of {name} is one number, or one per point")
        require(np.all(np.asarray(value) >= 0), f"{key} of {name} is not negative")
    likelihood = attributes.get("log_marginal_likelihood_value_", "")
    require(likelihood is None or _finite(likelihood), f"log_marginal_likelihood_value_ of {name} is a number or None")
    history = attributes.get("_history")
    right = isinstance(history, list) and all(isinstance(row, tuple) and len(row) > 0 for row in history)
    require(right, f"_history of {name} is a list of tuples")


def _check_composition(thing: Any) -> None:
    """What scikit-learn's estimators of several are made of: names with estimators, and functions."""
    attributes, name = vars(thing), type(thing).__name__
    for key, size in (("steps", 2), ("transformer_list", 2), ("transformers", 3), ("transformers_", 3)):
        if key in attributes:
            parts = attributes[key]
            right = isinstance(parts, list | tuple) and len(parts) > 0
            right = right and all(
                isinstance(p, list | tuple) and len(p) == size and isinstance(p[0], str) for p in parts
            )
            right = right and all(p[1] is None or isinstance(p[1], str) or hasattr(p[1], "fit") for p in parts)
            require(right, f"{key} of {name} is a list of names and estimators")
    for key in ("best_estimator_", "estimator_", "regressor_", "transformer_"):
        require(attributes.get(key) is None or hasattr(attributes[key], "fit"), f"{key} of {name} is an estimator")
    for key in ("func", "inverse_func"):
        value = attributes.get(key)
        require(value is None or (callable(value) and not isinstance(value, type)), f"{key} of {name} is a function")


def _size(points: Any) -> int:
    try:
        return size_of(points)
    except (TypeError, IndexError):
        raise ValueError(f"points are a matrix or a sequence, and {points!r:.60} is neither") from None


# -- encoders of tables, searches and expansions ----------------------------------------------------------


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
        right = texts(column["kept"]) and texts(column.get("rare", [])) and isinstance(column.get("other"), bool)
        require(right, f"categories {called} are texts")
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


def check_search(attributes: dict[str, Any], name: str) -> None:
    """Check the results of a search: columns of one length, and the place of the best among them."""
    results = attributes["cv_results_"]
    right = isinstance(results, dict) and isinstance(results.get("params"), list) and len(results["params"]) > 0
    require(right and all(isinstance(key, str) for key in results), f"cv_results_ of {name} is a table with params")
    rows = len(results["params"])
    require(all(isinstance(params, dict) for params in results["params"]), f"params of {name} are dictionaries")
    for key, column in results.items():
        require(
            isinstance(column, list | np.ndarray) and len(column) == rows, f"{key:.40} of {name} has {rows} entries"
        )
    if "best_index_" in attributes:
        best = attributes["best_index_"]
        require(isinstance(best, numbers.Integral) and 0 <= int(best) < rows, f"best_index_ of {name} is below {rows}")
    if "best_estimator_" in attributes:
        require(isinstance(attributes["best_estimator_"], BaseEstimator), f"best_estimator_ of {name} is an estimator")


def check_automatic(attributes: dict[str, Any], name: str) -> None:
    """Check what a model that has chosen its kernel knows beside it: its account, and what was held out."""
    account = attributes["account_"]
    parts = [getattr(account, part, None) for part in ("seen", "kernels", "tried", "chosen", "model")]
    right = type(account).__name__ == "Account" and all(isinstance(part, str) for part in parts)
    require(right and isinstance(account.facts, dict), f"account_ of {name} consists of sentences and facts")
    if "encoder_" in attributes:
        encoder = attributes["encoder_"]
        fitted = isinstance(encoder, SparseEncoder) and hasattr(encoder, "n_features_in_")
        require(fitted or hasattr(encoder, "columns_"), f"encoder_ of {name} is a fitted encoder")
    if "estimator_" in attributes:
        require(isinstance(attributes["estimator_"], BaseEstimator), f"estimator_ of {name} is an estimator")
    if "results_" in attributes:
        columns = attributes["results_"]
        right = isinstance(columns, dict) and all(isinstance(c, list | np.ndarray) for c in columns.values())
        require(right and len({len(c) for c in columns.values()}) == 1, f"results_ of {name} has columns of one length")
    if "residuals_" in attributes:
        rest = attributes["residuals_"]
        require(_numbers(rest, 1) and len(rest) > 0, f"residuals_ of {name} are numbers")
        require((rest[:-1] <= rest[1:]).all(), f"residuals_ of {name} are in ascending order")
        counts = attributes.get("residual_counts_")
        right = counts is None or (_numbers(counts, 1) and counts.shape == rest.shape and bool((counts > 0).all()))
        require(right, f"residual_counts_ of {name} are numbers above 0, one for each residual")
        if "residual_rows_" in attributes:  # older model files do not know them
            known = all(_places(attributes.get(key), rest.shape) for key in ("residual_rows_", "residual_folds_"))
            require(known, f"residual_rows_ and residual_folds_ of {name} are numbers from 0 on, one for each residual")
            learned = getattr(attributes.get("estimator_"), "shape_fit_", (0,))[0]
            right = bool(attributes["residual_rows_"].max() < learned)
            require(right, f"residual_rows_ of {name} are among the {learned} rows of its fit")
    if "target_range_" in attributes:
        ends = attributes["target_range_"]
        require(_numbers(ends, 1) and ends.shape == (2,), f"target_range_ of {name} is two numbers")
    if "target_scale_" in attributes:
        require(attributes["target_scale_"] in ("identity", "log"), f"target_scale_ of {name} is 'identity' or 'log'")


def check_maps(maps: Any, classes: int, name: str) -> None:
    """Check what makes probabilities of margins: a map for each pair of classes, and the power of them all."""
    pairs = classes * (classes - 1) // 2
    right = isinstance(maps, dict) and "slope" in maps
    if right and "offset" not in maps:  # of scores of classes
        pairs = 1
    right = right and all(_numbers(maps[key], 1) and len(maps[key]) == pairs for key in {"slope", "offset"} & set(maps))
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


def _places(value: Any, shape: tuple[int, ...]) -> bool:
    right = isinstance(value, np.ndarray) and value.dtype == np.int64 and value.shape == shape and value.size > 0
    return right and int(value.min()) >= 0


def _numbers(value: Any, ndim: int) -> bool:
    right = isinstance(value, np.ndarray) and value.ndim == ndim and value.dtype == np.float64
    return right and bool(np.isfinite(value).all())
