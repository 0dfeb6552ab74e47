"""The float32 twin of a set of points: rounded where values are vectors, the same in everything else."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from cases import each
from mercer import Gram
from mercer.kernels import RBF, Categorical, Delta, Linear
from mercer.points import Points
from samples import CATALOGUE, of_vectors

X = np.random.default_rng(0).normal(size=(7, 3))


def doubled(points):
    return points.vectors * 2


def first(points):
    return points.vectors[:, 0]


@pytest.mark.parametrize(
    "data",
    [X, X.tolist(), np.asfortranarray(X), pd.DataFrame(X, columns=list("abc")), pl.DataFrame(X, schema=list("abc"))],
    ids=["array", "list", "Fortran", "pandas", "polars"],
)
def test_the_vectors_are_rounded(data):
    points = Points(data, "points")
    twin = points.single()
    assert (len(twin), twin.width, twin.name, twin.numeric, twin.foreign) == (7, 3, "points", True, False)
    assert twin.dtype == twin.vectors.dtype == np.float32
    np.testing.assert_array_equal(twin.vectors, X.astype(np.float32))
    assert twin.vectors.flags.c_contiguous
    assert twin.extent == np.float32(np.abs(X).max())
    assert points.dtype == np.float64
    np.testing.assert_array_equal(points.vectors, X)


def test_what_has_no_double_precision_is_its_own_twin():
    for data in (X.astype(np.float32), ["one", "two"], pd.DataFrame({"town": ["Athens", "Bern"]})):
        points = Points(data)
        assert points.single() is points
    twin = Points(X).single()
    assert twin.single() is twin


def test_tensors_are_left_alone():
    torch = pytest.importorskip("torch")
    points = Points(torch.ones((3, 2), dtype=torch.float64))
    assert points.single() is points


def test_maps_are_applied_in_double_precision_and_then_rounded():
    """As the kernels compose: the image of rounded points may be far from the rounded image."""
    far = X + 1e9

    def near(points):
        return points.vectors - 1e9

    twin = Points(far).single()
    image = twin.through(near)
    assert image.dtype == np.float32
    np.testing.assert_array_equal(image.vectors, (far - 1e9).astype(np.float32))
    assert twin.through(near) is image
    again = image.through(doubled)
    np.testing.assert_array_equal(again.vectors, (2 * (far - 1e9)).astype(np.float32))


def test_maps_and_values_are_computed_once_for_both():
    calls = []

    def counted(points):
        calls.append(points.dtype)
        return points.vectors[:, 0]

    points = Points(X)
    twin = points.single()
    np.testing.assert_array_equal(twin.values(counted), X[:, 0])
    np.testing.assert_array_equal(points.values(counted), X[:, 0])
    assert calls == [np.float64]


@pytest.mark.parametrize("rows", [slice(1, 4), np.array([5, 0, 0])], ids=str)
def test_taking_and_rounding_commute(rows):
    points = Points(X)
    for part in (points.single().take(rows), points.take(rows).single()):
        assert part.dtype == np.float32
        np.testing.assert_array_equal(part.vectors, X[rows].astype(np.float32))
        np.testing.assert_array_equal(part.through(doubled).vectors, (2 * X[rows]).astype(np.float32))
        np.testing.assert_array_equal(part.values(first), X[rows, 0])
        assert part.through(doubled).dtype == np.float32


def test_sparse_points_stay_sparse():
    thin = sparse.random_array((50, 400), density=0.01, rng=np.random.default_rng(1), format="csr")
    twin = Points(thin).single()
    assert sparse.issparse(twin.vectors)
    assert twin.dtype == np.float32
    assert (twin.vectors != thin.astype(np.float32)).nnz == 0
    assert (twin.take(slice(3, 9)).vectors != thin.astype(np.float32)[3:9]).nnz == 0
    np.testing.assert_allclose(RBF(1.0)(twin), RBF(1.0)(thin), rtol=1e-5)


def test_columns_of_a_table_keep_their_names():
    columns = {"a": X[:, 0], "b": X[:, 1], "town": ["Athens", "Bern", "Athens", "Bern", "Oslo", "Oslo", "Rome"]}
    for table in (pd.DataFrame(columns), pl.DataFrame(columns)):
        kernel = RBF(1.0).on(["a", "b"]) * Delta().on("town")
        points = Points(table)
        np.testing.assert_allclose(kernel(points.single()), kernel(points), rtol=1e-5)
        numbers = Points(table[["a", "b"]])
        twin = numbers.single()
        assert twin.dtype == np.float32
        found = RBF(1.0).on("b")(twin)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, RBF(1.0)(X[:, 1:2]), rtol=1e-5)


@pytest.mark.parametrize("value", [1e39, -1e300])
def test_values_beyond_float32_are_an_error_and_not_infinite(value):
    warnings.simplefilter("error")  # pytest restores the filters
    big = X.copy()
    big[3, 1] = value
    with pytest.raises(FloatingPointError, match=r"Z has values beyond the range of float32\."):
        Points(big, "Z").single().vectors
    thin = sparse.csr_array(([value], ([2], [77])), shape=(40, 200))
    with pytest.raises(FloatingPointError, match="beyond the range of float32"):
        Points(thin).single().vectors


def test_values_below_float32_are_0():
    np.testing.assert_array_equal(Points([[1e-60, 1.0]]).single().vectors, [[0.0, 1.0]])


@each("sample", [s for s in CATALOGUE if of_vectors(s)], ids=str)
def test_every_kernel_compares_the_twins(sample):
    """In float32 if the core compares vectors, and the same values up to its rounding."""
    points = Points(sample.points(12))
    exact = Gram(sample.kernel, points)
    twin = Gram(exact.kernel, points.single())
    K = exact.dense()
    if twin.compiled and not isinstance(sample.kernel, Delta | Categorical):
        np.testing.assert_allclose(twin.dense(), K, atol=2e-3 * np.abs(K).max(), rtol=0)
    size = np.abs(K).max()
    np.testing.assert_allclose(twin.matvec(np.ones(12)), twin.dense().sum(axis=1), rtol=1e-4, atol=1e-4 * size)


def test_distances_far_from_the_origin_are_what_float32_makes_of_them():
    """A warning to callers, who compare on a sample first: single() does not centre."""
    far = Points(X + 1e7)
    rough = Linear()(far.single())
    assert rough.dtype == np.float32
    assert np.abs(RBF(1.0)(far.single()) - RBF(1.0)(X)).max() > 0.1
