"""Bags of n-grams agree with scikit-learn's vectorizer."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

import mercer
from mercer import SVC, TextNGrams
from mercer.kernels import kernel_from_state, kernel_to_state

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
