import numpy as np
import pytest

from mercer.kernels import RBF, Constant, Kernel, Laplacian, Linear, Polynomial, Power, Scaled
from samples import vectors

K1, K2 = RBF(1.3), Linear()


def close(k: Kernel, wanted, X, Z=None):
    np.testing.assert_allclose(k(X, Z), wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("Z", [None, vectors(7, seed=1)], ids=["one set", "two sets"])
def test_operators_are_operations_on_the_matrices(Z):
    X = vectors()
    A, B = K1(X, Z), K2(X, Z)
    close(K1 + K2, A + B, X, Z)
    close(K1 * K2, A * B, X, Z)
    close(2.5 * K1, 2.5 * A, X, Z)
    close(K1 * 2.5, 2.5 * A, X, Z)
    close(K1 / 4, A / 4, X, Z)
    close(K1 + 3, A + 3, X, Z)
    close(3 + K1, A + 3, X, Z)
    close(K1**3, A**3, X, Z)
    close(K1.exp(), np.exp(A), X, Z)
    close((0.5 * K1).geometric(), 1 / (1 - 0.5 * A), X, Z)
    close(sum([K1, K2, K1]), A + B + A, X, Z)


def test_diagonals_follow():
    X = vectors()
    k = (2 * K1 + K2**2) * (0.5 * K1).geometric() + K1.exp()
    np.testing.assert_allclose(k.diag(X), np.diag(k(X)), rtol=1e-13)


def test_limits_are_limits():
    X = vectors()
    k = 0.5 * K1
    series, term = np.zeros((24, 24)), np.ones((24, 24))
    for m in range(60):
        series += term
        term = term * k(X) / (m + 1)
    close(k.exp(), series, X)
    close(k.geometric(), sum(k(X) ** m for m in range(60)), X)


def test_numbers_of_numpy_are_numbers():
    for number in (np.float64(2.0), np.float32(2.0), np.int64(2), 2, True + 1):
        assert number * K1 == K1 * number == Scaled(2.0, K1)
        assert number + K1 == Constant(2.0) + K1
        assert K1 + number == K1 + Constant(2.0)


def test_powers_may_be_whole_numbers_of_any_type():
    assert K1**2 == K1**2.0 == K1 ** np.int64(2)
    assert repr(K1**2.0) == "RBF(scale=1.3) ** 2"
    assert (K1**1)(vectors()).shape == (24, 24)


# -- refusals, each with its reason -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "difference",
    [lambda: K1 - K2, lambda: K1 - 1, lambda: 1 - K1, lambda: np.float64(1) - K1, lambda: (K1 + K2) - K2],
)
def test_differences_are_refused(difference):
    with pytest.raises(TypeError, match=r"k1 - k2 is refused: differences .* need not be one .*Sums, products"):
        difference()


@pytest.mark.parametrize("multiple", [lambda: -2 * K1, lambda: K1 * -0.5, lambda: np.float64(-1.0) * K1])
def test_negative_multiples_are_refused(multiple):
    with pytest.raises(ValueError, match=r"-\S+ \* k is refused: a negative multiple .* Use a factor >= 0"):
        multiple()


def test_minus_k_is_refused():
    with pytest.raises(TypeError, match=r"-k is refused: its Gram matrices have negative eigenvalues"):
        -K1


@pytest.mark.parametrize("power", [2.5, 0, -1, 0.5, float("inf"), float("nan"), "2", None, True, 1j])
def test_other_powers_are_refused(power):
    with pytest.raises(ValueError, match=r"k \*\* .* is refused: only whole powers p >= 1 .*Constant\(1\.0\)"):
        K1**power


@pytest.mark.parametrize("divisor", [K2, 0, -2, "a", float("nan")])
def test_quotients_are_refused(divisor):
    with pytest.raises(TypeError, match=r"divided by a positive number only: the quotient of two kernels need not be"):
        K1 / divisor


def test_reciprocals_are_refused():
    with pytest.raises(TypeError, match=r"a / k is refused: the reciprocal of a kernel need not be"):
        1 / K1


def test_factors_must_be_finite_numbers():
    with pytest.raises(ValueError, match=r"factor of Scaled must be >= 0 and finite; it is nan"):
        float("nan") * K1
    with pytest.raises(TypeError, match=r"factor of Scaled must be a number >= 0, not 'a'"):
        Scaled("a", K1)


@pytest.mark.parametrize("other", ["a", None, [1.0], np.ones(3), 1j, object()])
def test_what_is_neither_kernel_nor_number_does_not_combine(other):
    with pytest.raises(TypeError):
        K1 + other
    with pytest.raises(TypeError):
        other + K1
    with pytest.raises(TypeError):
        K1 * other
    with pytest.raises(TypeError):
        other * K1


def test_the_refusals_are_right():
    """Each refused rule has points on which it fails."""
    X = np.linspace(-2, 2, 12)[:, None]
    A, B = Laplacian(1.0)(X), Polynomial(2)(X)
    for matrix in (A - B, -A, B / A, 1 / A, Power(RBF(1.0) + Linear(), 1)(X) ** 0 - 2):
        assert np.linalg.eigvalsh(matrix)[0] < -1e-2
    # k(x, z) = 1 + xz is a kernel; its root, where it is real, is none (FitzGerald and Horn, 1977).
    x = np.array([0.0, 1.0, 2.0, 3.0])
    assert np.linalg.eigvalsh((1 + np.outer(x, x)) ** 1.5)[0] < -1e-3


def test_the_geometric_series_must_converge():
    X = vectors()
    with pytest.raises(ValueError, match=r"converges only where k\(x, x\) < 1; here it reaches 1 at point 0.*a < 1"):
        RBF(1.0).geometric()(X)
    with pytest.raises(ValueError, match=r"here it reaches .* at point 3\. Use \(a \* k\)\.geometric\(\) with a < "):
        (0.5 * Linear()).geometric().diag(X)
    with pytest.raises(ValueError, match=r"here it reaches .* at point 1"):
        (0.1 * Linear()).geometric()([[1.0]], [[1.0], [4.0]])
    assert np.isfinite((0.999 * RBF(1.0)).geometric()(X)).all()


def test_spectral_laws_of_composites_speak_of_all_their_parts():
    X = vectors(8)
    delta = (X[:, None] - X[None]).reshape(-1, 3)
    k = 2.0 * RBF(1.0) * Laplacian(2.0) + 0.5 * RBF(3.0) ** 2
    wanted = k.amplitude(3) * k.spectral_law(3).characteristic(delta).reshape(8, 8)
    np.testing.assert_allclose(k(X), wanted, rtol=1e-11, atol=1e-14)
    for mixed in (RBF(1.0) + Linear(), Linear() + RBF(1.0), RBF(1.0) * Linear()):
        with pytest.raises(TypeError, match=r"Linear\(\) has no known spectral law"):
            mixed.spectral_law(3)
