import json
import resource
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mercer as k
from cases import each
from mercer import Gram, verdict
from mercer.gram.eigenpairs import lanczos
from samples import SAMPLES, of_vectors

SMALL = "1 MB"  # too small for a dense matrix of 800 points


def spectrum_matrix(values, seed):
    """A symmetric matrix with the given eigenvalues."""
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((len(values), len(values))))[0]
    K = (Q * values) @ Q.T
    return (K + K.T) / 2


def quadratic(a, K):
    return float(a @ np.asarray(K, dtype=np.longdouble) @ a)


def check_witness(found, K):
    assert not found
    assert not found.psd
    assert found.conclusive
    assert found.factor is None
    assert found.factor_residual is None
    assert np.linalg.norm(found.witness) == pytest.approx(1)
    assert quadratic(found.witness, K) == pytest.approx(found.quadratic_form, rel=1e-6)
    assert found.quadratic_form < -found.tolerance


# -- matrices -------------------------------------------------------------------------------------------

eigenvalues = st.lists(st.floats(0.01, 100), min_size=1, max_size=12)
seeds = st.integers(0, 2**32 - 1)


@given(eigenvalues, st.integers(0, 3), seeds, st.sampled_from([1e-150, 1.0, 1e150]))
def test_psd_matrices_pass_with_a_factor(values, zeros, seed, unit):
    K = unit * spectrum_matrix(np.array(values + [0.0] * zeros), seed)
    found = verdict(K)
    assert found
    assert found.conclusive
    assert found.symmetric
    assert found.witness is None
    assert found.largest == pytest.approx(unit * max(values))
    assert found.floor <= found.smallest <= np.diag(K).min() + found.tolerance
    assert found.factor.T @ found.factor == pytest.approx(K, abs=1e-12 * found.largest)
    assert found.factor_residual < 1e-12


@given(eigenvalues, st.floats(0.001, 100), seeds, st.sampled_from([1e-150, 1.0, 1e150]))
def test_indefinite_matrices_fail_with_a_witness(values, negative, seed, unit):
    K = unit * spectrum_matrix(np.array([*values, -negative]), seed)
    found = verdict(K)
    check_witness(found, K)
    assert found.smallest == pytest.approx(-unit * negative, rel=1e-9)
    assert found.floor <= -unit * negative * (1 - 1e-9)


@given(st.integers(2, 12), seeds)
def test_negative_eigenvalues_of_rounding_size_are_not_held_against_a_matrix(n, seed):
    x = np.random.default_rng(seed).standard_normal((n, 1))
    K = x @ x.T
    assert verdict(K)
    assert verdict(K.astype(np.float32)).tolerance > 1e6 * verdict(K).tolerance
    assert verdict(K.astype(np.float32))


def test_tolerance_is_what_the_caller_says():
    K = np.diag([1.0, -1e-6])
    assert not verdict(K)
    assert not verdict(K, tol=9e-7)
    found = verdict(K, tol=2e-6)
    assert found
    assert found.tolerance == 2e-6
    assert found.smallest == -1e-6


@pytest.mark.parametrize("budget", [None, 500_000])
def test_asymmetry_is_named(budget):
    K = np.eye(300) * 4
    K[7, 3] = 1.0
    found = verdict(K, budget=budget)
    assert not found
    assert not found.symmetric
    assert not found.psd
    assert set(found.pair) == {3, 7}
    assert found.asymmetry == 0.25
    assert found.pairs == "all pairs"
    assert found.witness is None  # the symmetric part is positive definite
    assert found.smallest == pytest.approx(3.5)
    assert found.largest == pytest.approx(4.5)
    assert "3" in str(found).splitlines()[0]
    assert "7" in str(found).splitlines()[0]


def test_an_asymmetric_indefinite_matrix_has_both_counterexamples():
    K = np.array([[0.0, 3.0], [1.0, 0.0]])
    found = verdict(K)
    assert not found.symmetric
    assert found.smallest == pytest.approx(-2)
    check_witness(found, K)


def test_zero_and_single_entries():
    assert verdict(np.zeros((3, 3)))
    assert verdict(np.zeros((3, 3))).factor_residual == 0
    assert verdict([[2]])
    check_witness(verdict([[-2]]), np.array([[-2]]))


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.float16, np.float32, np.longdouble])
def test_other_number_types(dtype):
    assert verdict(np.eye(4, dtype=dtype))
    check_witness(verdict(np.fliplr(np.eye(4, dtype=dtype))), np.fliplr(np.eye(4)))


# -- kernels --------------------------------------------------------------------------------------------

PROVEN = [sample for sample in SAMPLES if sample.kernel.proof().proven]


def rows(n=60, seed=0):
    """Random points, some of them twice."""
    X = np.random.default_rng(seed).standard_normal((n, 4))
    X[n // 2 :: 3] = X[: len(X[n // 2 :: 3])]
    return X


@each("sample", PROVEN, ids=str)
def test_proven_kernels_pass_with_duplicates_and_in_single_precision(sample):
    X = sample.points(40, seed=1)
    tries = [X]
    if of_vectors(sample):
        tries += [np.concatenate([X, X[::3]]), X.astype(np.float32), 10 * X, 0.01 * X]
    for points in tries:
        found = verdict(sample.kernel, points)
        assert found, f"{sample}\n{found}"
        assert found.pairs == "all pairs"
        K = np.asarray(sample.kernel.resolve(points)(np.asarray(points, float) if of_vectors(sample) else points))
        R = found.factor
        assert np.abs(R.T @ R - K).max(initial=0) <= 1e-10 * max(found.largest, np.abs(K).max())


def test_float32_points_are_judged_in_double_precision():
    X = rows().astype(np.float32)
    found = verdict(k.RBF(scale=2.0), X)
    exact = verdict(k.RBF(scale=2.0), X.astype(np.float64))
    assert found.smallest == exact.smallest
    assert found.tolerance == exact.tolerance < 1e-11


def test_tables_in_float32():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    X = rows()[:, :2].astype(np.float32)
    kernel = k.RBF(scale=2.0).on("b") + k.Delta().on("c")
    columns = {"a": X[:, 0], "b": X[:, 1], "c": ["x", "y"] * 30}
    smooth = k.RBF(scale=2.0)
    numbers = verdict(smooth.on(1), X)
    for table in (pandas.DataFrame(columns), polars.DataFrame(columns)):
        assert verdict(kernel, table).tolerance < 1e-11
        assert verdict(smooth.on("b"), table).smallest == numbers.smallest


def test_tensors_are_judged_as_arrays_are():
    torch = pytest.importorskip("torch")
    X = rows().astype(np.float32)
    kernel = k.Sigmoid(gamma=0.5, c=-1.0)
    for budget in (None, 100_000):
        array, tensor = verdict(kernel, X, budget=budget), verdict(kernel, torch.tensor(X), budget=budget)
        assert tensor.how == array.how
        assert tensor.smallest == pytest.approx(array.smallest, rel=1e-9)
        assert tensor.tolerance == pytest.approx(array.tolerance)
        check_witness(tensor, kernel(X.astype(np.float64)))


def test_the_sigmoid_is_refuted():
    X = np.linspace(-2, 2, 60)[:, None]
    for c in (-1.0, 0.0, 1.0):
        kernel = k.Sigmoid(gamma=1.0, c=c)
        assert kernel.proof().status == "refuted"
        check_witness(verdict(kernel, X), kernel(X))


def test_a_function_is_compared_in_both_orders():
    words = ["ab", "abc", "b", "bcd", "cab", "aa"]
    shared = lambda a, b: float(len(set(a) & set(b)))  # noqa: E731
    assert verdict(shared, words)
    found = verdict(lambda a, b: shared(a, b) + (a == "b" and b == "abc"), words)
    assert not found.symmetric
    assert set(found.pair) == {1, 2}
    assert verdict(lambda a, b: -float(a == b), words).quadratic_form == pytest.approx(-1)


def test_a_large_function_is_compared_on_a_sample_of_pairs():
    points = list(range(400))
    found = verdict(lambda a, b: float(a - b), points, budget="300 kB")
    assert not found.symmetric
    assert found.pairs == "all pairs of 200 random points"
    i, j = found.pair
    assert found.asymmetry == pytest.approx(2)
    assert abs(i - j) > 300


@pytest.mark.parametrize("budget", ["300 kB", "4.5 MB"])  # too small to hold the matrix, and just large enough
def test_a_large_asymmetric_function_is_judged_by_its_symmetric_part(budget):
    points = list(np.random.default_rng(0).standard_normal(400))
    K = np.array([[np.sin(a + 2 * b) for b in points] for a in points])
    found = verdict(lambda a, b: np.sin(a + 2 * b), points, budget=budget)
    assert found.how.startswith("Lanczos")
    assert not found.symmetric
    check_witness(found, K)
    assert found.smallest == pytest.approx(np.linalg.eigvalsh((K + K.T) / 2)[0], rel=0.02)


def test_matrix_gram_and_precomputed_agree():
    X = rows()
    kernel = k.Sigmoid(gamma=0.5, c=-1.0)
    K = kernel(X)
    found = [verdict(K), verdict(Gram(kernel, X)), verdict(k.Precomputed(K)), verdict(k.Precomputed(K), range(len(K)))]
    for one in found:
        check_witness(one, K)
        assert one.smallest == pytest.approx(found[0].smallest, rel=1e-9)


# -- large ----------------------------------------------------------------------------------------------


def test_lanczos_refutes_as_dense_does():
    X = np.random.default_rng(0).standard_normal((800, 5))
    kernel = k.Sigmoid()
    K = kernel(X)
    exact, found = verdict(kernel, X), verdict(kernel, X, budget=SMALL)
    assert exact.how == "dense eigenvalues"
    assert found.how.startswith("Lanczos")
    for one in (exact, found, verdict(K, budget=SMALL), verdict(K.astype(np.float32), budget=SMALL)):
        check_witness(one, K)
        assert one.smallest == pytest.approx(exact.smallest, rel=0.02)
        assert one.largest == pytest.approx(exact.largest, rel=1e-6)
    assert exact.smallest <= found.smallest
    assert found.floor <= exact.smallest
    # an eigenvalue within the stated residual
    assert np.abs(np.linalg.eigvalsh(K) - found.smallest).min() <= found.residual + found.tolerance


@pytest.mark.parametrize("kernel", [k.RBF("auto"), k.Laplacian(), k.Linear(), k.RBF(0.1), k.Delta()], ids=repr)
def test_lanczos_passes_what_dense_passes_and_says_what_it_does_not_know(kernel):
    X = np.random.default_rng(1).standard_normal((800, 5))
    exact, found = verdict(kernel, X), verdict(kernel, X, budget=SMALL)
    assert exact
    assert found
    assert exact.conclusive
    assert not found.conclusive
    assert found.floor <= exact.smallest + exact.tolerance
    assert exact.smallest - exact.tolerance <= found.smallest
    assert found.largest <= exact.largest + exact.tolerance
    assert "No witness" in str(found)
    K, R = kernel(X), found.factor
    assert len(R) <= 1_000_000 / 16 / 800
    # K - R'R is positive semidefinite and its trace is what the residual says
    left = np.linalg.eigvalsh(K - R.T @ R)
    assert left[0] > -1e-8
    assert left.sum() / np.trace(K) == pytest.approx(found.factor_residual, abs=1e-9)


def test_a_function_that_only_python_can_evaluate_is_evaluated_once():
    calls = 0

    def close(a, b):
        nonlocal calls
        calls += 1
        return float(np.exp(-abs(a - b)))

    points = list(np.linspace(0, 5, 250))
    assert verdict(close, points, budget=1_800_000).how.startswith("Lanczos")
    assert calls < 250**2 + 200**2 + 4 * 250  # the matrix, the pairs compared in both orders, the diagonal


def test_a_single_negative_self_similarity_is_found_among_many():
    K = np.diag(np.concatenate([np.linspace(1000, 0, 999), [-1e-3]]))
    found = verdict(K, budget=SMALL)
    check_witness(found, K)


def test_the_floor_holds():
    rng = np.random.default_rng(3)
    for seed in range(40):
        spectrum = np.sort(rng.choice([rng.uniform(-1, 1, 300), rng.standard_cauchy(300), 0.9 ** np.arange(300.0)]))
        spectrum[0] -= rng.exponential() * 0.1
        for steps in (15, 60):
            ends = lanczos(lambda v, d=spectrum: d * v, 300, steps, seed)
            assert ends.floor <= spectrum[0] <= ends.smallest + 1e-9 * np.abs(spectrum).max()
            assert ends.steps <= steps
    assert lanczos(lambda v: spectrum * v, 300, 5).floor == -np.inf


def test_an_invariant_subspace_ends_lanczos():
    spectrum = np.repeat([-2.0, 1.0, 5.0], 100)
    ends = lanczos(lambda v: spectrum * v, 300)
    assert ends.exhausted
    assert ends.steps == 3
    assert ends.smallest == pytest.approx(-2)
    assert ends.floor == pytest.approx(-2)


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak memory as Linux reports it")
@pytest.mark.parametrize("kernel", [k.RBF("auto"), k.Sigmoid()], ids=repr)
def test_twenty_thousand_points_in_bounded_memory(kernel):
    X = np.random.default_rng(0).standard_normal((20_000, 10))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = verdict(kernel, X)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kB; the matrix has 3.2 GB
    assert found.how.startswith("Lanczos")
    assert found.psd == isinstance(kernel, k.RBF)
    if not found:
        Ka = Gram(kernel, X).matvec(found.witness)
        assert found.witness @ Ka == pytest.approx(found.quadratic_form)


# -- what it says ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("K", [np.eye(3), np.diag([1.0, -1.0]), np.array([[1.0, 0.5], [0.0, 1.0]])])
def test_the_verdict_is_readable_and_exportable(K):
    found = verdict(K)
    told = json.loads(json.dumps(found.to_dict()))
    assert told["psd"] is bool(found)
    assert told["how"] == "dense eigenvalues"
    assert (told["witness"] is None) == (found.witness is None)
    assert 2 <= len(str(found).splitlines()) <= 4
    with pytest.raises(AttributeError):
        found.psd = True


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((np.ones((2, 3)),), ValueError, r"square.*\(2, 3\)"),
        ((np.ones(3),), ValueError, r"square.*\(3,\)"),
        ((np.ones((0, 0)),), ValueError, "square"),
        (([[1.0, 2.0], [3.0]],), ValueError, "ragged"),
        ((np.array([[1.0, np.nan], [0.0, 1.0]]),), ValueError, r"nan at \(0, 1\)"),
        ((np.array([[1.0, 0.0], [-np.inf, 1.0]]),), ValueError, r"-inf at \(1, 0\)"),
        ((np.eye(2) * 1j,), TypeError, "real numbers.*complex128"),
        (("abc",), TypeError, "real numbers.*str"),
        ((np.eye(2), np.ones((2, 1))), TypeError, "needs no points"),
        ((k.RBF(),), TypeError, r"verdict\(k, X\)"),
        ((len,), TypeError, r"verdict\(k, X\)"),
        ((k.RBF(), np.ones((0, 1))), ValueError, "empty"),
        ((1e308 * np.ones((4, 4)),), FloatingPointError, "overflow"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(arguments, error, message):
    with pytest.raises(error, match=message):
        verdict(*arguments)


def test_a_gram_matrix_is_of_one_set_of_points():
    X, Z = np.ones((3, 1)), np.zeros((3, 1))
    with pytest.raises(TypeError, match="own points"):
        verdict(Gram(k.RBF(1.0), X), X)
    with pytest.raises(ValueError, match="two sets"):
        verdict(Gram(k.RBF(1.0), X, Z))


def test_bad_tolerances_budgets_and_sparse_matrices():
    from scipy import sparse

    for tol in (-1.0, np.nan):
        with pytest.raises(ValueError, match="tol must be"):
            verdict(np.eye(2), tol=tol)
    with pytest.raises(MemoryError, match=r"300 points.*budget"):
        verdict(np.eye(300), budget=1000)
    with pytest.raises(TypeError, match="toarray"):
        verdict(sparse.eye_array(3))
