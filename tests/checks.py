"""scikit-learn's own checks of an estimator, and the one list of those that fail, each with its reason."""

import warnings

from sklearn.utils.estimator_checks import check_estimator

_PAIR = (
    "fit_transform returns the scores of both views and transform(X) those of the first, as CCA's do; scikit-learn "
    "exempts its own cross decompositions from this check by their names"
)
_GAMMA = (
    'gamma="scale" is taken from the variance of X without weights, as in scikit-learn, so weighted and repeated data '
    "get other kernels; test_fitting.py and test_representer.py check the law with the kernel fixed"
)
_SEEDS = (
    "the first centres are drawn, and the same draws mean other points of weighted and of repeated data, as with "
    "KMeans; test_weights_are_repetition checks the law with the centres named"
)
_HALVES = (
    "the halves of the rows are drawn, and the same draws mean other rows of weighted and of repeated data; "
    "test_metric.py checks the law for one round"
)
_CLOSE = (
    "compares two fits to 1e-7, closer than the tol of SVC holds their probabilities; "
    "test_integer_weights_are_repetitions does so at a gap that is small enough"
)
_INEXACT = (
    "compares two fits to 1e-7, closer than the default tol holds w; test_weights_are_repetitions does so at a gap "
    "that is small enough"
)


def _weights(why):
    return {f"check_sample_weight_equivalence_on_{kind}_data": why for kind in ("dense", "sparse")}


EXPECTED = {
    **dict.fromkeys(("SVC", "SVR", "NuSVR", "OneClassSVM"), _weights(_GAMMA)),
    **dict.fromkeys(("KernelMachine", "KernelLogisticRegression"), _weights(_GAMMA)),
    **dict.fromkeys(("KernelQuantileRegressor", "KernelRobustRegressor"), _weights(_GAMMA)),
    "NuSVC": {
        "check_class_weight_classifiers": "class weights of 1000 and 0.0001 make nu=0.5 infeasible, and NuSVC says so",
        **_weights("the classes of these data are too unequal for nu=0.5, and NuSVC says so"),
    },
    "AutoClassifier": _weights(_CLOSE),
    **{
        name: {"check_sample_weight_equivalence_on_dense_data": _HALVES}
        for name in ("FeatureLearningClassifier", "FeatureLearningRegressor")
    },
    "LinearSVC(loss='hinge')": _weights(_INEXACT),
    "LinearSVR(loss='epsilon_insensitive')": _weights(_INEXACT),
    "KernelMachine(loss='poisson')": {
        "check_regressor_multioutput": "its targets are negative, whatever the tags say, and counts are not"
    },
    "KernelCCA": dict.fromkeys(("check_transformer_general", "check_transformer_data_not_an_array"), _PAIR),
    "KernelKMeans": _weights(_SEEDS),
}


def expected_failures(model):
    """Return the checks that fail for a model: those of its class, and those of its class with its loss."""
    name = type(model).__name__
    return EXPECTED.get(name, {}) | EXPECTED.get(f"{name}(loss={getattr(model, 'loss', None)!r})", {})


def assert_no_fault(model, expected=None):
    """Assert that scikit-learn's checks pass but the expected ones, by default those of the list, and these fail."""
    expected = expected_failures(model) if expected is None else expected
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(model, expected_failed_checks=expected, on_skip=None, on_fail=None)
    assert not {r["check_name"]: str(r["exception"]) for r in results if r["status"] == "failed"}
    assert {r["check_name"] for r in results if r["status"] == "xfail"} == set(expected)
