"""The metric of a kernel, read off its tree: shares, units, order, and who has none."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from cases import each
from mercer import RBF, Laplacian, Linear, PowerExponential
from mercer.kernels import FromFunction, Metric, Spectrum

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4)) * [1.0, 5.0, 0.1, 2.0] + 3.0
A = RNG.normal(size=(4, 4))
D = X.std(axis=0)

KERNELS = {
    "factors": Laplacian(2.0).transformed([1.0, 0.5, 20.0, 0.0]),
    "matrix": RBF(2.0).transformed(A),
    "ranks": PowerExponential(1.0, 3.0).transformed(A).ranked(X),
    "scales": RBF((1.0, 2.0, 0.2, 1.0)),
    "mean": 0.5 * RBF(2.0).transformed(A) + 0.5 * Laplacian(1.0).transformed([1.0, 0.5, 20.0, 0.0]).ranked(X),
    "columns": RBF(2.0).transformed([[1.0, 2.0], [0.0, 1.0]]).on([2, 0]),
}
every_kernel = each("kernel", KERNELS.values(), ids=KERNELS)


@every_kernel
def test_a_metric_is_positive_semidefinite_with_trace_1(kernel):
    metric = Metric.of(kernel, X)
    assert np.linalg.eigvalsh(metric.matrix).min() > -1e-12
    assert metric.importances.sum() == pytest.approx(1.0)
    assert sum(metric.by_column().values()) == pytest.approx(1.0)
    assert sum(metric.by_column(2).values()) == pytest.approx(1.0)
    np.testing.assert_allclose(np.diag(metric.matrix), metric.importances)


@every_kernel
def test_eigenvectors_make_up_the_metric(kernel):
    metric = Metric.of(kernel, X)
    shares, vectors = metric.axes(4)
    assert (np.diff(shares) <= 1e-15).all()
    np.testing.assert_allclose((vectors.T * shares) @ vectors, metric.matrix, atol=1e-12)
    assert (vectors[np.arange(4), np.abs(vectors).argmax(axis=1)] > 0).all()


def test_the_metric_is_that_of_the_distances():
    """Equal distances under the kernel are equal values of the form, in units of deviations."""
    metric, kernel = Metric.of(KERNELS["matrix"], X), KERNELS["matrix"]
    step = (X - X[0]) / D
    form = np.einsum("ni,ij,nj->n", step, metric.matrix, step)
    exponent = -np.log(kernel(X[:1], X)[0])
    np.testing.assert_allclose(form / form.max(), exponent / exponent.max(), atol=1e-9)


def test_units_of_columns_do_not_matter():
    units = np.array([1e-6, 3.0, 1e5, 1.0])
    plain = Metric.of(KERNELS["matrix"], X).matrix
    np.testing.assert_allclose(Metric.of(RBF(2.0).transformed(A / units), X * units).matrix, plain, rtol=1e-9)
    ranks = Metric.of(KERNELS["ranks"], X).matrix
    np.testing.assert_allclose(Metric.of(KERNELS["ranks"].base.ranked(X * units), X * units).matrix, ranks, rtol=1e-9)


def test_permuted_columns_have_permuted_shares():
    order = np.array([2, 0, 3, 1])
    plain = Metric.of(KERNELS["matrix"], X)
    other = Metric.of(RBF(2.0).transformed(A[:, order]), X[:, order])
    np.testing.assert_allclose(other.matrix, plain.matrix[np.ix_(order, order)])


def test_the_scale_and_the_factor_of_a_kernel_do_not_matter():
    plain = Metric.of(KERNELS["matrix"], X).matrix
    for kernel in (3.0 * RBF(7.0).transformed(A), RBF().transformed(2 * A).normalized(), Linear().transformed(A) ** 2):
        np.testing.assert_allclose(Metric.of(kernel, X).matrix, plain)


def test_a_mean_is_weighted_by_its_factors():
    left, right = KERNELS["matrix"], KERNELS["factors"]
    parts = [Metric.of(kernel, X).matrix for kernel in (left, right)]
    found = Metric.of(3.0 * left + 1.0 * right + RBF(1.0), X).matrix
    np.testing.assert_allclose(found, 0.75 * parts[0] + 0.25 * parts[1])


def test_maps_follow_one_another():
    once, twice = RBF().transformed(A @ np.diag([1.0, 2, 3, 4])), RBF().transformed(A).transformed([1.0, 2, 3, 4])
    np.testing.assert_allclose(Metric.of(twice, X).matrix, Metric.of(once, X).matrix)
    some = RBF((1.0, 3.0)).on([1, 3]).transformed(A)
    same = RBF().transformed(A[[1, 3]] / np.array([[1.0], [3.0]]))
    np.testing.assert_allclose(Metric.of(some, X).matrix, Metric.of(same, X).matrix)


def test_columns_are_chosen_by_place_and_by_name():
    kernel = RBF().transformed([[1.0, 2.0], [0.0, 1.0]])
    found = Metric.of(kernel.on([2, 0]), X)
    assert found.importances[[1, 3]].tolist() == [0.0, 0.0]
    table = pd.DataFrame(X, columns=list("abcd"))
    np.testing.assert_allclose(Metric.of(kernel.on(["c", "a"]), table, list("abcd")).matrix, found.matrix)
    np.testing.assert_allclose(Metric.of(kernel.on(slice(2, None, -2)), X).matrix, found.matrix)
    strings = np.column_stack([X.astype(object), ["ACGT"] * 60])
    np.testing.assert_allclose(Metric.of(kernel.on([2, 0]) + Spectrum(2).on([4]), strings).matrix[:4, :4], found.matrix)


def test_sparse_rows_have_the_metric_of_dense_ones():
    dense = np.where(RNG.random((50, 4)) < 0.3, RNG.normal(size=(50, 4)), 0.0)
    kernel = KERNELS["matrix"]
    np.testing.assert_allclose(Metric.of(kernel, sparse.csr_array(dense)).matrix, Metric.of(kernel, dense).matrix)


def test_a_constant_column_has_no_share():
    rows = np.where(np.arange(4) == 1, 7.3, X)
    assert Metric.of(KERNELS["matrix"], rows).importances[1] == 0.0


@each(
    "kernel",
    [RBF(), Laplacian(2.0) + Linear(), RBF().on([0]), RBF().transformed(A).compose(np.cos), RBF().transformed(0 * A)],
    ids=["RBF", "sum", "some columns", "after a map of another kind", "nothing"],
)
def test_who_treats_all_alike_has_no_metric(kernel):
    assert Metric.of(kernel, X) is None


def test_other_points_have_no_metric():
    assert Metric.of(Spectrum(2), ["ACGT", "AAAA"]) is None
    assert Metric.of(FromFunction(lambda x, z: float(x == z)), ["a", "b"]) is None


def test_columns_of_one_origin_are_summed_and_the_rest_is_counted():
    metric = Metric(np.array([0.1, 0.2, 0.3, 0.4]), list("abcd"), {"one": np.array([0, 1, 2]), "two": np.array([3])})
    assert list(metric.by_column()) == ["one", "two"]
    assert metric.by_column()["one"] == pytest.approx(0.6)
    alone = Metric(np.array([0.1, 0.2, 0.3, 0.4]), list("abcd"), {n: np.array([i]) for i, n in enumerate("abcd")})
    assert list(alone.by_column(2)) == ["d", "c", "2 others"]
    assert list(alone.by_column(3)) == list("dcba")  # "1 others" would hide a name for nothing


def test_what_is_drawn_are_the_leading_directions_and_their_largest_columns():
    metric = Metric.of(KERNELS["matrix"], X, list("abcd"))
    shares, names, entries = metric.loadings(3)
    assert len(names) == 3
    assert entries.shape == (3, len(shares))
    every, vectors = metric.axes(3)
    assert shares.tolist() == [share for share in every if share >= 0.05]
    for name, row in zip(names, entries, strict=True):
        np.testing.assert_allclose(row, vectors[: len(shares), "abcd".index(name)])
