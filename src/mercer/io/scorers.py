"""The scorers of scikit-learn as plain data: by their names, or by the functions that they call."""

from __future__ import annotations

from typing import Any

from sklearn import config_context
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.metrics._scorer import _PassthroughScorer, _Scorer

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
