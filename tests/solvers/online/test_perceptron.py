"""The perceptron's theorem, its two forms step by step, and their iterates, which are one function."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from mercer.gram import Gram
from mercer.kernels import RBF, Linear
from mercer.solvers.online.perceptron import Coefficients, Vector, perceptron


def separable(seed, n=60, d=3, margin=0.1):
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=d)
    direction /= np.linalg.norm(direction)
    X = rng.normal(size=(n, d))
    y = np.where(X @ direction > 0, 1.0, -1.0)
    return X + margin * y[:, None] * direction, y, direction


def by_hand(X, y, epochs, order=None):
    """One point after another, as the lectures write it."""
    w, made = np.zeros(X.shape[1]), []
    for _ in range(epochs):
        for i in range(len(y)):
            if y[i] * (w @ X[i]) <= 0:
                w = w + y[i] * X[i]
                made.append(i)
    return w, made


@given(st.integers(0, 10**6), st.integers(1, 12), st.sampled_from([0.02, 0.3, 1.0]), st.booleans())
def test_novikoffs_bound(seed, d, margin, shuffle):
    X, y, direction = separable(seed, d=d, margin=margin)
    gamma = (y * (X @ direction)).min()
    bound = (np.linalg.norm(X, axis=1).max() / gamma) ** 2
    form = Vector(X, constant=False)
    random = np.random.default_rng(seed) if shuffle else None
    done = perceptron(form, y, max_epochs=int(bound) + 2, random=random)
    assert done.converged
    assert len(done.order) <= bound
    assert (y * form.values(np.arange(len(y))) > 0).all()
    assert done.counts.sum() == sum(done.per_epoch) == len(done.order)
    assert form.w == pytest.approx(X.T @ (done.counts * y), abs=1e-9)


@given(st.integers(0, 10**6), st.integers(1, 5))
def test_panels_change_nothing(seed, epochs):
    rng = np.random.default_rng(seed)
    X = rng.integers(-3, 4, size=(700, 2)).astype(float)  # exact arithmetic: ties are ties in every form
    y = np.where(X[:, 0] + rng.normal(size=700) > 0, 1.0, -1.0)
    w, made = by_hand(X, y, epochs)
    form = Vector(X, constant=False)
    done = perceptron(form, y, epochs)
    assert form.w.tolist() == w.tolist()
    if not done.converged:
        assert done.order == made
    dual = Coefficients(Gram(Linear(), X), constant=False)
    again = perceptron(dual, y, epochs)
    assert again.order == done.order
    assert (again.counts * y).tolist() == dual.c.tolist()


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_primal_and_dual_make_the_same_mistakes(seed, constant):
    X, y, _ = separable(seed, n=900, d=5, margin=0.05)
    primal, dual = Vector(X, constant), Coefficients(Gram(Linear(), X), constant)
    made = [perceptron(form, y, 200, np.random.default_rng(seed)) for form in (primal, dual)]
    assert made[0].order == made[1].order
    assert made[0].converged
    assert primal.offset == dual.offset


def test_points_that_cannot_be_separated_end_at_the_limit():
    X, y = np.array([[1.0], [1.0]]), np.array([1.0, -1.0])
    done = perceptron(Vector(X, True), y, max_epochs=30)
    assert (done.converged, len(done.per_epoch)) == (False, 30)


def test_a_kernel_separates_rings():
    rng = np.random.default_rng(0)
    angle, y = rng.uniform(0, 7, 300), np.repeat([1.0, -1.0], 150)
    X = np.c_[np.cos(angle), np.sin(angle)] * np.where(y > 0, 1, 2)[:, None]
    assert not perceptron(Vector(X, True), y, 50).converged
    assert perceptron(Coefficients(Gram(RBF(0.5), X), False), y, 50).converged


@given(st.integers(0, 10**6), st.booleans())
def test_vectors_and_coefficients_agree(seed, constant):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(17, 4)) * (rng.uniform(size=(17, 4)) < 0.5)
    forms = [Vector(X, constant), Vector(sparse.csr_array(X), constant), Coefficients(Gram(Linear(), X), constant)]
    assert all((form.values(np.arange(17)) == 0).all() for form in forms)
    total = np.zeros(17)
    for _ in range(3):
        rows = rng.permutation(17)[:5]
        c = rng.normal(size=5)
        total[rows] += c
        for form in forms:
            form.add(rows, c)
    rows = rng.permutation(17)[:6]
    K = X @ X.T + constant
    for form in forms:
        assert form.values(rows) == pytest.approx((K @ total)[rows], abs=1e-12)
        assert form.inner(rows) == pytest.approx(K[np.ix_(rows, rows)], abs=1e-12)
        assert form.everywhere(total) == pytest.approx(K @ total, abs=1e-12)
        assert form.offset == pytest.approx(constant * total.sum())
    assert forms[0].combine(total) == pytest.approx(forms[0].w, abs=1e-12)


def test_single_precision_points_keep_double_sums():
    X = np.random.default_rng(0).normal(size=(9, 3)).astype(np.float32)
    for form in (Vector(X, True), Coefficients(Gram(RBF(1.0), X), True)):
        form.add(np.arange(4), np.ones(4))
        for values in (form.values(np.arange(9)), form.inner(np.arange(9)), form.everywhere(np.ones(9))):
            assert values.dtype == np.float64
