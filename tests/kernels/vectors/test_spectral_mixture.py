import numpy as np
import pytest

from mercer.kernels import RBF, SpectralMixture
from samples import vectors


def by_hand(X, weights, means, scales):
    delta = X[:, None] - X[None]
    total = 0.0
    for w, m, s in zip(weights, means, scales, strict=True):
        envelope = np.exp(-0.5 * ((delta / s) ** 2).sum(axis=-1))
        total = total + w * envelope * np.cos(2 * np.pi * (delta * m).sum(axis=-1))
    return total


@pytest.mark.parametrize(
    "parameters",
    [
        ([1.0, 0.5], [0.2, 1.0], [3.0, 1.0]),
        ([1.0, 0.0], [[0.1, 0.2, 0.3], 0.5], [[1.0, 2.0, 3.0], 4.0]),
        (np.array([2.0]), np.array([[0.1, 0.0, 0.4]]), np.array([2.0])),
    ],
    ids=["numbers", "per feature", "arrays"],
)
def test_agrees_with_its_formula(parameters):
    X = vectors()
    means = [np.broadcast_to(m, 3) for m in parameters[1]]
    k = SpectralMixture(*parameters)
    np.testing.assert_allclose(k(X), by_hand(X, parameters[0], means, parameters[2]), atol=1e-12)


def test_frequency_zero_is_the_gaussian_kernel():
    X = vectors()
    np.testing.assert_allclose(SpectralMixture([1.0], [0.0], [1.3])(X), RBF(1.3)(X), rtol=1e-12, atol=1e-300)


def test_patterns_repeat():
    t = np.arange(8.0)[:, None]
    K = SpectralMixture([1.0], [0.25], [1e6])(t)
    np.testing.assert_allclose(K[0], [1, 0, -1, 0, 1, 0, -1, 0], atol=1e-9)


def test_lists_and_arrays_make_equal_kernels():
    a = SpectralMixture([1.0], [[0.1, 0.2]], [2.0])
    b = SpectralMixture(np.array([1.0]), np.array([[0.1, 0.2]]), np.array([2.0]))
    assert a == b
    assert hash(a) == hash(b)
    assert repr(a) == repr(b)


def test_parameters_are_checked():
    with pytest.raises(ValueError, match=r"as many weights \(2\) as means \(1\) and scales \(2\), at least one"):
        SpectralMixture([1.0, 2.0], [0.5], [1.0, 1.0])
    with pytest.raises(ValueError, match=r"every weight of SpectralMixture must be >= 0 and finite; it is -1"):
        SpectralMixture([-1.0], [0.5], [1.0])
    with pytest.raises(ValueError, match=r"every scale of SpectralMixture must be > 0"):
        SpectralMixture([1.0], [0.5], [0.0])
    with pytest.raises(ValueError, match=r"every mean of SpectralMixture must be .*finite; it is nan"):
        SpectralMixture([1.0], [float("nan")], [1.0])
    with pytest.raises(TypeError, match=r"weights of SpectralMixture must be a list with one entry per component"):
        SpectralMixture(1.0, 0.5, 1.0)
    with pytest.raises(ValueError, match=r"a mean of SpectralMixture has 2 entries but the points have 3 features"):
        SpectralMixture([1.0], [[0.1, 0.2]], [1.0])(vectors())
