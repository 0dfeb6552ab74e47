import numpy as np
import pytest
from sklearn.base import is_classifier

import mercer
from mercer import SVC, KernelPCA, Pegasos, Perceptron, plots

X, y = plots.LIFTS["xor"].sample()
Z = np.sin(X[:, 0])
MODELS = [
    mercer.SVC(),
    mercer.NuSVC(nu=0.3),
    mercer.SVC(C=np.inf, kernel=mercer.RBF(1.0)),
    mercer.SVR(),
    mercer.KernelLogisticRegression(),
    mercer.KernelMachine(loss="huber"),
    mercer.KernelMachine(loss="hinge"),
    mercer.LinearSVC(),
    mercer.Pegasos(lam=0.1, random_state=0),
    mercer.KernelRidge(),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda m: repr(m)[:30])
def test_primal_above_dual_and_a_gap_that_closes(model):
    model.fit(X, y if is_classifier(model) else Z)
    table, claim = model.history_, model.certificate_
    display = plots.ConvergenceDisplay.from_estimator(model)
    size = max(abs(display.primal.min()), abs(display.dual.max()))
    gap = np.asarray(display.gap_line_.get_ydata(), dtype=float)
    np.testing.assert_array_equal(display.gap_line_.get_xdata(), table["steps"][table["steps"] > 0])
    drawn = ~np.isnan(gap)
    np.testing.assert_allclose(gap[drawn], (display.primal - display.dual)[drawn] / size)
    assert gap[-1] <= 2 * claim.tol or np.isnan(gap[-1])  # no gap is left to draw on a logarithmic axis
    both = plots.DualityDisplay.from_estimator(model)
    room = 1e-9 * size
    assert (both.primal_line_.get_ydata() >= np.asarray(both.dual_line_.get_ydata()) - room).all()


def test_the_title_says_between_what_the_optimum_lies():
    model = SVC().fit(X, y)
    low, high = model.certificate_.dual, model.certificate_.primal
    title = plots.duality(model).axes[0].get_title(loc="left")
    said = [float(part) for part in title.split(":")[1].split("≤ optimum ≤")]
    np.testing.assert_allclose(said, [low, high], rtol=1e-3)
    assert plots.convergence(model).axes[0].get_title(loc="left") == "SVC"


def test_one_of_several_problems():
    model = SVC().fit(X, np.arange(len(X)) % 3)
    for problem, table in enumerate(model.history_):
        display = plots.ConvergenceDisplay.from_estimator(model, problem=problem)
        np.testing.assert_array_equal(display.primal, table["primal"])
        assert display.title == f"SVC, problem {problem + 1} of 3"
    with pytest.raises(ValueError, match="problem must be a number from 0 to 2, the last of this fit; it is 3"):
        plots.convergence(model, problem=3)


def test_what_has_no_course_is_refused():
    with pytest.raises(TypeError, match="read from its history_; KernelPCA keeps none"):
        plots.convergence(KernelPCA(2).fit(X))
    perceptron = Perceptron(mercer.RBF(1.0)).fit(X, y)
    with pytest.raises(ValueError, match="this Perceptron tells no pair of a primal and a dual value"):
        plots.duality(perceptron)


def test_the_subgradient_method_is_seen_step_by_step():
    model = Pegasos(lam=0.1, solver="subgradient").fit(X, y)
    assert plots.ConvergenceDisplay.from_estimator(model).steps.tolist() == list(range(1, model.n_iter_ + 1))
