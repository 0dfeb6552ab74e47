"""The representer theorem as an engine (M13): any loss, any increasing penalty on the norm, any kernel."""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np
from scipy.optimize import minimize_scalar

from mercer.certify import Certificate, Stop, without_duality
from mercer.gram import Gram
from mercer.losses.penalties import SquaredNorm
from mercer.losses.squared import Squared
from mercer.machine.threads import one_thread_each, within_limit
from mercer.machine.warn import warn
from mercer.solvers.control import Control
from mercer.solvers.representer import boxed, multinomial, newton
from mercer.solvers.representer.penalised import Search
from mercer.solvers.representer.problem import EPS, Point, Representer, Task, checkpoint, note
from mercer.solvers.representer.proximal import solve_proximal
from mercer.solvers.run import Row, Run
from mercer.solvers.systems.ridge import RidgeProblem, solve_ridge
from mercer.solvers.systems.system import Systems

__all__ = ["Minimiser", "Representer", "plan", "solve"]

_LEAST_GAP = 1e-13  # relative: the smallest that solvers are asked for, as float64 hardly resolves it
_ONE_THREAD_POINTS = 500  # up to which starting the threads of BLAS takes longer than the work
_SHARED: WeakKeyDictionary[Gram, WeakValueDictionary[str, Systems]] = WeakKeyDictionary()
Solver = Literal["auto", "ridge", "newton", "dual", "proximal"]


@dataclass
class Minimiser:
    """What the engine returns.

    Attributes
    ----------
    coefficients
        a of f = sum_i a_i k(x_i, .), (n,), or (n, k) for a loss of k classes.
    offset
        b, a number or one for each class; 0 without an intercept.
    values
        f(x_i) + b.
    certificate
        Primal, dual and gap. For a loss that is not convex the gap is the squared norm of the gradient in H over twice
        the strength, and `stationary` says so.
    history
        A row now and then.
    strength
        The strength of the squared-norm problem that has the same minimiser.
    """

    coefficients: np.ndarray
    offset: float | np.ndarray
    values: np.ndarray
    certificate: Certificate
    history: list[Row]
    strength: float
    systems: Any = field(default=None, repr=False)  # kept alive for the next problem on the same matrix


def plan(problem: Representer, control: Control | None = None, solver: Solver = "auto") -> str:
    """Return which solver will be used and why, in a sentence.

    Examples
    --------
    >>> from mercer import RBF, Gram
    >>> from mercer.losses import Logistic, SquaredNorm
    >>> gram = Gram(RBF(), [[0.0], [1.0], [2.0]])
    >>> plan(Representer(gram, [1.0, -1.0, 1.0], Logistic(), SquaredNorm(1.0)))
    "Newton's method, each step by a Cholesky factorisation, 144 B: Logistic() has a curvature."
    """
    control = control or Control()
    chosen, why = choose(problem, solver)
    n = len(problem.y)
    if chosen == "multinomial":
        text = multinomial.describe(n, problem.classes or 1)
    elif chosen == "dual":
        strength = getattr(problem.penalty, "strength", 0.0) or 1.0
        dual = boxed.dual_of(problem.gram, problem.y, problem.loss, problem.mass, problem.intercept, strength).dual
        text = boxed.describe(dual, control, why)
    else:
        name = {
            "ridge": "one linear system, by",
            "newton": "Newton's method, each step by",
            "proximal": "augmented Lagrangians with the loss's prox, by Newton steps on its envelope, each by",
        }[chosen]
        text = f"{name} {newton.method(problem.gram)}: {why}."
    if _squared(problem.penalty):
        return text
    return f"a search over the strength of the equivalent squared norm for {problem.penalty!r}; each by {text}"


@within_limit
def solve(problem: Representer, control: Control | None = None, solver: Solver = "auto") -> Minimiser:
    """Minimise.

    Parameters
    ----------
    problem
        The losses, the penalty and the kernel matrix.
    control
        When to stop: `tol` is the relative duality gap.
    solver
        "auto"; "ridge" for the squared loss; "newton" for losses with a continuous derivative; "dual" for piecewise
        linear ones; "proximal" for any convex one.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF, Gram
    >>> from mercer.losses import Norm
    >>> class Cauchy:
    ...     smooth, convex = True, False
    ...     def value(self, y, f):
    ...         return np.log1p((f - y) ** 2)
    ...     def derivative(self, y, f):
    ...         return 2 * (f - y) / (1 + (f - y) ** 2)
    >>> x = np.linspace(0, 1, 5)
    >>> minimiser = solve(Representer(Gram(RBF(), x[:, None]), x, Cauchy(), Norm(0.1)))
    >>> minimiser.certificate.stopped, minimiser.certificate.stationary
    ('stationary point', 'the loss is not convex')
    """
    control = control or Control()
    chosen, _ = choose(problem, solver)
    few = len(problem.y) <= _ONE_THREAD_POINTS
    with one_thread_each() if few and chosen != "dual" else nullcontext():
        if chosen == "ridge" and _squared(problem.penalty) and (problem.mass > 0).all():
            return _ridge(problem, control)
        return _Engine(problem, control, chosen).run()


def _squared(penalty: Any) -> bool:
    return isinstance(penalty, SquaredNorm)


class _Engine:
    """One problem, from its penalty to a strength, from a strength to a solution."""

    def __init__(self, problem: Representer, control: Control, chosen: str) -> None:
        self.problem, self.control, self.chosen = problem, control, chosen
        self.squared = _squared(problem.penalty)
        identity = (problem.y, problem.mass, problem.gram.kernel, problem.loss, problem.penalty, problem.intercept)
        self.progress = Run(control, identity)
        self.systems: Systems | None = None
        self.a = problem.start
        self.b: Any = 0.0  # a number, or one for each class
        self.first: float | None = None  # the strength of a checkpoint
        self.own_file = not (chosen == "dual" and self.squared)  # the SVM solver has its own kind
        shape = problem.y.shape if problem.classes is None else (len(problem.y), problem.classes)
        saved = self.progress.checkpoint.restore(a=shape, b=shape[1:], strength=()) if self.own_file else None
        if saved is not None:
            self.a, self.first = saved["a"], float(saved["strength"])
            self.b = saved["b"] if shape[1:] else float(saved["b"])
            if self.first <= 0:
                raise self.progress.checkpoint.refusal(
                    f"holds a strength that no run leaves: {self.first:g} is not above 0"
                )

    def run(self) -> Minimiser:
        """Return the minimiser, or the best so far when a limit is reached."""
        penalty, control = self.problem.penalty, self.control
        if self.squared:
            strength = float(penalty.strength)
            if not strength > 0:  # without a penalty, one that only rounding would notice
                strength = 1e-12 * (float(np.abs(np.asarray(self.problem.gram.diag())).max()) or 1.0)
            point = self.minimise(strength, control.tol)
            return self._finish(point, point.primal, point.primal - point.gap, point.rounding, "")
        search = Search(penalty, self.minimise, control.tol, self.progress, self._zero, self.first)
        return self._finish(*search.run(), "" if search.convex else "the penalty is not convex")

    def minimise(self, strength: float, tol: float) -> Point:
        """Solve the squared-norm problem of this strength, from the last solution on."""
        problem, run, chosen = self.problem, self.progress, self.chosen
        if chosen == "dual":
            point = self._dual(strength, max(tol, 0.05 * self.control.tol))
        else:
            tol = max(tol, _LEAST_GAP)
            if self.systems is None:
                dense = len(problem.y) <= newton.EXACT and 16 * len(problem.y) ** 2 <= problem.gram.budget
                method = "cholesky" if dense else "cg"
                known = _SHARED.setdefault(problem.gram, WeakValueDictionary())  # by problems on the same matrix
                self.systems = known.get(method) or Systems(problem.gram, self.control, method=method)
                known[method], self.systems.control = self.systems, self.control
                self._check_start(self.systems, strength)
            task = Task(
                self.systems, problem.y, problem.loss, problem.mass, problem.intercept, strength, self.a, self.b
            )
            again = int(not self.squared)  # the search must see the norm move with the strength
            if chosen == "multinomial":
                point = multinomial.Multinomial(task, run, problem.classes or 1).run(tol, again)
            elif chosen == "proximal":
                point = solve_proximal(task, run, tol)
            else:
                point = newton.Newton(task, run).run(tol, at_least=again)
        self.a, self.b = point.a, point.b
        return point

    def _check_start(self, systems: Systems, strength: float) -> None:
        """Begin from zeros where a checkpoint is no better, whoever has written it."""
        if self.first is None or self.a is None:
            return
        problem = self.problem
        losses = Task(systems, problem.y, problem.loss, problem.mass, problem.intercept, strength)
        with np.errstate(all="ignore"):
            f = systems.product(self.a)
            value = losses.total(f + self.b) + 0.5 * strength * float(np.vdot(self.a, f))
        if not value <= losses.total(np.zeros_like(f)):
            self.a, self.b, self.first = None, 0.0, None
            file = str(self.control.checkpoint)
            warn(f"the checkpoint {file!r} is no better than zeros; the fit begins anew.")

    def _dual(self, strength: float, tol: float) -> Point:
        problem, control = self.problem, self.control
        parts = (problem.gram, problem.y, problem.loss, problem.mass, problem.intercept, strength, self.a)
        file = None if self.own_file else control.checkpoint
        return boxed.solve_boxed(boxed.dual_of(*parts), self.progress, replace(control, tol=tol, checkpoint=file))

    def _zero(self, point: Point) -> Point:
        """Return f = 0 with the offset that is best for it."""
        problem = self.problem
        a = np.zeros_like(point.a)
        losses = Task(self.systems, problem.y, problem.loss, problem.mass, problem.intercept, 1.0)
        b = _best_constant(losses, point.b)
        return replace(point, a=a, f=a.copy(), b=b, loss=losses.total(a + b), square=0.0)

    def _finish(self, point: Point, primal: float, dual: float, rounding: float, text: str, why: str = "") -> Minimiser:
        run = self.progress
        if not getattr(self.problem.loss, "convex", True):
            why = "the loss is not convex"
        claim = run.certificate(
            primal,
            dual,
            point.kkt,
            point.solver + text,
            point.stopped,
            otherwise=Stop.LARGE_GAP,
            rounding=rounding + 2.0 * EPS * abs(primal),
            precision=point.precision,
        )
        claim = without_duality(claim, why)
        if self.own_file:
            run.end(claim.finished, **checkpoint(point.a, point.b, point.strength))
        if not run.history:
            note(run, primal, claim.relative_gap, point.a, point.b, point.strength)
        b = float(point.b) if np.ndim(point.b) == 0 else point.b
        return Minimiser(point.a, b, point.f + point.b, claim, run.history, point.strength, self.systems)


def _ridge(problem: Representer, control: Control) -> Minimiser:
    """Solve the one linear system of the squared loss."""
    strength = float(problem.penalty.strength)
    solution = solve_ridge(
        RidgeProblem(problem.gram, problem.y, strength, problem.weights, problem.intercept, problem.start),
        control,
        residual=max(min(1e-6, control.tol), 1e-12),
    )
    claim = solution.certificate
    if solution.diagnosis:
        claim = replace(claim, solver=f"{claim.solver}; {solution.diagnosis}")
    return Minimiser(
        solution.coefficients, float(solution.offsets[0]), solution.values, claim, solution.history, strength
    )


def _best_constant(losses: Task, b: Any) -> Any:
    """Return the b that minimises the losses at f = 0, near `b`: by halving, as losses may have kinks."""
    if not losses.intercept or np.ndim(b):
        return b
    zero = np.zeros(len(losses))
    width = max(1.0, abs(float(b)))
    low, high = float(b) - width, float(b) + width
    for _ in range(60):
        if losses.total(zero + low) >= losses.total(zero + 0.5 * (low + high)) <= losses.total(zero + high):
            break
        low, high = low - width, high + width
        width *= 2.0
    local = minimize_scalar(
        lambda c: losses.total(zero + c), bounds=(low, high), method="bounded", options={"xatol": 1e-14}
    )
    best = min((b, float(local.x)), key=lambda c: losses.total(zero + c))
    return best if math.isfinite(best) else b


def choose(problem: Representer, wish: str) -> tuple[str, str]:
    """Return which solver, and what of the loss makes it the one."""
    loss = problem.loss
    if wish not in get_args(Solver):
        raise ValueError(f"solver is {wish!r}; it must be one of {', '.join(map(repr, get_args(Solver)))}.")
    smooth = bool(getattr(loss, "smooth", False)) or hasattr(loss, "curvature")
    box, convex = hasattr(loss, "box"), bool(getattr(loss, "convex", True))
    squared = isinstance(loss, Squared)
    if problem.classes is not None:
        if wish not in ("auto", "newton"):
            raise ValueError(
                f"solver={wish!r} is for one function; {loss!r} has one per class: use 'newton' or 'auto'."
            )
        if not smooth:
            raise ValueError(f"{loss!r} has classes and is not smooth; only smooth losses of classes can be minimised.")
        return "multinomial", "all classes together"
    if wish == "auto":
        wish = "ridge" if squared else "dual" if box else "newton" if smooth else "proximal"
        if wish == "proximal" and not convex:
            raise ValueError(
                f"{loss!r} says neither smooth = True nor convex = True; a loss needs one of the two. Set "
                "smooth = True if its derivative is continuous."
            )
    if getattr(loss, "joint", False) and wish != "dual":
        raise ValueError(f"solver={wish!r} adds up losses of single predictions, and {loss!r} is none; use 'dual'.")
    if wish == "ridge":
        if not squared:
            raise ValueError(f"solver='ridge' solves the linear system of the squared loss; {loss!r} is not Squared().")
        return "ridge", "the squared loss is quadratic"
    if wish == "dual":
        if not box:
            raise ValueError(
                f"solver='dual' needs a piecewise linear loss, one with a method box(y), which {loss!r} does not have; "
                f"use {'newton' if smooth else 'proximal'!r}."
            )
        return "dual", f"{loss!r} is piecewise linear"
    if wish == "newton":
        if not smooth:
            raise ValueError(
                f"solver='newton' needs a method curvature(y, f), or smooth = True and a continuous derivative; "
                f"{loss!r} has neither: use {'dual' if box else 'proximal'!r}."
            )
        if hasattr(loss, "curvature"):
            return "newton", f"{loss!r} has a curvature"
        return "newton", f"{loss!r} is smooth; its curvature is found by differences"
    if not convex:
        raise ValueError(f"solver='proximal' needs a convex loss; {loss!r} says convex = False: use 'newton'.")
    known = "has a prox" if hasattr(loss, "prox") else "is known by its derivative, which gives the prox by a search"
    return "proximal", f"{loss!r} {known}"
