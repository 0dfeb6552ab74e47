"""What is shown while a metric is learned: the best so far, and nothing when nobody asks."""

import numpy as np
import pytest

from mercer import AutoRegressor
from mercer.estimators.features.metric import FAMILIES, Round
from mercer.selection.automatic.progress import Told, rounds_shown


def step(name, number, error):
    (family,) = (family for family in FAMILIES if family.name == name)
    return Round(family, number, np.eye(2), 0, 0, error=error)


def test_the_best_is_the_least_error_on_the_most_rows():
    told = Told()
    assert told.winner == ""
    assert "best R² 0.800 by Laplacian;" in told(step("Laplacian", 0, 0.2), 500)
    assert "best R² 0.900 by RBF; now RBF, round 1 on 500 rows: 0.900" in told(step("RBF", 1, 0.1), 500)
    assert told(step("Laplacian", 2, 0.3), 500).startswith("best R² 0.900 by RBF; now Laplacian, round 2")
    assert "best R² 0.850 by exponential;" in told(step("exponential", 0, 0.15), 2000)
    assert told.number == 4


def test_nobody_listens_where_nothing_is_asked(capsys):
    with rounds_shown(0) as listen:
        assert listen is None
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("verbose", [0, 1])
def test_a_search_says_what_it_tries(capsys, verbose):
    X = np.random.default_rng(0).normal(size=(60, 2))
    AutoRegressor(verbose=verbose).fit(X, np.sin(2 * X[:, 0]))
    shown = capsys.readouterr()
    assert shown.err == ""
    if verbose:
        assert "best R²" in shown.out
    else:
        assert shown.out == ""
