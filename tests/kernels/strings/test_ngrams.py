"""Counts of substrings: shared k-mers of any alphabet, and bags of n-grams against scikit-learn's vectorizer."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC as TheirLinearSVC

import mercer
from mercer import RBF, SVC, FromFunction, Spectrum, TextNGrams
from mercer.gram import Gram
from mercer.kernels import kernel_from_state, kernel_to_state, parse_kernel
from strings_by_hand import STRINGS, spectrum


@given(X=STRINGS, k=st.integers(1, 4))
def test_counts_pairs_of_equal_k_mers(X, k):
    slow = FromFunction(lambda x, z: spectrum(x, z, k))
    np.testing.assert_array_equal(Spectrum(k)(X), slow(X))
    np.testing.assert_array_equal(Spectrum(k).diag(X), np.diag(slow(X)))
    blended = sum(FromFunction(lambda x, z, j=j: spectrum(x, z, j))(X) for j in range(1, k + 1))
    np.testing.assert_array_equal(Spectrum(k, blended=True)(X), blended)


@pytest.mark.parametrize("k", [8, 9, 28, 29, 40])
@pytest.mark.parametrize("alphabet", ["ACGT", "ACGTN", "abé"])
def test_names_of_long_k_mers_depend_on_the_k_mer_alone(k, alphabet):
    rng = np.random.default_rng(k)
    core = "".join(rng.choice(list(alphabet), 60))
    X = [core, "é" + core[:50], core[10:] + "N", "".join(rng.choice(list(alphabet), 60)), core[::-1]]
    np.testing.assert_array_equal(Spectrum(k)(X), FromFunction(lambda x, z: spectrum(x, z, k))(X))


@pytest.mark.parametrize("k", [1, 3, 6])
def test_agrees_with_a_vocabulary(k):
    rng = np.random.default_rng(0)
    X = ["".join(rng.choice(list("acgtßñ"), size=n)) for n in rng.integers(k, 60, 50)]
    counts = CountVectorizer(analyzer="char", ngram_range=(k, k)).fit_transform(X)
    np.testing.assert_array_equal(Spectrum(k)(X), (counts @ counts.T).toarray())


def test_bytes_and_texts_share_nothing():
    assert Spectrum(2)(["abc"], [b"abc"]).tolist() == [[0.0]]
    assert Spectrum(9)(["ACGTACGTAC"], [b"ACGTACGTAC"]).tolist() == [[0.0]]


def test_case_is_kept():
    assert Spectrum(1)(["aA"], ["a"]).tolist() == [[1.0]]


def test_normalized_values_of_strings_without_k_mers_are_zero():
    K = Spectrum(3).normalized()(["abcd", "ab", ""])
    np.testing.assert_allclose(K, np.diag([1.0, 0.0, 0.0]))


def test_long_strings():
    rng = np.random.default_rng(0)
    X = ["", "A", "".join(rng.choice(list("ACGT"), 100_000)), "".join(rng.choice(list("ACGT"), 100_000))]
    K = Spectrum(12)(X)
    assert K[2, 2] >= 100_000 - 11
    assert (K[:2] == 0).all()


def test_a_string_column_of_a_table():
    table = pd.DataFrame({"sequence": ["ACGT", "ACGA", "TTTT", "TTTA"] * 5, "age": np.arange(20.0)})
    y = [1, 1, 0, 0] * 5
    k = Spectrum(2).on("sequence") * RBF(10.0).on("age")
    np.testing.assert_allclose(k(table), Spectrum(2)(list(table["sequence"])) * RBF(10.0)(table[["age"]]))
    model = SVC(kernel=k).fit(table, y)
    assert model.score(table, y) == 1.0
    assert model.certificate_.verify(table, y)


@pytest.mark.parametrize("X", [["ab", "abc", "ba"], [b"ab", b"abc", b"ba"], [("to", "be"), ("or",), ("be", 2.5)]])
def test_a_model_file_keeps_kernel_and_strings(tmp_path, X):
    model = SVC(kernel=Spectrum(2, blended=True)).fit(X * 4, [0, 1, 1] * 4)
    mercer.save(model, tmp_path / "model.mercer")
    again = mercer.load(tmp_path / "model.mercer")
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_the_feature_map_drops_what_it_has_not_seen():
    X, Z = ["banana", "bandana", "x"], ["cabana", "", "zzz"]
    for k in (Spectrum(2), Spectrum(2).normalized(), Spectrum(2) + Spectrum(3, blended=True), Spectrum(2) * 2.0):
        phi = k.feature_map().fit(X)
        np.testing.assert_allclose((phi.transform(X) @ phi.transform(X).T).toarray(), k(X))
        if "normalized" not in repr(k):
            np.testing.assert_allclose((phi.transform(X) @ phi.transform(Z).T).toarray(), k(X, Z))
    nothing = Spectrum(3).feature_map().fit(["a", ""])
    assert nothing.transform(["abc"]).toarray().tolist() == [[0.0]]


def test_a_linear_machine_takes_over(tmp_path):
    X, y = ["abab", "baba", "cdcd", "dcdc"] * 5, [0, 0, 1, 1] * 5
    model = make_pipeline(Spectrum(2).feature_map(), TheirLinearSVC()).fit(X, y)
    assert model.score(X, y) == 1.0
    again = mercer.kernels.Spectrum(2).feature_map().fit(X)
    mercer.save(again, tmp_path / "features.mercer")
    np.testing.assert_array_equal(mercer.load(tmp_path / "features.mercer").names_, again.names_)
    assert len(model[0].get_feature_names_out()) == model[0].n_features_out_ == 4


@pytest.mark.parametrize(
    ("X", "says"),
    [
        (["ab", b"ab"], "point 0 of X is a str, 'ab', point 1 a bytes, b'ab'; .* one kind: str, bytes, or lists"),
        ([b"ab", 3], "point 0 of X is a bytes, b'ab', point 1 the number 3"),
        ([3.5, 2.0], "point 0 of X is the number 3.5"),
        ([["a"], [{"b"}]], "a token is a set"),
        ([["a"], "b"], r"point 1 of X is a str, 'b', point 0 a list, \['a'\]"),
    ],
)
def test_points_that_are_no_strings(X, says):
    with pytest.raises(TypeError, match=says):
        Spectrum(2)(X)


@pytest.mark.parametrize("k", [0, -1, 1.5, "3", None])
def test_k_is_a_whole_number(k):
    with pytest.raises(ValueError, match="k of Spectrum must be a whole number >= 1"):
        Spectrum(k)


def test_written_as_text():
    assert parse_kernel("Spectrum(4) + 2 * Spectrum(2)") == Spectrum(4) + 2 * Spectrum(2)


def test_a_column_of_an_array_of_objects():
    X = np.array([["ab"], ["ba"]], dtype=object)
    np.testing.assert_array_equal(Spectrum(1)(X), [[2.0, 2.0], [2.0, 2.0]])
    assert Gram(Spectrum(1), X).compiled


TEXTS = [
    "The quick brown fox jumps over the lazy dog, the dog!",
    "the lazy dog sleeps",
    "A quick fox; a quick, quick fox.",
    "Zwölf Boxkämpfer jagen Viktor",
    "",
    "?!",
]
NEW = ["the dog and the fox", "nothing known", "a quick quick nap"]


@pytest.mark.parametrize("sublinear", [True, False])
@pytest.mark.parametrize("idf", ["auto", None])
@pytest.mark.parametrize(
    ("given", "theirs"),
    [
        ({"words": (1, 2)}, {"analyzer": "word", "ngram_range": (1, 2)}),
        ({"words": None, "characters": (2, 4)}, {"analyzer": "char", "ngram_range": (2, 4)}),
        ({"words": (1, 1), "lowercase": False}, {"analyzer": "word", "lowercase": False}),
    ],
)
def test_agrees_with_scikit_learn(given, theirs, idf, sublinear):
    vectorizer = TfidfVectorizer(use_idf=idf is not None, sublinear_tf=sublinear, **theirs)
    a = vectorizer.fit_transform(TEXTS)
    k = TextNGrams(sublinear=sublinear, idf=idf, **given).resolve(TEXTS)
    np.testing.assert_allclose(k(TEXTS), (a @ a.T).toarray(), rtol=1e-12, atol=1e-14)
    if idf is not None:  # without, scikit-learn still leaves out what it has not seen
        b = vectorizer.transform(NEW)
        np.testing.assert_allclose(k(NEW, TEXTS), (b @ a.T).toarray(), rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(k.diag(NEW), (b @ b.T).diagonal(), rtol=1e-12, atol=1e-14)


def test_waits_for_its_training_texts():
    k = TextNGrams()
    assert not k.resolved
    found = k.resolve(TEXTS)
    assert found.resolved
    assert found.idf[0].tolist() == [-1, len(TEXTS)]
    assert kernel_from_state(*kernel_to_state(found)) == found
    with pytest.raises(ValueError, match=r"kernel\.resolve"):
        k(TEXTS, NEW)


def test_a_model_file_keeps_the_frequencies(tmp_path):
    model = SVC(kernel=TextNGrams(words=(1, 2))).fit(TEXTS, [0, 1, 0, 1, 0, 1])
    mercer.save(model, tmp_path / "model.mercer")
    again = mercer.load(tmp_path / "model.mercer")
    np.testing.assert_array_equal(again.decision_function(NEW), model.decision_function(NEW))


def test_the_feature_map():
    k = TextNGrams().resolve(TEXTS)
    phi = k.feature_map().fit(TEXTS)
    np.testing.assert_allclose((phi.transform(NEW) @ phi.transform(TEXTS).T).toarray(), k(NEW, TEXTS), atol=1e-14)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"words": None}, "counts words or characters: words is None and characters None"),
        ({"characters": (2, 5)}, "words is \\(1, 1\\) and characters \\(2, 5\\)"),
        ({"words": (2, 1)}, "words of TextNGrams must be two whole numbers .* it is \\(2, 1\\)"),
        ({"words": 2}, "it is 2"),
        ({"idf": "median"}, "idf of TextNGrams must be .* it is 'median'"),
        ({"idf": 3.0}, "it is 3.0"),
    ],
)
def test_bad_parameters(given, says):
    with pytest.raises(ValueError, match=says):
        TextNGrams(**given)


def test_tokens_are_no_text():
    with pytest.raises(TypeError, match=r"point 1 of X is a list, \['to', 'be'\]; this kernel compares texts"):
        TextNGrams(idf=None)(["to be", ["to", "be"]])
