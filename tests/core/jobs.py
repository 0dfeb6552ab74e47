"""Jobs of the core put together by hand: programs as lists of (op, target, a, b, p, c, e)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from mercer import _core

FLOATS = (np.float32, np.float64)
OP = {name: i for i, name in enumerate(_core.OPS)}
STAT = {name: i for i, name in enumerate(_core.STATS)}


def panel(dtype: Any) -> int:
    return _core.panel(np.dtype(dtype) == np.float32)


def packed(z: np.ndarray) -> np.ndarray:
    p = panel(z.dtype)
    out = np.full(-(-len(z) // p) * p * z.shape[1], np.nan, z.dtype)
    _core.pack(z, out)
    return out


def compressed(matrix: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    csr = sparse.csr_array(matrix)
    csr.sort_indices()
    return csr.data, csr.indices.astype(np.int32), csr.indptr.astype(np.int64)


def norms(x: np.ndarray, thin: bool = False) -> np.ndarray:
    """Squared norms as the core sums them (in one go when `thin`), for whole panels."""
    p, d = panel(x.dtype), x.shape[1]
    out = np.zeros(-(-len(x) // p) * p, x.dtype)
    _core.norms(x, d if thin else _core.chunk(d, x.dtype == np.float32), out)
    return out


def rows_of(x: Any) -> Any:
    """The nonzeros of a matrix."""
    kind = _core.RowsFloat32 if x.dtype == np.float32 else _core.RowsFloat64
    return kind(*compressed(x), x.shape[1]) if sparse.issparse(x) else kind(x)


def operand(
    kind: str,
    x: Any,
    z: Any,
    weight: np.ndarray | None = None,
    window: tuple[float, float] = (0.0, 0.0),
    inner: bool = False,
    thin: bool = False,
) -> tuple[Any, ...]:
    """One statistic of dense or SciPy sparse points; `inner`: distances from inner products; `thin`: of nonzeros."""
    if sparse.issparse(x):
        return STAT[kind], x.shape[1], rows_of(x), rows_of(z), weight, window, None
    squares = norms(x, thin), norms(z, thin)
    triple = (*squares, float(max(s.max() for s in squares))) if inner else None
    return STAT[kind], x.shape[1], rows_of(x) if thin else x, packed(z), weight, window, triple


def job(
    dtype: Any,
    n: int,
    m: int,
    program: Sequence[tuple[Any, ...]],
    operands: Sequence[tuple[Any, ...]] = (),
    rows: Sequence[np.ndarray] = (),
    cols: Sequence[np.ndarray] = (),
    registers: int | None = None,
    result: int | None = None,
) -> Any:
    """Make a job of instructions (op, target, a, b, p, c, e): op(c a + e, b or p); the end may be left out."""
    full = [(*instruction, *(0, 0, 0.0, 1.0, 0.0)[len(instruction) - 2 :]) for instruction in program]
    code = [[OP[op] if isinstance(op, str) else op, target, a, b] for op, target, a, b, *_ in full]
    constants = [[float(c), float(e), float(p)] for *_, p, c, e in full]
    if registers is None:
        registers = 1 + max(target for _, target, *_ in full)
    if result is None:
        result = full[-1][1]
    kind = _core.JobFloat32 if np.dtype(dtype) == np.float32 else _core.JobFloat64
    return kind(code, constants, registers, result, list(operands), list(rows), list(cols), n, m)


def stat_job(kind: str, x: Any, z: Any, weight: np.ndarray | None = None) -> Any:
    """Make the job whose values are one statistic."""
    return job(x.dtype, x.shape[0], z.shape[0], [("stat", 0, 0)], [operand(kind, x, z, weight)])


def rbf_job(x: np.ndarray, z: np.ndarray, gamma: float = 0.5) -> Any:
    """Make the job whose values are exp(-gamma |x - z|^2)."""
    program = [("stat", 0, 0), ("exp", 0, 0, 0, 0.0, -gamma)]
    return job(x.dtype, len(x), len(z), program, [operand("sqdist", x, z)])


def dense(j: Any, n: int, m: int, dtype: Any) -> np.ndarray:
    out = np.full((n, m), np.nan, dtype)
    j.dense(0, n, 0, m, out)
    return out


def elementwise(
    op: str,
    values: np.ndarray,
    other: np.ndarray | None = None,
    constant: float = 0.0,
    factor: float = 1.0,
    shift: float = 0.0,
) -> np.ndarray:
    """Apply one operation of the core to arrays of numbers."""
    cols = [values] if other is None else [values, other]
    program = [("col", i, i) for i in range(len(cols))]
    j = job(values.dtype, 1, len(values), [*program, (op, 0, 0, len(cols) - 1, constant, factor, shift)], cols=cols)
    return dense(j, 1, len(values), values.dtype)[0]


def points(rng: np.random.Generator, n: int, d: int, dtype: Any) -> np.ndarray:
    return rng.standard_normal((n, d)).astype(dtype)
