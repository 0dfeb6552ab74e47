"""Codes for values that JSON has no word for, scorers of scikit-learn among them; common to writer and reader."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import config_context
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.metrics._scorer import _PassthroughScorer, _Scorer

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
METHODS = ("fit", "partial_fit", "predict", "predict_proba", "decision_function", "score", "split", "transform")
# Places on the machine that fitted, which mean nothing elsewhere and, in a file from a stranger, nothing good.
PLACES = ("checkpoint", "memory")


def is_place(name: str, value: Any) -> bool:
    """Return whether a parameter is a path, which is not saved."""
    return name in PLACES and value is not None and not isinstance(value, numbers.Number)


# -- what a reader may take for granted -------------------------------------------------------------------


def strange(code: Any) -> ValueError:
    """Return the error for what no writer writes."""
    return ValueError(f"{code!r:.80} is nothing that mercer writes")


def as_list(value: Any) -> list[Any]:
    """Return a list, or raise."""
    if not isinstance(value, list):
        raise strange(value)
    return value


def as_pair(value: Any) -> tuple[Any, Any]:
    """Return the two entries of a list."""
    if not isinstance(value, list) or len(value) != 2:
        raise strange(value)
    return value[0], value[1]


def as_text(value: Any) -> str:
    """Return a text, or raise."""
    if not isinstance(value, str):
        raise strange(value)
    return value


def as_shape(value: Any) -> tuple[int, ...]:
    """Return the shape of an array."""
    shape = tuple(as_list(value))
    if len(shape) > 32 or not all(type(n) is int and 0 <= n < 2**48 for n in shape):
        raise strange(value)
    return shape


def as_dtype(value: Any, kinds: str) -> np.dtype:
    """Return a plain dtype of one of some kinds, by NumPy's letters."""
    dtype = np.dtype(as_text(value))
    if dtype.kind not in kinds or dtype.shape or dtype.names or dtype.itemsize > 2**31 or "," in value:
        raise strange(value)
    return dtype


def as_attributes(value: Any) -> dict[str, Any]:
    """Return attributes by name, unless a name is none or one of Python's own."""
    if not isinstance(value, dict) or not all(k.isidentifier() and not k.startswith("__") for k in value):
        raise strange(value)
    return value


_FIELDS = ("_score_func", "_sign", "_kwargs", "_response_method")


def scorer_to_plain(scorer: Any) -> dict[str, Any] | None:
    """Return what a scorer is made of; None for whatever is no scorer.

    Examples
    --------
    >>> scorer_to_plain(get_scorer("accuracy"))
    {'name': 'accuracy'}
    """
    if type(scorer) is _PassthroughScorer:
        return {"estimator": scorer._estimator}
    if type(scorer) is not _Scorer:
        return None
    fields = [getattr(scorer, field) for field in _FIELDS]
    name = next((n for n in get_scorer_names() if [getattr(get_scorer(n), f) for f in _FIELDS] == fields), None)
    plain = {"name": name} if name else dict(zip(("function", "sign", "more", "response"), fields, strict=True))
    requests = vars(scorer).get("_metadata_request")
    asked = None if requests is None else requests.score.requests
    return {**plain, "asks": dict(asked)} if asked else plain


def scorer_from_plain(plain: Any) -> Any:
    """Return the scorer that `scorer_to_plain` wrote; ValueError for whatever it would not have written."""
    if not isinstance(plain, dict) or not all(isinstance(key, str) for key in plain):
        raise ValueError(f"{plain!r:.80} is no scorer")
    asked = plain.get("asks", {})
    made = {key: value for key, value in plain.items() if key != "asks"}
    if set(made) == {"estimator"} and hasattr(made["estimator"], "score"):
        return _PassthroughScorer(made["estimator"])
    if set(made) == {"name"} and made["name"] in get_scorer_names():
        scorer = get_scorer(made["name"])
    elif set(made) == {"function", "sign", "more", "response"}:
        scorer = _checked(**made)
    else:
        raise ValueError(f"{plain!r:.80} is no scorer of scikit-learn")
    if not isinstance(asked, dict) or not all(isinstance(key, str) for key in asked):
        raise ValueError(f"{asked!r:.80} is nothing that a scorer asks for")
    if asked:
        with config_context(enable_metadata_routing=True):
            scorer.set_score_request(**asked)
    return scorer


def _checked(function: Any, sign: Any, more: Any, response: Any) -> Any:
    methods = response if isinstance(response, list | tuple) else [response]
    right = callable(function) and sign in (1, -1) and isinstance(more, dict)
    if not right or not all(isinstance(m, str) and m.isidentifier() and not m.startswith("_") for m in methods):
        raise ValueError("a scorer is a function with a sign, arguments and the name of a method")
    return _Scorer(function, sign, more, response)
