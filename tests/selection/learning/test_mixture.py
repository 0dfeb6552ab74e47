"""Mixtures of kernels: Clarabel solves the whole problem as a cone program, and shares nothing with ours."""

import pickle
import warnings

import clarabel
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning

from checks import assert_no_fault
from mercer import RBF, SVC, SVR, Constant, Delta, KernelMachine, KernelRidge, Laplacian, Linear, NuSVC, Polynomial
from mercer.losses import Norm, Squared
from mercer.selection import KernelMixture
from mercer.selection.learning.weights import mixed

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4))
LABELS = np.where(X[:, 0] ** 2 + X[:, 1] > 0.8, "yes", "no")
THREE = np.digitize(X[:, 0] + 0.5 * X[:, 1] ** 2, [-0.3, 0.8])
NUMBERS = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.normal(size=60)
KERNELS = [Linear(), RBF(1.0).on([0]), RBF(1.0).on([2, 3]), RBF(2.0), Polynomial(2), Laplacian(3.0)]


def spread(K):
    return np.mean(np.diag(K)) - K.mean()


def matrices(X):
    found = [k(X) for k in KERNELS]
    return [K / spread(K) for K in found]


# -- the objective of a model -----------------------------------------------------------------------------


def cone_program(blocks, square, gain, bounds, sums):
    """Maximise gain'b - square |b|^2 / 2 - t / 2 with |L'b|^2 <= t for each block L', by Clarabel.

    `bounds` is (low, high) of b, or None; `sums` are rows whose product with b is 0.
    """
    n = len(gain)
    rows, right, cones = [], [], []
    if len(sums):
        rows.append(np.hstack([sums, np.zeros((len(sums), 1))]))
        right.append(np.zeros(len(sums)))
        cones.append(clarabel.ZeroConeT(len(sums)))
    if bounds is not None:
        eye = np.hstack([np.eye(n), np.zeros((n, 1))])
        rows += [eye, -eye]
        right += [bounds[1], -bounds[0]]
        cones.append(clarabel.NonnegativeConeT(2 * n))
    last = np.append(np.zeros(n), 1.0)
    for L in blocks:  # (t + 1, 2 L'b, t - 1) in the second-order cone
        rows.append(np.vstack([-last, -2 * np.hstack([L, np.zeros((len(L), 1))]), -last]))
        right.append(np.concatenate([[1.0], np.zeros(len(L)), [-1.0]]))
        cones.append(clarabel.SecondOrderConeT(len(L) + 2))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    P = sparse.csc_array(np.diag(np.append(np.full(n, square), 0.0)))
    solver = clarabel.DefaultSolver(
        P, np.append(-gain, 0.5), sparse.csc_array(np.vstack(rows)), np.concatenate(right), cones, settings
    )
    solution = solver.solve()
    assert "Solved" in str(solution.status)
    return -solution.obj_val


def roots(K):
    values, vectors = np.linalg.eigh(K)
    return np.sqrt(values.clip(min=0.0))[:, None] * vectors.T  # L' with L L' = K


def test_the_margin_objective_is_that_of_the_cone_program():
    C, y = 2.0, np.where(LABELS == "yes", 1.0, -1.0)
    bounds = np.minimum(C * y, 0.0), np.maximum(C * y, 0.0)
    wanted = cone_program([roots(K) for K in matrices(X)], 0.0, y, bounds, np.ones((1, 60)))
    found = KernelMixture(KERNELS, "objective", estimator=SVC(C=C), tol=1e-5).fit(X, LABELS)
    claim = found.certificate_
    assert claim.converged
    assert claim.dual - 1e-5 <= wanted <= claim.primal + 1e-5
    assert claim.gap <= 1e-5 * claim.primal
    check = claim.verify(X, LABELS)
    assert check.converged
    assert check.primal == pytest.approx(claim.primal, rel=1e-5)
    own = SVC(C=C, kernel=found.kernel_, tol=1e-6).fit(X, LABELS)
    assert own.certificate_.primal == pytest.approx(wanted, rel=1e-4)


def test_class_pairs_share_their_weights():
    C, parts, gains, lows, highs, sums = 1.0, [], [], [], [], []
    pairs = [np.flatnonzero(np.isin(THREE, pair)) for pair in ((0, 1), (0, 2), (1, 2))]
    for p, (rows, first) in enumerate(zip(pairs, (0, 0, 1), strict=True)):
        y = np.where(THREE[rows] == first, 1.0, -1.0)
        gains.append(y)
        lows.append(np.minimum(C * y, 0.0))
        highs.append(np.maximum(C * y, 0.0))
        sums.append(np.concatenate([np.full(len(r), float(q == p)) for q, r in enumerate(pairs)]))
        parts.append(rows)
    blocks = []
    for K in matrices(X):
        pieces = [roots(K[np.ix_(rows, rows)]) for rows in parts]
        blocks.append(sparse.block_diag(pieces).toarray())
    wanted = cone_program(
        blocks, 0.0, np.concatenate(gains), (np.concatenate(lows), np.concatenate(highs)), np.array(sums)
    )
    found = KernelMixture(KERNELS, "objective", estimator=SVC(C=C), tol=1e-5).fit(X, THREE)
    assert found.certificate_.converged
    assert found.certificate_.primal == pytest.approx(wanted, rel=3e-5)


@pytest.mark.parametrize("intercept", [False, True], ids=["plain", "intercept"])
@pytest.mark.parametrize("alpha", [0.01, 1.0])
def test_the_ridge_objective_is_that_of_the_cone_program(alpha, intercept):
    # A = alpha a'y - alpha^2 |a|^2 / 2, and alpha a'Ka in place of b'Kb.
    blocks = [np.sqrt(alpha) * roots(K) for K in matrices(X)]
    sums = np.ones((1, 60)) if intercept else np.zeros((0, 60))
    wanted = cone_program(blocks, alpha**2, alpha * NUMBERS, None, sums)
    model = KernelRidge(alpha, fit_intercept=intercept)
    found = KernelMixture(KERNELS, "objective", estimator=model, tol=1e-5).fit(X, NUMBERS)
    claim = found.certificate_
    assert claim.converged
    assert claim.primal == pytest.approx(wanted, rel=2e-5)
    assert claim.verify(X, NUMBERS).converged
    assert found.weights_.sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    "model", [SVR(C=2.0, epsilon=0.05), KernelMachine(loss="huber", penalty=0.1)], ids=["SVR", "KernelMachine"]
)
def test_no_mixture_is_better_than_the_bound(model):
    found = KernelMixture(KERNELS, "objective", estimator=model).fit(X, NUMBERS)
    claim = found.certificate_
    assert claim.converged
    assert claim.verify(X, NUMBERS).converged
    for weights in (*np.eye(len(KERNELS)), *np.random.default_rng(1).dirichlet(np.ones(len(KERNELS)), 5)):
        kernel = mixed(found.kernels_, weights / found.spreads_)
        other = clone(model).set_params(kernel=kernel, tol=1e-6).fit(X, NUMBERS)
        assert other.certificate_.primal >= claim.dual * (1 - 1e-9)


def test_equal_kernels_do_no_harm():
    found = KernelMixture([RBF(1.0), RBF(1.0), 3.0 * RBF(1.0), Linear()], "objective").fit(X, LABELS)
    alone = KernelMixture([RBF(1.0), Linear()], "objective").fit(X, LABELS)
    assert found.certificate_.converged
    assert found.certificate_.primal == pytest.approx(alone.certificate_.primal, rel=2e-4)


def test_limits_keep_the_best_so_far():
    with pytest.warns(ConvergenceWarning, match=r"max_iter=1 reached.* relative gap of .*best so far"):
        found = KernelMixture(KERNELS, "objective", max_iter=1).fit(X, LABELS)
    assert found.certificate_.gap > 0
    with pytest.warns(ConvergenceWarning, match=r"time_limit=0 s reached"):
        found = KernelMixture(KERNELS, "objective", time_limit=0).fit(X, LABELS)
    np.testing.assert_allclose(found.weights_, 1 / len(KERNELS))


# -- alignment --------------------------------------------------------------------------------------------


def centred(K):
    H = np.eye(len(K)) - 1 / len(K)
    return H @ K @ H


@pytest.mark.parametrize("y", [LABELS, THREE, NUMBERS, np.c_[NUMBERS, X[:, 3]]], ids=["two", "three", "one", "many"])
def test_alignment_is_that_of_a_quadratic_program(y):
    if y.dtype.kind == "f":
        Y = y.reshape(60, -1)
    else:
        classes = np.unique(y)
        Y = np.array([[1.0 if v == c else -1.0 for c in classes] for v in y])
    T = centred(Y @ Y.T)
    held = [centred(K) for K in matrices(X)]
    n = len(held)
    M = np.array([[np.vdot(A, B) for A in held] for B in held])
    c = np.array([np.vdot(A, T) for A in held])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = 1e-12
    cones = [clarabel.NonnegativeConeT(n)]
    unit = np.sqrt(np.diag(M))
    program = sparse.csc_array(np.triu(M / unit / unit[:, None]))
    solver = clarabel.DefaultSolver(
        program, -c / unit / np.linalg.norm(c / unit), -sparse.eye_array(n).tocsc(), np.zeros(n), cones, settings
    )
    v = np.array(solver.solve().x) / unit
    found = KernelMixture(KERNELS).fit(X, y)
    np.testing.assert_allclose(found.weights_, v / v.sum(), atol=2e-5)
    best = centred(found.kernel_(X))
    assert found.alignment_ == pytest.approx(np.vdot(best, T) / np.linalg.norm(best) / np.linalg.norm(T))
    assert found.alignment_ >= found.alignments_.max() - 1e-12
    alone = [np.vdot(K, T) / np.linalg.norm(K) / np.linalg.norm(T) for K in held]
    np.testing.assert_allclose(found.alignments_, alone, rtol=1e-8)
    assert found.certificate_.converged
    assert found.certificate_.relative_gap < 1e-9
    check = found.certificate_.verify(X, y)
    assert check.primal == pytest.approx(found.certificate_.primal)
    assert check.converged


def test_a_certificate_sees_other_weights():
    found = KernelMixture(KERNELS).fit(X, NUMBERS)
    found.weights_ = np.roll(found.weights_, 1)
    assert not found.certificate_.verify(X, NUMBERS).converged
    found = KernelMixture(KERNELS, "objective").fit(X, NUMBERS)
    found.weights_ = np.roll(found.weights_, 1)
    assert not found.certificate_.verify(X, NUMBERS).converged


def test_weights_do_not_depend_on_the_units_of_kernels_and_targets():
    first = KernelMixture(KERNELS).fit(X, NUMBERS).weights_
    scaled = [c * k for c, k in zip(np.logspace(-6, 6, len(KERNELS)), KERNELS, strict=True)]
    np.testing.assert_allclose(KernelMixture(scaled).fit(X, 1e100 * NUMBERS + 1e100).weights_, first, atol=1e-9)


def test_some_rows_stand_for_many():
    many = np.random.default_rng(2).normal(size=(1200, 4))
    y = np.sin(2 * many[:, 0])
    whole = KernelMixture(KERNELS).fit(many, y)
    some = KernelMixture(KERNELS, rows=500).fit(many, y)
    assert "all 1,200 rows" in whole.plan_
    assert "500 rows drawn at random" in some.plan_
    np.testing.assert_allclose(some.weights_, whole.weights_, atol=0.1)
    assert some.certificate_.verify(many, y).converged
    assert "rows drawn at random" in KernelMixture(KERNELS, budget="5 MB").fit(many, y).plan_


# -- both -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["alignment", "objective"])
def test_the_mixture_is_a_proven_kernel_that_goes_anywhere(method):
    found = KernelMixture(KERNELS, method).fit(X, LABELS)
    K = sum(w / s * k(X) for w, s, k in zip(found.weights_, found.spreads_, found.kernels_, strict=True))
    np.testing.assert_allclose(found.kernel_(X), K, rtol=1e-12)
    assert spread(K) == pytest.approx(1.0)
    assert found.kernel_.proof().status == "proven"
    assert SVC(kernel=found.kernel_).fit(X, LABELS).score(X, LABELS) > 0.8
    again = pickle.loads(pickle.dumps(found))
    assert again.kernel_ == found.kernel_
    assert again.certificate_.verify(X, LABELS).converged
    fresh = clone(found).fit(X, LABELS)
    assert fresh.kernel_ == found.kernel_


@pytest.mark.parametrize("method", ["alignment", "objective"])
def test_tables_texts_classes_and_constants(method):
    table = pd.DataFrame({"age": X[:, 0], "town": np.where(X[:, 1] > 0, "Bern", "Rome"), "income": X[:, 2]})
    kernels = [RBF(1.0).on("age"), "Delta().on('town')", Constant(2.0), RBF(1.0).on("income")]
    found = KernelMixture(kernels, method).fit(table, LABELS)
    assert found.kernels_[1] == Delta().on("town")
    assert found.weights_[2] == 0
    assert found.weights_[:2].min() > 0
    assert len(KernelMixture([RBF, "Linear"]).fit(X, NUMBERS).weights_) == 11


@pytest.mark.parametrize(
    "model",
    [
        KernelMixture(),
        KernelMixture([RBF(1.0), Linear()], "objective", estimator=SVC()),
        KernelMixture([RBF(1.0), Linear()], "objective", estimator=KernelRidge()),
    ],
    ids=["alignment", "SVC", "KernelRidge"],
)
def test_scikit_learn_finds_no_fault(model):
    assert_no_fault(model)


@pytest.mark.parametrize("method", ["alignment", "objective"])
def test_constant_targets_get_equal_weights(method):
    with pytest.warns(UserWarning, match="the weights are equal"):
        found = KernelMixture(KERNELS, method, estimator=KernelRidge(fit_intercept=True)).fit(X, np.full(60, 3.7))
    np.testing.assert_allclose(found.weights_, 1 / len(KERNELS))
    assert found.certificate_.converged


@pytest.mark.parametrize("method", ["alignment", "objective"])
@pytest.mark.parametrize("y", [LABELS, THREE, NUMBERS], ids=["two", "three", "numbers"])
def test_targets_in_a_column(method, y):
    flat = KernelMixture(KERNELS, method).fit(X, y)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = KernelMixture(KERNELS, method).fit(X, pd.DataFrame({"y": y}))
    assert [w.category for w in caught] == ([] if y is NUMBERS else [DataConversionWarning])
    np.testing.assert_allclose(found.weights_, flat.weights_, atol=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataConversionWarning)
        assert found.certificate_.verify(X, y[:, None]).primal == pytest.approx(flat.certificate_.verify(X, y).primal)


def test_one_class_is_refused():
    with pytest.raises(ValueError, match="one class only"):
        KernelMixture(KERNELS).fit(X, np.full(60, "yes"))
    with pytest.raises(ValueError, match="one class only"):
        KernelMixture(KERNELS, "objective", estimator=SVC()).fit(X, np.full(60, "yes"))


def test_a_loss_that_is_not_convex_is_refused():
    class Capped(Squared):
        convex = False

    with pytest.raises(ValueError, match="not convex"):
        KernelMixture(KERNELS, "objective", estimator=KernelMachine(loss=Capped())).fit(X, NUMBERS)


def test_nearly_constant_and_huge_kernels_are_weighed_fairly():
    kernels = [RBF(1e6), RBF(1.0), Polynomial(8), Linear()]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = KernelMixture(kernels).fit(X, NUMBERS)
    assert np.isfinite(found.weights_).all()
    assert found.certificate_.converged
    # Far beyond the data a Gaussian kernel is a linear one, when centred.
    assert found.alignments_[0] == pytest.approx(found.alignments_[3], rel=1e-3)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"method": "best"}, "method must be 'alignment' or 'objective'; it is 'best'"),
        ({"tol": 0}, "tol must be a relative gap"),
        ({"kernels": []}, "kernels is empty"),
        ({"kernels": ["RBG"]}, "did you mean RBF"),
        ({"kernels": [3.0]}, "kernels must hold kernel objects, texts or classes; one is 3.0"),
        ({"method": "objective", "estimator": NuSVC()}, "minimises losses plus a squared norm"),
        ({"method": "objective", "estimator": KernelMachine(penalty=Norm(1.0))}, "minimises losses plus a squared"),
    ],
)
def test_wrong_parameters_are_named(given, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        KernelMixture(**{"kernels": KERNELS, **given}).fit(X, NUMBERS)
    with pytest.raises(ValueError, match="X has 60 rows and y has 3"):
        KernelMixture(KERNELS).fit(X, NUMBERS[:3])
