import numpy as np
import pytest

from mercer.kernels import Precomputed
from samples import SIMILARITIES, indices


def test_points_are_indices():
    k = Precomputed(SIMILARITIES)
    i, j = indices(), indices(7, seed=1)
    np.testing.assert_array_equal(k(i, j), SIMILARITIES[np.ix_(i, j)])
    np.testing.assert_array_equal(k.diag(i), np.diag(SIMILARITIES)[i])
    np.testing.assert_array_equal(k(i[:, None]), k(i))
    np.testing.assert_array_equal(k([0, 2]), SIMILARITIES[np.ix_([0, 2], [0, 2])])
    np.testing.assert_array_equal(k(range(3)), SIMILARITIES[:3, :3])


def test_whole_numbers_and_float32_are_taken():
    assert Precomputed([[2, 1], [1, 2]])([0, 1]).dtype == np.float64
    assert Precomputed(np.eye(2, dtype=np.float32))([0, 1]).dtype == np.float32


def test_matrices_compare_by_value():
    assert Precomputed(np.eye(3)) == Precomputed(np.eye(3).tolist()) == Precomputed(np.eye(3))
    assert Precomputed(np.eye(3)) != Precomputed(2 * np.eye(3))
    large = np.eye(30)
    assert Precomputed(large) == Precomputed(large.copy())
    assert hash(Precomputed(large)) == hash(Precomputed(large.copy()))
    assert repr(Precomputed(large)) == "Precomputed(matrix=<30 x 30 float64 array>)"


def test_nothing_is_proven():
    assert Precomputed(np.eye(3)).proof().status == "unproven"


@pytest.mark.parametrize("matrix", [np.ones((2, 3)), np.ones(4), [["a"]], np.eye(2) * 1j])
def test_the_matrix_must_be_square_and_of_numbers(matrix):
    with pytest.raises(ValueError, match=r"matrix of Precomputed must be a square matrix of numbers; it has shape"):
        Precomputed(matrix)


def test_the_matrix_must_be_finite():
    matrix = np.eye(3)
    matrix[1, 2] = np.nan
    with pytest.raises(ValueError, match=r"contains nan at \(1, 2\); every entry must be finite"):
        Precomputed(matrix)


def test_points_must_be_indices_into_it():
    k = Precomputed(np.eye(3))
    with pytest.raises(IndexError, match=r"X contains index 3, but the precomputed matrix has 3 rows: 0 to 2"):
        k([0, 3])
    with pytest.raises(IndexError, match=r"Z contains index -1"):
        k([0], [-1])
    for points in ([0.5, 1.0], ["a", "b"], np.eye(3)):
        with pytest.raises(TypeError, match=r"by their index into its matrix; X has shape .*numpy.arange\(n\)"):
            k(points)
