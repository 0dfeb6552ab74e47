"""Kernels of scikit-learn's Gaussian processes: their own values, and their own bounds, are the referees."""

import math

import numpy as np
import pytest
import sklearn.gaussian_process.kernels as sk
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer import Gram, verdict
from mercer.gram import parameters
from mercer.kernels import RBF, Kernel
from mercer.kernels.rules.scikit_learn import as_kernel, translated
from mercer.rkhs import MercerExpansion, RKHSFunction, mmd_test

sizes = st.floats(0.2, 5.0)
limits = st.one_of(st.just("fixed"), st.tuples(st.floats(1e-3, 0.1), st.floats(10.0, 1e3)))
METRICS = ("linear", "rbf", "laplacian", "poly", "polynomial", "sigmoid", "cosine", "chi2")


def leaves(d):
    scale = st.one_of(sizes, st.lists(sizes, min_size=d, max_size=d))
    smooth = st.one_of(st.sampled_from([0.5, 1.5, 2.5, math.inf]), st.floats(0.3, 4.0))
    found = [
        st.builds(sk.ConstantKernel, sizes, limits),
        st.builds(sk.RBF, scale, limits),
        st.builds(sk.Matern, scale, limits, smooth),
        st.builds(sk.RationalQuadratic, sizes, sizes, limits, limits),
        st.builds(sk.DotProduct, sizes, limits),
        st.builds(sk.PairwiseKernel, sizes, limits, st.sampled_from(METRICS)),
    ]
    return (
        st.one_of(*found, st.builds(sk.ExpSineSquared, sizes, sizes, limits, limits)) if d == 1 else st.one_of(*found)
    )


def trees(d):
    def larger(parts):
        both = (st.builds(kind, parts, parts) for kind in (sk.Sum, sk.Product))
        return st.one_of(*both, st.builds(sk.Exponentiation, parts, st.sampled_from([1, 2.0, 3])))

    return st.recursive(leaves(d), larger, max_leaves=4)


def positive(d):
    return np.random.default_rng(0).uniform(0.1, 2.0, (7, d))  # "chi2" compares histograms


@settings(max_examples=50, deadline=None)
@given(st.sampled_from([1, 3]).flatmap(lambda d: st.tuples(st.just(d), trees(d))))
def test_values_are_those_of_scikit_learn(drawn):
    d, theirs = drawn
    X, Z = positive(d), positive(d)[::-1] * 1.3
    ours = as_kernel(theirs)
    assert isinstance(ours, Kernel)
    np.testing.assert_allclose(ours(X, Z), theirs(X, Z), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(ours.diag(X), theirs.diag(X), rtol=1e-12, atol=1e-13)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from([1, 3]).flatmap(trees))
def test_bounds_are_where_scikit_learn_ends(theirs):
    found = translated(theirs)
    for side in (0, 1):
        moved = translated(theirs.clone_with_theta(theirs.bounds[:, side])) if len(theirs.theta) else found
        for p in parameters(moved.kernel):
            assert any(p.value == pytest.approx(end, rel=1e-9) for end in found.bounds[str(p)])
    silent = sum(h.name.endswith("gamma") and not h.fixed for h in theirs.hyperparameters)  # of "linear" and "cosine"
    free = sum(low < high for low, high in found.bounds.values())
    assert len(theirs.theta) - silent <= free <= len(theirs.theta)


def test_a_white_kernel_is_noise():
    white = sk.WhiteKernel(0.1, (1e-3, 1e2))
    found = translated(sk.ConstantKernel(2.0, (0.5, 4.0)) * (sk.RBF() + white) + sk.WhiteKernel(0.3, "fixed"))
    assert found.kernel == as_kernel(sk.ConstantKernel(2.0) * sk.RBF())
    assert found.noise.value == pytest.approx(0.5)
    assert found.noise.bounds == pytest.approx((0.3005, 400.3))
    assert translated(white).kernel is None
    for bad in (white * sk.RBF(), white * white, white**2):
        with pytest.raises(TypeError, match="no counterpart here"):
            translated(bad)
    with pytest.raises(ValueError, match=r"has a WhiteKernel, which is noise.*alpha.*SVC has C"):
        as_kernel(sk.RBF() + white)


def test_what_has_no_counterpart_is_refused():
    class Own(sk.RBF):
        pass

    for kernel in (sk.CompoundKernel([sk.RBF()]), Own(), sk.PairwiseKernel(metric="additive_chi2"), sk.RBF() ** 0.5):
        with pytest.raises(TypeError, match="no counterpart here"):
            as_kernel(kernel)
    with pytest.raises(ValueError, match="ExpSineSquared, is a kernel of one feature only"):
        as_kernel(sk.ExpSineSquared())(positive(2))
    for kernel in (RBF, sk.RBF):
        with pytest.raises(TypeError, match=r"kernel=RBF is a class; pass an object: RBF\(\)"):
            as_kernel(kernel)
    assert translated(len) is translated("rbf") is translated(RBF(1.0)) is None


def test_they_are_taken_wherever_a_kernel_is():
    X, theirs, ours = positive(2), sk.RBF(0.7), RBF(0.7)
    assert Gram(theirs, X).kernel == ours
    assert RKHSFunction(theirs, X, np.ones(7)).norm() == RKHSFunction(ours, X, np.ones(7)).norm()
    assert MercerExpansion(theirs, X, 3).kernel == ours
    assert mmd_test(X, X + 1, kernel=theirs).statistic == mmd_test(X, X + 1, kernel=ours).statistic
    assert verdict(theirs, X).smallest == verdict(ours, X).smallest
    for take in (Gram, lambda k, X: RKHSFunction(k, X, np.ones(7)), lambda k, X: mmd_test(X, X, kernel=k), verdict):
        with pytest.raises(TypeError, match="kernel=RBF is a class"):
            take(RBF, X)
