import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from mercer import Gram
from mercer.certify.values import product
from mercer.kernels import RBF, Delta, FromFunction, Laplacian, Linear, SetKernel
from mercer.points.sets import bags as module
from samples import bags, letters, shared_letters, vectors


@st.composite
def random_bags(draw):
    sizes = draw(st.lists(st.integers(0, 4), min_size=1, max_size=7))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    return [rng.normal(size=(m, 2)).round(1) for m in sizes]


def slow(base, A, B, kind):
    def value(a, b):
        total = sum(base(x[None], z[None])[0, 0] for x in a for z in b)
        return total if kind == "sum" or not len(a) * len(b) else total / len(a) / len(b)

    return [[value(a, b) for b in B] for a in A]


@given(A=random_bags(), B=random_bags(), kind=st.sampled_from(["mean", "sum"]))
def test_a_set_kernel_sums_over_all_pairs(A, B, kind):
    for base in (RBF(1.5), Linear() + 1.0):
        k = SetKernel(base, kind)
        np.testing.assert_allclose(k(A, B), slow(base, A, B, kind), rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(k.diag(A), np.diag(slow(base, A, A, kind)), rtol=1e-12, atol=1e-13)


def test_tiles_of_elements_change_nothing(monkeypatch):
    """Bags are summed whole where they fit into a tile, and in parts where they do not."""
    A, k = bags(30), SetKernel(Laplacian(1.0) + Linear(), "sum")
    K, d = k(A), k.diag(A)
    monkeypatch.setattr(module, "_EDGE", 3)
    monkeypatch.setattr(module, "_TOGETHER", 2)
    np.testing.assert_allclose(k(A), K, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(k.diag(A), d, rtol=1e-13, atol=1e-13)
    assert module._cuts(np.array([2, 1, 0, 7, 2])) == [0, 3, 6, 9, 12]


def test_bags_of_thousands_are_symmetric_and_the_same_by_other_code():
    rng = np.random.default_rng(0)
    A = [rng.normal(size=(int(m), 5)) for m in rng.integers(1, 300, size=25)]
    k = SetKernel(RBF(2.0))
    K = k(A)
    np.testing.assert_array_equal(K, K.T)
    b = rng.normal(size=25)
    np.testing.assert_allclose(product(k, A, b), K @ b, rtol=1e-10)
    np.testing.assert_allclose(Gram(k, A).rows(np.array([7, 3])), K[[7, 3]], rtol=1e-12)


def test_one_element_each_is_the_base_kernel():
    X = vectors()
    np.testing.assert_allclose(SetKernel(RBF("auto"))(X[:, None, :]), RBF("auto")(X), rtol=1e-12)
    assert SetKernel(RBF("auto")).resolve(X[:, None, :]).base == RBF("auto").resolve(X)


def test_the_mean_of_linear_is_the_product_of_means():
    A = bags()
    means = np.array([a.mean(axis=0) if len(a) else np.zeros(3) for a in A])
    np.testing.assert_allclose(SetKernel(Linear())(A), means @ means.T, atol=1e-14)


def test_elements_of_any_kind():
    A = letters()
    wanted = [[sum(x == z for x in a for z in b) for b in A] for a in A]
    np.testing.assert_array_equal(SetKernel(Delta(), "sum")(A), wanted)
    np.testing.assert_array_equal(SetKernel(FromFunction(shared_letters), "sum")(A), wanted)
    thin = [sparse.csr_array(a) for a in bags()]
    np.testing.assert_allclose(SetKernel(RBF(1.0))(thin), SetKernel(RBF(1.0))(bags()), rtol=1e-13)
    lists = [a.tolist() for a in bags()]
    np.testing.assert_array_equal(SetKernel(RBF(1.0))(lists), SetKernel(RBF(1.0))(bags()))


def test_empty_bags_are_zero():
    A = [np.zeros((0, 2)), np.zeros((0, 2))]
    for kind in ("mean", "sum"):
        np.testing.assert_array_equal(SetKernel(RBF(1.0), kind)(A), np.zeros((2, 2)))
        np.testing.assert_array_equal(SetKernel(RBF(1.0), kind)(A, [np.ones((3, 2))]), np.zeros((2, 1)))
    with pytest.raises(ValueError, match=r"all bags of X are empty, and RBF\(\) takes a parameter"):
        SetKernel(RBF())(A)


@pytest.mark.parametrize(
    ("points", "error", "sentence"),
    [
        ([np.zeros(3)], ValueError, r"X\[0\] is flat, of shape \(3,\): .*x\.reshape\(-1, 1\)"),
        (np.zeros((4, 3)), ValueError, r"X\[0\] is flat"),
        (["text"], TypeError, r"X\[0\] is a str, 'text', and no bag: pass a matrix"),
        ([1.0], TypeError, r"X\[0\] is a float, 1\.0, and no bag"),
        ([np.ones((1, 2)), np.ones((2, 3))], ValueError, r"X\[1\] holds vectors of 3 numbers and X\[0\] vectors of 2"),
        ([np.ones((1, 2)), ["a"]], ValueError, r"X\[1\] holds objects that are no vectors and X\[0\] vectors of 2"),
        ([np.full((1, 2), np.nan)], ValueError, "X contains NaN at row 0"),
    ],
)
def test_what_is_no_bag_is_refused(points, error, sentence):
    with pytest.raises(error, match=sentence):
        SetKernel(RBF(1.0))(points)


def test_widths_must_agree_between_two_sets_of_bags():
    with pytest.raises(ValueError, match="X has 2 features and Z has 3"):
        SetKernel(RBF(1.0))([np.ones((2, 2))], [np.ones((2, 3))])


def test_parameters_are_checked():
    with pytest.raises(ValueError, match="kind of SetKernel must be 'mean' or 'sum'; it is 'max'"):
        SetKernel(RBF(), "max")
    with pytest.raises(TypeError, match="base of SetKernel must be a kernel"):
        SetKernel(1.0)
