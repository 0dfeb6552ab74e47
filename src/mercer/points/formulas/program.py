"""Programs: formulas as the core runs them, on strips of pairs that stay in the cache."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from mercer import _core
from mercer.points.formulas.formula import Formula, Path, PointLeaf, StatLeaf
from mercer.points.formulas.pair import squared_norms

OP = {name: i for i, name in enumerate(_core.OPS)}
STAT = {name: i for i, name in enumerate(_core.STATS)}
_WITH_CONSTANT = {"rdivc": "rdiv", "minc": "upper", "maxc": "lower", "powi": "powi", "powc": "powc"}
_ADDING = {"exp": "exp_add", "powi": "powi_add", "damp": "damp_add"}
_SUMS = ("add", *_ADDING.values())


@dataclass
class Program:
    """A formula as the core runs it, with the leaves it reads."""

    code: list[list[int]] = field(default_factory=list)
    constants: list[list[float]] = field(default_factory=list)
    registers: int = 0
    result: int = 0
    stats: list[StatLeaf] = field(default_factory=list)
    windows: list[tuple[float, float]] = field(default_factory=list)
    rows: list[PointLeaf] = field(default_factory=list)
    cols: list[PointLeaf] = field(default_factory=list)


@dataclass(frozen=True)
class Step:
    """One instruction: op(c * a + e, b or the constant p). Equal steps are one."""

    op: str
    a: Step | None = None
    b: Step | None = None
    c: float = 1.0
    e: float = 0.0
    p: float = 0.0
    leaf: Hashable = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.op, self.a, self.b, self.c, self.e, self.p, self.leaf)))

    def __hash__(self) -> int:
        return self._hash  # type: ignore[attr-defined]

    @property
    def sources(self) -> list[Step]:
        """The distinct steps whose values this one reads."""
        return list(dict.fromkeys(s for s in (self.a, self.b) if s is not None))


class Scaled(NamedTuple):
    """The value c * step + e: factors and shifts are carried along until an operation takes them in."""

    step: Step
    c: float = 1.0
    e: float = 0.0

    @property
    def plain(self) -> Step:
        """The step that holds the value itself."""
        return self.step if (self.c, self.e) == (1.0, 0.0) else Step("affine", self.step, c=self.c, e=self.e)


@lru_cache(maxsize=256)
def compile_formula(
    formula: Formula, extreme: frozenset[StatLeaf] = frozenset(), derived: frozenset[Path] = frozenset()
) -> Program:
    """Turn a formula into instructions, with registers that are free again after their last use.

    Statistics that differ only by one overall scale share one computation, except the `extreme` ones, whose
    differences must be scaled before they are squared lest they overflow or vanish. On the paths in `derived`,
    inner products are taken from squared distances and norms rather than by a second pass over the features.
    """
    result = _lower(formula, extreme, derived, {}).plain
    result = _with_additions(result, _schedule(result)[1], {})
    order, uses = _schedule(result)
    _side_by_side(order)
    program = Program()
    tables: dict[str, list[Any]] = {"stat": program.stats, "row": program.rows, "col": program.cols}
    place: dict[Step, int] = {}
    free: list[int] = []
    for step in order:
        a, b = (place[s] if s is not None else 0 for s in (step.a, step.b))
        for source in step.sources:
            uses[source] -= 1
            if uses[source] == 0:
                free.append(place[source])
        if not free:
            free.append(program.registers)
            program.registers += 1
        place[step] = _pop(free, b if step.op in _SUMS else None)
        p = step.p
        if isinstance(step.leaf, tuple):  # an outer sum reads a vector of each side
            b, p = len(program.rows), float(len(program.cols))
            program.rows.append(step.leaf[0])
            program.cols.append(step.leaf[1])
        elif step.leaf is not None:
            a = len(tables[step.op])
            tables[step.op].append(step.leaf)
        program.code.append([OP[step.op], place[step], a, b])
        program.constants.append([step.c, step.e, p])
    program.result = place[result]
    program.windows = _windows(order, program.stats)
    return program


def _pop(free: list[int], wanted: int | None) -> int:
    """Take a free register: that of the sum to which a term is added, if it is free."""
    return free.pop(free.index(wanted)) if wanted in free else free.pop()


def _side_by_side(order: list[Step]) -> None:
    """Let inner products and distances of the same points follow each other: one product may serve both."""
    stats = {step.leaf: step for step in order if isinstance(step.leaf, StatLeaf)}
    for leaf, step in stats.items():
        twin = stats.get(StatLeaf("sqdist", leaf.path)) if leaf.kind == "dot" else None
        if twin is not None:
            first, second = sorted((step, twin), key=order.index)
            order.remove(second)
            order.insert(order.index(first) + 1, second)


def _windows(order: list[Step], stats: list[StatLeaf]) -> list[tuple[float, float]]:
    """Return, for each statistic, between which values it makes the argument of an exponential large.

    There float32 sums are taken again in double: the relative error of exp(-E) is the absolute error of E. Beyond,
    the exponential is 0 anyway.
    """
    ranges: dict[Hashable, tuple[float, float]] = {}
    for step in order:
        if step.a is None:
            continue
        if step.op in ("exp", "exp_add") and step.c < 0:
            low, high, source = 16 / -step.c, 110 / -step.c, step.a
        elif step.op in ("damp", "damp_add") and step.c > 0:  # the square of exp(-r / 2)
            low, high = (((2 * bound) ** 2 - step.e) / step.c for bound in (16, 110))
            source = step.a
        else:
            continue
        while source.op in ("upper", "sqrt") and source.a is not None and source.c > 0:
            if source.op == "sqrt":
                low, high = low**2, high**2
            low, high = ((bound - source.e) / source.c for bound in (low, high))
            source = source.a
        if source.op == "stat":
            before = ranges.get(source.leaf, (math.inf, 0.0))
            ranges[source.leaf] = (min(low, before[0]), max(high, before[1]))
    return [ranges.get(leaf, (0.0, 0.0)) for leaf in stats]


def _lower(
    node: Formula, extreme: frozenset[StatLeaf], derived: frozenset[Path], done: dict[Formula, Scaled]
) -> Scaled:
    """Write a node as instructions, taking factors and shifts into the operation that follows them."""
    if node in done:
        return done[node]
    if node.leaf is not None:
        out = _lower_leaf(node.leaf, extreme, derived)
    else:
        first, *rest = [_lower(arg, extreme, derived, done) for arg in node.args]
        step, c, e = first
        if node.op == "mulc":
            out = Scaled(step, c * node.const, e * node.const)
        elif node.op == "addc":
            out = Scaled(step, c, e + node.const)
        elif node.op == "rsubc":
            out = Scaled(step, -c, node.const - e)
        elif rest:
            out = _lower_binary(node.op, first, rest[0])
        else:
            out = Scaled(Step(_WITH_CONSTANT.get(node.op, node.op), step, None, c, e, node.const))
    done[node] = out
    return out


def _lower_leaf(leaf: Any, extreme: frozenset[StatLeaf], derived: frozenset[Path]) -> Scaled:
    if isinstance(leaf, PointLeaf):
        return Scaled(Step(leaf.side, leaf=leaf))
    if isinstance(leaf.scale, float | int) and leaf.scale != 1 and leaf not in extreme:
        power = 2 if leaf.kind == "sqdist" else 1
        return Scaled(Step("stat", leaf=StatLeaf(leaf.kind, leaf.path)), float(leaf.scale) ** -power)
    if leaf.kind == "dot" and leaf.path in derived:  # <x, z> = (|x|^2 + |z|^2 - |x - z|^2) / 2
        sides = tuple(PointLeaf(side, leaf.path, squared_norms) for side in ("row", "col"))
        return Scaled(Step("outer", Step("stat", leaf=StatLeaf("sqdist", leaf.path)), c=-1.0, leaf=sides), 0.5)
    return Scaled(Step("stat", leaf=leaf))


def _lower_binary(op: str, left: Scaled, right: Scaled) -> Scaled:
    if op in ("add", "mul", "min", "max") and left.c == 1 and left.e == 0 and (right.c, right.e) != (1, 0):
        left, right = right, left
    if op == "add" and right.c == 1:
        return Scaled(Step("add", left.step, right.step, left.c, left.e + right.e))
    if op == "sub" and right.c == 1:
        return Scaled(Step("sub", left.step, right.step, left.c, left.e - right.e))
    if op == "mul" and right.e == 0:
        return Scaled(Step("mul", left.step, right.step, left.c, left.e), right.c)
    return Scaled(Step(op, left.step, right.plain, left.c, left.e))


def _with_additions(step: Step, uses: dict[Step, int], done: dict[Step, Step]) -> Step:
    """Let an exponential or a power that is only read by a sum add the other term itself: one pass less each."""
    if step in done:
        return done[step]
    term, other = _adding(step, uses)
    read = (step.a, step.b) if term is None else (term.a, other)
    first, second = (s if s is None else _with_additions(s, uses, done) for s in read)
    if term is not None:
        out = Step(_ADDING[term.op], first, second, term.c, term.e, term.p)
    else:
        if (step.op, step.c, step.e) == ("add", 1, 0) and first is not None and first.op in _SUMS:
            first, second = second, first  # what is added to a sum comes first
        out = Step(step.op, first, second, step.c, step.e, step.p, step.leaf)
    done[step] = out
    return out


def _adding(step: Step, uses: dict[Step, int]) -> tuple[Step | None, Step | None]:
    """Return the term of a sum that can add the other one itself, and that other; None twice where there is none."""
    if (step.op, step.c, step.e) == ("add", 1, 0) and step.a is not None and step.b is not None:
        for term, other in ((step.a, step.b), (step.b, step.a)):
            # A distance that nothing else reads is left to be taken to its exponential at once (Strip::decays).
            alone = term.a is not None and term.a.op == "stat" and uses[term.a] == 1
            if term.op in _ADDING and uses[term] == 1 and term is not other and not alone:
                return term, other
    return None, None


def _schedule(root: Step) -> tuple[list[Step], dict[Step, int]]:
    """List the steps so that each comes after what it reads, and count how often each is read."""
    order: list[Step] = []
    uses: dict[Step, int] = {root: 1}
    placed: set[Step] = set()
    stack: list[tuple[Step, bool]] = [(root, False)]
    while stack:
        step, ready = stack.pop()
        if step in placed:
            continue
        if ready:
            placed.add(step)
            order.append(step)
            for source in step.sources:
                uses[source] = uses.get(source, 0) + 1
            continue
        stack.append((step, True))
        stack.extend((source, False) for source in reversed(step.sources))
    return order, uses
