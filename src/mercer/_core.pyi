from typing import Any, overload

from numpy.typing import NDArray

OPS: tuple[str, ...]
STATS: tuple[str, ...]
BAND: int

def isa() -> str: ...
def has_coarse() -> bool: ...
def panel(single: bool) -> int: ...
def extent(x: NDArray[Any]) -> float: ...
def variance(x: NDArray[Any]) -> float: ...
def chunk(d: int, single: bool) -> int: ...
def pack(z: NDArray[Any], out: NDArray[Any]) -> None: ...
def norms(x: NDArray[Any], chunk: int, out: NDArray[Any]) -> None: ...

class _Rows:
    @overload
    def __init__(self, data: NDArray[Any], index: NDArray[Any], start: NDArray[Any], d: int) -> None: ...
    @overload
    def __init__(self, x: NDArray[Any]) -> None: ...
    @overload
    def __init__(self, rows: _Rows, chosen: NDArray[Any]) -> None: ...
    def list_columns(self) -> None: ...
    def norms(self, out: NDArray[Any]) -> None: ...
    @property
    def nonzeros(self) -> int: ...
    @property
    def longest(self) -> int: ...

class RowsFloat32(_Rows): ...
class RowsFloat64(_Rows): ...

class _Job:
    def __init__(
        self,
        code: list[list[int]],
        constants: list[list[float]],
        registers: int,
        result: int,
        operands: list[tuple[Any, ...]],
        rows: list[NDArray[Any]],
        cols: list[NDArray[Any]],
        n: int,
        m: int,
    ) -> None: ...
    def dense(self, r0: int, r1: int, c0: int, c1: int, out: NDArray[Any]) -> bool: ...
    def dense_symmetric(self, r0: int, r1: int, out: NDArray[Any]) -> bool: ...
    def matvec(self, r0: int, r1: int, v: NDArray[Any], out: NDArray[Any]) -> None: ...
    def matvec_symmetric(self, first: int, step: int, v: NDArray[Any], out: NDArray[Any]) -> None: ...

class JobFloat32(_Job): ...
class JobFloat64(_Job): ...

_Floats = NDArray[Any]

def smo(
    K: _Floats,
    gradient: _Floats,
    plus: _Floats,
    minus: _Floats,
    upper: _Floats,
    lower: _Floats,
    width: _Floats,
    groups: int,
    tol: float,
    max_steps: int,
    exact: bool,
    looks: _Floats | None = None,
) -> tuple[int, float]: ...
def smo_part(
    K: _Floats,
    at: NDArray[Any],
    gradient: _Floats,
    plus: _Floats,
    minus: _Floats,
    upper: _Floats,
    lower: _Floats,
    width: _Floats,
    groups: int,
    tol: float,
    max_steps: int,
) -> tuple[int, float]: ...
def add_rows(K: _Floats, at: NDArray[Any], change: _Floats, gradient: _Floats) -> None: ...
def smo_pair(
    a: _Floats,
    b: _Floats,
    across: _Floats,
    first: int,
    rows: _Floats,
    gradient: _Floats,
    plus: _Floats,
    minus: _Floats,
    upper: _Floats,
    lower: _Floats,
    width: _Floats,
    groups: int,
    linear: _Floats,
    tol: float,
    max_steps: int,
    out: _Floats,
    looks: _Floats | None = None,
) -> None: ...
def smo_batch(
    K: _Floats,
    start: NDArray[Any],
    row: NDArray[Any],
    gradient: _Floats,
    plus: _Floats,
    minus: _Floats,
    upper: _Floats,
    lower: _Floats,
    width: _Floats,
    groups: int,
    linear: _Floats,
    tol: float,
    max_steps: int,
    out: _Floats,
    looks: _Floats | None = None,
) -> None: ...
def select(
    gradient: _Floats,
    plus: _Floats,
    minus: _Floats,
    upper: _Floats,
    lower: _Floats,
    width: _Floats,
    groups: int,
    hot: NDArray[Any],
    old: NDArray[Any],
    fresh: int,
    out: NDArray[Any],
) -> tuple[int, float]: ...
def offsets(
    gradient: _Floats,
    plus: _Floats,
    minus: _Floats,
    upper: _Floats,
    lower: _Floats,
    width: _Floats,
    groups: int,
) -> tuple[float, float, float]: ...
def linear_sweep(
    x: _Floats,
    sign: _Floats,
    target: _Floats,
    cost: _Floats,
    squared: bool,
    first: int,
    last: int,
    w: _Floats,
    shift: float,
    half: float,
    pull: _Floats,
    alpha: _Floats | None,
    band: NDArray[Any] | None,
    gram: _Floats | None,
    centre: _Floats,
    inverse_scale: _Floats,
    thin: int,
) -> tuple[float, float, float, int]: ...
def linear_proof(
    x: _Floats,
    sign: _Floats,
    target: _Floats,
    cost: _Floats,
    squared: bool,
    first: int,
    last: int,
    w: _Floats,
    shift: float,
    apart: _Floats,
    apart_shift: float,
    alpha: _Floats,
    unit: float,
    pull: _Floats,
) -> tuple[float, float, float, float, float]: ...
def band_product(values: _Floats, first: int, v: _Floats, out: _Floats) -> None: ...
def resolvent(
    below: _Floats, inverse: _Floats, right: _Floats, q: _Floats, squares: _Floats, values: _Floats
) -> None: ...
def kmers(letters: NDArray[Any], starts: NDArray[Any], low: int, high: int, salt: int, out: NDArray[Any]) -> None: ...
def window_sums(
    left_letters: NDArray[Any],
    left_starts: NDArray[Any],
    right_letters: NDArray[Any],
    right_starts: NDArray[Any],
    length: int,
    weights: NDArray[Any],
    stop: NDArray[Any],
    out: _Floats,
) -> None: ...
def recurrence(
    kind: int,
    parameters: _Floats,
    left_letters: NDArray[Any],
    left_starts: NDArray[Any],
    right_letters: NDArray[Any],
    right_starts: NDArray[Any],
    stop: NDArray[Any],
    out: _Floats,
) -> None: ...
def shared_runs(
    left_letters: NDArray[Any],
    left_starts: NDArray[Any],
    right_letters: NDArray[Any],
    right_starts: NDArray[Any],
    runs: _Floats,
    shifts: _Floats,
    stop: NDArray[Any],
    out: _Floats,
) -> None: ...
def align(
    divisible: bool,
    left: _Floats,
    left_starts: NDArray[Any],
    right: _Floats,
    right_starts: NDArray[Any],
    stop: NDArray[Any],
    out: _Floats,
) -> None: ...
def rank_names(names: NDArray[Any], ranks: NDArray[Any]) -> int: ...
def path_counts(
    start: NDArray[Any],
    arc_start: NDArray[Any],
    target: NDArray[Any],
    label: NDArray[Any],
    first: int,
    last: int,
    longest: int,
    length: NDArray[Any] | None = None,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]: ...
