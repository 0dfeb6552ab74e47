import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer import RBF, Sigmoid, repair, verdict

HOWS = ["clip", "flip", "shift"]


@st.composite
def symmetric(draw, low=-100.0):
    """A symmetric matrix with known eigenvalues, and those."""
    values = np.array(draw(st.lists(st.floats(low, 100), min_size=1, max_size=10)))
    seed = draw(st.integers(0, 2**32 - 1))
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((len(values), len(values))))[0]
    K = (Q * values) @ Q.T
    return (K + K.T) / 2, np.sort(values)


@given(symmetric(), st.sampled_from(HOWS))
def test_the_repaired_matrix_is_positive_semidefinite(known, how):
    K, values = known
    fixed = repair(K, how)
    size = np.abs(values).max()
    assert (fixed.matrix == fixed.matrix.T).all()
    assert fixed.eigenvalues_before == pytest.approx(values, abs=1e-12 * size)
    expected = {
        "clip": np.maximum(values, 0),
        "flip": np.sort(np.abs(values)),
        "shift": values - min(values[0], 0),
    }[how]
    after = np.linalg.eigvalsh(fixed.matrix)
    assert after == pytest.approx(expected, abs=1e-12 * size)
    if how != "shift":  # which of a negative multiple of the identity leaves nothing but rounding
        assert verdict(fixed.matrix)
    assert fixed.moved == pytest.approx(np.linalg.norm(fixed.matrix - K), abs=1e-12 * size)
    assert fixed.moved_relative * np.linalg.norm(K) == pytest.approx(fixed.moved)


@given(symmetric(), st.sampled_from(["clip", "flip"]))
def test_training_rows_become_rows_of_the_repaired_matrix(known, how):
    K, values = known
    fixed = repair(K, how)
    assert fixed.apply(K) == pytest.approx(fixed.matrix, abs=1e-11 * np.abs(values).max())
    assert fixed.apply(K[0]) == pytest.approx(fixed.matrix[0], abs=1e-11 * np.abs(values).max())
    assert (fixed.transform == fixed.transform.T).all()


@given(symmetric(), st.integers(0, 2**32 - 1))
def test_a_shift_leaves_test_rows_and_differences_of_eigenvalues(known, seed):
    K, _ = known
    fixed = repair(K, "shift")
    rows = np.random.default_rng(seed).standard_normal((3, len(K)))
    assert (fixed.apply(rows) == rows).all()
    assert (fixed.transform == np.eye(len(K))).all()
    moved = fixed.matrix - K
    assert moved == pytest.approx(np.diag(np.diag(moved)), abs=0)


@given(symmetric(), st.integers(0, 2**32 - 1))
def test_no_positive_semidefinite_matrix_is_nearer_than_the_clipped_one(known, seed):
    K, values = known
    clipped = repair(K, "clip")
    rng = np.random.default_rng(seed)
    for size in (1e-3, 1.0, 100.0):
        step = size * rng.standard_normal(K.shape)
        other = (clipped.matrix + step) @ (clipped.matrix + step).T
        near = clipped.matrix + step @ step.T
        for rival in (other, near, repair(K, "flip").matrix, repair(K, "shift").matrix):
            assert np.linalg.norm(rival - K) >= clipped.moved - 1e-10 * np.abs(values).max()
    assert clipped.moved == pytest.approx(np.linalg.norm(np.minimum(values, 0)), abs=1e-12 * np.abs(values).max())


@given(symmetric(low=0.001), st.sampled_from(HOWS))
def test_a_positive_definite_matrix_does_not_move(known, how):
    K, values = known
    fixed = repair(K, how)
    assert fixed.moved <= 1e-12 * values[-1]
    assert fixed.matrix == pytest.approx(K, abs=1e-12 * values[-1])
    assert fixed.apply(K) == pytest.approx(K, abs=1e-11 * values[-1])


@pytest.mark.parametrize("how", HOWS)
def test_a_kernel_is_left_alone_on_test_points_too(how):
    X = np.random.default_rng(0).standard_normal((80, 3))
    kernel = RBF(scale=1.0)
    fixed = repair(kernel(X[:60]), how)
    assert fixed.moved_relative < 1e-14
    # directions of eigenvalue t carry at most sqrt(t) of a test row: rounding moves it by sqrt(eps)
    assert fixed.apply(kernel(X[60:], X[:60])) == pytest.approx(kernel(X[60:], X[:60]), abs=1e-6)


@pytest.mark.parametrize("how", HOWS)
def test_the_sigmoid_is_a_kernel_after_repair(how):
    X = np.linspace(-2, 2, 60)[:, None]
    K = Sigmoid(gamma=1.0, c=-1.0)(X)
    assert not verdict(K)
    assert verdict(repair(K, how).matrix)
    assert verdict(repair(K.astype(np.float32), how).matrix)


@pytest.mark.parametrize("how", HOWS)
def test_zero_and_integers(how):
    assert repair(np.zeros((2, 2)), how).moved_relative == 0
    fixed = repair(np.array([[0, 1], [1, 0]]), how)
    assert fixed.matrix.dtype == np.float64
    assert fixed.eigenvalues_before == pytest.approx([-1, 1])
    assert "clip" not in repr(fixed) or how == "clip"


def test_asymmetry_of_rounding_is_averaged_and_more_is_refused():
    K = np.array([[2.0, 1.0], [1.0 + 1e-15, 2.0]])
    fixed = repair(K)
    assert (fixed.matrix == fixed.matrix.T).all()
    with pytest.raises(ValueError, match=r"K\[0, 1\] is 1 and K\[1, 0\] is 1.5.*\(K \+ K.T\) / 2"):
        repair(np.array([[2.0, 1.0], [1.5, 2.0]]))
    assert repair(K.astype(np.float32) + np.array([[0, 1e-7], [0, 0]], np.float32)).moved == 0


def test_bad_input_is_refused_with_a_sentence():
    with pytest.raises(ValueError, match=r"'clip', 'flip' or 'shift'; it is 'mend'"):
        repair(np.eye(2), "mend")
    with pytest.raises(ValueError, match=r"square.*\(2, 3\)"):
        repair(np.ones((2, 3)))
    with pytest.raises(ValueError, match=r"nan at \(1, 1\)"):
        repair(np.diag([1.0, np.nan]))
    fixed = repair(np.eye(3))
    with pytest.raises(ValueError, match=r"shape \(3, 2\).*3 columns"):
        fixed.apply(np.ones((3, 2)))
    with pytest.raises(ValueError, match="NaN"):
        fixed.apply([np.nan, 0, 0])
