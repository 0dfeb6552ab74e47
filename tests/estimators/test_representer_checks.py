"""scikit-learn's own checks of the models of the representer theorem; those that are expected to fail say why."""

import warnings

import pytest
from sklearn.utils.estimator_checks import check_estimator

from mercer.estimators import (
    KernelLogisticRegression,
    KernelMachine,
    KernelQuantileRegressor,
    KernelRobustRegressor,
)

_WEIGHTS = (
    'gamma="scale" is taken from the variance of X without weights, as in SVC, so weighted and repeated data get other '
    "kernels; test_weights_are_repetition of test_representer.py checks the law with the kernel fixed"
)
_BOTH = {f"check_sample_weight_equivalence_on_{kind}_data": _WEIGHTS for kind in ("dense", "sparse")}
_COUNTS = {
    **_BOTH,
    "check_regressor_multioutput": "its targets are negative, whatever the tags say, and counts are not",
}
CHECKED = [
    (KernelMachine(), _BOTH),
    (KernelMachine(loss="hinge"), _BOTH),
    (KernelMachine(loss="poisson"), _COUNTS),
    (KernelMachine(loss="logistic"), _BOTH),
    (KernelMachine(loss="absolute", fit_intercept=False), _BOTH),
    (KernelMachine(loss="multinomial"), _BOTH),
    (KernelLogisticRegression(), _BOTH),
    (KernelQuantileRegressor(), _BOTH),
    (KernelRobustRegressor(), _BOTH),
]


@pytest.mark.parametrize(("model", "expected"), CHECKED, ids=lambda v: "" if isinstance(v, dict) else str(v))
def test_scikit_learn_finds_no_fault(model, expected):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(model, expected_failed_checks=expected, on_skip=None, on_fail=None)
    failed = {r["check_name"]: str(r["exception"]) for r in results if r["status"] == "failed"}
    assert not failed
    assert {r["check_name"] for r in results if r["status"] == "xfail"} == set(expected)
