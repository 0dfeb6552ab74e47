"""A model that was loaded answers for one point before anybody relies on it."""

from __future__ import annotations

import copy
import warnings
from contextlib import suppress
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import NotFittedError

from mercer.points import Points
from mercer.rkhs.functions.centres import size_of
from mercer.tables.sparse import SparseEncoder

_POINTS = ("X_fit_", "support_vectors_", "_everyone", "_data")  # where models keep points that they were fitted to
_ANSWERS = ("predict", "decision_function", "score_samples", "transform")
_INSIDE = ("encoder_", "best_estimator_", "estimator_", "regressor_")  # what models of several hand points to
_SEVERAL = ("steps", "transformers", "transformer_list")
_PROCESS_POINTS = 300  # points up to which the variance of a process, a matter of their third power, is worth a trial
_POINT_COPIES = 7  # rows of a trial: one row would fit beside vectors of any length, and this is no usual length
_WIDEST = 2**62  # columns of a sparse matrix
_PAIRED_CLASSES = 30  # classes up to which the probabilities of all pairs are worth a trial


def try_out(model: Any) -> None:
    """Let a fitted model of mercer or scikit-learn answer for one point, and raise ValueError where it cannot.

    The checks of `checks.py` say what is wrong; this finds what they do not think of. The point is one that the model
    was fitted to, or one made of what it has learned. Models of several (a pipeline, a search) may refuse such a point
    in a sentence; any other error is one of the file.

    Parameters
    ----------
    model
        An estimator, all of whose attributes are set.
    """
    own = {k: v for k, v in vars(model).items() if k not in model.get_params(deep=False)}
    if not set(own) - {"n_features_in_", "feature_names_in_"} or not _ours(model):
        return
    point, several = sample(model), any(hasattr(model, name) for name in _SEVERAL + _INSIDE)
    model = copy.copy(model)  # what a model notes when it answers is not part of the file
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            if isinstance(getattr(type(model), "certificate_", None), property):
                with suppress(NotFittedError):  # a model that has learned step by step has none
                    str(model.certificate_)
            if point is not None:
                _answer(model, point)
    except Exception as error:
        if several and isinstance(error, ValueError):
            return
        said = " ".join(str(error).split()).rstrip(".")
        raise ValueError(f"a {type(model).__name__} that it holds does not work ({said:.200})") from None


def _ours(model: Any) -> bool:
    return type(model).__module__.startswith(("mercer.", "sklearn."))


def _answer(model: Any, point: Any) -> None:
    for name in _ANSWERS:
        if hasattr(model, name):
            answer = getattr(model, name)(point)
            if hasattr(model, "inverse_transform") and type(model).__module__.startswith("mercer."):
                model.inverse_transform(answer)
    if hasattr(model, "predict_proba") and len(getattr(model, "classes_", ())) <= _PAIRED_CLASSES:
        model.predict_proba(point)
    if hasattr(model, "predict_quantiles"):
        model.predict_quantiles(point, [0.5])
    if hasattr(model, "_normalised") and model._kind != "similarities" and model.shape_fit_[0] <= _PROCESS_POINTS:
        model.predict(point, return_std=True)


def sample(model: Any) -> Any:
    """Return one point for a fitted model, in a container of the kind it takes; None where none can be made."""
    attributes = vars(model)
    function = attributes.get("func")
    if not _ours(model) or not (function is None or _ours(function)) or "_precomputed" in attributes:
        return None  # only its owner knows what it takes
    if "names_" in attributes:
        return None  # the map of named features knows what objects it takes
    for name in _INSIDE:
        if name in attributes:
            return sample(attributes[name])
    if "steps" in attributes:
        inside = [step for _, step in attributes["steps"] if not (step is None or isinstance(step, str))]
        return sample(inside[0]) if inside else None
    if "transformer_list" in attributes:
        return sample(attributes["transformer_list"][0][1])
    if "transformers_" in attributes:
        return _row_of_columns(model)
    if isinstance(model, SparseEncoder) and "n_features_in_" in attributes:
        return sparse.csr_array((_POINT_COPIES, min(attributes["n_features_in_"], _WIDEST)))
    if "columns_" in attributes:
        import pandas as pd

        return pd.DataFrame({column["name"]: [None] * _POINT_COPIES for column in attributes["columns_"]})
    if attributes.get("_kind") != "similarities":
        for name in _POINTS:
            points = attributes.get(name)
            if points is not None and size_of(points):
                return Points(points).take(np.zeros(_POINT_COPIES, dtype=np.intp)).data
    if "categories_" in attributes:
        return np.array([[kinds[0] for kinds in attributes["categories_"]]] * _POINT_COPIES, dtype=object)
    if "statistics_" in attributes:
        return np.array([attributes["statistics_"]] * _POINT_COPIES)
    if "n_features_in_" in attributes:
        return np.ones((_POINT_COPIES, attributes["n_features_in_"]))
    if "names_" in attributes:
        return None  # of objects of whatever kind
    if type(model).__module__.startswith("mercer.features"):
        raise ValueError(f"a {type(model).__name__} that it holds does not know how many features it takes")
    return attributes["classes_"][:1] if "classes_" in attributes else None


def _row_of_columns(model: Any) -> Any:
    """Return a row for a transformer of columns: what each of its parts takes, at the places of its columns."""
    import pandas as pd

    names = getattr(model, "feature_names_in_", None)
    row: list[Any] = [1.0] * model.n_features_in_
    for _, part, places in model.transformers_:
        inner = None if isinstance(part, str) else sample(part)
        if isinstance(part, str) or len(places) == 0:
            continue
        if inner is None or isinstance(places, slice):
            return None
        for place, value in zip(places, np.asarray(inner, dtype=object)[0], strict=False):
            row[place if names is None else list(names).index(place)] = value
    return np.array([row] * _POINT_COPIES) if names is None else pd.DataFrame([row] * _POINT_COPIES, columns=names)
