import numpy as np
import pandas as pd
import polars
import pytest
from sklearn.preprocessing import StandardScaler

from mercer import Gram, KernelRidge, load, save
from mercer.kernels import (
    RBF,
    Categorical,
    Constant,
    Delta,
    FromFunction,
    Intersection,
    Linear,
    Matern,
    Polynomial,
    Sigmoid,
)
from mercer.kernels.rules.pullback import NormalScores
from samples import histograms, length, letter_counts, squares, table, vectors, weight, words

# -- rescaled, composed, normalized -----------------------------------------------------------------------


@pytest.mark.parametrize("Z", [None, vectors(7, seed=1)], ids=["one set", "two sets"])
def test_rescaling_multiplies_rows_and_columns(Z):
    X = vectors()
    right = X if Z is None else Z
    wanted = weight(X)[:, None] * RBF(1.0)(X, Z) * weight(right)[None, :]
    np.testing.assert_allclose(RBF(1.0).rescaled(weight)(X, Z), wanted, rtol=1e-13)
    np.testing.assert_allclose(RBF(1.0).rescaled(weight).diag(X), weight(X) ** 2, rtol=1e-13)


def test_f_of_x_times_f_of_z_is_a_kernel():
    X = vectors()
    np.testing.assert_allclose(Constant().rescaled(weight)(X), np.outer(weight(X), weight(X)), rtol=1e-13)


def test_rescaling_one_object_at_a_time():
    points = words()
    lengths = np.array([len(w) for w in points])
    K = Delta().rescaled(length, each=True)(points)
    np.testing.assert_array_equal(K, np.outer(lengths, lengths) * Delta()(points))


def test_rescaling_functions_must_give_one_finite_number_per_point():
    X = vectors()

    def table_of_numbers(X):
        return X

    def logarithm(X):
        with np.errstate(divide="ignore"):
            return np.log(np.abs(X[:, 0]))

    with pytest.raises(ValueError, match=r"table_of_numbers must give one number per point: .* not \(24, 3\)"):
        RBF(1.0).rescaled(table_of_numbers)(X)
    with pytest.raises(ValueError, match=r"logarithm gives -inf at point 2; it must be finite"):
        RBF(1.0).rescaled(logarithm)(X)


@pytest.mark.parametrize("Z", [None, vectors(7, seed=1)], ids=["one set", "two sets"])
def test_composition_maps_the_points(Z):
    X = vectors()
    wanted = RBF(1.0)(squares(X), None if Z is None else squares(Z))
    np.testing.assert_allclose(RBF(1.0).compose(squares)(X, Z), wanted, rtol=1e-12, atol=1e-300)
    scaler = StandardScaler().fit(X)
    np.testing.assert_allclose(
        RBF(1.0).compose(scaler)(X, Z), RBF(1.0)(scaler.transform(X), None if Z is None else scaler.transform(Z))
    )


def test_composition_makes_vectors_of_objects():
    points = words()
    counts = np.array([letter_counts(word) for word in points])
    np.testing.assert_allclose(RBF(2.0).compose(letter_counts, each=True)(points), RBF(2.0)(counts), rtol=1e-13)


def test_composition_maps_each_set_of_points_once():
    calls = []

    def psi(X):
        calls.append(len(X))
        return X**2

    X = vectors()
    k = RBF(1.0).compose(psi) + Linear().compose(psi) * RBF(2.0).compose(psi)
    k(X)
    assert calls == [24]


def test_compositions_nest():
    X = vectors()
    k = RBF(1.0).compose(np.abs).compose(np.sin)
    np.testing.assert_allclose(k(X), RBF(1.0)(np.abs(np.sin(X))), rtol=1e-13)
    k = RBF(1.0).on([0]).compose(squares).on([1, 2])
    np.testing.assert_allclose(k(X), RBF(1.0)(X[:, [1]]), rtol=1e-13)


@pytest.mark.parametrize("k", [Linear(), Polynomial(3), RBF(1.0) + Linear(), 7.0 * RBF(1.0)], ids=repr)
def test_normalized_is_the_cosine_in_feature_space(k):
    X, Z = vectors(), vectors(7, seed=1)
    root, other = np.sqrt(k.diag(X)), np.sqrt(k.diag(Z))
    with np.errstate(invalid="ignore"):
        wanted = np.nan_to_num(k(X, Z) / np.outer(root, other))
    np.testing.assert_allclose(k.normalized()(X, Z), wanted, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(k.normalized().diag(X), (k.diag(X) > 0).astype(float), rtol=1e-14)


def test_normalized_is_zero_where_the_kernel_is():
    k = Intersection().normalized()
    X = histograms()
    X[4] = 0.0
    np.testing.assert_array_equal(k(X)[4], 0.0)
    with pytest.raises(ValueError, match=r"cannot be normalized: k\(x, x\) = -0\.76\S* < 0 at point 0"):
        Sigmoid(1.0, c=-1.0).normalized()(np.zeros((2, 1)))


# -- on -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "wanted"),
    [
        ([0, 2], [0, 2]),
        ((0, 2), [0, 2]),
        (np.array([0, 2]), [0, 2]),
        ([2, 0], [2, 0]),
        (1, [1]),
        (np.int64(1), [1]),
        (-1, [2]),
        (slice(1, None), [1, 2]),
        (slice(None, None, 2), [0, 2]),
        (range(2), [0, 1]),
        ([True, False, True], [0, 2]),
        (np.array([False, True, False]), [1]),
        ([1, 1], [1, 1]),
    ],
)
def test_columns_of_a_matrix(columns, wanted):
    X, Z = vectors(), vectors(7, seed=1)
    k = RBF(1.0).on(columns)
    np.testing.assert_array_equal(k(X, Z), RBF(1.0)(X[:, wanted], Z[:, wanted]))
    np.testing.assert_array_equal(k(X.tolist()), k(X))
    assert eval(repr(k)) == k


@pytest.mark.parametrize("frame", [pd.DataFrame, polars.DataFrame], ids=["pandas", "polars"])
@pytest.mark.parametrize(
    ("columns", "wanted"),
    [("b", [1]), (["c", "a"], [2, 0]), (slice(0, 2), [0, 1]), ([0, -1], [0, 2]), (1, [1])],
    ids=str,
)
def test_columns_of_a_table(frame, columns, wanted):
    X, Z = vectors(), vectors(7, seed=1)
    left, right = frame({n: X[:, j] for j, n in enumerate("abc")}), frame({n: Z[:, j] for j, n in enumerate("abc")})
    np.testing.assert_array_equal(RBF(1.0).on(columns)(left, right), RBF(1.0)(X[:, wanted], Z[:, wanted]))
    np.testing.assert_array_equal(RBF(1.0).on(columns).diag(left), np.ones(24))


def test_an_index_of_pandas_names_columns():
    frame = pd.DataFrame(vectors(), columns=["a", "b", "c"])
    k = RBF(1.0).on(frame.columns[:2])
    assert k == RBF(1.0).on(["a", "b"])
    assert hash(k) == hash(RBF(1.0).on(["a", "b"]))
    assert repr(k) == "RBF(scale=1.0).on(['a', 'b'])"
    np.testing.assert_array_equal(k(frame), RBF(1.0)(frame[["a", "b"]]))


def test_labels_that_are_numbers_come_before_positions():
    frame = pd.DataFrame(vectors(), columns=[2, 1, 0])
    np.testing.assert_array_equal(Linear().on(2)(frame), Linear()(vectors()[:, [0]]))


@pytest.mark.parametrize(
    "convert", [pd.DataFrame, lambda t: polars.DataFrame(t.to_dict("list"))], ids=["pandas", "polars"]
)
def test_a_table_of_mixed_types(convert):
    frame = table()
    town = np.array(frame["town"])
    same = (town[:, None] == town[None]).astype(float)
    numbers = frame[["age", "income"]].to_numpy()
    k = RBF(5.0).on("age") * Delta().on("town") + Matern(1.5, 1e4).on(["age", "income"]) + Delta().on(["town", "age"])
    wanted = RBF(5.0)(numbers[:, [0]]) * same + Matern(1.5, 1e4)(numbers)
    wanted += same * (numbers[:, [0]] == numbers[:, 0])
    np.testing.assert_allclose(k(convert(frame)), wanted, rtol=1e-13)
    np.testing.assert_allclose(k(convert(frame), convert(frame[:4])), wanted[:, :4], rtol=1e-13)


def test_a_python_function_sees_the_texts_of_one_column_and_the_rows_of_several():
    frame = table()
    shared = FromFunction(lambda a, b: float(len(set(a) & set(b))))
    towns = list(frame["town"])
    wanted = [[float(len(set(a) & set(b))) for b in towns] for a in towns]
    np.testing.assert_array_equal(shared.on("town")(frame), wanted)
    by_rows = FromFunction(lambda a, b: float(len(set(a[1]) & set(b[1]))))
    np.testing.assert_array_equal(by_rows.on(["age", "town"])(frame), wanted)


@pytest.mark.parametrize("frame", [pd.DataFrame, polars.DataFrame], ids=["pandas", "polars"])
def test_unknown_columns_of_a_table(frame):
    data = frame({"age": [1.0], "income": [2.0]})
    with pytest.raises(ValueError, match=r"unknown column 'agee': X has 'age', 'income'"):
        RBF(1.0).on("agee")(data)
    with pytest.raises(ValueError, match=r"unknown column 2: X has 'age', 'income'"):
        RBF(1.0).on([0, 2])(data)
    with pytest.raises(ValueError, match=r"unknown column 'age': Z has 'income'"):
        RBF(1.0).on("age")(data, data[["income"]])


def test_unknown_columns_of_a_matrix():
    X = vectors()
    with pytest.raises(ValueError, match=r"unknown column 3: X has 3 columns, 0 to 2"):
        RBF(1.0).on([0, 3])(X)
    with pytest.raises(ValueError, match=r"unknown column -4: X has 3 columns"):
        RBF(1.0).on(-4)(X)
    for points in (X, X.tolist()):
        with pytest.raises(ValueError, match=r"unknown column 'age': X .* without column names; use indices 0 to 2"):
            RBF(1.0).on("age")(points)


def test_columns_that_are_none():
    with pytest.raises(ValueError, match=r"kernel\.on\(\[\]\) chooses no column; name at least one"):
        RBF(1.0).on([])
    with pytest.raises(ValueError, match=r"chooses no column"):
        RBF(1.0).on([False, False])
    with pytest.raises(TypeError, match=r"a column is an index or a name, not 1\.5"):
        RBF(1.0).on([1.5])
    with pytest.raises(TypeError, match=r"columns must be an index, a name, a slice or a list of them; they are 1\.5"):
        RBF(1.0).on(1.5)
    with pytest.raises(ValueError, match=r"0 columns"):
        RBF(1.0).on(slice(2, 2))(vectors())
    with pytest.raises(ValueError, match=r"kernel\.on\(\[0\]\) needs a matrix or a table; X has shape \(3,\)"):
        Delta().on([0])(np.array([1, 2, 3]))


# -- ordered categories -----------------------------------------------------------------------------------

SIZES = ["S", "M", "L", "XL"]
WORN = ["L", "S", "M", "XL", "S"]
RANKS = np.array([[SIZES.index(size)] for size in WORN], dtype=float)


def worn(values, levels=SIZES, library="pandas"):
    ages = np.arange(float(len(values)))
    if library == "polars":
        return polars.DataFrame({"age": ages, "size": polars.Series(values, dtype=polars.Enum(levels))})
    return pd.DataFrame({"age": ages, "size": pd.Categorical(values, levels, ordered=True)})


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_an_ordered_category_is_compared_by_its_ranks(library, tmp_path):
    X = worn(WORN, library=library)
    np.testing.assert_array_equal(RBF(1.0).on("size")(X), RBF(1.0)(RANKS))
    np.testing.assert_array_equal(RBF(1.0).on("size")(X[:2], X[2:]), RBF(1.0)(RANKS[:2], RANKS[2:]))
    both = np.column_stack([np.arange(5.0), RANKS])
    np.testing.assert_array_equal(RBF(1.0)(X), RBF(1.0)(both))
    np.testing.assert_array_equal(Matern().on("size")(X), Matern()(RANKS))
    k = RBF(2.0).on("age") * RBF(1.0).on("size") + Linear().on("size")
    np.testing.assert_allclose(k(X), RBF(2.0)(both[:, :1]) * RBF(1.0)(RANKS) + RANKS @ RANKS.T)
    assert Gram(k, X).compiled
    y = np.arange(5.0)
    model = KernelRidge(0.1, kernel=RBF(1.0).on("size")).fit(X, y)
    save(model, tmp_path / "sizes.mercer")
    np.testing.assert_array_equal(load(tmp_path / "sizes.mercer").predict(X), model.predict(X))
    np.testing.assert_allclose(model.predict(X), KernelRidge(0.1, kernel=RBF(1.0)).fit(RANKS, y).predict(RANKS))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_equality_of_ordered_categories_is_that_of_their_names(library):
    X, Z = worn(["S", "M", None], library=library), worn(["M", "XL"], ["M", "XL", "S"], library=library)
    for k in (Delta(), Categorical()):
        np.testing.assert_array_equal(k.on("size")(X, Z), [[0, 0], [1, 0], [0, 0]])
        np.testing.assert_array_equal(k.on("size")(X), np.eye(3))


def test_ranks_that_mean_different_things_or_nothing_are_refused():
    k, X = RBF(1.0).on("size"), worn(WORN)
    with pytest.raises(
        ValueError, match=r"category 'size' has the levels S < M < L < XL in X and M < L in Z, .*astype\(old\['size'\]"
    ):
        k(X, worn(["M", "L"], ["M", "L"]))
    with pytest.raises(ValueError, match="X contains NaN at row 1"):
        k(worn(["S", None]))
    with pytest.raises(TypeError, match=r"column 'size' of X is not numeric .*; an ordered category is"):
        k(X.astype({"size": object}).assign(size=pd.Categorical(WORN)))


def test_ranks_among_many_rows_are_those_among_their_quantiles():
    X = np.random.default_rng(0).normal(size=(6000, 2))
    found = NormalScores.sample(X)
    assert len(found) < len(X)
    for column, quantiles in zip(X.T, found.T, strict=True):
        assert np.isin(quantiles, column).all()
        shares = np.searchsorted(np.sort(column), quantiles, side="right") / len(column)
        np.testing.assert_allclose(shares, (np.arange(len(found)) + 0.5) / len(found), atol=1 / len(column))
