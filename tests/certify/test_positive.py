"""Kernels that are none on the training points: the fit, its certificate and its check all say so."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from mercer import (
    RBF,
    SVC,
    SVR,
    Certificate,
    FromFunction,
    Gram,
    KernelLogisticRegression,
    KernelMachine,
    KernelQuantileRegressor,
    KernelRidge,
    KernelRobustRegressor,
    NuSVC,
    NuSVR,
    OneClassSVM,
    Pegasos,
    Precomputed,
    Sigmoid,
    load,
    save,
    verdict,
)
from mercer.certify import combined, seen_indefinite, why_indefinite, without_duality
from mercer.estimators import GaussianProcessRegressor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
Y = np.sign(X[:, 0] + 0.3 * RNG.normal(size=60))
BENT = Sigmoid(1.0, -1.0)  # tanh of <x, z> - 1: no kernel
K = BENT(X)
LEAST = np.linalg.eigvalsh(K)[0]

# Strong penalties where the solvers need K + shift to be positive: what is left is then in the certificate alone.
MODELS = [
    SVC(kernel=BENT),
    NuSVC(kernel=BENT),
    SVR(kernel=BENT),
    NuSVR(kernel=BENT),
    OneClassSVM(kernel=BENT),
    Pegasos(kernel=BENT, random_state=0),
    KernelMachine(BENT, "hinge"),
    KernelMachine(BENT, "multinomial"),
    KernelQuantileRegressor(kernel=BENT, quantiles=[0.2, 0.8]),
    KernelRidge(100.0, kernel=BENT),
    KernelMachine(BENT, "squared", 100.0),
    KernelRobustRegressor(C=0.01, kernel=BENT),
    KernelLogisticRegression(C=0.01, kernel=BENT),
    GaussianProcessRegressor(kernel=BENT, noise=100.0, optimizer=None),
]
each = pytest.mark.parametrize("model", MODELS, ids=lambda m: f"{type(m).__name__}-{getattr(m, 'loss', '')}")


@each
def test_every_machine_with_a_dual_claims_a_stationary_point_and_no_more(model):
    with pytest.warns(ConvergenceWarning, match=r"Sigmoid.*eigenvalue -32.*mercer.repair") as said:
        model.fit(X, Y)
    assert len(said) == 1
    claim = model.certificate_
    assert claim.stopped == "stationary point"
    for found in (claim, claim.verify(X, Y)):
        assert not found.converged
        assert f"eigenvalue {LEAST:.3g}" in found.stationary
        assert "stationary point: the kernel is not positive semidefinite" in str(found)


def test_the_primal_of_such_a_machine_is_unbounded_along_the_witness():
    with pytest.warns(ConvergenceWarning):
        claim = SVC(kernel=BENT).fit(X, Y).certificate_
    a = verdict(BENT, X).witness
    far = 1e4 * a
    primal = 0.5 * far @ K @ far + np.maximum(0.0, 1.0 - Y * (K @ far)).sum()
    assert primal < claim.dual  # "dual <= optimum" is false


def test_a_similarity_that_is_positive_on_these_points_stays_converged():
    similar = FromFunction(lambda x, z: float(np.exp(-0.5 * ((x - z) ** 2).sum())))
    assert similar.proof().status == "unproven"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        models = [
            (SVC(kernel=similar), X),
            (SVC(kernel="precomputed"), RBF(1.0)(X)),
            (SVC(kernel="precomputed"), RBF(1.0)(X.astype(np.float32))),
            (SVC(kernel="precomputed"), X @ X.T),  # singular
            (KernelRidge(1.0, kernel="precomputed"), np.zeros((60, 60))),
        ]
        for model, data in models:
            claim = model.fit(data, Y).certificate_
            assert claim.converged
            assert claim.verify(data, Y).converged


def test_a_proven_kernel_is_not_looked_at(monkeypatch):
    monkeypatch.setattr("mercer.certify.positive._evenly", None)
    assert SVC(kernel=RBF(1.0)).fit(X, Y).certificate_.verify(X, Y).converged


def test_pairs_of_classes_are_judged_each_on_its_own_points():
    M = np.kron(np.eye(3), np.ones((4, 4))) + np.eye(12)
    M[0, 4] = M[4, 0] = 5.0  # between the classes 0 and 1
    y = np.repeat([0, 1, 2], 4)
    with pytest.warns(ConvergenceWarning):
        claim = SVC(kernel="precomputed").fit(M, y).certificate_
    for found in (claim, claim.verify(M, y)):
        assert [bool(part.stationary) for part in found.parts] == [True, False, False]
        assert found.stationary == found.parts[0].stationary
        assert not found.converged


@pytest.mark.parametrize("n", [3, 300, 500])
def test_what_the_fit_and_the_check_see_is_a_negative_eigenvalue(n, monkeypatch):
    monkeypatch.setattr("mercer.certify.positive._POINTS", 400)  # of which there are 2,000
    points = np.random.default_rng(n).normal(size=(n, 3))
    seen = seen_indefinite(Gram(BENT, points))
    low = float(seen.split("eigenvalue ")[1].rstrip(")"))
    spectrum = np.linalg.eigvalsh(BENT(points))
    assert spectrum[0] * 1.01 <= low < 0  # of some points: by interlacing never below that of all
    assert ("400 of these points" in seen) == (n > 400)
    again = float(why_indefinite(BENT, points).split("eigenvalue ")[1].rstrip(")"))
    assert again == pytest.approx(low, rel=0.02)


@pytest.mark.parametrize("size", [-1e-3, -1e-12, -1e-16, 0.0, 1e-3])
def test_the_threshold_is_that_of_the_verdict(size):
    Q = np.linalg.qr(np.random.default_rng(1).normal(size=(80, 80)))[0]
    spectrum = np.linspace(0.1, 1.0, 80)
    spectrum[0] = size
    M = (Q * spectrum) @ Q.T
    M = (M + M.T) / 2
    assert bool(verdict(M)) == (not seen_indefinite(Gram(Precomputed(M), np.arange(80))))
    assert bool(verdict(M)) == (not why_indefinite(Precomputed(M), np.arange(80)))


def test_centring_forgives_what_it_removes():
    distances = Precomputed(-(((X[:, None] - X) ** 2).sum(axis=2)))  # positive on coefficients that add up to 0
    gram = Gram(distances, np.arange(60))
    assert seen_indefinite(gram)
    assert not seen_indefinite(gram, centred=True)
    assert seen_indefinite(Gram(BENT, X), centred=True)


def test_a_model_file_keeps_what_was_said(tmp_path):
    with pytest.warns(ConvergenceWarning):
        model = SVC(kernel=BENT).fit(X, Y)
    save(model, tmp_path / "bent.mercer")
    claim = load(tmp_path / "bent.mercer").certificate_
    assert claim.stationary == model.certificate_.stationary
    assert not claim.converged
    assert claim.verify(X, Y).stationary


def test_of_several_problems_the_unfinished_ones_come_first():
    done = Certificate(primal=1.0, dual=1.0, kkt=0.0, tol=1e-3)
    bent = without_duality(done, "the loss is not convex")
    early = Certificate(primal=1.0, dual=0.5, kkt=1.0, tol=1e-3, stopped="max_iter=3 reached")
    assert combined([done, bent, early]).stopped == "max_iter=3 reached"
    assert combined([done, bent]).stopped == "stationary point"
    assert combined([done, bent]).finished
    assert not combined([done, early]).finished
    assert without_duality(early, "the loss is not convex").stopped == "max_iter=3 reached"
    assert without_duality(done, "") is done
