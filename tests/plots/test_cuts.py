import itertools

import numpy as np
import pytest

from mercer.plots.lifts import Cut, best_cut, separate


def fewest_mistakes(X, y):
    """The best accuracy of any line: the best ones can be turned until they touch two points."""
    n, best = len(X), 0.0
    for i, j in itertools.combinations(range(n), 2):
        d = X[j] - X[i]
        t = (X - X[i]) @ np.array([-d[1], d[0]])
        t[[i, j]] = 0.0
        # The two points on the line may fall on either side of it, by a small turn or shift.
        for si, sj, flip in itertools.product((-1, 1), (-1, 1), (-1, 1)):
            side = t.copy()
            side[i], side[j] = si, sj
            best = max(best, np.mean((flip * side > 0) == (y == 1)))
    return best


@pytest.mark.parametrize("seed", range(8))
def test_no_line_beats_the_best_cut(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((14, 2)), rng.integers(0, 2, 14)
    cut = best_cut(X, y)
    assert cut.accuracy == np.mean((cut(X) > 0) == (y == 1))
    exact = fewest_mistakes(X, y)
    assert exact - 1 / 14 - 1e-12 <= cut.accuracy <= exact + 1e-12  # a wedge narrower than half a degree may be missed


@pytest.mark.parametrize("seed", range(8))
def test_the_best_threshold_on_a_line(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 6, 15).astype(float), rng.integers(0, 2, 15)  # with ties
    tried = [np.mean(((x > t) == (y == 1)) ^ flip) for t in np.arange(-0.5, 6) for flip in (False, True)]
    cut = best_cut(x[:, None], y)
    assert cut.accuracy == pytest.approx(max(tried))
    assert cut.accuracy == np.mean((cut(x[:, None]) > 0) == (y == 1))


def test_separate_finds_the_middle_between_separable_classes():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 4.0], [1.0, 4.0]])
    cut = separate(X, np.array([0, 0, 1, 1]))
    assert cut.accuracy == 1.0
    assert abs(cut.w[0]) < 1e-3 * cut.w[1]
    assert -cut.b / cut.w[1] == pytest.approx(2.0, rel=1e-3)


def test_separate_does_not_depend_on_units():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 3)), np.repeat([0, 1], 20)
    units = np.array([1e-6, 1.0, 1e6])
    np.testing.assert_allclose(
        separate(X * units + 5 * units, y)(X * units + 5 * units), separate(X, y)(X), rtol=1e-3, atol=1e-3
    )


def test_a_hundred_percent_means_all():
    assert Cut(np.ones(1), 0.0, 1.0).percent == "100%"
    assert Cut(np.ones(1), 0.0, 0.999).percent == "99%"
    assert Cut(np.ones(1), 0.0, 0.29).percent == "29%"
