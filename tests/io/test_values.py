"""Data of every kind comes back as it was; what is not data is refused in a sentence."""

import datetime
import math
import threading

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse, stats
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import fbeta_score, get_scorer, make_scorer
from sklearn.model_selection import (
    KFold,
    PredefinedSplit,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)

import mercer.io
from cases import each
from mercer.io.read import Reader

NUMBERS = st.integers() | st.floats() | st.booleans() | st.none()
TEXTS = st.text(st.characters(codec=None), max_size=6)
KEYS = TEXTS | st.integers() | st.tuples(st.integers(), TEXTS)
DTYPES = st.one_of(
    hnp.boolean_dtypes(),
    hnp.integer_dtypes(),
    hnp.unsigned_integer_dtypes(),
    hnp.floating_dtypes(sizes=(16, 32, 64)),
    hnp.unicode_string_dtypes(max_len=5),
    hnp.byte_string_dtypes(max_len=5),
    hnp.datetime64_dtypes(),
    hnp.timedelta64_dtypes(),
)
ARRAYS = hnp.arrays(DTYPES, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
VALUES = st.recursive(
    NUMBERS | TEXTS | ARRAYS,
    lambda inner: (
        st.lists(inner, max_size=20)
        | st.lists(inner, max_size=5).map(tuple)
        | st.dictionaries(KEYS, inner, max_size=4)
        | st.sets(KEYS | st.frozensets(KEYS, max_size=2), max_size=4)
        | st.lists(st.frozensets(TEXTS, max_size=3) | st.frozensets(KEYS, max_size=3), min_size=17, max_size=20)
        | st.lists(st.lists(TEXTS, max_size=3), min_size=17, max_size=20)
        | st.lists(st.tuples(st.integers(), st.floats()), min_size=17, max_size=20)
        | st.lists(st.lists(st.floats(), max_size=3), min_size=17, max_size=20)
    ),
    max_leaves=12,
)


def again(value, folder):
    mercer.io.save(value, folder / "value.mercer")
    return mercer.io.load(folder / "value.mercer")


def assert_same(a, b):
    if isinstance(a, np.ndarray):
        assert type(b) is np.ndarray
        assert a.dtype.newbyteorder("=") == b.dtype
        assert a.shape == b.shape
        if a.dtype == object:
            for x, y in zip(a.ravel(), b.ravel(), strict=True):
                assert_same(x, y)
        else:
            assert a.astype(a.dtype.newbyteorder("=")).tobytes() == b.tobytes()
        assert b.flags.writeable
        return
    assert type(a) is type(b)
    if isinstance(a, list | tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_same(x, y)
    elif isinstance(a, dict):
        assert list(a) == list(b)
        for x, y in zip(a.values(), b.values(), strict=True):
            assert_same(x, y)
    elif isinstance(a, float | np.floating):
        assert a == b or (math.isnan(a) and math.isnan(b))
        assert math.copysign(1, a) == math.copysign(1, b) or math.isnan(a)
    else:
        assert a == b


@settings(max_examples=150)
@given(VALUES)
def test_data_comes_back(tmp_path_factory, value):
    assert_same(value, again(value, tmp_path_factory.getbasetemp()))


@each(
    "value",
    [
        np.float32(0.1),
        np.int8(-3),
        np.bool_(True),
        np.str_("é"),
        np.datetime64("2024-02-29"),
        slice(1, None, 2),
        np.dtype("<f4"),
        np.dtype("O"),
        np.float64,
        float,
        list("abcdefghijklmnopqrstuvw"),
        tuple(range(40)),
        ["\ud800", *"abcdefghijklmnopqrstuvw"],
        np.array(["x", None, float("nan"), 3], dtype=object),
        np.array([["x", "yy"], ["", "z"]], dtype=object),
        np.arange(6.0).reshape(2, 3).T,
        np.arange(12.0)[::2],
        np.arange(6, dtype=">i4"),
        {"a": {1: (2, 3)}, ("b", 2): [None]},
    ],
    ids=range(19),
)
def test_values_of_numpy_and_python(value, tmp_path):
    found = again(value, tmp_path)
    assert_same(value, found)
    if isinstance(value, np.ndarray) and value.ndim == 2:
        assert value.flags.f_contiguous == found.flags.f_contiguous


@pytest.mark.parametrize("kind", ["csr_array", "csc_array", "csr_matrix", "csc_matrix", "coo_array", "lil_matrix"])
def test_sparse_matrices(kind, tmp_path):
    A = getattr(sparse, kind)(np.eye(4)[:, :3] * 2.5)
    found = again(A, tmp_path)
    assert isinstance(found, sparse.sparray) == isinstance(A, sparse.sparray)
    assert np.array_equal(found.toarray(), A.toarray())
    if kind[:3] in ("csr", "csc"):
        assert type(found) is type(A)


@pytest.mark.parametrize("values", [[1.5, 2.5, 3.5], [1, 2, 3], ["a", "bc", ""], [None, "x", 3.5]], ids=range(4))
def test_masked_arrays(values, tmp_path):
    kind = object if None in values else None
    value = np.ma.MaskedArray(np.array(values, dtype=kind), mask=[False, True, False])
    found = again(value, tmp_path)
    assert type(found) is np.ma.MaskedArray
    assert found.dtype == value.dtype
    assert found.tolist() == value.tolist()
    assert found.mask.tolist() == value.mask.tolist()
    assert again(np.ma.MaskedArray(np.ones(2)), tmp_path).mask.tolist() == [False, False]


def test_what_is_under_a_mask_is_not_written(tmp_path):
    mercer.io.save(np.ma.MaskedArray([1.0, 271828.0], mask=[False, True]), tmp_path / "m.mercer")
    assert np.float64(271828.0).tobytes() not in (tmp_path / "m.mercer").read_bytes()


@pytest.mark.parametrize(
    "law",
    [
        stats.norm(0, 2),
        stats.gamma(2.0, scale=3.0),
        stats.poisson(4.0),
        stats.multivariate_normal([0.0, 1.0], np.eye(2)),
        [stats.uniform(0, 1), stats.expon()],
    ],
    ids=range(5),
)
def test_laws(law, tmp_path):
    found = again(law, tmp_path)
    for a, b in zip(law, found, strict=True) if isinstance(law, list) else [(law, found)]:
        assert np.array_equal(a.rvs(5, random_state=1), b.rvs(5, random_state=1))


def test_classes_of_kernels_and_metrics_of_scikit_learn(tmp_path):
    assert again([mercer.RBF, fbeta_score], tmp_path) == [mercer.RBF, fbeta_score]


def test_scorers(tmp_path):
    for name in ("accuracy", "roc_auc", "neg_log_loss", "f1_macro", "r2"):
        assert repr(again(get_scorer(name), tmp_path)) == repr(get_scorer(name))
    own = make_scorer(fbeta_score, beta=2.0, greater_is_better=False, response_method="predict")
    found = again(own, tmp_path)
    assert repr(found) == repr(own)
    y, f = np.array([0, 1, 1, 0]), np.array([0, 1, 0, 1])

    class Known(ClassifierMixin, BaseEstimator):
        classes_ = np.array([0, 1])

        def predict(self, X):
            return f

    assert found(Known(), y, y) == own(Known(), y, y) < 0
    with config_context(enable_metadata_routing=True):
        asked = get_scorer("accuracy").set_score_request(sample_weight="w")
        assert repr(again(asked, tmp_path).get_metadata_routing()) == repr(asked.get_metadata_routing())
    with pytest.raises(TypeError, match=r"is the function .*lambda.*, and a model file holds no code"):
        again(make_scorer(lambda y, f: 0.0), tmp_path)


@pytest.mark.parametrize(
    "splitter",
    [
        KFold(3, shuffle=True, random_state=2),
        StratifiedKFold(4),
        RepeatedKFold(n_splits=3, n_repeats=2, random_state=1),
        ShuffleSplit(3, test_size=0.3, random_state=0),
        TimeSeriesSplit(3, gap=1),
        PredefinedSplit([0, 1, 0, 1, -1, 1] * 4),
    ],
    ids=lambda s: type(s).__name__,
)
def test_splitters(splitter, tmp_path):
    X, y = np.zeros((24, 1)), np.arange(24) % 2
    for a, b in zip(splitter.split(X, y), again(splitter, tmp_path).split(X, y), strict=True):
        assert np.array_equal(a[0], b[0])
        assert np.array_equal(a[1], b[1])


def test_tables(tmp_path):
    table = pd.DataFrame({"a": [1.0, np.nan], "b": ["x", None], 3: [True, False]})
    found = again(table, tmp_path)
    assert list(found.columns) == ["a", "b", 3]
    assert found["b"][0] == "x"


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (lambda x: x, r"model is the function .*lambda.*, and a model file holds no code\. Register it by name"),
        ({"lock": threading.Lock()}, r"model\.0 is a _thread\.lock, which model files do not know"),
        ([object()], r"model\.0 is a builtins\.object, which model files do not know; if it is yours, register it"),
        (1j, "model is a builtins.complex"),
        (np.zeros(2, complex), "model is an array of complex128, which cannot be saved; use float64"),
        ((i for i in range(3)), "model is a generator, which is used up once it is read; pass a list"),
        (datetime.date(2024, 2, 29), r"model is a datetime\.date"),
        (datetime.date, "model is the class date, which is not data"),
    ],
    ids=range(8),
)
def test_what_is_no_data_is_refused(value, sentence, tmp_path):
    with pytest.raises((TypeError, ValueError), match=sentence):
        mercer.io.save(value, tmp_path / "no.mercer")
    assert not list(tmp_path.iterdir())


def test_facts_are_kept_beside_the_model(tmp_path):
    facts = {"target": "price", "scores": [0.5, 0.25], "columns": {"age": "number"}}
    mercer.io.save(mercer.RBF(2.0), tmp_path / "k.mercer", facts=facts)
    assert mercer.io.facts(tmp_path / "k.mercer") == facts
    assert mercer.io.load(tmp_path / "k.mercer") == mercer.RBF(2.0)
    mercer.io.save(mercer.RBF(2.0), tmp_path / "k.mercer")
    assert mercer.io.facts(tmp_path / "k.mercer") == {}


@pytest.mark.parametrize("code", [{"set": [[1]]}, {"frozenset": 3}, {"sets": [[[1]]], "frozen": True}, {"sets": [1]}])
def test_no_set_is_made_of_what_cannot_be_hashed(code):
    with pytest.raises(ValueError, match="is nothing that mercer writes"):
        Reader([], {}, {}).read(code)


@pytest.mark.parametrize("kind", [list, tuple, set, frozenset])
def test_many_collections_of_texts_keep_their_own_lengths(kind, tmp_path):
    value = [kind("abcde"[: i % 4]) for i in range(40)]
    assert again(value, tmp_path) == value
