"""Kernel values without the core agree with those of the core."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from cases import each
from mercer.certify import product, tiles, values
from mercer.kernels import RBF, Intersection, Laplacian, Linear, Polynomial
from samples import SAMPLES, of_vectors


@each("sample", SAMPLES, ids=str)
def test_every_kernel_of_the_library(sample, monkeypatch):
    monkeypatch.setattr(values, "_TILE", 8 * 7 * 5)  # several tiles
    X = sample.points(18, seed=3)
    kernel = sample.kernel.resolve(X)
    K = kernel(X)
    b = np.random.default_rng(0).normal(size=18)
    b[::2] = 0.0
    assert product(kernel, X, b) == pytest.approx(K @ b, rel=1e-8, abs=1e-9 * np.abs(K).max())


def test_the_core_takes_no_part(monkeypatch):
    X = np.random.default_rng(0).normal(size=(9, 3))
    X = np.abs(X)
    kernels = [sample.kernel.resolve(X) for sample in SAMPLES if of_vectors(sample)]
    expected = [kernel(X) for kernel in kernels]

    def refuse(*args, **kwargs):
        raise AssertionError("the core was called")

    monkeypatch.setattr("mercer.points.comparison.Comparison.__init__", refuse)
    for kernel, K in zip(kernels, expected, strict=True):
        found = np.concatenate([part for _, part in tiles(kernel, X)])
        assert found == pytest.approx(K, rel=1e-7, abs=1e-9 * np.abs(K).max())


@pytest.mark.parametrize("kernel", [Linear(), RBF(2.0), Laplacian(3.0), Intersection(), Polynomial()], ids=repr)
def test_sparse_rows(kernel):
    X = sparse.random_array((30, 4000), density=0.004, rng=np.random.default_rng(0), format="csr")
    b = np.random.default_rng(1).normal(size=30)
    assert product(kernel, X, b) == pytest.approx(kernel(X.toarray()) @ b, rel=1e-9)


@pytest.mark.parametrize("wrap", [np.asarray, sparse.csr_array, pd.DataFrame])
def test_single_precision_points_are_compared_in_double(wrap):
    X = np.random.default_rng(0).normal(size=(10, 3)).astype(np.float32)
    b = np.ones(10)
    exact = RBF(1.0)(X.astype(np.float64)) @ b
    assert product(RBF(1.0), wrap(X), b) == pytest.approx(exact, rel=1e-14)
    assert product(RBF(1.0), wrap(X), b) != pytest.approx(RBF(1.0)(X) @ b, rel=1e-14)


def test_no_coefficients_no_work():
    assert product(Linear(), [[1.0], [2.0]], np.zeros(2)).tolist() == [0.0, 0.0]


def test_values_out_of_range_name_the_points():
    with pytest.raises(FloatingPointError, match="points 0 and 1 is not finite"):
        product(Polynomial(4), [[1.0], [1e300], [1.0]], np.array([0.0, 1.0, 0.0]))
