"""The continuous parameters of kernels: which they are, their order, and kernels with others."""

import numpy as np
import pytest

from cases import each
from mercer.gram import Parameter, parameters, with_parameters
from mercer.kernels import RBF, Constant, Kernel, Matern, Periodic, Polynomial, Precomputed, SpectralMixture, kernel
from samples import SAMPLES


def names(k):
    return [str(p) for p in parameters(k)]


@each("sample", SAMPLES, ids=str)
def test_every_kernel_is_itself_with_its_own_parameters(sample):
    k = sample.kernel.resolve(sample.points(12))
    values = [p.value for p in parameters(k)]
    assert with_parameters(k, values) == k
    assert len(set(names(k))) == len(values)


@each("sample", SAMPLES, ids=str)
def test_names_are_those_of_get_params(sample):
    k = sample.kernel.resolve(sample.points(12))
    params = k.get_params()
    for p in parameters(k):
        value = params[p.name]
        assert p.value == (value if p.index is None else np.hstack([np.ravel(v) for v in value])[p.index])


def test_composites_are_walked_in_the_order_of_their_fields():
    k = 2.0 * RBF([1.0, 3.0]).on([0, 1]) + Polynomial(3, c1=0.5).normalized() ** 2
    assert names(k) == [
        "left__factor",
        "left__base__base__scale[0]",
        "left__base__base__scale[1]",
        "right__base__base__c1",
        "right__base__base__c2",
    ]
    assert parameters(k)[1] == Parameter("left__base__base__scale", 0, 1.0)


def test_values_go_to_their_places():
    k = 2.0 * RBF([1.0, 3.0]) + SpectralMixture([1.0], [[0.1, 0.2]], [4.0])
    new = with_parameters(k, np.arange(1.0, 8.0))
    assert new == 1.0 * RBF([2.0, 3.0]) + SpectralMixture([4.0], [[5.0, 6.0]], [7.0])
    assert [p.value for p in parameters(new)] == list(range(1, 8))


def test_what_chooses_the_formula_is_not_listed():
    assert names(Matern(1.5, 2.0)) == ["scale"]
    assert names(Polynomial(degree=3.0)) == ["c1", "c2"]
    assert names(Precomputed(np.eye(2))) == []
    assert names(RBF(1.0).on(0)) == ["base__scale"]
    assert names(RBF("auto")) == []
    assert names(Periodic(2)) == ["period", "scale"]  # a whole number in a field for any


def test_containers_keep_their_type():
    assert isinstance(with_parameters(RBF(np.array([1.0, 2.0])), [3.0, 4.0]).scale, np.ndarray)
    assert with_parameters(RBF((1.0, 2.0)), np.array([3.0, 4.0])).scale == (3.0, 4.0)
    assert type(with_parameters(RBF(1.0), np.array([3.0])).scale) is float


def test_classes_of_ones_own_list_what_is_annotated_as_float():
    @kernel
    class Own(Kernel):
        base: Kernel
        rate: float
        order: int = 2
        anything: "object" = None
        shift: "float | None" = None

        def of(self, pair):
            return self.base.of(pair) * self.rate

    assert names(Own(RBF(1.0), 2)) == ["base__scale", "rate"]
    assert names(Own(RBF(1.0), 2, 3, 4.0, shift=1.0)) == ["base__scale", "rate", "shift"]


def test_wrong_numbers_of_values_are_refused():
    with pytest.raises(ValueError, match=r"2\.0 \* RBF\(scale=1\.0\) has 2 continuous parameters; 3 values were given"):
        with_parameters(2.0 * RBF(1.0), [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="scale of RBF must be > 0"):
        with_parameters(2.0 * RBF(1.0), [1.0, -2.0])
    with pytest.raises(ValueError, match="has 1 continuous parameters"):
        with_parameters(Constant(1.0), [])
