"""A regressor that finds its kernel."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.stats import skew
from sklearn.base import RegressorMixin
from sklearn.metrics import check_scoring, make_scorer
from sklearn.utils.validation import check_is_fitted

from mercer.estimators import KernelRidge
from mercer.machine.words import count
from mercer.selection.automatic.account import scoring_name
from mercer.selection.automatic.base import AutoModel
from mercer.selection.search.answers import KnownRegressor

_ALPHA = np.logspace(1, -5, 13)
_MANY, _LEAST = 5000, 9e-5  # rows from which on no smaller alpha is tried: the last fit would hardly end
_SKEWED, _LOGGED = 1.0, 30  # skewness and number of positive targets from which on their logarithms are tried
_OVERFLOW = 700.0  # beyond this exp is infinite


class AutoRegressor(RegressorMixin, AutoModel):
    """A regressor of tables that finds its kernel: an encoder, a search, and a `KernelRidge` on all rows.

    As `AutoClassifier`, with numbers as targets. Positive targets with a long tail are also tried on the scale of their
    logarithms, and learned there if that predicts the targets themselves better.

    Parameters
    ----------
    kernels, cv, scoring, time_limit, search_rows, budget, random_state, verbose
        As for `AutoClassifier`; the default score is R².

    Attributes
    ----------
    account_, encoder_, estimator_, kernel_, named_kernel_, certificate_, function_, plan_, best_score_, score_error_
    honest_score_
        As for `AutoClassifier`.
    results_, best_index_, scoring_, held_out_, n_features_in_, feature_names_in_, timings_, interrupted_
        As for `AutoClassifier`; results have "alpha" in place of "C".
    target_scale_
        "identity", or "log" where `estimator_` has learned logarithms.
    residuals_
        Target less prediction of rows that were held out, on that scale, ascending.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import AutoRegressor
    >>> X = np.random.default_rng(0).uniform(0, 6, (150, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(1).normal(size=150)
    >>> model = AutoRegressor().fit(X, y)
    >>> bool(model.best_score_ > 0.95)
    True
    >>> low, high = model.predict_quantiles([[1.5]], [0.05, 0.95])[0]
    >>> bool(0.7 < low < np.sin(1.5) < high < 1.3)
    True
    """

    _classifies: ClassVar[bool] = False
    _price: ClassVar[str] = "alpha"

    def _read_target(self, y: np.ndarray) -> np.ndarray:
        return np.asarray(y, dtype=np.float64)

    def _readings(self, y: np.ndarray) -> list[tuple[str, np.ndarray, Any]]:
        scoring = "r2" if self.scoring is None else self.scoring
        found: list[tuple[str, np.ndarray, Any]] = [("identity", y, scoring)]
        if len(y) >= _LOGGED and y.min() > 0 and skew(y) > max(_SKEWED, 2 * abs(skew(np.log(y)))):
            scorer = make_scorer(partial(_scored_back, scorer=check_scoring(KernelRidge(), scoring)))
            scorer.name = scoring_name(scoring)
            found.append(("log", np.log(y), scorer))
        return found

    def _machine(self, rows: int) -> tuple[Any, np.ndarray]:
        alphas = _ALPHA if rows <= _MANY else _ALPHA[_ALPHA > _LEAST]
        return KernelRidge(fit_intercept=True, budget=self._part), alphas

    def _held(self, models: Iterator[tuple[Any, np.ndarray, np.ndarray]], y: np.ndarray, rows: np.ndarray) -> None:
        values = np.full(len(rows), np.nan)
        for model, Z, places in models:
            values[places] = model.predict(Z)
        seen = np.isfinite(values)
        self.residuals_ = np.sort(y[rows[seen]] - values[seen])
        self.held_out_ = {"rows": rows[seen], "values": self._back(values[seen])}

    def learned_target(self, y: Any) -> np.ndarray:
        """Return the targets, or their logarithms where `estimator_` has learned these."""
        y = np.asarray(y, dtype=np.float64)
        return np.log(y) if self.target_scale_ == "log" else y

    def _back(self, values: np.ndarray) -> np.ndarray:
        return _exp(values) if self.target_scale_ == "log" else values

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted number of each row.

        Parameters
        ----------
        X
            A table or an array as in `fit`.
        """
        return self._back(self._values(X, "predict"))

    def predict_quantiles(self, X: Any, quantiles: Any = (0.05, 0.5, 0.95)) -> np.ndarray:
        """Return numbers below which the target of each row is with given probabilities, (n, quantiles).

        They are the prediction plus quantiles of the residuals of rows that were held out (as in conformal prediction):
        over all rows they hold as they say, or a little more, since the last fit has seen more rows. Their distance
        from the prediction is the same everywhere on the scale that was learned, so that they do not tell rows that are
        hard to predict from easy ones; after learning logarithms it is a factor.

        Parameters
        ----------
        X
            A table or an array as in `fit`.
        quantiles
            Probabilities between 0 and 1.
        """
        check_is_fitted(self, "estimator_")
        asked = np.atleast_1d(np.asarray(quantiles, dtype=np.float64))
        if asked.ndim != 1 or not ((asked > 0) & (asked < 1)).all():
            raise ValueError(f"quantiles={quantiles!r} must be numbers between 0 and 1.")
        return self._back(self._values(X, "predict")[:, None] + conformal_quantiles(self.residuals_, asked))

    def _target_sentences(self, y: np.ndarray) -> str:
        said = f"The target lies between {y.min():.4g} and {y.max():.4g}, with deviation {np.std(y):.4g}."
        if len(self._compared) > 1:
            plain, logged = (f"{self._compared[name]:.4g}" for name in ("identity", "log"))
            chosen = "logarithms are learned" if self.target_scale_ == "log" else "it is learned as it is"
            said += (
                f" It is positive with a long tail: for some kernels {self.scoring_} was at best {plain} as it is and "
                f"{logged} by way of its logarithm, so {chosen}."
            )
        return said

    def _model_sentences(self) -> str:
        low, high = self._back(conformal_quantiles(self.residuals_, np.array([0.05, 0.95])))
        n = count(len(self.residuals_), "row")
        if self.target_scale_ == "log":
            return f"Nine in ten of {n} that were held out lie between {low:.3g} and {high:.3g} times the prediction."
        return f"Nine in ten of {n} that were held out lie between {low:.3g} and {high:+.3g} of the prediction."


def _exp(values: np.ndarray) -> np.ndarray:
    return np.exp(np.minimum(values, _OVERFLOW))


def _scored_back(target: np.ndarray, predicted: np.ndarray, scorer: Any) -> float:
    """Score predictions of logarithms as those of the numbers themselves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return float(scorer(KnownRegressor(_exp(predicted)), np.arange(len(target)), _exp(target)))


def conformal_quantiles(residuals: np.ndarray, quantiles: np.ndarray) -> np.ndarray:
    """Return quantiles of residuals on the safe side: ranks among n + 1, rounded away from the middle.

    Parameters
    ----------
    residuals
        y - f at points that f was not fitted to, ascending.
    quantiles
        Between 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> conformal_quantiles(np.arange(1.0, 10.0), np.array([0.1, 0.5, 0.85]))
    array([1., 5., 9.])
    """
    n = len(residuals)
    rank = quantiles * (n + 1)
    rank = np.where(quantiles > 0.5, np.ceil(rank - 1e-9), np.floor(rank + 1e-9))
    return np.asarray(residuals[np.clip(rank.astype(np.intp), 1, n) - 1])
