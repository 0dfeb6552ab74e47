"""Monomials: the inner product is the polynomial kernel, the count is the width."""

import re
from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from checks import assert_no_fault
from mercer.features import Monomials


@pytest.mark.parametrize("model", [Monomials(), Monomials(3, exact=True), Monomials(2, c1=0.0)])
def test_scikit_learn_contract(model):
    assert_no_fault(model)


def kernel(X, Z, degree, exact, c1, c2):
    return ((0.0 if exact else c1) + c2 * X @ Z.T) ** degree


settings_of_the_map = {
    "degree": st.integers(1, 5),
    "exact": st.booleans(),
    "c1": st.sampled_from([0.0, 1e-3, 1.0, 7.5]),
    "c2": st.sampled_from([1e-2, 1.0, 3.0]),
}


@given(
    n=st.integers(1, 9), d=st.integers(1, 6), seed=st.integers(0, 2**31), dtype=st.sampled_from("fd"),
    **settings_of_the_map,
)  # fmt: skip
@settings(deadline=None, max_examples=150)
def test_inner_product_is_the_kernel(n, d, seed, dtype, degree, exact, c1, c2):
    rng = np.random.default_rng(seed)
    X, Z = rng.normal(size=(n, d)).astype(dtype), rng.normal(size=(4, d)).astype(dtype)
    phi = Monomials(degree, exact=exact, c1=c1, c2=c2).fit(X)
    F, G = phi.transform(X), phi.transform(Z)
    assert F.dtype == X.dtype
    assert F.shape == (n, Monomials.count(d, degree, exact=exact or c1 == 0))
    # Rounding is relative to the terms, whose sum of absolute values is at most this.
    size = kernel(abs(X).astype("d"), abs(Z).astype("d"), degree, exact, c1, c2)
    eps = np.finfo(dtype).eps
    exact_value = kernel(X.astype("d"), Z.astype("d"), degree, exact, c1, c2)
    assert np.all(abs(F @ G.T - exact_value) <= 100 * degree * eps * size)


@given(
    d=st.integers(1, 12), seed=st.integers(0, 2**31), dtype=st.sampled_from("fd"),
    density=st.floats(0, 1), form=st.sampled_from([sparse.csr_array, sparse.csr_matrix, sparse.csc_array]),
    **settings_of_the_map,
)  # fmt: skip
@settings(deadline=None, max_examples=150)
def test_sparse_equals_dense(d, seed, dtype, density, form, degree, exact, c1, c2):
    rng = np.random.default_rng(seed)
    dense = (rng.normal(size=(7, d)) * (rng.random((7, d)) < density)).astype(dtype)
    X = form(dense)
    phi = Monomials(degree, exact=exact, c1=c1, c2=c2).fit(X)
    F = phi.transform(X)
    assert sparse.issparse(F)
    assert F.format == "csr"
    assert isinstance(F, sparse.sparray) == isinstance(X, sparse.sparray)
    assert F.dtype == dtype
    assert F.has_canonical_format
    np.testing.assert_allclose(F.toarray(), phi.transform(dense), rtol=1e-6 if dtype == "f" else 1e-13)
    np.testing.assert_array_equal(X.toarray(), dense)  # not touched


def test_sparse_rows_may_be_unsorted_repeated_or_explicitly_zero():
    X = sparse.csr_array((np.array([1.0, 2.0, 3.0, 0.0]), np.array([2, 0, 2, 1]), np.array([0, 3, 4])), shape=(2, 3))
    F = Monomials(3).fit_transform(X)
    np.testing.assert_allclose(F.toarray(), Monomials(3).fit_transform(X.toarray()))
    assert F[[1]].nnz == 1
    assert X.nnz == 4


def test_wide_sparse_data_is_not_made_dense():
    X = sparse.random_array((50, 100_000), density=2e-4, format="csr", rng=np.random.default_rng(0))
    F = Monomials(3).fit_transform(X)
    assert F.shape[1] == Monomials.count(100_000, 3) > 2**31
    # scipy cannot transpose so many columns: keep those that occur.
    used, renumbered = np.unique(F.indices, return_inverse=True)
    F = sparse.csr_array((F.data, renumbered, F.indptr), shape=(50, len(used)))
    np.testing.assert_allclose((F @ F.T).toarray(), (1 + (X @ X.T).toarray()) ** 3, rtol=1e-12)


@given(d=st.integers(1, 7), degree=st.integers(1, 5))
@settings(deadline=None, max_examples=40)
def test_count_names_and_columns_agree_with_itertools(d, degree):
    columns = [c for k in range(degree + 1) for c in combinations_with_replacement(range(d), k)]
    X = np.random.default_rng(d).normal(size=(3, d))
    phi = Monomials(degree).fit(X)
    F = phi.transform(X)
    assert len(columns) == F.shape[1] == Monomials.count(d, degree) == phi.n_features_out_
    assert sum(len(c) == degree for c in columns) == Monomials.count(d, degree, exact=True)
    powers = np.array([np.prod(X[:, list(c)], axis=1) for c in columns]).T
    ratio = F / powers
    np.testing.assert_allclose(ratio, np.broadcast_to(ratio[0], ratio.shape), rtol=1e-9)
    assert (ratio > 0).all()
    reference = PolynomialFeatures(degree).fit(X)
    names = phi.get_feature_names_out().tolist()
    assert [re.sub(r"^(√?\d+) (?=x)", "", name) for name in names] == reference.get_feature_names_out().tolist()
    shown = [re.match(r"(√?)(\d+) x", name) for name in names]
    coefficients = [1.0 if m is None else float(m[2]) ** (0.5 if m[1] else 1.0) for m in shown]
    np.testing.assert_allclose(coefficients, ratio[0], rtol=1e-6)


def test_count_without_building():
    assert Monomials.count(40, 8, exact=True) == 314_457_495
    assert Monomials.count(2, 2) == 6
    assert Monomials.count(10**6, 50) > 10**200  # exact, beyond 64 bits
    assert [Monomials.count(3, k, exact=True) for k in range(3)] == [1, 3, 6]


def test_names():
    X = np.ones((1, 2))
    assert Monomials(3, exact=True).fit(X).get_feature_names_out(["h", "w"]).tolist() == [
        "h^3", "√3 h^2 w", "√3 h w^2", "w^3",
    ]  # fmt: skip
    assert Monomials(1, c1=0.0).fit(X).get_feature_names_out().tolist() == ["x0", "x1"]
    assert Monomials(1, c1=4.0, c2=0.3).fit(X).get_feature_names_out().tolist() == ["2", "√0.3 x0", "√0.3 x1"]
    assert Monomials(4, exact=True).fit(X).get_feature_names_out().tolist()[1:3] == ["2 x0^3 x1", "√6 x0^2 x1^2"]


def test_degree_one():
    X = np.array([[1.0, -2.0]])
    np.testing.assert_allclose(Monomials(1, c1=4.0, c2=9.0).fit_transform(X), [[2.0, 3.0, -6.0]])
    np.testing.assert_allclose(Monomials(1, exact=True, c2=9.0).fit_transform(X), [[3.0, -6.0]])


def test_rows_do_not_depend_on_the_chunk_they_fall_in():
    X = np.random.default_rng(0).normal(size=(3000, 8))
    phi = Monomials(4).fit(X)
    np.testing.assert_array_equal(phi.transform(X)[2990:], phi.transform(X[2990:]))


def test_pandas_output_in_a_pipeline():
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame({"height": [1.0, 2.0, 4.0], "weight": [3.0, 4.0, 9.0]})
    F = make_pipeline(StandardScaler(), Monomials(2)).set_output(transform="pandas").fit_transform(X)
    assert F.columns.tolist() == ["1", "√2 height", "√2 weight", "height^2", "√2 height weight", "weight^2"]


def test_a_map_that_does_not_fit_is_refused_with_its_size():
    phi = Monomials(8, exact=True).fit(np.ones((1, 40)))
    assert phi.n_features_out_ == 314_457_495
    with pytest.raises(MemoryError, match=r"314,457,495 columns for each of 10,000 rows.*Use the kernel instead"):
        phi.transform(np.ones((10_000, 40)))
    with pytest.raises(MemoryError, match=r"314,457,495,\d+ nonzeros|nonzeros in 10,000 rows"):
        phi.transform(sparse.csr_array(np.ones((10_000, 40))))
    phi = Monomials(9).fit(sparse.csr_array((1, 10**6)))
    with pytest.raises(MemoryError, match="more than a sparse matrix can number"):
        phi.transform(sparse.csr_array((1, 10**6)))
    with pytest.raises(MemoryError, match="names"):
        phi.get_feature_names_out()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"degree": 0}, "degree must be an integer of at least 1, not 0"),
        ({"degree": 2.5}, "degree must be an integer of at least 1, not 2.5"),
        ({"degree": True}, "not True"),
        ({"c1": -1.0}, "c1 must be nonnegative and finite.*-1.0"),
        ({"c1": np.nan}, "c1 must be nonnegative.*nan"),
        ({"c2": 0.0}, "c2 must be positive and finite.*0.0"),
        ({"c2": "1"}, "c2 must be positive and finite.*'1'"),
    ],
)
def test_bad_parameters(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        Monomials(**arguments).fit(np.ones((2, 2)))


def test_bad_counts():
    with pytest.raises(ValueError, match="degree must be a nonnegative integer, not -1"):
        Monomials.count(3, -1)
    with pytest.raises(ValueError, match=r"n_features must be a nonnegative integer, not 2\.5"):
        Monomials.count(2.5, 1)
