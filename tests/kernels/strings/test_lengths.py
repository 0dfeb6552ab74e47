"""Every kernel of sequences at lengths 0, 1 and 100,000; long computations end soon after Ctrl-C."""

import os
import resource
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import mercer
from cases import each

LONG = 100_000
# Sums over pairs of windows, and all that is linear in the length: two long strings.
QUICK = ["Spectrum(6)", "Spectrum(9, True)", "GappedKmers(8, 2)", "GappedKmers(8, 2, True)", "Mismatch(5, 1)",
         "WeightedDegree(6)", "WeightedDegree(6, shift=3)", "TextNGrams(None, (2, 4), idf=None)"]  # fmt: skip
# One step for each pair of letters: a long string and short ones.
SLOW = ["Subsequence(3, 0.5)", "SmithWaterman()", "EditSimilarity(1e4)"]
PROGRAM = """
import sys
import numpy as np
from mercer import *
rng = np.random.default_rng(0)
strings = ["".join(rng.choice(list("ACGT"), 100_000)) for _ in "ab"]
for k in map(eval, sys.argv[1:]):
    X = rng.normal(size=(2, 100_000)) if isinstance(k, GlobalAlignment) else strings
    print("computing", flush=True)
    try:
        k(list(X))
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


def kernel(text):
    return eval(text, vars(mercer))


def dna(*lengths):
    rng = np.random.default_rng(0)
    return ["".join(rng.choice(list("ACGT"), n)) for n in lengths]


def megabytes():
    """The most memory that this process has held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@pytest.mark.parametrize("text", QUICK)
def test_long_strings(text):
    k, X, before = kernel(text), dna(0, 1, LONG, LONG), megabytes()
    K = k(X)
    assert megabytes() - before < 400
    assert K.shape == (4, 4)
    assert np.isfinite(K).all()
    assert not K[0].any()
    assert K[2, 2] > 0
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_array_equal(k([X[2]], [X[3]]), K[2:3, 3:])


@pytest.mark.parametrize("text", SLOW)
def test_a_long_string_and_short_ones(text):
    k, Z, before = kernel(text), dna(0, 1, 200), megabytes()
    x = dna(LONG)[0]
    K = k([x], Z)[0]
    assert megabytes() - before < 100
    by_hand = {"Subsequence": 0.0, "SmithWaterman": 0.0, "EditSimilarity": np.exp(-10.0)}[text.partition("(")[0]]
    assert K[0] == pytest.approx(by_hand)
    assert K[2] > by_hand
    np.testing.assert_allclose(k(Z, [x])[:, 0], K, rtol=1e-9)  # 200 long rows in place of 100,000 short ones


@each("text", [*QUICK, *SLOW, "LocalAlignment()"])
@each("kind", [str, bytes, list])
def test_nothing_and_one_letter(text, kind):
    if (kind is not str and "Text" in text) or (kind is list and "2, True" in text):
        pytest.skip("texts alone, or alphabets with a complement")
    points = {str: ["", "A", "C"], bytes: [b"", b"A", b"C"], list: [[], ["A"], ["C"]]}[kind]
    K = kernel(text)(points)
    assert np.isfinite(K).all()
    np.testing.assert_array_equal(K, K.T)
    if "Similarity" in text:
        np.testing.assert_allclose(K, np.exp(-1e-4 * (1 - np.eye(3))))
    elif "Local" in text:
        assert K[0, 0] == 1
        assert 0 < K[0, 1] < 1
    else:
        assert not K[0].any()
    assert K[1, 1] >= K[1, 2]


def test_series_of_one_place():
    np.testing.assert_allclose(mercer.GlobalAlignment(1.0)([[0.0], [0.0], [40.0]]), [[1, 1, 0], [1, 1, 0], [0, 0, 1]])
    with pytest.raises(TypeError, match=r"point 0 of X is a list, .* and at least one"):
        mercer.GlobalAlignment(1.0)([[]])


@pytest.mark.parametrize(
    ("threads", "texts"),
    [
        ("1", ["Subsequence(4)", "EditSimilarity()", "GlobalAlignment()"]),
        ("2", ["SmithWaterman()", "LocalAlignment()", "GlobalAlignment()"]),
    ],
)
def test_an_interrupt_ends_two_long_strings(threads, texts):
    environment = {**os.environ, "MERCER_NUM_THREADS": threads}
    child = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *texts], stdout=subprocess.PIPE, text=True, env=environment
    )
    late = threading.Timer(60.0, child.kill)
    late.start()
    try:
        for text in texts:
            assert child.stdout.readline() == "computing\n", text
            with pytest.raises(subprocess.TimeoutExpired):
                child.wait(0.3)
            child.send_signal(signal.SIGINT)
            assert child.stdout.readline() == "interrupted\n", text
        assert child.wait(20.0) == 0
    finally:
        late.cancel()
        child.kill()
