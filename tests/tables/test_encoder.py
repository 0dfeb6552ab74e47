import json
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from checks import assert_no_fault
from mercer import RBF
from mercer.tables import TableEncoder
from mercer.tables.cells import StrangeCells
from strings_table import notes

ROOT2 = 2**0.5

NUMBERS = st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=True), st.integers(-5, 5))
TEXTS = st.one_of(st.none(), st.sampled_from(["a", " a", "b", "?", "1", "1.0", "true", "2024-01-31", "x,y", "$5", ""]))
DATES = st.one_of(st.none(), st.datetimes(pd.Timestamp("1700-01-01"), pd.Timestamp("2200-01-01")))
KINDS = st.sampled_from([NUMBERS, st.integers(-(2**62), 2**62), st.sampled_from([0, 1]), TEXTS, st.booleans(), DATES])


@st.composite
def frames(draw, least=2):
    """Tables of any kinds of columns, of which something can be learned."""
    rows = draw(st.integers(least, 30))
    columns = draw(st.lists(KINDS, min_size=1, max_size=4))
    made = {f"c{i}": draw(st.lists(kind, min_size=rows, max_size=rows)) for i, kind in enumerate(columns)}
    return pd.DataFrame({"sure": np.arange(rows) / 3.0, **made})


def quietly(call, *args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return call(*args)


# -- laws -------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(frames())
def test_transform_of_the_fitted_table_is_fit_transform(table):
    encoder = TableEncoder()
    both = quietly(encoder.fit_transform, table)
    assert np.isfinite(both).all()
    assert both.shape == (len(table), len(encoder.get_feature_names_out()))
    assert np.array_equal(both, quietly(TableEncoder().fit(table).transform, table))


@settings(max_examples=40)
@given(frames(), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(table, random):
    order = random.sample(range(len(table)), len(table))
    one, two = TableEncoder().fit(table), TableEncoder().fit(table.iloc[order])
    assert one.get_feature_names_out().tolist() == two.get_feature_names_out().tolist()
    assert np.array_equal(quietly(one.transform, table), quietly(two.transform, table))
    assert np.array_equal(quietly(one.transform, table.iloc[order]), quietly(one.transform, table)[order])


@settings(max_examples=40)
@given(frames(), st.randoms(use_true_random=False))
def test_the_order_of_columns_and_further_ones_do_not_matter(table, random):
    encoder = TableEncoder().fit(table)
    more = table.assign(further="x", **{"one more": 3})
    order = random.sample(list(more.columns), more.shape[1])
    assert np.array_equal(quietly(encoder.transform, more[order]), quietly(encoder.transform, table))


@settings(max_examples=40)
@given(frames(4), st.integers(1, 29))
def test_rows_are_encoded_one_by_one(table, cut):
    encoder = TableEncoder().fit(table)
    parts = [part for part in (table.iloc[:cut], table.iloc[cut:]) if len(part)]
    whole = quietly(encoder.transform, table)
    assert np.array_equal(np.concatenate([quietly(encoder.transform, part) for part in parts]), whole)


@settings(max_examples=40)
@given(frames())
def test_what_is_learned_is_plain_and_complete(table):
    encoder = TableEncoder().fit(table)
    assert json.loads(json.dumps(encoder.columns_)) == encoder.columns_
    twin = TableEncoder()
    twin.columns_ = json.loads(json.dumps(encoder.columns_))
    assert np.array_equal(quietly(twin.transform, table), quietly(encoder.transform, table))
    assert np.array_equal(
        quietly(pickle.loads(pickle.dumps(encoder)).transform, table), quietly(encoder.transform, table)
    )


@settings(max_examples=40)
@given(frames())
def test_what_fit_has_seen_is_never_said_to_be_new(table):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        TableEncoder().fit_transform(table)
    assert not [warning for warning in said if "fit has not seen" in str(warning.message)]


@settings(max_examples=40)
@given(frames(), frames())
def test_any_table_of_these_columns_can_be_encoded(table, other):
    encoder = TableEncoder().fit(table)
    strange = pd.DataFrame({name: other.iloc[:, i % other.shape[1]] for i, name in enumerate(table.columns)})
    found = quietly(encoder.transform, strange)
    assert found.shape == (len(other), len(encoder.get_feature_names_out()))
    assert np.isfinite(found).all()


# -- numbers ----------------------------------------------------------------------------------------------


@given(st.lists(st.floats(-1e6, 1e6), min_size=20, max_size=60))
def test_numbers_have_mean_0_and_deviation_1(values):
    spread = np.ptp(values)
    if spread < 1e-3 or len(set(values)) < 3:
        values = np.arange(len(values)) ** 2.0
    found = TableEncoder(tails="keep").fit_transform(pd.DataFrame({"v": values}))[:, 0]
    assert found.mean() == pytest.approx(0, abs=1e-6)
    assert found.std() == pytest.approx(1, rel=1e-6)


@given(st.floats(0.01, 100), st.floats(-100, 100))
def test_the_unit_of_numbers_does_not_matter(factor, shift):
    values = np.random.default_rng(0).lognormal(0, 2, 50)
    one, two = (TableEncoder().fit_transform(v[:, None]) for v in (values, factor * values + shift))
    assert one == pytest.approx(two, abs=1e-5)


def test_long_tails_are_drawn_nearer_and_keep_their_order():
    values = np.random.default_rng(0).lognormal(0, 2, 500)
    encoder = TableEncoder().fit(values[:, None])
    bent = encoder.transform(values[:, None])[:, 0]
    kept = TableEncoder(tails="keep").fit_transform(values[:, None])[:, 0]
    assert kept == pytest.approx((values - values.mean()) / values.std())
    assert np.array_equal(np.argsort(bent), np.argsort(values))
    assert np.array_equal(bent[kept <= 3], kept[kept <= 3])
    assert kept.max() > 12 > 6 > bent.max() > 3
    assert f"a long tail (up to {kept.max():.0f} deviations), drawn nearer beyond 3" in encoder.treatment_[0].said


def test_numbers_within_three_deviations_stay():
    values = np.random.default_rng(0).uniform(size=(300, 1))
    encoder, keeping = TableEncoder().fit(values), TableEncoder(tails="keep").fit(values)
    assert np.array_equal(encoder.transform(values), keeping.transform(values))
    assert keeping.transform([[50.0]]) > 100 > 9 > encoder.transform([[50.0]])
    assert "tail" not in encoder.treatment_[0].said


def test_missing_numbers_are_at_the_median_and_marked():
    table = pd.DataFrame({"v": [1.0, 2.0, None, 4.0, np.inf, "?", 10.0]})
    encoder = TableEncoder().fit(table)
    found = encoder.transform(table)
    assert encoder.get_feature_names_out().tolist() == ["v", "v missing"]
    gone = [2, 4, 5]
    assert len(set(found[gone, 0])) == 1
    assert found[gone, 0][0] == pytest.approx(encoder.transform(pd.DataFrame({"v": [3.0]}))[0, 0])
    assert np.ptp(found[:, 1]) == pytest.approx(ROOT2)
    assert found[gone, 1].min() > found[[0, 1, 3, 6], 1].max()
    assert "3 missing are at the median" in encoder.treatment_[0].said


def test_a_weight_is_a_number_of_rows():
    """Numbers, dates and ranks are encoded as if rows were repeated as often as their weights say, 0 for not at all."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "number": np.where(rng.uniform(size=60) < 0.2, np.nan, rng.normal(3, 2, 60)),
            "tail": np.exp(rng.normal(0, 3, 60)),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 3000, 60), "D"),
            "level": pd.Categorical(rng.choice(["S", "M", "L"], 60), ["S", "M", "L"], ordered=True),
            "group": rng.choice(["a", "b", "c"], 60),
        }
    )
    weights = rng.integers(0, 4, 60)
    weighted = TableEncoder().fit(table, sample_weight=weights)
    repeated = TableEncoder().fit(table.iloc[np.repeat(np.arange(60), weights)])
    assert weighted.get_feature_names_out().tolist() == repeated.get_feature_names_out().tolist()
    np.testing.assert_allclose(weighted.transform(table), repeated.transform(table), rtol=1e-9, atol=1e-9)
    assert not np.allclose(weighted.transform(table), TableEncoder().fit(table).transform(table), atol=1e-3)
    with pytest.raises(ValueError, match=r"sample_weight\[2\] is -1"):
        TableEncoder().fit(table[:3], sample_weight=[1, 1, -1])


def test_missing_at_prediction_only():
    encoder = TableEncoder().fit(pd.DataFrame({"v": [1.0, 2.0, 9.0], "w": ["a", "b", "c"], "x": ["u", "v", "u"]}))
    found = encoder.transform(pd.DataFrame({"v": [None, 2.0], "w": [None, "b"], "x": [None, "u"]}))
    assert found[0, 0] == found[1, 0]  # the median
    assert found[0, 1:].tolist() == [0, 0, 0, 0]  # no category, and in the middle between u and v


@pytest.mark.parametrize("value", [1484705, 3.14159, "$5", "1,200.50"])
def test_one_number_and_missing_are_as_far_apart_as_two_categories(value):
    table = pd.DataFrame({"v": [value, None] * 10, "w": np.arange(20)})
    found = TableEncoder().fit_transform(table)[:, 0]
    assert found == pytest.approx(np.array([-1, 1] * 10) / ROOT2)


def test_two_numbers_are_as_far_apart_as_two_categories():
    table = pd.DataFrame({"n": [0, 1, 0, 0], "t": ["u", "v", "u", "u"], "b": [False, True, False, False]})
    encoder = TableEncoder(category_scale=3.0).fit(table)
    assert [c.kind for c in encoder.treatment_] == ["yes/no"] * 3
    assert encoder.transform(table) == pytest.approx(np.array([[-1.0], [1], [-1], [-1]]) @ np.full((1, 3), 3 / ROOT2))
    assert encoder.transform(table.assign(n=2))[0, 0] == pytest.approx(9 / ROOT2)  # a number still


def test_texts_that_are_numbers():
    table = pd.DataFrame({"price": ["$1,200", "$5", "$7.50", "n/a", "$12"] * 8})
    encoder = TableEncoder(tails="keep").fit(table)
    assert encoder.treatment_[0].kind == "number"
    again = TableEncoder(tails="keep").fit(pd.DataFrame({"price": [1200, 5, 7.5, None, 12] * 8}))
    assert np.array_equal(encoder.transform(table), again.transform(table))


def test_a_few_slips_in_a_column_of_numbers():
    table = pd.DataFrame({"v": [*map(str, range(99)), "unknown"]})
    encoder = TableEncoder().fit(table)
    assert encoder.treatment_[0].said.endswith("1 of these are no numbers, such as 'unknown'.")
    with pytest.warns(UserWarning, match="'v': 2 cells are no numbers, such as 'abc'. They count as missing."):
        found = encoder.transform(pd.DataFrame({"v": ["1", "abc", "def", None]}))
    assert (found[1:, 0] == found[1, 0]).all()
    assert (found[1:, 1] > found[0, 1]).all()


def test_huge_and_tiny_numbers():
    for values in ([1e300, -1e300, 0.0], [1e-310, 2e-310, 5e-310], [1e15, 1e15 + 1, 1e15 + 3]):
        encoder = TableEncoder().fit(np.array(values)[:, None])
        assert encoder.transform(np.array(values)[:, None]).std() == pytest.approx(1, rel=0.01)
        assert np.isfinite(encoder.transform([[1e308], [-1e308], [np.inf]])).all()


# -- categories -------------------------------------------------------------------------------------------


@given(st.lists(st.sampled_from("abcdef"), min_size=20, max_size=60), st.floats(0.1, 10))
def test_two_categories_are_root_two_apart(values, scale):
    table = pd.DataFrame({"v": values, "w": np.arange(len(values))})
    encoder = TableEncoder(category_scale=scale, min_rows=1).fit(table)
    found = encoder.transform(table)[:, encoder.places("category", "yes/no")]
    apart = np.linalg.norm(found[:, None] - found[None], axis=2)
    different = np.array(values)[:, None] != np.array(values)[None]
    assert apart == pytest.approx(different * ROOT2 * scale)


def test_rare_categories_share_a_column():
    table = pd.DataFrame({"v": ["a"] * 60 + ["b"] * 40 + ["c"] * 4 + ["d", "e"]})
    encoder = TableEncoder().fit(table)
    assert encoder.get_feature_names_out().tolist() == ["v=a", "v=b", "v other"]
    assert "one column each for 2, and one for the 3 rarest (6 rows)" in encoder.treatment_[0].said
    assert quietly(encoder.transform, pd.DataFrame({"v": ["d", "never seen"]})).tolist() == [[0, 0, 1], [0, 0, 1]]
    assert TableEncoder(min_rows=1).fit(table).transform(table).shape[1] == 5
    assert TableEncoder(min_rows=1, max_categories=3).fit(table).get_feature_names_out()[-1] == "v other"


def test_unseen_categories_without_others_are_zeros():
    encoder = TableEncoder().fit(pd.DataFrame({"v": ["a", "b", "c"] * 10}))
    found = quietly(encoder.transform, pd.DataFrame({"v": ["z", "a", None]}))
    assert found.tolist() == [[0, 0, 0], [1, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize(
    ("seen", "treated"),
    [
        (["Delft"] * 20 + ["Gouda"] * 20 + ["Urk", "Veere"], "other, as rare ones do"),
        (["Delft"] * 41 + ["Urk", "Veere"], "other, as rare ones do"),
        (["Delft", "Gouda", "Urk"] * 14, "none of those seen, equally far from each"),
        (["Delft", "Gouda"] * 21, "neither value, halfway between the two"),
        (["Delft", None] * 21, "neither value, halfway between the two"),
    ],
)
def test_unseen_categories_are_said_with_column_rows_values_and_treatment(seen, treated):
    encoder = TableEncoder().fit(pd.DataFrame({"town": seen, "x": np.arange(len(seen)) / 3}))
    new = ["Paris", seen[-1], "Rome", None, " Paris ", "Oslo", "Bonn"]
    with pytest.warns(StrangeCells) as said:
        found = encoder.transform(pd.DataFrame({"town": new, "x": 1.0}))[:, :-1]
    assert [str(warning.message) for warning in said] == [
        "'town': 5 rows have categories that fit has not seen, such as 'Bonn', 'Oslo', 'Paris'. "
        f"They count as {treated}."
    ]
    with pytest.warns(
        UserWarning, match=r"^'town': 1 row has a category that fit has not seen, such as '7'\. It counts"
    ):
        encoder.transform(pd.DataFrame({"town": [7.0, seen[0]], "x": 1.0}))
    known = quietly(encoder.transform, pd.DataFrame({"town": [v for v in dict.fromkeys(seen) if v], "x": 1.0}))[:, :-1]
    if "other" in treated:
        assert np.array_equal(found[0], known[-1])
    else:
        apart = np.linalg.norm(known - found[0], axis=1)
        assert apart == pytest.approx(np.full(len(known), apart[0]))


def test_strange_cells_of_pieces_add_up():
    encoder = TableEncoder().fit(pd.DataFrame({"job": ["a", "b", "c"] * 9, "age": range(27)}))
    table = pd.DataFrame({"job": ["z", "a", None, "y", "z"] * 3, "age": ["old", *"12345678", None, "young", *"1234"]})

    def said(part):
        with pytest.warns(StrangeCells) as caught:
            encoder.transform(part)
        return caught[0].message

    assert str(said(table[:2]) + said(table[2:9]) + said(table[9:])) == (
        "'job': 9 rows have categories that fit has not seen, such as 'z', 'y'. They count as none of those seen, "
        "equally far from each. 'age': 2 cells are no numbers, such as 'old', 'young'. They count as missing."
    )


def test_an_encoder_of_an_older_file_that_does_not_know_rare_categories_says_nothing():
    encoder = TableEncoder().fit(pd.DataFrame({"town": ["Delft"] * 60 + ["Gouda"] * 38 + ["Urk", "Veere"]}))
    for column in encoder.columns_:
        del column["rare"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert encoder.transform(pd.DataFrame({"town": ["Urk", "Paris"]})).tolist() == [[0, 0, 1], [0, 0, 1]]


def test_missing_is_a_category():
    table = pd.DataFrame({"v": ["a", "b", "c", None, " ?"] * 10, "w": ["x", None, None, None, "NA"] * 10})
    encoder = TableEncoder().fit(table)
    assert encoder.treatment_[0].made == ["v=a", "v=b", "v=c", "v missing"]
    assert encoder.treatment_[0].said == "v: 3 categories, one column each; 20 missing are a category of their own."
    assert encoder.treatment_[1].kind == "yes/no"
    assert encoder.transform(table)[3:5, :4].tolist() == [[0, 0, 0, 1]] * 2


def test_categories_are_the_same_as_texts_numbers_and_pandas_categories():
    table = pd.DataFrame({"v": ["1", "2", "x"] * 10})
    encoder = TableEncoder().fit(table)
    wanted = encoder.transform(table)[:2]
    for values in ([1, 2], [1.0, 2.0], ["1.0", " 2"], pd.Categorical(["1", "2"]), pd.Categorical([1, 2])):
        assert np.array_equal(encoder.transform(pd.DataFrame({"v": values})), wanted)


def test_numbers_that_are_declared_categories():
    table = pd.DataFrame({"v": pd.Categorical([1, 2, 3] * 10)})
    assert TableEncoder().fit(table).get_feature_names_out().tolist() == ["v=1", "v=2", "v=3"]


# -- dates ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%Y-%m-%dT%H:%M:%S", "%d %b %Y"])
def test_dates_as_texts(form):
    days = pd.date_range("2020-01-01", periods=400, freq="73h")
    days = days if "%H" in form else days.normalize()
    encoder = TableEncoder().fit(pd.DataFrame({"when": days}))
    texts = pd.DataFrame({"when": days.strftime(form)})
    found = TableEncoder().fit(texts)
    assert found.treatment_[0].kind == "date"
    assert found.transform(texts) == pytest.approx(encoder.transform(pd.DataFrame({"when": days})))


def test_parts_of_dates():
    days = pd.Series(pd.date_range("2020-01-06", periods=1000, freq="D"))
    encoder = TableEncoder().fit(pd.DataFrame({"when": days}))
    assert encoder.treatment_[0].said.endswith("columns for time, season, weekday.")
    found = encoder.transform(pd.DataFrame({"when": days}))
    assert found[:, 0].std() == pytest.approx(1)
    assert np.linalg.norm(found[:, 1:3], axis=1) == pytest.approx(1)
    assert found[0, 3:5] == pytest.approx(found[7, 3:5])  # a week later
    assert found[0, 1:3] == pytest.approx(found[365, 1:3], abs=0.01)
    hours = TableEncoder().fit(pd.DataFrame({"when": pd.date_range("2020-01-06", periods=30, freq="h")}))
    assert hours.treatment_[0].said.endswith("columns for time, weekday, hour.")


def test_times_of_day():
    table = pd.DataFrame({"at": ["00:00", "06:00", "12:00", "23:59"] * 5})
    encoder = TableEncoder().fit(table)
    assert encoder.get_feature_names_out().tolist() == ["at hour sin", "at hour cos"]
    found = encoder.transform(table)
    assert np.linalg.norm(found[0] - found[3]) < 0.01
    assert np.linalg.norm(found[0] - found[2]) == pytest.approx(2)


def test_missing_and_wrong_dates():
    table = pd.DataFrame({"when": ["2020-01-01", "2020-03-01", None, "2021-01-01"] * 5})
    encoder = TableEncoder().fit(table)
    with pytest.warns(UserWarning, match="'when': 1 cell is no date, such as 'soon'"):
        found = encoder.transform(pd.DataFrame({"when": ["soon", None]}))
    assert np.array_equal(found[0], found[1])
    assert (found[0, 1:-1] == 0).all()
    assert np.array_equal(found[1], encoder.transform(table)[2])


def test_time_zones_are_one_time():
    table = pd.DataFrame({"when": pd.date_range("2020-01-01", periods=50, freq="7h", tz="UTC")})
    encoder = TableEncoder().fit(table)
    moved = table.assign(when=table["when"].dt.tz_convert("Asia/Tokyo"))
    assert np.array_equal(encoder.transform(moved), encoder.transform(table))


# -- what is dropped --------------------------------------------------------------------------------------


def test_what_says_nothing_is_dropped_and_said():
    rows = 40
    table = pd.DataFrame(
        {
            "x": np.arange(rows) % 7,
            "constant": "same",
            "void": None,
            "one number": 3.5,
            "note": [f"remark {i}" for i in range(rows)],
            "id": np.arange(1000, 1000 + rows),
            "customer_id": np.arange(rows)[::-1],
            "time": np.arange(rows),
            "one day": pd.Timestamp("2020-01-01"),
        }
    )
    encoder = TableEncoder().fit(table)
    said = {c.name: (c.kind, c.said) for c in encoder.treatment_ if not c.made}
    assert {name: kind for name, (kind, _) in said.items()} == {
        "constant": "constant",
        "void": "constant",
        "one number": "constant",
        "note": "text",
        "id": "identifier",
        "customer_id": "identifier",
        "one day": "constant",
    }
    assert said["constant"][1] == "constant: dropped; it is same in all 40 rows that have a value."
    assert said["void"][1] == "void: dropped; it has no values."
    assert said["note"][1] == "note: dropped; 40 different texts in 40 rows name or describe the rows."
    assert encoder.get_feature_names_out().tolist() == ["x", "time"]
    with pytest.raises(ValueError, match=r"nothing to learn from in 40 samples: constant: dropped; it is same"):
        TableEncoder().fit(table[["constant", "void"]])


def test_lists_in_cells_are_dropped_or_categories_but_no_crash():
    table = pd.DataFrame({"v": [[1, 2], {"a": 1}, None] * 10, "w": range(30)})
    encoder = TableEncoder().fit(table)
    assert encoder.transform(table).shape[0] == 30


# -- the interface ----------------------------------------------------------------------------------------


def test_scikit_learn_finds_no_fault():
    assert_no_fault(TableEncoder())


def test_arrays_polars_and_clone():
    X = np.random.default_rng(0).normal(size=(30, 3))
    encoder = clone(TableEncoder(tails="keep")).fit(X)
    assert encoder.get_feature_names_out().tolist() == ["x0", "x1", "x2"]
    assert encoder.transform(X) == pytest.approx((X - X.mean(0)) / X.std(0))
    with pytest.raises(ValueError, match="X has 2 features, but TableEncoder is expecting 3 features"):
        encoder.transform(X[:, :2])
    table = pd.DataFrame({"a": X[:, 0], "b": ["u", "v", "w"] * 10})
    assert np.array_equal(
        TableEncoder().fit(pl.from_pandas(table)).transform(table), TableEncoder().fit_transform(table)
    )
    assert not hasattr(encoder, "feature_names_in_")
    assert TableEncoder().fit(table).feature_names_in_.tolist() == ["a", "b"]
    mixed = np.array([[1.0, "u"], [2.0, "v"], [5.0, "w"]] * 10, dtype=object)
    assert [c.kind for c in TableEncoder().fit(mixed).treatment_] == ["number", "category"]
    named = TableEncoder().set_output(transform="pandas").fit(table).transform(table)
    assert named.columns.tolist() == ["a", "b=u", "b=v", "b=w"]


def test_errors_are_sentences():
    table = pd.DataFrame({"a": [1, 2, 3], "b": ["u", "v", "w"]})
    encoder = TableEncoder().fit(table)
    with pytest.raises(ValueError, match="the table has no column 'b', which the encoder was fitted to; it has 'a'"):
        encoder.transform(table[["a"]])
    with pytest.raises(ValueError, match="two columns are called 'a'; give them different names"):
        TableEncoder().fit(pd.concat([table, table], axis=1))
    with pytest.raises(ValueError, match="tails='cut' of TableEncoder must be 'auto' or 'keep'"):
        TableEncoder(tails="cut").fit(table)
    with pytest.raises(ValueError, match="min_rows=0 of TableEncoder must be a whole number >= 1"):
        TableEncoder(min_rows=0).fit(table)
    with pytest.raises(ValueError, match="while 1 is required"):
        TableEncoder().fit(table.iloc[:0])


def test_dropped_columns_need_not_be_there():
    table = pd.DataFrame({"a": [1, 2, 3], "b": "same"})
    assert TableEncoder().fit(table).transform(table[["a"]]).shape == (3, 1)


# -- texts ------------------------------------------------------------------------------------------------


def test_prose_and_dna_stay_as_they_are_where_they_are_to_be_kept():
    table, _, _ = notes()
    table.loc[3, "note"] = None
    table["gene"] = table["gene"].str.lower()
    encoder = TableEncoder(texts="keep").fit(table)
    rows = encoder.transform(table)
    assert [column.kind for column in encoder.treatment_] == ["number", "text", "sequence", "text"]
    assert encoder.places("text", "sequence") == [1, 2]  # names of rows are dropped
    assert rows.dtype == object
    assert rows[:3, 1].tolist() == table["note"][:3].tolist()
    assert rows[3, 1] == ""
    assert rows[:, 2].tolist() == table["gene"].str.upper().tolist()
    said = " ".join(column.said for column in encoder.treatment_)
    assert "texts of 7 words (median), compared as they are; 1 missing is empty." in said
    assert "sequences of A, C, G, T, 30 to 38 long" in said
    np.testing.assert_array_equal(rows[:, 0].astype(float), TableEncoder().fit_transform(table)[:, 0])


def test_texts_are_dropped_where_nobody_asks_for_them():
    table, _, _ = notes()
    encoder = TableEncoder().fit(table)
    assert encoder.transform(table).dtype == np.float64
    assert [column.name for column in encoder.treatment_ if not column.made] == ["note", "gene", "user"]
    with pytest.raises(ValueError, match="texts='read' of TableEncoder must be 'drop' or 'keep'"):
        TableEncoder(texts="read").fit(table)


def test_few_different_texts_are_categories_however_many_words_they_have():
    table = pd.DataFrame({"plan": ["pay by the month", "pay by the year", "do not pay at all"] * 20})
    assert TableEncoder(texts="keep").fit(table).treatment_[0].kind == "category"


# -- strings ----------------------------------------------------------------------------------------------


def test_few_different_texts_are_kept_where_they_would_name_the_rows():
    table, _, _ = notes(90)
    table.loc[::2, "note"] = ""  # 45 different texts in 45 rows, fewer than categories may be
    encoder = TableEncoder(texts="keep").fit(table[["note"]])
    assert encoder.treatment_[0].kind == "text"
    assert "45 missing are empty" in encoder.treatment_[0].said
    table["note"] = np.resize(["likes tea and milk", "likes coffee and sugar", "likes nothing at all"], 90)
    assert TableEncoder(texts="keep").fit(table[["note"]]).treatment_[0].kind == "category"


def test_sequences_with_something_else_among_them():
    table, _, _ = notes(60)
    table["gene"] = table["gene"].str[:30].str.lower()
    table.loc[3, "gene"] = "not yet sequenced"
    said = TableEncoder(texts="keep").fit(table[["gene"]]).treatment_[0].said
    assert said == (
        "gene: 60 different sequences of A, C, G, T, all 30 long, and 1 text that is no DNA, such as "
        "'not yet sequenced', compared as they are."
    )


# -- ordered categories -----------------------------------------------------------------------------------

SIZES = ["S", "M", "L", "XL"]


def sizes(values):
    return pd.Series(pd.Categorical(values, SIZES, ordered=True))


@settings(max_examples=40)
@given(st.lists(st.sampled_from([*SIZES, None]), min_size=2, max_size=30).filter(lambda v: len({*v} - {None}) > 1))
def test_an_ordered_category_is_the_number_of_its_rank(values):
    ranks = pd.Series([None if v is None else float(SIZES.index(v)) for v in values])
    table = pd.DataFrame({"size": sizes(values)})
    encoder = TableEncoder().fit(table)
    same = TableEncoder(tails="keep").fit_transform(pd.DataFrame({"size": ranks}))
    np.testing.assert_array_equal(encoder.transform(table), same)
    assert encoder.get_feature_names_out().tolist() == ["size", "size missing"][: same.shape[1]]
    as_texts = pd.DataFrame({"size": pd.Series(values, dtype=object)})
    np.testing.assert_array_equal(encoder.transform(as_texts), same)  # as a CSV has them


def test_levels_that_were_declared_have_a_place_and_others_are_missing():
    encoder = TableEncoder().fit(pd.DataFrame({"size": sizes(["S", "M", "L", "S"])}))
    column = encoder.treatment_[0]
    assert column.kind == "ordered category"
    assert column.said == "size: 4 levels in order (S < M < L < XL), their ranks as numbers, standardised."
    found = encoder.transform(pd.DataFrame({"size": SIZES}))[:, 0]
    np.testing.assert_allclose(np.diff(found), np.diff(found)[0])
    with pytest.warns(
        UserWarning, match=r"'size': 2 cells are no known levels, such as 'giant'. They count as missing"
    ):
        new = encoder.transform(pd.DataFrame({"size": ["giant", "giant", None, "M"]}))[:, 0]
    assert new[0] == new[1] == new[2]
    assert new[3] == found[1]


def test_ordered_categories_of_polars_and_of_other_things_than_texts():
    values = ["L", "S", None, "M"] * 5
    of_polars = pl.DataFrame({"size": pl.Series(values, dtype=pl.Enum(SIZES))})
    of_pandas = pd.DataFrame({"size": sizes(values)})
    found = TableEncoder().fit_transform(of_polars)
    np.testing.assert_array_equal(found, TableEncoder().fit_transform(of_pandas))
    unordered = pl.DataFrame({"size": pl.Series(values, dtype=pl.Categorical)})
    assert TableEncoder().fit(unordered).treatment_[0].kind == "category"
    bins = pd.DataFrame({"age": pd.cut([5, 31, 70, 15, 44], [0, 18, 65, 99])})
    encoder = TableEncoder().fit(bins)
    assert "(0, 18] < (18, 65] < (65, 99]" in encoder.treatment_[0].said
    assert (np.diff(encoder.transform(bins)[[0, 1, 2], 0]) > 0).all()


def test_ordered_categories_with_little_in_them():
    constant = pd.DataFrame({"size": sizes(["M"] * 4), "x": [1.0, 2, 3, 4]})
    assert TableEncoder().fit(constant).treatment_[0].kind == "constant"
    nothing = pd.DataFrame({"size": sizes([None] * 4), "x": [1.0, 2, 3, 4]})
    assert "has no values" in TableEncoder().fit(nothing).treatment_[0].said
    half = pd.DataFrame({"size": sizes(["M", None, "M", None])})
    assert TableEncoder().fit(half).treatment_[0].said == "size: M or missing (2 rows), one column."
    two = pd.DataFrame({"size": sizes(["S", "XL", "S", "XL"])})
    encoder = TableEncoder().fit(two)
    assert np.allclose(np.abs(encoder.transform(two)), ROOT2 / 2)
    assert encoder.transform(pd.DataFrame({"size": ["M"]}))[0, 0] < 0
    many = pd.DataFrame({"grade": pd.Categorical(list(range(100)), ordered=True)})
    assert "100 levels in order (0 < 1 < 2 < 3 < 4 < 5 < ... < 99)" in TableEncoder().fit(many).treatment_[0].said


# -- kernels by the names of columns ----------------------------------------------------------------------


def test_kernels_of_encoded_rows_are_shown_with_names():
    table = pd.DataFrame({"a b": [1.0, None, 3.0, 4.0], "hue": ["red", "green", "blue", "red"], "one": 1})
    encoder = TableEncoder().fit(table)  # a b, a b missing, hue=blue, hue=green, hue=red
    k = RBF(2.0)
    assert repr(encoder.named(k.on([0, 1]) + k.on([2, 3, 4]))) == repr(k.on(["a b"]) + k.on(["hue"]))
    assert repr(encoder.named(0.5 * k.on(0))) == repr(0.5 * k.on(["a b"]))
    assert repr(encoder.named(k.on([1, -1]))) == repr(k.on(["a b missing", "hue=red"]))
    assert repr(encoder.named(k.on(slice(2, None)).normalized())) == repr(k.on(["hue"]).normalized())
    for same in (k, k.on("hue"), k.on([7]), k.on([0]).compose(np.abs)):
        assert encoder.named(same) is same
