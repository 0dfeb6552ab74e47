"""The laws of a reproducing kernel Hilbert space (K8), for functions as objects."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import samples
from mercer.estimators import KernelRidge
from mercer.kernels import RBF, Delta, FromFunction, Intersection, Linear, Matern, Polynomial, Sigmoid
from mercer.rkhs import RKHSFunction
from samples import shared_letters, table, vectors, words

SPACES = [
    *samples.SPACES,
    (FromFunction(shared_letters).normalized() + 0.5 * Delta(), words),
]
spaces = st.sampled_from(SPACES)
seeds = st.integers(0, 2**20)


def member(space, seed, n=7, offset=0.0):
    kernel, points = space
    return RKHSFunction(kernel, points(n, seed=seed), np.random.default_rng(seed).normal(size=n), offset)


def size(f):
    """What rounding is measured in: the sum of the absolute terms of <f, f>."""
    return 1e-12 * (1 + np.abs(f.coefficients).sum() ** 2 * np.abs(f.kernel.diag(f.points)).max())


@given(spaces, seeds, st.floats(-3, 3))
def test_reproducing_property(space, seed, offset):
    f = member(space, seed, offset=offset)
    X = space[1](9, seed=seed + 1)
    K = f.kernel(X, f.points)
    assert f(X) == pytest.approx(K @ f.coefficients + offset, abs=size(f))
    for i in (0, 8):
        one = X.iloc[[i]] if isinstance(X, pd.DataFrame) else X[i : i + 1]
        assert f @ RKHSFunction(f.kernel, one, [1.0]) == pytest.approx(f(X)[i] - offset, abs=size(f))


@given(spaces, seeds)
def test_single_points_have_numbers_and_kernel_functions(space, seed):
    f = member(space, seed, offset=0.5)
    X = space[1](9, seed=seed + 1)
    x = X.iloc[3] if isinstance(X, pd.DataFrame) else X[3]
    assert isinstance(f(x), float)
    assert f(x) == pytest.approx(f(X)[3], abs=size(f))
    at = f.kernel.at(x)
    assert len(at) == 1
    assert f @ at == pytest.approx(f(x) - 0.5, abs=size(f))
    assert at(x) == pytest.approx(f.kernel.diag(X)[3], rel=1e-9)


def test_a_kernel_function_needs_one_point_and_known_parameters():
    with pytest.raises(ValueError, match=r"k\.at\(x\) takes one point; x is a set of 2"):
        RBF(1.0).at([[0.0], [1.0]])
    with pytest.raises(ValueError, match=r"RBF\(\) takes a parameter from data, .* use k\.resolve\(X\) first"):
        RBF().at(0.0)
    with pytest.raises(ValueError, match=r"X has 3 features and Z has 1"):
        RBF(1.0).at(0.0)(np.zeros(3))


@given(spaces, seeds, seeds)
def test_cauchy_schwarz_symmetry_and_parallelogram(space, first, second):
    f, g = member(space, first), member(space, second, n=5)
    rounding = size(f) + size(g)
    assert f @ g == pytest.approx(g @ f, abs=rounding)
    assert abs(f @ g) <= f.norm() * g.norm() * (1 + 1e-9) + rounding
    both = (f + g).norm() ** 2 + (f - g).norm() ** 2
    assert both == pytest.approx(2 * f.norm() ** 2 + 2 * g.norm() ** 2, rel=1e-9, abs=10 * rounding)
    assert f.distance(g) == pytest.approx((f - g).norm())
    assert f.distance(g) <= f.norm() + g.norm() + math.sqrt(rounding)


@given(spaces, seeds)
def test_values_are_bounded_by_the_norm(space, seed):
    f = member(space, seed)
    X = space[1](12, seed=seed + 3)
    assert (np.abs(f(X)) <= f.norm() * np.sqrt(f.kernel.diag(X)) * (1 + 1e-9) + size(f)).all()


@given(spaces, seeds, st.floats(-5, 5), st.floats(-5, 5))
def test_linearity(space, seed, a, b):
    f, g, h = member(space, seed, offset=0.5), member(space, seed + 1, n=4, offset=-2.0), member(space, seed + 2)
    X = space[1](9, seed=seed + 3)
    rounding = 100 * (size(f) + size(g) + size(h))
    assert (a * f + b * g)(X) == pytest.approx(a * f(X) + b * g(X), abs=rounding)
    assert (a * f + b * g) @ h == pytest.approx(a * (f @ h) + b * (g @ h), abs=rounding)
    assert (-f)(X) == pytest.approx(-f(X))
    assert (f / 2)(X) == pytest.approx(f(X) / 2)
    assert (3.0 - f + 1)(X) == pytest.approx(4.0 - f(X), abs=rounding)
    assert len(f + g) == len(f) + len(g)


def of_ridge(space, seed, alpha, y=None):
    kernel, points = space
    X = points(9, seed=seed)
    y = np.random.default_rng(seed).normal(size=9) if y is None else y
    return X, y, KernelRidge(alpha, kernel=kernel, residual=1e-9).fit(X, y)


@settings(max_examples=25)
@given(spaces, seeds, st.sampled_from([0.1, 1.0, 10.0]))
def test_the_norm_of_a_ridge_fit_is_its_quadratic_form(space, seed, alpha):
    X, y, model = of_ridge(space, seed, alpha)
    a, f = model.dual_coef_, model.function_
    K = f.kernel(X)
    assert f.norm() ** 2 == pytest.approx(a @ K @ a, rel=1e-9, abs=size(f))
    # (K + alpha) a = y, so that the norm is also what the residuals leave of <a, y>
    assert f.norm() ** 2 == pytest.approx(a @ y - alpha * a @ a, rel=1e-6, abs=1e-6 * (1 + np.abs(y) @ np.abs(a)))


@settings(max_examples=25)
@given(st.sampled_from([SPACES[0], SPACES[3], SPACES[4], SPACES[6], SPACES[7]]), seeds)
def test_ridge_tends_to_the_interpolant_of_least_norm(space, seed):
    kernel, points = space
    X = points(9, seed=seed)
    kernel = kernel.resolve(X)
    K = kernel(X)
    y = K @ np.random.default_rng(seed).normal(size=9)  # values that some function of H takes, even where K is singular
    least = RKHSFunction(kernel, X, np.linalg.pinv(K, rcond=1e-11, hermitian=True) @ y)
    assert least(X) == pytest.approx(y, abs=1e-6 * (1 + np.abs(y).max()))
    errors = []
    for alpha in (1e-2, 1e-4, 1e-6):
        f = of_ridge(space, seed, alpha, y)[2].function_
        assert f.norm() <= least.norm() * (1 + 1e-7) + 1e-7
        errors.append(f.distance(least))
    assert errors[2] <= max(0.5 * errors[0], 1e-4 * (1 + least.norm()))
    # Any other interpolant is longer: add a function that vanishes at all of X.
    h = member(space, seed + 1, n=5)
    vanishing = h - RKHSFunction(kernel, X, np.linalg.pinv(K, rcond=1e-11, hermitian=True) @ h(X))
    assert (least + vanishing).norm() >= least.norm() - 1e-5 * (1 + least.norm() + h.norm())


DIFFERENTIABLE = [
    RBF(1.5),
    RBF([0.5, 1.0, 4.0]),
    Linear(),
    Polynomial(3),
    Matern(1.5, 1.0),
    Matern(2.5, 2.0) * Linear() + 2.0 * RBF(1.0).on([0, 2]),
    (0.5 * Polynomial(2).normalized()).exp(),
]


@settings(max_examples=30)
@given(st.sampled_from(DIFFERENTIABLE), seeds, st.floats(-3, 3))
def test_gradient_agrees_with_differences(kernel, seed, offset):
    rng = np.random.default_rng(seed)
    f = RKHSFunction(kernel, rng.normal(size=(6, 3)), rng.normal(size=6), offset)
    X, h = rng.normal(size=(5, 3)), 1e-5
    found = f.gradient(X)
    assert found.shape == (5, 3)
    for j, e in enumerate(np.eye(3)):
        expected = (f(X + h * e) - f(X - h * e)) / (2 * h)
        assert found[:, j] == pytest.approx(expected, abs=1e-7 * (1 + np.abs(expected).max()))


def test_the_gradient_of_a_constant_is_zero_and_that_of_a_line_its_slope():
    constant = RKHSFunction(RBF(1.0), np.zeros((0, 2)), [], offset=3.0)
    assert constant.gradient(np.ones((4, 2))).tolist() == [[0.0, 0.0]] * 4
    line = RKHSFunction(Linear(), np.array([[1.0, 2.0]]), [3.0], offset=1.0)
    assert line.gradient(np.ones((1, 2)))[0] == pytest.approx([3.0, 6.0])
    for kernel in (Intersection(), Delta()):
        with pytest.raises(TypeError, match="has no gradient"):
            RKHSFunction(kernel, np.ones((1, 2)), [1.0]).gradient(np.ones((1, 2)))
    with pytest.raises(TypeError, match="only vectors can be moved"):
        RKHSFunction(FromFunction(shared_letters), ["ab"], [1.0]).gradient(["ab"])


# -- sizes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exponent", [-1040, -600, 600, 1000])
def test_coefficients_of_any_size(exponent):
    f, g = member(SPACES[0], 0), member(SPACES[0], 1)
    unit = 2.0**exponent
    with np.errstate(all="raise", under="ignore"):
        large = RKHSFunction(f.kernel, f.points, f.coefficients * unit)
        assert large(g.points) == pytest.approx(f(g.points) * unit, rel=1e-3)
        assert large.norm() == pytest.approx(f.norm() * unit, rel=1e-3)
        partner = g / 2.0 ** max(exponent, -1000)
        assert large @ partner == pytest.approx((f @ g) * 2.0 ** min(0, exponent + 1000), rel=1e-3, abs=1e-15)
        assert large.distance(large) == 0.0
        pruned, error, relative = large.prune(1e-2)
    assert error == pytest.approx(large.distance(pruned), rel=1e-2)
    assert relative == pytest.approx(error / large.norm(), rel=1e-3)


def test_what_leaves_float64_is_a_sentence():
    f = RKHSFunction(Linear(), np.full((2, 1), 1e100), [1e300, 1e300])
    with pytest.raises(FloatingPointError, match="a value of the function lies outside the range of float64"):
        f([[1e100]])
    with pytest.raises(FloatingPointError, match=r"an inner product lies outside.*reach 1e\+300 and 1e\+300"):
        f @ f
    with pytest.raises(FloatingPointError, match="a norm lies outside the range of float64"):
        f.norm()
    assert (f / 1e300).norm() == pytest.approx(2e100)


def test_equal_functions_have_distance_zero_whatever_holds_them():
    f = member(SPACES[0], 3)
    for points in (f.points.tolist(), sparse.csr_array(f.points), f.points.copy(), pd.DataFrame(f.points)):
        order = np.arange(len(f))[::-1]
        g = RKHSFunction(f.kernel, points, f.coefficients)
        assert RKHSFunction(f.kernel, f.points[order], f.coefficients[order]).distance(f) <= 1e-15 * f.norm()
        if not isinstance(points, pd.DataFrame):  # by twice the kernel values it would be 1e-8
            assert max(f.distance(g), g.distance(f)) <= 1e-15 * f.norm()
    text = member(SPACES[4], 3)
    assert text.distance(RKHSFunction(text.kernel, list(text.points), text.coefficients)) <= 1e-15 * text.norm()


def test_the_geometry_of_single_precision_points_has_double_precision():
    X = vectors(40).astype(np.float32)
    a = np.random.default_rng(0).normal(size=40)
    f, g = RKHSFunction(RBF(3.0), X, a), RKHSFunction(RBF(3.0), X.astype(np.float64), a)
    assert f.norm() == pytest.approx(g.norm(), rel=1e-13)
    assert f @ f == pytest.approx(g.norm() ** 2, rel=1e-13)


def test_the_offset_is_not_in_the_space():
    f, g = member(SPACES[0], 0, offset=5.0), member(SPACES[0], 1, offset=-2.0)
    bare = RKHSFunction(f.kernel, f.points, f.coefficients)
    assert f.norm() == bare.norm()
    assert f @ g == bare @ g
    assert f.distance(bare) == 0.0
    assert (f + g).offset == 3.0
    assert (-2 * f).offset == -10.0


def test_equal_centres_are_not_doubled():
    f = member(SPACES[0], 0)
    assert len(f + 2 * f) == len(f)
    assert (f - f).norm() == 0.0


def test_numpy_numbers_scale_functions():
    f = member(SPACES[0], 0)
    assert isinstance(np.float64(2) * f, RKHSFunction)
    assert (np.float64(2) * f).norm() == pytest.approx(2 * f.norm())


def test_no_centres_is_a_constant():
    f = RKHSFunction(RBF(1.0), np.zeros((0, 2)), [], offset=1.5)
    g = RKHSFunction(RBF(1.0), np.ones((1, 2)), [2.0])
    assert f(np.zeros((3, 2))).tolist() == [1.5] * 3
    assert (f.norm(), f @ g, len(f), len(f + g)) == (0.0, 0.0, 0, 1)
    assert (g + f)(np.ones((1, 2))).tolist() == [3.5]
    assert f


def test_sparse_centres_and_tables():
    X = vectors(8)
    f = RKHSFunction(RBF(1.0), X, np.ones(8))
    g = RKHSFunction(RBF(1.0), sparse.csr_array(X[:3]), np.ones(3))
    assert (f + g)(X) == pytest.approx(f(X) + g(X))
    assert (g + g * 2)(sparse.csr_array(X)) == pytest.approx(3 * g(X))
    polars = pytest.importorskip("polars")
    t = table(6)
    h = RKHSFunction(RBF(10.0).on("age"), polars.DataFrame(t.to_dict("list")), np.ones(6))
    k = RKHSFunction(RBF(10.0).on("age"), polars.DataFrame(t.to_dict("list")), np.ones(6))
    assert (h + k).norm() == pytest.approx(2 * h.norm())


def test_tensors_stay_tensors():
    torch = pytest.importorskip("torch")
    X = torch.tensor(vectors(8))
    f = RKHSFunction(RBF(1.0), X, torch.ones(8, dtype=torch.float64))
    assert isinstance(f(X), torch.Tensor)
    g = f + RKHSFunction(RBF(1.0), X[:2], torch.ones(2, dtype=torch.float64))
    assert len(g) == 10
    plain = RKHSFunction(RBF(1.0), vectors(8), np.ones(8))
    assert f.norm() == pytest.approx(plain.norm())
    assert f @ g == pytest.approx(plain @ RKHSFunction(RBF(1.0), X[:2].numpy(), np.ones(2)) + plain @ plain)
    slope = f.gradient(X)
    assert isinstance(slope, torch.Tensor)
    assert slope.numpy() == pytest.approx(plain.gradient(vectors(8)))
    pruned, error, _ = g.prune(1e-3)
    assert isinstance(pruned.coefficients, torch.Tensor)
    assert isinstance(pruned.points, torch.Tensor)
    assert error == pytest.approx(g.distance(pruned), rel=1e-4, abs=1e-7)


def test_parameters_are_resolved_on_the_centres():
    X = vectors(8)
    f = RKHSFunction(RBF("median"), X, np.ones(8))
    assert f.kernel == RBF("median").resolve(X)


def test_pickle_and_repr():
    f = member(SPACES[0], 0, offset=-0.25)
    twin = pickle.loads(pickle.dumps(f))
    assert twin(f.points) == pytest.approx(f(f.points), rel=1e-12)
    assert repr(f) == "<sum of 7 terms a_i k(x_i, .) - 0.25, k = RBF(scale=1.5)>"
    with pytest.raises(ValueError, match="read-only"):
        f.coefficients[0] = 1.0


def test_errors_are_sentences():
    f = member(SPACES[0], 0)
    with pytest.raises(ValueError, match="different spaces"):
        f + RKHSFunction(RBF(9.0), f.points, f.coefficients)
    with pytest.raises(ValueError, match="different spaces"):
        f @ RKHSFunction(Linear(), f.points, f.coefficients)
    with pytest.raises(ValueError, match=r"shape \(2,\) and there are 3 points"):
        RKHSFunction(Linear(), np.ones((3, 1)), [1.0, 2.0])
    with pytest.raises(ValueError, match="must be finite"):
        RKHSFunction(Linear(), np.ones((1, 1)), [np.nan])
    with pytest.raises(TypeError, match="kernel object"):
        RKHSFunction("rbf", np.ones((1, 1)), [1.0])
    with pytest.raises(ZeroDivisionError, match="cannot be divided by 0"):
        f / 0
    for operation in (lambda: f + "x", lambda: f - "x", lambda: f * f, lambda: f @ 2, lambda: f / "x", lambda: "x" - f):
        with pytest.raises(TypeError):
            operation()


def test_an_indefinite_kernel_has_no_norm():
    K = Sigmoid(gamma=1.0, c=-1.0)
    X = np.array([[0.1], [1.0]])
    value, vector = np.linalg.eigh(K(X))
    assert value[0] < 0
    with pytest.raises(ValueError, match="not positive semidefinite"):
        RKHSFunction(K, X, vector[:, 0]).norm()
