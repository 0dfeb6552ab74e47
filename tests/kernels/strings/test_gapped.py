"""Kernels of k-mers that differ in places are exact for every alphabet, by every way through the core."""

import os
import subprocess
import sys
from functools import partial
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline

from mercer import SVC, FromFunction, GappedKmers, LinearSVC, Mismatch, Spectrum
from mercer.features.combine import exact_features
from mercer.gram import Gram
from mercer.machine.budget import Budget
from mercer.points import Points
from mercer.points.sets.sequences import WindowSums, letters
from strings_by_hand import DNA, STRINGS, gapped, mismatch, substrings


@given(X=STRINGS, g=st.integers(1, 6), data=st.data())
def test_counts_pairs_of_substrings(X, g, data):
    m = data.draw(st.integers(0, g - 1))
    np.testing.assert_array_equal(GappedKmers(g, m)(X), FromFunction(lambda x, z: gapped(x, z, g, m))(X))


@given(X=DNA, Z=DNA, g=st.integers(1, 20), data=st.data())
def test_strings_of_many_lengths(X, Z, g, data):
    m = data.draw(st.integers(0, g - 1))
    k, slow = GappedKmers(g, m), FromFunction(lambda x, z: gapped(x, z, g, m))
    np.testing.assert_array_equal(k(X, Z), slow(X, Z))
    np.testing.assert_array_equal(k.diag(X), np.diag(slow(X)))


@pytest.mark.parametrize("m", [14, 15, 16])
def test_long_substrings_with_so_many_gaps_that_few_equal_letters_count(m):
    X = ["AAACCCAAACCCAAACCCA", "ACGTTGCAACGTTTTTGACG"]
    slow = FromFunction(lambda x, z: gapped(x, z, 17, m))
    np.testing.assert_array_equal(GappedKmers(17, m)(X), slow(X))


@pytest.mark.parametrize(("g", "m"), [(4, 1), (5, 3)])
def test_is_an_inner_product_over_masks(g, m):
    rng = np.random.default_rng(0)
    X = ["".join(rng.choice(list("ACGT"), n)) for n in (30, 25, 40)]
    total = np.zeros((3, 3))
    for kept in combinations(range(g), g - m):
        total += FromFunction(
            lambda x, z, kept=kept: float(
                sum(all(a[i] == b[i] for i in kept) for a in substrings(x, g) for b in substrings(z, g))
            )
        )(X)
    np.testing.assert_array_equal(GappedKmers(g, m)(X), total)


def test_without_gaps_it_is_the_spectrum_kernel():
    rng = np.random.default_rng(0)
    X = ["".join(rng.choice(list("ACGT"), n)) for n in rng.integers(0, 700, 60)]
    for k in (3, 20, 40):
        np.testing.assert_array_equal(GappedKmers(k, 0)(X), Spectrum(k)(X))


def test_pieces_of_long_strings_add_up():
    rng = np.random.default_rng(0)
    X = ["".join(rng.choice(list("ACGT"), n)) for n in (2000, 1000, 300, 8, 7, 0)]
    K = GappedKmers(8, 2)(X)
    halves = [X[0][:1007], X[0][1000:]]  # 1,000 windows each
    np.testing.assert_array_equal(GappedKmers(8, 2)(halves, X).sum(axis=0), K[0])
    assert K[3, 3] == 28
    assert not K[4:].any()


def test_alphabets_beyond_a_byte_go_one_by_one():
    rng = np.random.default_rng(0)
    X = ["".join(map(chr, rng.integers(32, 2000, 120))) for _ in range(5)]
    X.append(X[0][:60] + X[1][60:])
    np.testing.assert_array_equal(GappedKmers(3, 1)(X), FromFunction(lambda x, z: gapped(x, z, 3, 1))(X))


@given(X=DNA, g=st.integers(1, 5))
def test_both_strands(X, g):
    other = [x[::-1].translate(str.maketrans("ACGT", "TGCA")) for x in X]
    k = GappedKmers(g, g // 2, reverse_complement=True)
    plain = GappedKmers(g, g // 2)
    np.testing.assert_array_equal(k(X), plain(X) + plain(X, other))
    np.testing.assert_array_equal(k(other), k(X))


@given(X=STRINGS, g=st.integers(1, 6), data=st.data())
def test_the_feature_map(X, g, data):
    m = data.draw(st.integers(0, g - 1))
    phi = GappedKmers(g, m).feature_map().fit_transform(X)
    np.testing.assert_allclose((phi @ phi.T).toarray(), FromFunction(lambda x, z: gapped(x, z, g, m))(X), rtol=1e-12)


@given(X=DNA, Z=DNA, g=st.integers(1, 5))
def test_the_feature_map_of_both_strands_drops_what_it_has_not_seen(X, Z, g):
    k = GappedKmers(g, g // 2, reverse_complement=True)
    phi = k.feature_map().fit(X)
    np.testing.assert_allclose((phi.transform(X) @ phi.transform(Z).T).toarray(), k(X, Z), rtol=1e-12)


def test_a_linear_machine_takes_over():
    rng = np.random.default_rng(0)
    X = ["".join(rng.choice(list("ACGT"), 40)) for _ in range(400)]
    y = ["ACG" in x for x in X]
    k = GappedKmers(4, 1, reverse_complement=True).normalized()
    linear = make_pipeline(k.feature_map(), LinearSVC(loss="hinge", C=1.0)).fit(X[:300], y[:300])
    both = SVC(kernel=k, C=1.0).fit(X[:300], y[:300])
    np.testing.assert_allclose(linear.decision_function(X[300:400]), both.decision_function(X[300:400]), atol=0.02)


def test_features_that_are_too_many():
    with pytest.raises(TypeError, match=r"1,716 features for each substring of 13 letters, .* up to 1,000; use the"):
        GappedKmers(13, 7).feature_map()
    kernel = GappedKmers(12, 4).feature_map()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mercer.kernels.strings.gapped.Budget", lambda: Budget("1 MB"))
        with pytest.raises(MemoryError, match=r"the 440,055 features of 1 string would need 16.79 MiB.* fewer gaps"):
            kernel.fit(["A" * 900])


def test_a_ridge_machine_of_many_features_asks_for_few():
    rng = np.random.default_rng(0)
    X = ["".join(rng.choice(list("ACGT"), 50)) for _ in range(40)]
    assert exact_features(GappedKmers(8, 4), X, 160) is None
    few = ["".join(rng.choice(list("AC"), 12)) for _ in range(40)]
    Phi = exact_features(GappedKmers(3, 1), few, 160)
    np.testing.assert_allclose(Phi @ Phi.T, GappedKmers(3, 1)(few), rtol=1e-12)


def test_a_gram_matrix_in_parts_and_a_machine():
    rng = np.random.default_rng(0)
    X = ["".join(rng.choice(list("ACGT"), 40)) for _ in range(300)]
    y = ["ACG" in x for x in X]
    K = GappedKmers(4, 1).normalized()(X)
    gram = Gram(GappedKmers(4, 1).normalized(), X)
    np.testing.assert_array_equal(gram.block([5, 2, 7], slice(0, 9)), K[[5, 2, 7], :9])
    np.testing.assert_allclose(gram.matvec(np.ones(300)), K.sum(axis=1), rtol=1e-12)
    model = SVC(kernel=GappedKmers(4, 1).normalized()).fit(X, y)
    assert model.certificate_.converged
    assert model.score(X, y) > 0.9


def test_every_instruction_set(capsys):
    program = (
        "import numpy as np; from mercer import GappedKmers\n"
        "rng = np.random.default_rng(0)\n"
        "for alphabet in ('ACGT', 'ACGTN'):\n"
        "    X = [''.join(rng.choice(list(alphabet), n)) for n in rng.integers(0, 300, 30)]\n"
        "    for g, m in ((8, 2), (13, 7), (20, 5)):\n"
        "        print(GappedKmers(g, m)(X).astype(int).tolist())\n"
    )
    run = partial(subprocess.run, [sys.executable, "-c", program], capture_output=True, text=True, check=True)
    said = [run(env={**os.environ, "MERCER_ISA": isa}).stdout for isa in ("avx2", "baseline")]
    exec(program, {})
    assert (widest := capsys.readouterr().out).count("\n") == 6
    assert said == [widest, widest]


def test_large_weights_are_exact():
    X = ["A" * 30]
    assert GappedKmers(30, 15)(X)[0, 0] == 155117520  # C(30, 15)
    rule = WindowSums(2, (2**53, 5, 1))
    points = Points(["AC"]).through(letters)
    assert rule(points, Points(["GT"]).through(letters))[0, 0] == 2**53


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ((0, 0), "length of GappedKmers must be a whole number >= 1; it is 0"),
        ((5, -1), "gaps of GappedKmers must be a whole number >= 0; it is -1"),
        ((5, 5), "gaps of GappedKmers must be below length, .* they are 5 and 5"),
        ((80, 40), "more than 64 bits count"),
    ],
)
def test_bad_parameters(given, says):
    with pytest.raises(ValueError, match=says):
        GappedKmers(*given)


def test_tokens_have_no_reverse_complement():
    with pytest.raises(TypeError, match="lists of tokens, which have no reverse complement"):
        GappedKmers(2, 0, reverse_complement=True)([["A", "C"], ["G"]])
    with pytest.raises(TypeError, match="X has text and Z has bytes"):
        GappedKmers(2, 0)(["AC"], [b"AC"])


def test_fastsk():
    fastsk = pytest.importorskip("fastsk")
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, (20, 30))
    machine = fastsk.FastSK(6, 2, 1, False)
    machine.compute_train(X.tolist())
    theirs = np.asarray(machine.get_train_kernel()).reshape(20, 20)
    ours = GappedKmers(6, 2).normalized()(["".join("ACGT"[c] for c in x) for x in X])
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)


@given(
    X=st.lists(st.text("abc", max_size=6), min_size=1, max_size=3),
    km=st.sampled_from([(1, 0), (2, 1), (3, 1), (3, 2)]),
    size=st.integers(3, 4),
)
def test_is_an_inner_product_of_neighbourhoods(X, km, size):
    slow = FromFunction(lambda x, z: mismatch(x, z, *km, "abcd"[:size]))
    np.testing.assert_array_equal(Mismatch(*km, alphabet=size)(X), slow(X))


def test_without_mismatches_it_is_the_spectrum_kernel():
    X = ["ACGTACGT", "ACGA", "", "AC"]
    np.testing.assert_array_equal(Mismatch(3, 0)(X), Spectrum(3)(X))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ((0, 0), "k of Mismatch must be a whole number >= 1"),
        ((3, 3), "m of Mismatch must be below k; they are 3 and 3"),
        ((3, 1, 1), "alphabet of Mismatch must be a whole number >= 2"),
        ((60, 30, 20), r"more than 2\^64 k-mers"),
    ],
)
def test_bad_parameters_of_mismatch(given, says):
    with pytest.raises(ValueError, match=says):
        Mismatch(*given)


def test_strings_of_more_letters_than_the_alphabet():
    with pytest.raises(ValueError, match=r"X has 5 different letters, more than the 4 .* alphabet=5"):
        Mismatch(2, 1)(["ACGT", "ACGN"])
