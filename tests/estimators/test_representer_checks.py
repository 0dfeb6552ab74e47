"""scikit-learn's own checks of the models of the representer theorem."""

import pytest

from checks import assert_no_fault
from mercer.estimators import (
    KernelLogisticRegression,
    KernelMachine,
    KernelQuantileRegressor,
    KernelRobustRegressor,
)

CHECKED = [
    KernelMachine(),
    KernelMachine(loss="hinge"),
    KernelMachine(loss="poisson"),
    KernelMachine(loss="logistic"),
    KernelMachine(loss="absolute", fit_intercept=False),
    KernelMachine(loss="multinomial"),
    KernelLogisticRegression(),
    KernelQuantileRegressor(),
    KernelRobustRegressor(),
]


@pytest.mark.parametrize("model", CHECKED, ids=str)
def test_scikit_learn_finds_no_fault(model):
    assert_no_fault(model)
