"""From a table to a chosen, certified model in one call."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from mercer.selection.automatic.classifier import AutoClassifier
from mercer.selection.automatic.regressor import AutoRegressor
from mercer.selection.search.targets import flat
from mercer.tables import target_of


def auto(X: Any, y: Any, *, task: str = "auto", **options: Any) -> AutoClassifier | AutoRegressor:
    """Return a fitted model for a table: its kernel is found by cross-validation, and an account says how.

    Parameters
    ----------
    X
        A table (pandas, polars) with columns of any kind, or an array.
    y
        The target: a class or a number for each row, or the name of a column of X. Rows without one are left out.
        Classes are predicted as they are given: texts as texts, whether or not they read as numbers.
    task
        "classify", "regress", or "auto" to tell by the target: texts and few whole numbers are classes.
    **options
        Parameters of `AutoClassifier` and `AutoRegressor`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import auto
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = auto(X, y)
    >>> model.best_score_ > 0.95, model.kernel_.proof().status, model.certificate_.verify(X, y).converged
    (True, 'proven', True)
    >>> print(model.account_)
    The data: 150 rows of 4 numbers. ...
    """
    if isinstance(y, str) and hasattr(X, "columns"):
        if y not in X.columns:
            raise ValueError(f"the table has no column {y!r}; it has {', '.join(map(repr, list(X.columns)[:10]))}.")
        X, y = X[[name for name in X.columns if name != y]], X[y]
    y = flat(y.to_pandas() if hasattr(y, "to_pandas") else y)
    target = target_of(y, task)
    if len(target.rows) < len(y):
        X = X.to_pandas() if hasattr(X, "to_pandas") else X
        X = X.iloc[target.rows] if hasattr(X, "iloc") else np.asarray(X)[target.rows]
    if target.task == "classify":
        return AutoClassifier(**options).fit(X, _safe_indexing(y, target.rows))
    return AutoRegressor(**options).fit(X, target.values)
