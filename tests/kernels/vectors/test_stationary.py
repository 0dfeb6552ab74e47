"""What the radial kernels share: scales, and how they are read off data."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import pdist
from sklearn.svm import SVC

from cases import each
from mercer.kernels import RBF, Cauchy, Laplacian, Matern, RationalQuadratic, Wendland
from samples import vectors

RADIAL = [RBF, Laplacian, Matern, RationalQuadratic, Cauchy, Wendland]
of_distance = [RBF, Matern, RationalQuadratic, Cauchy, Wendland]


@pytest.mark.parametrize("family", RADIAL)
def test_one_scale_per_feature_is_scaling_the_data(family):
    X, Z, scales = vectors(), vectors(7, seed=1), np.array([0.5, 1.0, 4.0])
    np.testing.assert_allclose(
        family(scale=scales)(X, Z), family(scale=1.0)(X / scales, Z / scales), rtol=1e-11, atol=1e-300
    )
    np.testing.assert_allclose(family(scale=2.0)(X), family(scale=1.0)(X / 2.0), rtol=1e-12, atol=1e-300)
    np.testing.assert_array_equal(family(scale=[2.0] * 3)(X), family(scale=np.full(3, 2.0))(X))
    assert family(scale=[2.0] * 3) == family(scale=np.full(3, 2.0)) == family(scale=(2, 2, 2))


@pytest.mark.parametrize("family", RADIAL)
def test_depends_on_the_difference_alone(family):
    X = vectors().round(2)
    np.testing.assert_allclose(family(scale=1.0)(X + 1024.0), family(scale=1.0)(X), rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("family", of_distance)
def test_auto_is_scikit_learns_gamma_scale(family):
    X = vectors() * 3 + 1
    gamma = SVC(gamma="scale").fit(X, np.arange(len(X)) % 2)._gamma
    assert family().resolve(X).scale == pytest.approx(RBF.from_gamma(gamma).scale, rel=1e-13)
    assert family().resolve(sparse.csr_array(X)) == family().resolve(X)
    thin = sparse.random_array((30, 400), density=0.01, format="csr", rng=0)
    assert family().resolve(thin).scale == pytest.approx(family().resolve(thin.toarray()).scale, rel=1e-12)
    assert family().resolve(np.ones((5, 3))).scale == RBF.from_gamma(1.0).scale  # as scikit-learn on constant data


@pytest.mark.parametrize("family", of_distance)
def test_median_is_the_median_distance(family):
    X = vectors()
    assert family(scale="median").resolve(X).scale == pytest.approx(np.median(pdist(X)), rel=1e-14)
    assert family(scale="median").resolve(np.ones((5, 3))).scale == 1.0
    assert family(scale="median").resolve(np.ones((1, 3))).scale == 1.0


def test_median_of_many_points_is_of_a_sample():
    X = np.random.default_rng(0).normal(size=(5000, 2))
    scale = RBF("median").resolve(X).scale
    assert scale == pytest.approx(np.median(pdist(X[:2500])), rel=0.03)
    assert scale == RBF("median").resolve(X).scale


def test_scales_of_extreme_data_are_finite():
    for size in (1e-100, 1e-30, 1e30, 1e100):
        X = vectors() * size
        for rule in ("auto", "median"):
            k = RBF(rule).resolve(X)
            assert 0 < k.scale < np.inf
            np.testing.assert_allclose(k(X), RBF(rule)(vectors()), rtol=1e-9)


@pytest.mark.parametrize("family", RADIAL)
@pytest.mark.parametrize("rule", ["auto", "median"])
def test_the_rule_is_resolved_by_the_points_it_meets(family, rule):
    X = vectors()
    k = family(scale=rule)
    assert not k.resolved
    fitted = k.resolve(X)
    assert fitted.resolved
    assert fitted.resolve(2 * X) is fitted
    np.testing.assert_array_equal(k(X), fitted(X))
    np.testing.assert_array_equal(k.diag(X), fitted.diag(X))
    assert k.scale == rule  # the kernel itself has not changed


@each("family", RADIAL)
@each(
    ("scale", "error", "sentence"),
    [
        (0, ValueError, r"scale of {} must be > 0 and finite; it is 0"),
        (-1.5, ValueError, r"scale of {} must be > 0 and finite; it is -1\.5"),
        (float("nan"), ValueError, r"scale of {} must be > 0 and finite; it is nan"),
        (float("inf"), ValueError, r"scale of {} must be > 0 and finite; it is inf"),
        ([1.0, 0.0], ValueError, r"every scale of {} must be > 0 and finite; it is 0\.0"),
        ([], ValueError, r"scale of {} must be a number or a flat list with one per feature; it is \[\]"),
        ([[1.0]], ValueError, r"scale of {} must be a number or a flat list"),
        (np.array(1.0), ValueError, r"scale of {} must be a number or a flat list"),
        ("big", ValueError, r"scale of {} is a positive number, one per feature, 'auto' or 'median'; it is 'big'"),
        (None, TypeError, r"scale of {} must be a number > 0, not None"),
        (True, TypeError, r"scale of {} must be a number > 0, not True"),
        (1j, TypeError, r"scale of {} must be a number > 0, not 1j"),
    ],
)
def test_scales_are_checked(family, scale, error, sentence):
    with pytest.raises(error, match=sentence.format(family.__name__)):
        family(scale=scale)


@pytest.mark.parametrize("family", RADIAL)
def test_there_must_be_as_many_scales_as_features(family):
    k = family(scale=[1.0, 2.0])
    sentence = r"scale has 2 entries but the points have 3 features; give one number, or one per feature"
    with pytest.raises(ValueError, match=sentence):
        k(vectors())
    with pytest.raises(ValueError, match=sentence):
        k.diag(vectors())
