"""Every left point against every right point under one formula, a block at a time."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import sparse

from mercer import _core
from mercer.machine.lazy import cached_property
from mercer.machine.threads import cores, run
from mercer.points.formulas import formula as symbolic
from mercer.points.formulas.derivative import gain
from mercer.points.formulas.pair import Block, Diagonal, Pair, same_width, scale_fits, squared_norms
from mercer.points.formulas.program import STAT, compile_formula
from mercer.points.sets.operands import Centred, Compressed
from mercer.points.sets.points import Points, is_foreign

_BAND: int = _core.BAND  # rows a thread takes at a time
_INLINE = 40_000  # pairs below which a second thread costs more than it brings
_TILE = 1 << 19  # pairs in a block that is evaluated by array operations
_TILES_PER_CORE = 4  # such blocks for each core, at least, where there are many pairs: the last ones even out
_LEAST_ROWS = 16  # of a block, at least: a rule for two sets of points prepares each set
# Differences may be squared before they are scaled while both stay within these (values below, scales above).
_SAFE = {np.dtype(np.float32): (1e15, 1e-12), np.dtype(np.float64): (1e140, 1e-140)}

# Relative errors of values that distances by inner products may cause, far below what is promised (1e-5, 1e-12).
_HARMLESS = {np.dtype(np.float32): 4e-6, np.dtype(np.float64): 2e-13}
_MANY_PAIRS = 40_000  # pairs from which on it pays to look for a centre
# Share of |x|^2 + |z|^2 below which sparse points are compared by differences, where products lose digits.
_NEAR_SHARE = 0.5
_FEW_FEATURES = 4  # features of which differences cost no more than products

Rows = slice | np.ndarray
_ALL = slice(0, None)


class Comparison:
    """All pairs between two sets of points under the formula `of`.

    Parameters
    ----------
    of
        The formula: a function of a `Pair`.
    left, right
        The points. Where `right` is None it is the left ones, and symmetric work is done once.
    formula
        The traced form of `of`, when the caller has it already.
    harmless
        The relative error of values up to which distances may be taken from inner products; None for what is promised
        of kernel values. A caller that checks its result by other means may allow more.

    Notes
    -----
    Traceable formulas on NumPy or SciPy data run in the core, in strips that stay in the cache. Others (a
    Python function, a Bessel function, torch tensors) are evaluated on tiles by array operations.

    """

    def __init__(
        self,
        of: Callable[[Pair], Any],
        left: Points,
        right: Points | None = None,
        formula: symbolic.Formula | None = None,
        harmless: float | None = None,
    ) -> None:
        self.of = of
        self._harmless = harmless
        self.left = left
        self.right = left if right is None else right
        self.symmetric = self.right is left
        self.foreign = left.foreign
        if self.foreign != self.right.foreign:
            raise TypeError(
                f"one set of points is a {type(left.data).__name__}, the other a "
                f"{type(self.right.data).__name__}; pass both "
                "as NumPy arrays or both as tensors of one library."
            )
        if formula is None and not self.foreign:
            formula = symbolic.trace(of, left)
        self.formula = None if self.foreign else formula  # which others under the same kernel can share
        self.dtype: Any = None
        if self.formula is not None:
            self._look(self.formula)
        else:
            self._probe()

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of left and right points."""
        return len(self.left), len(self.right)

    @property
    def compiled(self) -> bool:
        """Whether the core runs the formula."""
        return self.formula is not None

    # -- the core's way ---------------------------------------------------------------------------------

    def _look(self, formula: symbolic.Formula) -> None:
        """Read the points as the formula sees them, and say early what does not fit."""
        self._sides: dict[symbolic.Path, tuple[Points, Points]] = {}
        for leaf in symbolic.leaves(formula):
            if leaf.path not in self._sides:
                self._sides[leaf.path] = self._views(leaf.path)
        stats = symbolic.statistics(formula)
        for leaf in stats:
            same_width(*self._sides[leaf.path])
            scale_fits(leaf.scale, self._sides[leaf.path][0].width)
        used = [side for leaf in stats for side in self._sides[leaf.path]]
        self.dtype = _common_type(used or [self.left, self.right])

    @cached_property
    def _extreme(self) -> frozenset[symbolic.StatLeaf]:
        if self.formula is None:
            return frozenset()
        stats = symbolic.statistics(self.formula)
        return frozenset(leaf for leaf in stats if self._is_extreme(leaf, *self._sides[leaf.path]))

    @cached_property
    def inexact(self) -> dict[symbolic.Path, float]:
        """The paths on which squared distances are |x|^2 + |z|^2 - 2<x, z>, and by how much they may be off.

        The points are moved to a common centre first. The error is a few units of the largest squared norm, however
        small the distance is; what the formula makes of it must be harmless.
        """
        if self.formula is None or self._extreme:
            return {}
        many = len(self.left) * len(self.right) >= _MANY_PAIRS
        errors = {}
        for path, sides in self._sides.items():
            worth = many or (gain(self.formula, path) > 0 and _any_sparse(*sides))
            if worth and (error := self._harmless_error(path)) is not None:
                errors[path] = error
        return errors

    @cached_property
    def _job(self) -> Any:
        """The work as the core takes it; made when values are first asked for, since packing the points costs."""
        assert self.formula is not None
        views = self._sides
        program = compile_formula(self.formula, self._extreme, self._derivable(self.formula))
        operands: list[tuple[Any, ...]] = []
        for leaf, window in zip(program.stats, program.windows, strict=True):
            sides = views[leaf.path]
            if _any_sparse(*sides):
                operands.append(self._sparse_operand(leaf, *sides))
            elif leaf.kind == "sqdist" and leaf.path in self.inexact:
                operands.append(self._inner_products(leaf, *sides))
            else:
                operands.append((*self._operand(leaf, *sides), window, None))
        rows = [self._vector(views[leaf.path][0].values(leaf.function)) for leaf in program.rows]
        cols = [self._vector(views[leaf.path][1].values(leaf.function)) for leaf in program.cols]
        job = _core.JobFloat32 if self.dtype == np.float32 else _core.JobFloat64
        n, m = self.shape
        return job(program.code, program.constants, program.registers, program.result, operands, rows, cols, n, m)

    def _views(self, path: symbolic.Path) -> tuple[Points, Points]:
        left, right = symbolic.seen(self.left, path), symbolic.seen(self.right, path)
        return left.numbered(right) if left.named and right.named else (left, right)

    @staticmethod
    def _is_extreme(leaf: symbolic.StatLeaf, left: Points, right: Points) -> bool:
        if not isinstance(leaf.scale, float | int) or leaf.kind not in ("sqdist", "l1"):
            return False
        largest, smallest = _SAFE[_common_type([left, right])]
        return leaf.scale < smallest or max(left.extent, right.extent) > largest

    def _harmless_error(self, path: symbolic.Path) -> float | None:
        """Return the error of squared distances by inner products, or None where it does harm; of a part as of all."""
        assert self.formula is not None
        magnified, (left, right) = gain(self.formula, path), self._sides[path]
        if not 0 < magnified < np.inf:
            return None
        if _any_sparse(left, right):
            error = _double_error(*(p.compressed(self.dtype) for p in (left, right)))
        elif self._dense_alike(left, right) and left.width >= _FEW_FEATURES:
            centre = _between(left, right).centre
            x, z = left.centred(centre), right.centred(centre)
            units = units_of_error(*_sums(x)) + (centre is not None)  # the centring rounds, too
            error = units * float(np.finfo(left.dtype).eps) * max(x.radius, z.radius)
        else:
            return None
        return error if magnified * error <= (self._harmless or _HARMLESS[self.dtype]) else None

    def _dense_alike(self, *sides: Points) -> bool:
        return all(isinstance(p.vectors, np.ndarray) and p.dtype == self.dtype for p in sides)

    def _inner_products(self, leaf: symbolic.StatLeaf, left: Points, right: Points) -> tuple[Any, ...]:
        centre = _between(left, right).centre
        x, z = left.centred(centre), right.centred(centre)
        thin = x.thin is not None
        norms = x.norms(thin), z.norms(thin), max(x.radius, z.radius)
        return STAT[leaf.kind], left.width, x.thin if thin else x.rows, z.packed, None, (0.0, 0.0), norms

    def _derivable(self, formula: symbolic.Formula) -> frozenset[symbolic.Path]:
        """Return the paths whose inner products may be taken from distances that are computed anyway.

        The error of that is a few units of |x|^2 + |z|^2, so all lengths must be alike for it to be one of |x| |z|.
        Distances that may be taken from inner products are not used so, however many pairs there are: a block would
        not agree with the whole.
        """
        return frozenset(
            path
            for path in _doubly_asked(formula)
            if not _any_sparse(*self._sides[path]) and _alike(*self._sides[path]) and self._harmless_error(path) is None
        )

    def _vector(self, values: Any) -> np.ndarray:
        return np.ascontiguousarray(values, dtype=self.dtype)

    def _operand(self, leaf: symbolic.StatLeaf, left: Points, right: Points) -> tuple[Any, ...]:
        x, z = left.vectors, right.vectors
        d = left.width
        kind, weight = STAT[leaf.kind], self._weight(leaf, d)
        many = len(left) * len(right) >= _MANY_PAIRS
        if leaf.kind == "dot" and many and self._dense_alike(left, right) and left.centred(None).thin is not None:
            return kind, d, left.centred(None).thin, right.packed, None
        x = np.ascontiguousarray(x, dtype=self.dtype)
        if right.dtype == self.dtype:
            packed = right.packed
        else:
            packed = Points(z.astype(self.dtype), right.name).packed
        return kind, d, x, packed, weight

    def _sparse_operand(self, leaf: symbolic.StatLeaf, left: Points, right: Points) -> tuple[Any, ...]:
        d, weight = left.width, self._weight(leaf, left.width)
        x, z = left.compressed(self.dtype), right.compressed(self.dtype)
        many = len(left) * len(right) >= _MANY_PAIRS
        norms = None
        if leaf.kind == "sqdist" and weight is None and leaf not in self._extreme:
            norms = x.norms, z.norms, max(x.radius, z.radius), 0.0 if leaf.path in self.inexact else _NEAR_SHARE
        products = leaf.kind == "dot" or norms is not None
        right_rows = z.with_columns(d) if products and many else z.rows
        return STAT[leaf.kind], d, x.rows, right_rows, weight, (0.0, 0.0), norms

    def _weight(self, leaf: symbolic.StatLeaf, d: int) -> np.ndarray | None:
        if leaf.scale == 1:
            return None
        with np.errstate(over="ignore"):  # an infinite weight would make the distance of equal points NaN
            weight = np.broadcast_to(1.0 / np.asarray(leaf.scale), (d,)).clip(max=np.finfo(self.dtype).max)
        return self._vector(weight)

    # -- the array way ----------------------------------------------------------------------------------

    def _probe(self) -> None:
        """Evaluate one pair: errors come early, per-point work is done before threads ask for it."""
        self._views(())
        first = self.block(slice(0, 1), slice(0, 1))
        self.dtype = first.dtype

    def _evaluate(self, left: Points, right: Points) -> Any:
        block = Block(left, right)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # what is not finite gets a sentence below
            value = self.of(block)
        if self.foreign:
            like = left.vectors
            xp = block.xp
            if not hasattr(value, "dtype"):
                value = xp.asarray(value, dtype=like.dtype, device=like.device)
            return value if tuple(value.shape) == block.shape else xp.broadcast_to(value, block.shape)
        if not isinstance(value, np.ndarray) or value.shape != block.shape:
            dtype = self.dtype or np.result_type(left.dtype, right.dtype)
            value = np.broadcast_to(np.asarray(value, dtype=dtype), block.shape)
        return value

    # -- results ----------------------------------------------------------------------------------------

    def block(self, rows: Rows, cols: Rows) -> Any:
        """Return the values of some rows against some columns, each a slice or an array of indices."""
        contiguous = isinstance(rows, slice) and isinstance(cols, slice)
        if self.compiled and contiguous:
            r0, r1, _ = rows.indices(len(self.left))  # type: ignore[union-attr]
            c0, c1, _ = cols.indices(len(self.right))  # type: ignore[union-attr]
            out = np.empty((r1 - r0, c1 - c0), self.dtype)
            if out.size:
                self._checked(self._job.dense(r0, r1, c0, c1, out), out, rows, cols)
            return out
        left, right = self.left.take(rows), self.right.take(cols)
        if self.compiled:
            values, finite = Comparison(self.of, left, right, self.formula).compute()
            return self._checked(finite, values, rows, cols)
        return _require_finite(self._evaluate(left, right), rows, cols)

    def dense(self, out: Any = None) -> Any:
        """Return the whole matrix."""
        n, m = self.shape
        if self.foreign:
            return self._stack([self.block(slice(r0, r1), slice(0, m)) for r0, r1 in self._spans(n, m)])
        if out is None:
            out = np.empty((n, m), self.dtype)
        if not self.compiled:
            run(lambda span: self._fill(span, out), self._spans(n, m))
            return out
        values, finite = self.compute(out)
        return self._checked(finite, values)

    def compute(self, out: np.ndarray | None = None) -> tuple[np.ndarray, bool]:
        """Return the whole matrix as the core computes it, and whether every value is finite."""
        n, m = self.shape
        if out is None:
            out = np.empty((n, m), self.dtype)
        job = self._job
        if n * m <= _INLINE:
            return out, job.dense_symmetric(0, n, out) if self.symmetric else job.dense(0, n, 0, m, out)
        if self.symmetric:
            done = run(lambda r: job.dense_symmetric(r, min(r + _BAND, n), out), range(0, n, _BAND))
        else:
            done = run(lambda r: job.dense(r, min(r + _BAND, n), 0, m, out[r : r + _BAND]), range(0, n, _BAND))
        return out, all(done)

    def _fill(self, span: tuple[int, int], out: np.ndarray) -> None:
        """Evaluate one band of rows by array operations; a symmetric one from its diagonal rightwards."""
        r0, r1 = span
        start = r0 if self.symmetric else 0
        values = self.block(slice(r0, r1), slice(start, len(self.right)))
        out[r0:r1, start:] = values
        if self.symmetric:
            out[r1:, r0:r1] = values[:, r1 - r0 :].T

    def _spans(self, n: int, m: int) -> list[tuple[int, int]]:
        height = max(1, _TILE // m)
        if n * m > _INLINE and not self.foreign:  # so that each core has some, of whatever cost they are
            height = min(height, max(_LEAST_ROWS, -(-n // (_TILES_PER_CORE * cores()))))
        return [(r, min(r + height, n)) for r in range(0, n, height)]

    def matvec(self, v: Any) -> Any:
        """Return the matrix times `v` (m,) or (m, k), without forming the matrix."""
        n, m = self.shape
        if not self.foreign:
            v = np.asarray(v)
        elif not is_foreign(v):
            raise TypeError(
                f"the points are a {type(self.left.data).__name__}, the vector a {type(v).__name__}; pass both as "
                "arrays of one library."
            )
        if v.ndim not in (1, 2) or v.shape[0] != m:
            raise ValueError(
                f"the vector has shape {tuple(v.shape)}; this matrix is {n} x {m} and needs ({m},) or ({m}, k)."
            )
        if self.foreign or not self.compiled:
            return self._matvec_by_tiles(v)
        if np.iscomplexobj(v):
            return self.matvec(v.real) + 1j * self.matvec(v.imag)
        columns = np.ascontiguousarray(v.reshape(m, -1), dtype=self.dtype)
        k = columns.shape[1]
        job = self._job
        if self.symmetric:
            step = cores() if n * n * k > _INLINE else 1
            parts = [np.zeros((n, k)) for _ in range(step)]
            run(lambda i: job.matvec_symmetric(i, step, columns, parts[i]), range(step))
            out = parts[0]
            for part in parts[1:]:
                out += part
        else:
            out = np.zeros((n, k))
            height = -(-n // cores()) if n * m * k > _INLINE else n
            spans = [(r, min(r + height, n)) for r in range(0, n, height)]
            run(lambda s: job.matvec(s[0], s[1], columns, out[s[0] : s[1]]), spans)
        if not np.isfinite(out).all():
            self._explain_overflow(v)
        return out.reshape((n, *v.shape[1:])).astype(np.result_type(self.dtype, v.dtype), copy=False)

    def _matvec_by_tiles(self, v: Any) -> Any:
        n, m = self.shape
        spans = self._spans(n, m)
        if self.foreign:
            return self._stack([self.block(slice(r0, r1), slice(0, m)) @ v for r0, r1 in spans])
        if not self.symmetric:
            return np.concatenate(run(lambda s: self.block(slice(*s), slice(0, m)) @ v, spans))
        out = np.zeros((n, *v.shape[1:]), np.result_type(self.dtype, v.dtype))
        for r0, r1 in spans:
            part = self.block(slice(r0, r1), slice(r0, n))
            out[r0:r1] += part @ v[r0:]
            out[r1:] += part[:, r1 - r0 :].T @ v[r0:r1]
        return out

    def diag(self) -> Any:
        """Return the values of each left point with itself."""
        return diagonal(self.of, self.left)

    def _stack(self, parts: list[Any]) -> Any:
        return parts[0] if len(parts) == 1 else Block(self.left, self.right).xp.concat(parts, axis=0)

    # -- values that are not finite ---------------------------------------------------------------------

    def _checked(self, finite: bool, out: np.ndarray, rows: Rows = _ALL, cols: Rows = _ALL) -> np.ndarray:
        return out if finite else _require_finite(out, rows, cols)

    def _explain_overflow(self, v: np.ndarray) -> None:
        if not np.isfinite(v).all():
            raise ValueError("the vector contains NaN or infinite values; it must be finite.")
        for r in range(0, len(self.left), _BAND):
            self.block(slice(r, r + _BAND), slice(0, len(self.right)))
        raise FloatingPointError(
            f"the product overflows {self.dtype}: its terms are finite, their sum is not. Scale the vector."
        )


@lru_cache(maxsize=256)
def _doubly_asked(formula: symbolic.Formula) -> tuple[symbolic.Path, ...]:
    """Return the paths on which a formula reads both inner products and distances."""
    kinds: dict[symbolic.Path, set[str]] = {}
    for leaf in symbolic.statistics(formula):
        if isinstance(leaf.scale, float | int):
            kinds.setdefault(leaf.path, set()).add(leaf.kind)
    return tuple(path for path, kind in kinds.items() if {"dot", "sqdist"} <= kind)


def units_of_error(terms: int, chunk: int) -> float:
    """Return the largest error of |x|^2 + |z|^2 - 2<x, z>, in units of the last place of the largest squared norm.

    It grows with the square root of the terms summed at a time and with the number of such sums. The constants cover
    the worst of many kinds of points: normal, on a sphere and opposite on it, binary; 1 to 1,000 features.
    """
    return 3.5 + 1.3 * chunk**0.5 + 0.12 * terms / chunk


def _sums(x: Centred) -> tuple[int, int]:
    """Return how many terms an inner product with these rows has, and how many of them are summed at a time."""
    terms = max(1, x.terms)
    return terms, terms if x.thin is not None else _core.chunk(terms, x.rows.dtype == np.float32)


def _double_error(x: Compressed, z: Compressed) -> float:
    """Return the error of squared distances by inner products of sparse points, which are summed in double."""
    terms = max(1, x.terms, z.terms)
    return units_of_error(terms, terms) * float(np.finfo(np.float64).eps) * max(x.radius, z.radius)


def _any_sparse(*sides: Points) -> bool:
    return any(sparse.issparse(p.vectors) for p in sides)


def _common_type(sides: list[Points]) -> Any:
    kinds = {side.dtype for side in sides}
    return kinds.pop() if len(kinds) == 1 else np.result_type(*kinds)


def _between(left: Points, right: Points) -> Points:
    """Return the points whose centre both sides take: those of the larger set, whichever side it is on."""
    return left if len(left.whole) >= len(right.whole) else right


def _alike(left: Points, right: Points) -> bool:
    """Return whether all points have about the same length."""
    if max(left.extent, right.extent) > min(largest for largest, _ in _SAFE.values()):
        return False
    squares = [p.values(squared_norms) for p in (left, right)]
    return bool(0 < max(s.max() for s in squares) <= 16 * min(s.min() for s in squares))


def diagonal(of: Callable[[Pair], Any], points: Points) -> Any:
    """Return the formula at each point paired with itself."""
    pair = Diagonal(points)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # what is not finite gets a sentence below
        value = of(pair)
    if points.foreign:
        like = points.vectors
        if not hasattr(value, "dtype"):
            value = pair.xp.asarray(value, dtype=like.dtype, device=like.device)
        return pair.xp.broadcast_to(value, (len(points),))
    if not isinstance(value, np.ndarray):
        value = np.full(len(points), value, points.dtype)
    return _require_finite(value)


def _require_finite(values: Any, rows: Rows = _ALL, cols: Rows = _ALL) -> Any:
    """Raise, naming the first pair, unless every value of a NumPy block (or diagonal) is finite."""
    if not isinstance(values, np.ndarray) or np.isfinite(values).all():
        return values
    at = np.argwhere(~np.isfinite(values))[0]
    i, j = _number(rows, at[0]), _number(cols, at[-1])
    remedy = "pass float64 data or scale the features" if values.dtype == np.float32 else "scale the features"
    raise FloatingPointError(
        f"the kernel value of points {i} and {j} is {values[tuple(at)]}, outside the range of {values.dtype}; {remedy} "
        "(sklearn.preprocessing.StandardScaler)."
    )


def _number(chosen: Rows, at: Any) -> int:
    """Return which point stands at a place of a selection."""
    return int(at) + (chosen.start or 0) if isinstance(chosen, slice) else int(chosen[at])
