"""The outcomes as scikit-learn lays them out."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from numpy.ma import MaskedArray
from scipy.stats import rankdata

from mercer.selection.search.work import Work


def table(work: Work) -> dict[str, Any]:
    """Return `cv_results_`: a column for each parameter, for each fold's score, and for their mean, spread and rank.

    Cells that were not looked at are NaN; means are over those that were. Candidates that have not seen every fold rank
    after all that have, and those of an earlier round of halving after those of a later one.
    """
    shape = (len(work.candidates), len(work.splits))
    results: dict[str, Any] = {}
    for name in ("fit_time", "score_time"):
        _spread(results, name, _filled(work, shape, lambda o, name=name: getattr(o, name)))
    results |= _parameters(work.candidates)
    results["params"] = work.candidates
    first = next(iter(work.found.values())).test
    names: list[Any] = list(first) if isinstance(first, dict) else [None]
    seen = np.zeros(shape, bool)
    for cell in work.found:
        seen[cell] = True
    rounds = np.array([work.rounds.get(c, (0, 0)) for c in range(shape[0])])
    if work.rounds:
        results["iter"], results["n_resources"] = rounds.T
    for metric in names:
        for part in ("test", "train") if work.train_scores else ("test",):
            key = f"{part}_{'score' if metric is None else metric}"

            def of(outcome: Any, part: str = part, metric: Any = metric) -> float:
                value = getattr(outcome, part)
                return float(value if metric is None else value[metric])

            values = _filled(work, shape, of)
            for fold in range(shape[1]):
                results[f"split{fold}_{key}"] = values[:, fold]
            _spread(results, key, values, seen)
            if part == "test":
                results[f"rank_{key}"] = _ranks(results[f"mean_{key}"], seen, rounds[:, 0])
    return results


def _filled(work: Work, shape: tuple[int, int], of: Any) -> np.ndarray:
    values = np.full(shape, np.nan)
    for cell, outcome in work.found.items():
        values[cell] = of(outcome)
    return values


def _spread(results: dict[str, Any], key: str, values: np.ndarray, seen: np.ndarray | None = None) -> None:
    """Add mean and standard deviation over the cells that were looked at."""
    made = ~np.isnan(values) if seen is None else seen
    count = np.maximum(made.sum(axis=1), 1)
    mean = np.where(made.any(axis=1), np.where(made, values, 0.0).sum(axis=1) / count, np.nan)
    square = np.where(made, (values - mean[:, None]) ** 2, 0.0).sum(axis=1) / count
    results[f"mean_{key}"] = mean
    results[f"std_{key}"] = np.where(made.any(axis=1), np.sqrt(square), np.nan)


def _ranks(means: np.ndarray, seen: np.ndarray, rounds: np.ndarray) -> np.ndarray:
    """Return 1 for the best; earlier rounds after later ones, fewer folds after more, NaN last."""
    folds = seen.sum(axis=1) + (seen.shape[1] + 1) * (rounds - rounds.max())
    bad = np.isnan(means)
    if bad.all():
        return np.ones(len(means), np.int32)
    means = np.where(bad, np.nanmin(means) - 1.0, means)
    within = rankdata(-means, method="min")
    behind = seen.shape[1] - folds
    order = np.where(bad, behind.max() + 1, behind) * (len(means) + 1.0) + within
    return rankdata(order, method="min").astype(np.int32)


def _parameters(candidates: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a masked array for each parameter, empty where a candidate does not set it."""
    columns: dict[str, Any] = {}
    for name in dict.fromkeys(name for params in candidates for name in params):
        values = {i: params[name] for i, params in enumerate(candidates) if name in params}
        plain = all(isinstance(v, numbers.Number | np.generic) for v in values.values())
        kind = np.result_type(*map(np.asarray, values.values())) if plain else np.dtype(object)
        column = MaskedArray(np.empty(len(candidates), kind), mask=True)
        for i, value in values.items():
            column[i] = value
        columns[f"param_{name}"] = column
    return columns


def best_index(refit: Any, metric: Any, results: dict[str, Any]) -> int:
    """Return which candidate is the best, or the one that a user's function chooses."""
    if not callable(refit):
        return int(results[f"rank_test_{metric}"].argmin())
    chosen = refit(results)
    if not isinstance(chosen, numbers.Integral):
        raise TypeError(f"refit must return the place of a candidate, an integer; it returned {chosen!r}.")
    if not 0 <= int(chosen) < len(results["params"]):
        raise IndexError(f"refit returned {chosen}, which is none of the {len(results['params'])} candidates.")
    return int(chosen)
