"""One call: a model for a table (`auto`), and the kernel of a model (kernel="auto")."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils import _safe_indexing

from mercer.kernels import Kernel
from mercer.machine.clock import Clock
from mercer.selection.automatic.account import Account, told
from mercer.selection.automatic.kernels import kernel_list, look_at
from mercer.selection.automatic.models import AutoClassifier, AutoRegressor
from mercer.selection.automatic.search import Search, first_look, sample
from mercer.selection.search.search import flat
from mercer.tables import target_of

_FOLDS = 5  # of the cross-validation for kernel="auto"
_SEARCH_ROWS = 5000  # on which its kernels are compared, at most
_SEARCH_SHARE = 0.5  # of the model's time limit, for the search
_SEED = 0  # the models have no random_state, and the same data shall give the same kernel


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


def choose_kernel(model: Any, X: Any, y: np.ndarray, sample_weight: Any = None) -> tuple[Kernel, Account]:
    """Return the kernel that cross-validation finds best for a model, and the account of the search.

    Parameters
    ----------
    model
        `SVC`, `SVR`, `KernelRidge`, ..., all of whose parameters but `kernel` are kept.
    X, y, sample_weight
        What it is to be fitted to: a matrix of numbers, dense or sparse.
    """
    classifies = bool(is_classifier(model))
    clock = Clock(model.time_limit)
    plain = clone(model).set_params(kernel="rbf", time_limit=None, checkpoint=None, verbose=0, max_iter=-1)
    scoring = "accuracy" if classifies else "r2"
    search = Search(plain, None, np.array([np.nan]), scoring, _FOLDS, classifies, _SEED, model.budget, 0, clock)
    weight = None if sample_weight is None else np.broadcast_to(np.asarray(sample_weight, dtype=np.float64), len(y))
    counted = np.arange(len(y)) if weight is None else np.flatnonzero(weight > 0)
    rows = counted[sample(y[counted], _SEARCH_ROWS, classifies, _SEED)]
    look = look_at(X)
    first = first_look(y, rows, classifies, _SEED)
    candidates = kernel_list(look, X[rows])
    stages = [search.look(X, y, first, candidates, search.prices, _SEARCH_SHARE / 2, weight)]
    if len(first) < len(rows) and not stages[0].interrupted:
        closer, prices = search.closer(stages[0])
        stages.append(search.look(X, y, rows, closer, prices, _SEARCH_SHARE, weight))
    account = told(look, search, stages)
    return stages[-1].best().candidate.kernel, account
