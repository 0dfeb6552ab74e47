import numpy as np
import pytest
from sklearn.metrics.pairwise import sigmoid_kernel

from mercer.kernels import RBF, Sigmoid
from samples import vectors


@pytest.mark.parametrize(("gamma", "c"), [(0.1, 0.0), (1.0, -0.5), (0.5, 2.0)])
def test_agrees_with_scikit_learn(gamma, c):
    X, Z = vectors(), vectors(7, seed=1)
    np.testing.assert_allclose(Sigmoid(gamma, c)(X, Z), sigmoid_kernel(X, Z, gamma=gamma, coef0=c), rtol=1e-12)


def test_auto_is_scikit_learns_scale():
    X = vectors()
    assert Sigmoid().resolve(X).gamma == pytest.approx(1 / (3 * X.var()), rel=1e-14)


def test_is_refuted_and_says_so():
    proof = Sigmoid(gamma=1.0).proof()
    assert (proof.status, proof.proven) == ("refuted", False)
    assert proof.gaps() == [proof]
    assert (RBF(1.0) + Sigmoid(gamma=1.0)).proof().status == "unproven"


def test_has_the_counterexample_that_the_proof_speaks_of():
    X = np.linspace(-3, 3, 30)[:, None]
    assert np.linalg.eigvalsh(Sigmoid(gamma=1.0)(X))[0] < -0.1
    assert np.linalg.eigvalsh(Sigmoid(gamma=1.0, c=-1.0)(X))[0] < -1


def test_slope_must_be_positive():
    with pytest.raises(ValueError, match=r"gamma of Sigmoid must be > 0 and finite; it is -1"):
        Sigmoid(-1)
    with pytest.raises(ValueError, match=r"c of Sigmoid must be .*finite; it is inf"):
        Sigmoid(1.0, c=float("inf"))
