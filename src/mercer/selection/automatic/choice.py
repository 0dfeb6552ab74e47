"""kernel="auto": the kernel of a model whose other parameters stay as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

from mercer.kernels import Kernel
from mercer.machine.clock import Clock
from mercer.selection.automatic.account import Account, told
from mercer.selection.automatic.kernels import kernel_list, look_at
from mercer.selection.automatic.search import Search, first_look, sample

ROWS = 5000  # of the second look
_FOLDS = 5
_SHARE = 0.5  # of the model's time limit, for the search
_SEED = 0  # the models have no random_state, and the same data shall give the same kernel


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
    rows = counted[sample(y[counted], ROWS, classifies, _SEED)]
    look = look_at(X)
    first = first_look(y, rows, classifies, _SEED)
    candidates = kernel_list(look, X[rows])
    stages = [search.look(X, y, first, candidates, search.prices, _SHARE / 2, weight)]
    if len(first) < len(rows) and not stages[0].interrupted:
        closer, prices = search.closer(stages[0])
        stages.append(search.look(X, y, rows, closer, prices, _SHARE, weight))
    account = told(look, search, stages)
    return stages[-1].best().candidate.kernel, account
