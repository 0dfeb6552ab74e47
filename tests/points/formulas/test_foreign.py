"""The same numbers from torch tensors as from NumPy arrays, and gradients through them."""

import numpy as np
import pytest

from mercer import Gram
from mercer.kernels import RBF, Cauchy, Laplacian, Linear, Matern, Polynomial, RationalQuadratic
from mercer.points import Points
from mercer.testing import rounding
from samples import CATALOGUE, of_vectors, vectors

torch = pytest.importorskip("torch")

# Laws of scipy.stats are evaluated on NumPy arrays, user functions on what they were written for.
NUMPY_ONLY = ("Spectral(", "FromFeatures", "Precomputed", "FromFunction")
SAMPLES = [s for s in CATALOGUE if of_vectors(s) and not str(s).startswith(NUMPY_ONLY)]
TYPES = {np.float32: torch.float32, np.float64: torch.float64}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_torch_gives_the_numbers_of_numpy(sample, dtype):
    X, Z = sample.points(20).astype(dtype), sample.points(9, seed=1).astype(dtype)
    kernel = sample.kernel.resolve(X)
    for right in (None, Z):
        found = kernel(torch.from_numpy(X), None if right is None else torch.from_numpy(right))
        assert found.dtype == TYPES[dtype]
        # Either may be off by what rounding does to the formula.
        allowed = 2 * rounding(kernel, X, right).bound
        assert (np.abs(found.numpy() - kernel(X, right)) <= allowed).all()
    np.testing.assert_allclose(kernel.diag(torch.from_numpy(X)), kernel.diag(X), rtol=20 * np.finfo(dtype).eps)


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_parameters_from_tensors(sample):
    X = sample.points(20)
    here, there = sample.kernel.resolve(X).get_params(), sample.kernel.resolve(torch.from_numpy(X)).get_params()
    for name, value in here.items():
        assert there[name] == pytest.approx(value, rel=1e-12) if isinstance(value, float) else there[name] == value


@pytest.mark.parametrize("kernel", [RBF(1.0), Laplacian(1.0), Matern(1.5, 1.0), Cauchy([1.0, 2.0, 0.5])], ids=repr)
@pytest.mark.parametrize("dtype", TYPES)
def test_hostile_data(kernel, dtype):
    """Differences are formed before they are scaled, as in the core."""
    X = (vectors(30) + 1e6).astype(dtype)
    np.testing.assert_allclose(kernel(torch.from_numpy(X)), kernel(X), rtol=1e-5 if dtype is np.float32 else 1e-12)
    assert (np.diag(kernel(torch.from_numpy(X))) == 1).all()


@pytest.mark.parametrize(
    "kernel",
    [RBF(1.3), RBF([0.5, 1.0, 2.0]), RationalQuadratic(0.7, 1.0), Cauchy(2.0), Polynomial(3), Linear() * RBF(1.0)],
    ids=repr,
)
def test_gradients_flow(kernel):
    X = torch.from_numpy(np.random.default_rng(0).standard_normal((5, 3))).requires_grad_()
    Z = torch.from_numpy(np.random.default_rng(1).standard_normal((4, 3))).requires_grad_()
    assert torch.autograd.gradcheck(lambda x, z: kernel(x, z), (X, Z))


def test_the_gradient_of_the_gaussian_kernel():
    X = torch.from_numpy(np.random.default_rng(0).standard_normal((6, 2))).requires_grad_()
    v = torch.from_numpy(np.random.default_rng(1).standard_normal(6))
    K = Gram(RBF(0.8), X)
    form = v @ (K @ v)
    form.backward()
    x, w = X.detach().numpy(), v.numpy()
    difference = x[:, None] - x
    values = np.exp(-0.5 * (difference**2).sum(axis=2) / 0.64)
    expected = -2 * (w[:, None, None] * w[None, :, None] * values[..., None] * difference / 0.64).sum(axis=1)
    np.testing.assert_allclose(X.grad, expected, rtol=1e-10)


def test_two_libraries_at_once_are_refused():
    X = vectors(5)
    with pytest.raises(TypeError, match="one set of points is a Tensor, the other a ndarray; pass both"):
        RBF(1.0)(torch.from_numpy(X), X)
    with pytest.raises(TypeError, match="the points are a Tensor, the vector a ndarray; pass both"):
        Gram(RBF(1.0), torch.from_numpy(X)) @ np.ones(5)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (torch.ones(3), r"X must be a matrix with one row per point; its shape is \(3,\)"),
        (torch.ones(3, 0), "X has 0 columns"),
        (torch.tensor([[1.0, float("nan")]]), "X contains NaN or infinite values"),
        (torch.ones(0, 3), "X is empty"),
    ],
)
def test_tensors_that_are_no_points(data, sentence):
    with pytest.raises(ValueError, match=sentence):
        RBF(1.0)(data)


def test_widths_and_scales_that_do_not_fit():
    X = torch.ones(4, 3)
    for narrow in (torch.ones(4, 2), torch.ones(4, 5)):
        with pytest.raises(ValueError, match="X has 3 features and Z has"):
            RBF(1.0)(X, narrow)
    with pytest.raises(ValueError, match="scale has 2 entries but the points have 3 features"):
        RBF([1.0, 2.0])(X)
    with pytest.raises(ValueError, match="scale has 2 entries but the points have 3 features"):
        RBF([1.0, 2.0]).diag(X)


def test_whole_numbers_become_float64():
    assert Points(torch.ones(3, 2, dtype=torch.int64)).vectors.dtype == torch.float64
    assert RBF(1.0)(torch.ones(3, 2, dtype=torch.int64)).dtype == torch.float64


def test_selections():
    X = vectors(10)
    points = Points(torch.from_numpy(X))
    assert points.foreign
    assert points.take(slice(2, 4)).foreign
    np.testing.assert_array_equal(points.take(np.array([3, 1])).vectors, X[[3, 1]])
