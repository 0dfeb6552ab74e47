"""Programs: every instruction does what its name says, and none that is malformed is accepted."""

import numpy as np
import pytest
from scipy import sparse

from cases import each
from core.jobs import FLOATS, OP, compressed, dense, elementwise, job, operand, packed, panel, points
from mercer import _core


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("add", lambda a, b: a + b),
        ("sub", lambda a, b: a - b),
        ("mul", lambda a, b: a * b),
        ("div", lambda a, b: a / b),
        ("min", np.minimum),
        ("max", np.maximum),
    ],
)
def test_operations_on_two_registers_are_exact(op, expected, dtype):
    a, b = points(np.random.default_rng(0), 2, 300, dtype)
    np.testing.assert_array_equal(elementwise(op, a, b), expected(a, b))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("rdiv", lambda a, c: c / a),
        ("upper", np.minimum),
        ("lower", np.maximum),
    ],
)
def test_operations_with_a_constant_are_exact(op, expected, dtype):
    a = points(np.random.default_rng(1), 1, 300, dtype)[0]
    np.testing.assert_array_equal(elementwise(op, a, constant=0.3), expected(a, dtype(0.3)))


@pytest.mark.parametrize("dtype", FLOATS)
def test_every_operation_sees_its_first_operand_scaled_and_shifted(dtype):
    a, b = points(np.random.default_rng(1), 2, 300, dtype)
    a = np.abs(a)
    for factor, shift in ((1.0, 0.25), (0.5, 0.0), (2.0, 0.75)):
        scaled = elementwise("affine", a, factor=factor, shift=shift)
        np.testing.assert_array_equal(scaled, (a.astype(np.longdouble) * factor + shift).astype(dtype))
        for op in set(_core.OPS) - {"stat", "row", "col", "affine", "outer"}:
            two = ("add", "sub", "mul", "div", "min", "max", "atan2", "exp_add", "powi_add", "damp_add")
            other = b if op in two else None
            folded = elementwise(op, a, other, constant=3.0, factor=factor, shift=shift)
            apart = elementwise(op, scaled, other, constant=3.0)
            # exp, a sum or a product may round once less where the factor is taken in.
            np.testing.assert_allclose(folded, apart, rtol=50 * np.finfo(dtype).eps, atol=4 * np.finfo(dtype).eps)


def test_every_instruction_is_tested():
    """Here and in test_functions.py; a new one must join them."""
    tested = {
        "stat",
        "row",
        "col",
        "add",
        "sub",
        "mul",
        "div",
        "min",
        "max",
        "atan2",
        "affine",
        "rdiv",
        "lower",
        "upper",
    }
    tested |= {"powi", "powc", "exp", "log", "log1p", "sqrt", "tanh", "iszero"}
    tested |= {"damp", "exp_add", "powi_add", "damp_add", "outer"}
    assert set(_core.OPS) == tested
    assert set(_core.STATS) == {"dot", "sqdist", "l1", "chi2", "minimum", "sqsum"}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 33), (9, 1), (13, 300)])
def test_values_of_rows_and_columns_land_on_their_pairs(n, m, dtype):
    rng = np.random.default_rng(2)
    f, g = points(rng, 1, n, dtype)[0], points(rng, 1, m, dtype)[0]
    j = job(dtype, n, m, [("row", 0, 0), ("col", 1, 0), ("sub", 0, 0, 1)], rows=[f], cols=[g])
    np.testing.assert_array_equal(dense(j, n, m, dtype), f[:, None] - g[None, :])


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_register_may_be_its_own_source(dtype):
    a = points(np.random.default_rng(3), 1, 77, dtype)[0]
    program = [("col", 0, 0), ("mul", 0, 0, 0), ("add", 0, 0, 0)]
    got = dense(job(dtype, 1, 77, program, cols=[a]), 1, 77, dtype)[0]
    np.testing.assert_array_equal(got, a * a + a * a)


@pytest.mark.parametrize("dtype", FLOATS)
def test_many_registers_and_statistics_at_once(dtype):
    rng = np.random.default_rng(4)
    x, z = points(rng, 11, 6, dtype), points(rng, 150, 6, dtype)
    operands = [operand("dot", x, z), operand("sqdist", x, z), operand("l1", x[:, :2].copy(), z[:, :2].copy())]
    program = [("stat", i, i) for i in range(3)]
    program += [("exp", 3, 1), ("add", 4, 0, 3), ("mul", 5, 4, 2)]
    got = dense(job(dtype, 11, 150, program, operands), 11, 150, dtype)
    d = x[:, None] - z
    expected = (x @ z.T + np.exp((d**2).sum(2))) * np.abs(d[..., :2]).sum(2)
    np.testing.assert_allclose(got, expected, rtol=200 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", FLOATS)
def test_values_that_are_not_finite_are_told(dtype):
    for bad in (np.nan, np.inf, -np.inf):
        for at in (0, 7, 40, 299):
            for n in (1, 9):
                v = np.ones(300, dtype)
                v[at] = bad
                j = job(dtype, n, 300, [("col", 0, 0)], cols=[v])
                out = np.empty((n, 300), dtype)
                assert not j.dense(0, n, 0, 300, out)
                np.testing.assert_array_equal(out[-1], v)
                assert j.dense(0, n, 0, at, np.empty((n, at), dtype))
                assert j.dense(0, n, at + 1, 300, np.empty((n, 299 - at), dtype))


@pytest.mark.parametrize("dtype", FLOATS)
def test_padding_columns_are_never_reported(dtype):
    """1 / 0 in the columns that fill up a panel is nobody's business."""
    x = np.ones((3, 2), dtype)
    j = job(dtype, 3, 3, [("stat", 0, 0), ("rdiv", 0, 0, 0, 1.0)], [operand("dot", x, x)])
    out = np.empty((3, 3), dtype)
    assert j.dense(0, 3, 0, 3, out)
    assert (out == 0.5).all()
    assert j.dense_symmetric(0, 3, out)
    total = np.zeros((3, 1))
    j.matvec_symmetric(0, 1, np.ones((3, 1), dtype), total)
    assert (total == 1.5).all()


MALFORMED = {
    "no instructions": {"program": [], "registers": 1, "result": 0},
    "no registers": {"program": [("col", 0, 0)], "registers": 0, "result": 0},
    "more registers than instructions": {"program": [("col", 0, 0)], "registers": 2**31 - 1, "result": 0},
    "negative registers": {"program": [("col", 0, 0)], "registers": -3, "result": 0},
    "result outside": {"program": [("col", 0, 0)], "registers": 1, "result": 1},
    "result negative": {"program": [("col", 0, 0)], "registers": 1, "result": -1},
    "result never written": {"program": [("col", 0, 0), ("exp", 0, 0)], "registers": 2, "result": 1},
    "unknown operation": {"program": [("col", 0, 0), (len(OP), 0, 0)]},
    "negative operation": {"program": [("col", 0, 0), (-1, 0, 0)]},
    "target outside": {"program": [("col", 5, 0)], "registers": 1, "result": 0},
    "target negative": {"program": [("col", -1, 0)], "registers": 1, "result": 0},
    "source outside": {"program": [("col", 0, 0), ("exp", 0, 7)]},
    "source negative": {"program": [("col", 0, 0), ("exp", 0, -1)]},
    "source never written": {"program": [("col", 0, 0), ("exp", 0, 1), ("exp", 1, 0)]},
    "second source outside": {"program": [("col", 0, 0), ("add", 0, 0, 9)]},
    "second source negative": {"program": [("col", 0, 0), ("add", 0, 0, -9)]},
    "second source never written": {"program": [("col", 0, 0), ("add", 0, 0, 1), ("exp", 1, 0)]},
    "no such column": {"program": [("col", 0, 1)]},
    "no such row": {"program": [("row", 0, 0)]},
    "no such statistic": {"program": [("stat", 0, 0)]},
    "negative column": {"program": [("col", 0, -1)]},
    "power too large": {"program": [("col", 0, 0), ("powi", 0, 0, 0, 1e300)]},
    "power is not a number": {"program": [("col", 0, 0), ("powi", 0, 0, 0, np.nan)]},
}


@each("dtype", FLOATS)
@each("what", MALFORMED)
def test_malformed_programs_are_refused(what, dtype):
    with pytest.raises(ValueError, match="malformed program"):
        job(dtype, 1, 4, cols=[np.ones(4, dtype)], **MALFORMED[what])


@pytest.mark.parametrize("code", [[[OP["col"], 0, 0]], [[OP["col"], 0, 0, 0, 0]], [[]], [[OP["col"], 0, 0, 0]] * 2])
def test_instructions_of_another_length_are_refused(code):
    with pytest.raises(ValueError, match="malformed program"):
        _core.JobFloat64(code, [[1.0, 0.0, 0.0]], 1, 0, [], [], [np.ones(4)], 1, 4)


X = np.ones((4, 3))
NO_WINDOW = (0.0, 0.0)
MISFITS = {
    "left too short": (0, 3, X[:3].copy(), packed(X), None, NO_WINDOW, None),
    "right too short": (0, 3, X, packed(X)[:-1].copy(), None, NO_WINDOW, None),
    "weight too short": (1, 3, X, packed(X), np.ones(2), NO_WINDOW, None),
    "width too large": (0, 2**62, X, packed(X), None, NO_WINDOW, None),
    "width zero": (0, 0, X, packed(X), None, NO_WINDOW, None),
    "width negative": (0, -3, X, packed(X), None, NO_WINDOW, None),
    "no such statistic": (6, 3, X, packed(X), None, NO_WINDOW, None),
    "negative statistic": (-1, 3, X, packed(X), None, NO_WINDOW, None),
    "left of another type": (0, 3, X.astype(np.float32), packed(X), None, NO_WINDOW, None),
    "right of another type": (0, 3, X, packed(X).astype(np.float32), None, NO_WINDOW, None),
    "left in another order": (0, 3, np.asfortranarray(X), packed(X), None, NO_WINDOW, None),
    "left strided": (0, 3, np.ones((8, 3))[::2], packed(X), None, NO_WINDOW, None),
    "left a list": (0, 3, X.tolist(), packed(X), None, NO_WINDOW, None),
}


@pytest.mark.parametrize("what", MISFITS)
def test_operands_that_do_not_fit_are_refused(what):
    with pytest.raises(ValueError, match=r"array|malformed operand"):
        job(np.float64, 4, 4, [("stat", 0, 0)], [MISFITS[what]])


@pytest.mark.parametrize("entry", [(), (0, 3), "text", None, 3])
def test_operands_that_are_no_tuples_of_six_are_refused(entry):
    with pytest.raises((RuntimeError, ValueError)):
        job(np.float64, 4, 4, [("stat", 0, 0)], [entry])


def broken_rows(change):
    data, index, start = compressed(sparse.csr_array(np.eye(4, 3) + 1))
    index, start = index.copy(), start.copy()
    change(data, index, start)
    return data, index, start


def _set(array, at, value):
    array[at] = value


@pytest.mark.parametrize(
    "change",
    [
        lambda data, index, start: _set(index, 0, 3),
        lambda data, index, start: _set(index, -1, 2**30),
        lambda data, index, start: _set(index, 0, -1),
        lambda data, index, start: _set(start, 1, 7),
        lambda data, index, start: _set(start, 0, -2),
        lambda data, index, start: _set(start, 4, 2**40),
    ],
)
def test_sparse_rows_that_point_outside_are_refused(change):
    with pytest.raises(ValueError, match="malformed sparse rows"):
        _core.RowsFloat64(*broken_rows(change), 3)


@pytest.mark.parametrize(("n", "m"), [(-1, 4), (4, -1), (2**62, 4), (4, 2**63 - 1), (5, 4), (4, 5)])
def test_more_points_than_the_arrays_hold_are_refused(n, m):
    with pytest.raises(ValueError, match=r"out of range|too short"):
        job(np.float64, n, m, [("row", 0, 0)], rows=[np.ones(4)], cols=[np.ones(4)])


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_job_keeps_its_arrays_alive(dtype):
    x = points(np.random.default_rng(5), 100, 50, dtype)
    expected = x.astype(np.float64) @ x.T
    j = job(dtype, 100, 100, [("stat", 0, 0)], [operand("dot", x, x)])
    del x
    for _ in range(5):
        np.full((100, 50), 7, dtype)
    np.testing.assert_allclose(dense(j, 100, 100, dtype), expected, rtol=1e-4, atol=1e-3)


def test_one_panel_is_two_registers():
    assert panel(np.float32) == 2 * panel(np.float64)
    assert panel(np.float64) * 4 == {"baseline": 16, "avx2": 32, "avx512": 64}[_core.isa()]
