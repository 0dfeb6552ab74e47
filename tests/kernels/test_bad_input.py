"""What cannot be compared is refused in a sentence: what is wrong, with the value seen, and what to do."""

import numpy as np
import pandas as pd
import polars
import pytest
from scipy import sparse

from cases import each
from mercer import Gram
from mercer.kernels import (
    RBF,
    ArcCosine,
    Cauchy,
    ChiSquared,
    Constant,
    Cosine,
    Delta,
    FromFeatures,
    Intersection,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Sigmoid,
    SpectralMixture,
    Spectrum,
    Stationary,
    Wendland,
)
from samples import squares, vectors

OF_VECTORS = [
    Linear(),
    Polynomial(2),
    RBF(1.0),
    RBF("auto"),
    RBF("median"),
    Laplacian(1.0),
    Laplacian("median"),
    Matern(1.5, 1.0),
    Matern(0.8, 1.0),
    RationalQuadratic(1.0, 1.0),
    Cauchy(1.0),
    Periodic(1.0),
    Cosine(),
    ArcCosine(1),
    ChiSquared(),
    Intersection(),
    Wendland(1, 1.0),
    SpectralMixture([1.0], [0.5], [1.0]),
    Sigmoid(1.0),
    Stationary.from_spectral(lambda n, rng: rng.normal(size=(n, 3)), dim=3),
    (RBF(1.0) + Linear()).normalized() * 2.0,
    (0.5 * RBF(1.0)).geometric().on([0, 2]),
]
every_kernel = each("k", OF_VECTORS, ids=repr)


def refused(k, error, sentence, X, Z=None):
    """The matrix, its diagonal and the operator refuse alike."""
    with pytest.raises(error, match=sentence):
        k(X, Z)
    with pytest.raises(error, match=sentence):
        Gram(k, X, Z).dense()
    if Z is None:
        with pytest.raises(error, match=sentence):
            k.diag(X)


def spoiled(value: float, row: int = 4, column: int = 2) -> np.ndarray:
    X = np.abs(vectors(8))
    X[row, column] = value
    return X


@every_kernel
def test_nan(k):
    sentence = r"X contains NaN at row 4, column [12]; kernels compare finite numbers: impute or drop it"
    refused(k, ValueError, sentence, spoiled(np.nan))
    refused(k, ValueError, sentence, spoiled(np.nan).tolist())
    refused(k, ValueError, sentence, spoiled(np.nan).astype(np.float32))


@every_kernel
@each("value", [np.inf, -np.inf])
def test_infinity(k, value):
    refused(k, ValueError, r"X contains an infinite value at row 4, column [12]", spoiled(value))


@every_kernel
def test_the_second_set_is_called_by_its_name(k):
    k = k.resolve(np.abs(vectors(8)))
    refused(k, ValueError, r"Z contains NaN at row 4, column [12]", np.abs(vectors(8)), spoiled(np.nan))


def test_nan_in_other_containers():
    X = spoiled(np.nan)
    sentence = r"X contains NaN at row 4, column 2"
    refused(RBF(1.0), ValueError, sentence, pd.DataFrame(X))
    refused(RBF(1.0), ValueError, sentence, polars.DataFrame({str(j): X[:, j] for j in range(3)}))
    refused(RBF(1.0), ValueError, sentence, sparse.csr_array(X))
    wide = sparse.csr_array(([1.0, np.nan], ([0, 4], [7, 2])), shape=(6, 900))
    refused(RBF(1.0), ValueError, sentence, wide)
    refused(Delta(), ValueError, sentence, X)
    refused(Constant(), ValueError, sentence, X)
    torch = pytest.importorskip("torch")
    with pytest.raises(ValueError, match=r"X contains NaN or infinite values"):
        RBF(1.0)(torch.as_tensor(X))


def test_missing_values():
    refused(RBF(1.0), ValueError, r"X contains NaN at row 0, column 0", [[None, 1.0], [2.0, 3.0]])
    masked = np.ma.masked_array(vectors(8), mask=vectors(8) > 1)
    refused(RBF(1.0), ValueError, r"X is masked at \(\d+, \d\); .*impute or drop it", masked)
    absent = {"a": [1.0, 2.0], "b": [1, None]}
    refused(RBF(1.0), ValueError, r"X contains NaN at row 1, column 1", pd.DataFrame(absent).convert_dtypes())
    refused(RBF(1.0), ValueError, r"X contains NaN at row 1, column 1", polars.DataFrame(absent))


@every_kernel
def test_ragged_rows(k):
    refused(k, ValueError, r"X is ragged: its rows have different lengths", [[1.0, 2.0, 3.0], [1.0]])


@every_kernel
def test_sets_of_different_width(k):
    k = k.resolve(np.abs(vectors(8)))
    X, Z = np.abs(vectors(8)), np.abs(vectors(5, d=4))
    if ".on(" in repr(k):
        Z = Z[:, :2]
        refused(k, ValueError, r"unknown column 2: Z has 2 columns, 0 to 1", X, Z)
    else:
        refused(k, ValueError, r"X has [368] features and Z has [48]; both must have the same columns", X, Z)


def test_sets_of_different_width_in_other_forms():
    sentence = r"X has 3 features and Z has 4; both must have the same columns in the same order"
    refused(RBF(1.0), ValueError, sentence, sparse.csr_array(vectors(8)), vectors(5, d=4))
    refused(RBF(1.0), ValueError, sentence, vectors(8).tolist(), pd.DataFrame(vectors(5, d=4)))
    refused(Delta(), ValueError, sentence, vectors(8), vectors(5, d=4))
    refused(FromFeatures(squares), ValueError, r"X has 6 features and Z has 8", vectors(8), vectors(5, d=4))


@every_kernel
@each(
    ("points", "name"),
    [([], "X"), (np.empty((0, 3)), "X"), (sparse.csr_array((0, 3)), "X"), (pd.DataFrame({"a": []}), "X")],
    ids=["list", "array", "sparse", "table"],
)
def test_no_points(k, points, name):
    refused(k, ValueError, rf"{name} is empty: it has 0 points; at least one is needed", points)


def test_no_points_in_the_second_set():
    refused(RBF(1.0), ValueError, r"Z is empty: it has 0 points", vectors(8), np.empty((0, 3)))


@each("k", [k for k in OF_VECTORS if ".on(" not in repr(k)], ids=repr)
@each("points", [np.empty((3, 0)), [[], [], []], sparse.csr_array((3, 0))], ids=["a", "l", "s"])
def test_no_columns(k, points):
    refused(k, ValueError, r"X has 0 columns; at least one feature is needed", points)


@every_kernel
@each("points", [np.arange(3.0), [1.0, 2.0, 3.0], [1, 2, 3]], ids=["array", "floats", "whole"])
def test_one_dimension(k, points):
    sentence = r"X must be a matrix with one row per point; its shape is \(3,\)|needs a matrix or a table; X has shape"
    refused(k, ValueError, sentence, points)


def test_the_sentence_on_one_dimension_has_both_remedies():
    with pytest.raises(ValueError, match=r"X\.reshape\(-1, 1\) for one feature, X\.reshape\(1, -1\) for one point"):
        RBF(1.0)(np.arange(3.0))
    with pytest.raises(ValueError, match=r"Z must be a matrix with one row per point; its shape is \(3,\)"):
        RBF(1.0)(vectors(8), vectors(8)[0])
    with pytest.raises(ValueError, match=r"X must be a matrix with one row per point; its shape is \(2, 3, 4\)"):
        RBF(1.0)(np.ones((2, 3, 4)))
    with pytest.raises(ValueError, match=r"X must be a matrix with one row per point; its shape is \(3,\)"):
        RBF(1.0)(sparse.coo_array(np.ones(3)))


@every_kernel
@each("points", [["red", "blue"], [["a", "b", "c"], ["c", "d", "e"]], np.array([["a", "b", "c"]])])
def test_text_for_a_kernel_on_vectors(k, points):
    sentence = (
        r"X is not numeric \(it holds str '\w+'\); this kernel compares vectors of numbers.*OneHotEncoder.*FromFun"
    )
    refused(k, TypeError, f"(?s){sentence}", points)


def test_text_in_a_table():
    frame = {"age": [1.0, 2.0], "town": ["Bern", "Athens"]}
    sentence = r"column 'town' of X is not numeric \(it holds '?Bern'?\); encode it, or choose the numeric columns"
    refused(RBF(1.0), TypeError, sentence, pd.DataFrame(frame))
    refused(RBF(1.0), TypeError, sentence, polars.DataFrame(frame))
    refused(RBF(1.0).on(["age", "town"]), TypeError, sentence, pd.DataFrame(frame))


def test_numbers_that_are_not_real():
    refused(RBF(1.0), TypeError, r"X is not numeric \(it holds complex", np.ones((2, 2)) * 1j)
    dates = pd.DataFrame({"day": pd.to_datetime(["2020-01-01", "2020-01-02"])})
    refused(RBF(1.0), TypeError, r"not numeric", dates)


@every_kernel
@each(
    ("points", "sentence"),
    [
        (5.0, r"X is a float, which has no length; pass a sequence or a matrix of points"),
        (None, r"X is a NoneType, which has no length"),
        (np.float64(5.0), r"X is a single float64; pass a sequence of points"),
        (np.array(5.0), r"X is a single ndarray; pass a sequence of points"),
        ("abc", r"X is a single str; pass a sequence of points or a matrix with one row per point"),
        ({"a": [1.0]}, r"X is a single dict; pass a sequence of points"),
        ((x for x in [[1.0]]), r"X is a generator, which has no length"),
    ],
    ids=["float", "None", "numpy number", "0-d array", "text", "dict", "generator"],
)
def test_a_single_thing(k, points, sentence):
    refused(k, TypeError, sentence, points)


def test_one_point_against_a_set():
    with pytest.raises(
        TypeError, match=r"Z is a single int and X is a set of points: k\(x, z\) takes two single .* \[z\]"
    ):
        RBF(1.0)(vectors(8), 3)
    with pytest.raises(TypeError, match=r"X is a single str and Z is a set of points: .* write \[x\] for a set of one"):
        Spectrum(2)("abc", ["abc"])


# -- values outside the range ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("k", "X"),
    [
        (Linear(), vectors(8) * 1e160),
        (Polynomial(3), vectors(8) * 1e110),
        (Linear().exp(), vectors(8) * 1e3),
        (Constant(1e3).exp(), vectors(8)),
        (Constant(1e200) ** 2, vectors(8)),
        (ArcCosine(2), vectors(8) * 1e80),
        (FromFeatures(np.exp), vectors(8) * -15),
        (Linear().compose(np.sinh), vectors(8) * 15),
        (Matern(0.8, 1.0) * Linear(), vectors(8) * 1e160),
    ],
    ids=lambda value: repr(value) if isinstance(value, Kernel) else "",
)
def test_overflow(k, X, recwarn):
    sentence = (
        r"the kernel value of points \d and \d is (inf|-inf|nan), outside the range of float64; scale the features"
    )
    refused(k, FloatingPointError, sentence, X)
    with pytest.raises(FloatingPointError, match=sentence):
        Gram(k, X).matvec(np.ones(8))
    assert not [w for w in recwarn if "overflow" in str(w.message)]


def test_overflow_of_single_precision_says_that_double_would_do():
    X = (vectors(8) * 1e20).astype(np.float32)
    refused(Linear(), FloatingPointError, r"outside the range of float32; pass float64 data or scale the features", X)
    assert np.isfinite(Linear()(X.astype(np.float64))).all()


@pytest.mark.parametrize("k", [RBF(1.0), Laplacian(1.0), Matern(1.5, 1.0), Cauchy(1.0), Wendland(1, 1.0), Cosine()])
def test_huge_points_are_no_overflow_where_the_value_is_in_range(k):
    X = vectors(8) * 1e200
    assert np.isfinite(k(X)).all()
    np.testing.assert_allclose(k.diag(X)[3:], np.ones(5), rtol=1e-15)
