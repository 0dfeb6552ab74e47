"""Kernels as plain data: every kernel that is data comes back equal, code is refused, and no code is run."""

import json

import numpy as np
import pytest
from scipy import stats

from cases import each
from mercer.features import DiscreteLaw, spectral
from mercer.features.spectral.law import SpectralLaw
from mercer.kernels import (
    RBF,
    FromFunction,
    Kernel,
    Linear,
    Matern,
    Precomputed,
    Spectral,
    kernel,
    kernel_from_state,
    kernel_to_state,
    register_kernel,
)
from samples import SAMPLES, SIMILARITIES, shared_letters


def trip(k):
    manifest, arrays = kernel_to_state(k)
    assert all(isinstance(a, np.ndarray) and a.dtype.kind in "fiub" for a in arrays.values())
    return kernel_from_state(json.loads(json.dumps(manifest, allow_nan=False)), arrays)


def is_code(value):
    if isinstance(value, Kernel):
        return any(map(is_code, value._params().values()))
    return callable(value) or hasattr(value, "transform")


@each("sample", SAMPLES, ids=str)
def test_every_kernel_comes_back_or_is_refused(sample):
    X = sample.points(9, seed=1)
    k = sample.kernel.resolve(X)
    if is_code(k):
        with pytest.raises(TypeError, match=r"is not plain data: a state holds numbers, texts and arrays, no code"):
            kernel_to_state(k)
        return
    back = trip(k)
    assert np.array_equal(back(X), k(X))  # to the last bit
    assert type(back) is type(k)
    if not isinstance(k, Spectral) or hasattr(k.law, "dist"):  # frozen laws on several frequencies are never equal
        assert back == k
        assert trip(sample.kernel) == sample.kernel  # with parameters that wait for data, too


@pytest.mark.parametrize(
    "law",
    [
        DiscreteLaw(np.random.default_rng(0).normal(size=(49, 2))),
        DiscreteLaw([[1.0, 2.0], [0.5, 0.0]], [0.1, 0.9]),
        spectral.MixtureLaw([0.3, 0.7], [spectral.GaussianScaleMixture.student(2, 0.7, 1.5), DiscreteLaw(np.eye(2))]),
        spectral.IndependentLaw(2, stats.cauchy(scale=0.3)),
        spectral.LinearImage(np.eye(2), spectral.ShiftedGaussian(2, [1.0, 0.0], 2.0)),
        stats.t(df=3, scale=0.5),
        stats.multivariate_normal(cov=[[2.0, 0.3], [0.3, 1.0]]),
        stats.multivariate_t(shape=[[2.0, 0.3], [0.3, 1.0]], df=4),
    ],
    ids=range(8),
)
def test_laws_of_frequencies_are_data(law):
    X = np.random.default_rng(1).normal(size=(6, 2))
    k = Spectral(law)
    assert np.array_equal(trip(k)(X), k(X))


def test_parameters_keep_their_types():
    k = RBF(scale=(1.0, np.float32(0.1), 3))
    assert trip(k).scale == (1.0, float(np.float32(0.1)), 3)
    assert trip(RBF(scale=np.array([1.0, 2.0]))).scale.tolist() == [1.0, 2.0]
    assert kernel_to_state(Precomputed(SIMILARITIES))[1]["kernel.matrix"].shape == SIMILARITIES.shape
    names = kernel_to_state(RBF(np.ones(2)) + 2.0 * Matern(1.5, np.ones(2)))[1]
    assert sorted(names) == ["kernel.left.scale", "kernel.right.base.scale"]
    assert trip(RBF(1.0).on(slice(0, 2))).columns == slice(0, 2)


@kernel
class Hat(Kernel):
    scale: float = 1.0

    def of(self, pair):
        return 1 / (1 + pair.sqdist(self.scale))


def test_a_class_of_ones_own_is_registered_first():
    with pytest.raises(
        TypeError, match=r"Hat is not registered.*decorate the class with mercer.kernels.register_kernel"
    ):
        kernel_to_state(Hat(2.0) + Linear())
    state = {"kernel": "Hat", "parameters": {"scale": 2.0}}
    with pytest.raises(ValueError, match=r"names the kernel 'Hat', which is not registered here; import the module"):
        kernel_from_state(state, {})
    register_kernel(Hat)
    try:
        assert trip(Hat(2.0) + Linear()) == Hat(2.0) + Linear()
        assert kernel_from_state(state, {}) == Hat(2.0)
        register_kernel(Hat)  # again, as a module that is read twice does

        def another():
            @kernel
            class Hat(Kernel):
                def of(self, pair):
                    return 1.0

            return Hat

        with pytest.raises(ValueError, match=r"is registered as 'Hat' already; give .* another name"):
            register_kernel(another())
    finally:
        from mercer.kernels import state as module

        module._REGISTERED.pop("Hat", None)


def test_registering_takes_a_class_of_kernels():
    for wrong in (int, "RBF", RBF(1.0), Kernel):
        with pytest.raises(TypeError, match="a class of kernels made with the decorator kernel"):
            register_kernel(wrong)
    with pytest.raises(TypeError, match="takes a kernel such as RBF"):
        kernel_to_state("rbf")
    assert register_kernel(RBF) is RBF


class OwnLaw(SpectralLaw):
    dim, n_uniforms, name = 1, 1, "own"

    def frequencies(self, U):
        return U

    def characteristic(self, delta):
        return np.ones(len(delta))

    def _parameters(self):
        return {}


def test_code_is_refused():
    with pytest.raises(TypeError, match=r"f of FromFunction\(f=shared_letters\) is <function .* is not plain data"):
        kernel_to_state(RBF(1.0) + FromFunction(shared_letters))
    histogram = stats.rv_histogram(np.histogram(np.arange(10.0)))
    with pytest.raises(TypeError, match="is not plain data"):
        kernel_to_state(Spectral(histogram()))
    with pytest.raises(TypeError, match=r"no class of mercer\.features"):
        kernel_to_state(Spectral(OwnLaw()))


@pytest.mark.parametrize(
    "manifest",
    [
        None,
        3.0,
        "RBF",
        [],
        {},
        {"kernel": "RBF"},
        {"kernel": ["RBF"], "parameters": {}},
        {"kernel": "RBF", "parameters": {"scale": 1.0}, "code": "print(1)"},
        {"kernel": "RBF", "parameters": {"scale": 1.0, "more": 2.0}},
        {"law": "SpectralLaws", "parameters": {}},
        {"law": "as_law", "parameters": {"law": 1, "dim": 2}},
        {"scipy.stats": "os", "parameters": {}},
        {"scipy.stats": "bootstrap", "parameters": {}},
        {"tuple": [1.0]},
    ],
    ids=range(14),
)
def test_a_damaged_state_is_refused(manifest):
    with pytest.raises(ValueError, match="the state cannot be read"):
        kernel_from_state(manifest, {})


def test_parameters_are_checked_when_they_are_read():
    with pytest.raises(ValueError, match="scale of RBF must be > 0"):
        kernel_from_state({"kernel": "RBF", "parameters": {"scale": -1.0}}, {})
    with pytest.raises(ValueError, match=r"incomplete: its manifest names the array 'kernel\.scale'"):
        kernel_from_state({"kernel": "RBF", "parameters": {"scale": {"array": "kernel.scale"}}}, {})
