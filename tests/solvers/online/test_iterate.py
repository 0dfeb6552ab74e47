"""The two forms of an online learner's iterate are one function."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from mercer.gram import Gram
from mercer.kernels import RBF, Linear
from mercer.solvers.online.iterate import Coefficients, Vector


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
