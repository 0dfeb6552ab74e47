"""Features that have names: numbered for each comparison, whatever points were seen before."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer import SVC, FromFunction, _core
from mercer.gram import Gram
from mercer.kernels import Kernel, kernel
from mercer.points import Points
from mercer.points.sets.named import bags, numbered

WORDS = st.lists(st.text("abc", max_size=6), min_size=1, max_size=8)


@dataclass(frozen=True)
class Letters:
    """The letters of words, named by their code points far beyond what an int32 holds."""

    def __call__(self, points):
        codes = [[ord(c) << 50 for c in word] for word in points.items]
        starts = np.cumsum([0, *map(len, codes)])
        return bags(np.array([c for word in codes for c in word], dtype=np.int64), starts)


@kernel
class SharedLetters(Kernel):
    """The inner product of counts of letters."""

    def of(self, pair):
        return pair.through(Letters()).dot


@kernel
class NearLetters(Kernel):
    """A Gaussian of the distance between counts of letters."""

    def of(self, pair):
        return pair.xp.exp(-0.5 * pair.through(Letters()).sqdist(2.0))


def shared(x, z):
    return float(sum(x.count(c) * z.count(c) for c in set(x)))


def near(x, z):
    return float(np.exp(-sum((x.count(c) - z.count(c)) ** 2 for c in set(x + z)) / 8))


PAIRS = [(SharedLetters(), FromFunction(shared)), (NearLetters(), FromFunction(near))]


@pytest.mark.parametrize(("k", "slow"), PAIRS, ids=["dot", "sqdist"])
@given(X=WORDS, Z=WORDS)
def test_names_agree_with_counting_by_hand(k, slow, X, Z):
    np.testing.assert_allclose(k(X), slow(X), rtol=1e-12)
    np.testing.assert_allclose(k(X, Z), slow(X, Z), rtol=1e-12)
    np.testing.assert_allclose(k.diag(X), np.diag(slow(X)), rtol=1e-12)


@pytest.mark.parametrize(("k", "slow"), PAIRS, ids=["dot", "sqdist"])
def test_many_points_in_parts_and_in_float32(k, slow):
    rng = np.random.default_rng(0)
    X = ["".join(rng.choice(list("abcdefgh"), size=n)) for n in rng.integers(0, 20, 300)]
    K = slow(X)
    gram = Gram(k, X)
    np.testing.assert_allclose(gram.dense(), K, rtol=1e-12)
    np.testing.assert_allclose(gram.block([5, 2, 7], slice(0, 9)), K[[5, 2, 7], :9], rtol=1e-12)
    np.testing.assert_allclose(gram.matvec(np.ones(300)), K.sum(axis=1), rtol=1e-12)
    points = Points(X).take(np.arange(10, 200)).single().take(slice(3, 50))
    np.testing.assert_allclose(k._matrix(points, points), K[13:60, 13:60], rtol=1e-6)


def test_a_machine_on_names_predicts_for_letters_it_has_not_seen():
    X = ["aab", "aba", "bba", "abb"] * 5
    model = SVC(kernel=SharedLetters()).fit(X, [1, 1, 0, 0] * 5)
    assert model.predict(["aaz", "bbz", ""]).tolist()[:2] == [1, 0]


def test_numbers_are_given_in_the_order_of_names_and_once():
    a = bags(np.array([5, 5, 2**61]), np.array([0, 2, 3]))
    b = bags(np.array([], dtype=np.int64), np.array([0, 0]))
    left, right = numbered(a, b)
    np.testing.assert_array_equal(left.toarray(), [[2, 0], [0, 1]])
    np.testing.assert_array_equal(right.toarray(), [[0, 0]])


@given(st.lists(st.one_of(st.integers(0, 20), st.integers(0, 2**62 - 1), st.sampled_from([0, 2**61, 2**62 - 1]))))
def test_the_core_ranks_names_as_sorting_does(names):
    names = np.array(names, dtype=np.int64)
    ranks = np.empty(len(names), dtype=np.int32)
    different, which = np.unique(names, return_inverse=True)
    assert _core.rank_names(names, ranks) == len(different)
    np.testing.assert_array_equal(ranks, which)


def test_bags_leave_what_they_are_made_of_as_it_is():
    names, starts = np.array([7, 5, 7]), np.array([0, 3])
    bags(names, starts)
    assert (names.tolist(), starts.tolist()) == ([7, 5, 7], [0, 3])
    with pytest.raises(ValueError, match="ranks have the wrong size"):
        _core.rank_names(names, np.empty(2, dtype=np.int32))
