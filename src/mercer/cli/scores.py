"""Scores of predictions on rows with known answers, each with its standard error."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata


@dataclass(frozen=True)
class Score:
    """A measure of predictions, the standard error that the finite number of rows leaves, and which way is better."""

    name: str
    value: float
    error: float
    larger: bool = True

    def __str__(self) -> str:
        return within(self.value, self.error)


def within(value: float, error: float) -> str:
    """Return a value with its error, to the digits that the error leaves.

    Examples
    --------
    >>> from mercer.cli.scores import within
    >>> within(0.85731, 0.00352), within(541.27, 9.4), within(1.0, 0.0)
    ('0.8573 ± 0.0035', '541.3 ± 9.4', '1 ± 0')
    """
    if not np.isfinite(error) or error <= 0:
        return f"{value:.4g}" + (" ± 0" if error == 0 else "")
    if not 1e-12 < error < 1e12:
        return f"{value:.4g} ± {error:.2g}"
    digits = max(0, 1 - int(np.floor(np.log10(error))))
    return f"{value:,.{digits}f} ± {error:,.{digits}f}"


def classification(
    y: np.ndarray, predicted: np.ndarray, classes: np.ndarray, chances: np.ndarray | None = None
) -> list[Score]:
    """Return accuracy and balanced accuracy; with probabilities also the area under the ROC curve and the log loss."""
    right = (y == predicted).astype(float)
    scores = [Score("accuracy", float(right.mean()), _proportion(right))]
    shares = [right[y == label] for label in classes if (y == label).any()]
    if shares:  # labels of which none was ever seen have no share
        error = float(np.sqrt(sum(_proportion(part) ** 2 for part in shares))) / len(shares)
        scores.append(Score("balanced accuracy", float(np.mean([part.mean() for part in shares])), error))
    if chances is None:
        return scores
    if len(classes) == 2 and len(shares) == 2:
        scores.append(area(y == classes[1], chances[:, 1]))
    place = {label: i for i, label in enumerate(classes.tolist())}
    known = np.array([place.get(label, -1) for label in y.tolist()])
    if (known >= 0).all():  # a label that was never seen has no probability
        loss = -np.log(np.clip(chances[np.arange(len(y)), known], 1e-15, 1.0))
        scores.append(Score("log loss", float(loss.mean()), _error_of_mean(loss), larger=False))
    return scores


def area(positive: np.ndarray, value: np.ndarray) -> Score:
    """Return the area under the ROC curve with the standard error of DeLong, DeLong and Clarke-Pearson (1988)."""
    ranks = rankdata(value)
    n, m = int(positive.sum()), int((~positive).sum())
    above = (ranks[positive] - rankdata(value[positive])) / m  # of the negatives, how many each positive exceeds
    below = 1.0 - (ranks[~positive] - rankdata(value[~positive])) / n
    return Score("ROC area", float(above.mean()), float(np.hypot(_error_of_mean(above), _error_of_mean(below))))


def regression(y: np.ndarray, predicted: np.ndarray) -> list[Score]:
    """Return R², the root of the mean squared error and the mean absolute error."""
    y, predicted, unit = _scaled(y, predicted)
    miss = predicted - y
    square, error = float(np.mean(miss**2)), _error_of_mean(miss**2)
    spread = float(np.var(y))
    root = float(np.sqrt(square))
    return [
        Score("R²", 1 - square / spread if spread else np.nan, error / spread if spread else np.nan),
        Score("RMSE", root * unit, error / (2 * root) * unit if root else 0.0, larger=False),
        Score("MAE", float(np.abs(miss).mean()) * unit, _error_of_mean(np.abs(miss)) * unit, larger=False),
    ]


def scores_of(model: Any, X: Any, y: np.ndarray) -> list[Score]:
    """Return the scores of a fitted model on a table with known answers."""
    if hasattr(model, "classes_"):
        chances = model.predict_proba(X) if hasattr(model, "predict_proba") else None
        return classification(np.asarray(y), np.asarray(model.predict(X)), np.asarray(model.classes_), chances)
    return regression(np.asarray(y, float), np.asarray(model.predict(X), float))


def baseline(y: np.ndarray, task: str) -> str:
    """Return how well one would do without looking at the row."""
    if task == "classify":
        label, rows = Counter(map(str, y.tolist())).most_common(1)[0]
        return f"always saying {label!r} is right {rows / len(y):.1%} of the time"
    y, _, unit = _scaled(y, y)
    return f"always saying the mean, {np.mean(y) * unit:.4g}, has an RMSE of {np.std(y) * unit:.4g}"


def _scaled(y: np.ndarray, predicted: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Return numbers in units of a power of two in which their squares are numbers, and the unit."""
    y, predicted = np.asarray(y, float), np.asarray(predicted, float)
    size = int(np.frexp(max(np.abs(y).max(), np.abs(predicted).max()))[1]) - 1
    return np.ldexp(y, -size), np.ldexp(predicted, -size), float(np.ldexp(1.0, size))


def _proportion(right: np.ndarray) -> float:
    share = float(right.mean())
    return float(np.sqrt(share * (1 - share) / len(right)))


def _error_of_mean(values: np.ndarray) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0
