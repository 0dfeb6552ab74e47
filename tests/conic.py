"""Clarabel on the primal of the representer theorem, each loss by its epigraph: it shares nothing with the engine."""

from __future__ import annotations

from dataclasses import dataclass

import clarabel
import numpy as np
from scipy import sparse

from mercer.losses import (
    Absolute,
    Ball,
    EpsilonInsensitive,
    Expectile,
    Exponential,
    Hinge,
    Huber,
    Logistic,
    Multinomial,
    Norm,
    PerceptronLoss,
    Pinball,
    Poisson,
    SmoothedHinge,
    Squared,
    SquaredEpsilonInsensitive,
    SquaredHinge,
    SquaredNorm,
)

LOSSES = [
    Squared(),
    Absolute(),
    EpsilonInsensitive(0.2),
    SquaredEpsilonInsensitive(0.2),
    Huber(0.5),
    Pinball(0.3),
    Expectile(0.8),
    Logistic(),
    Hinge(),
    SquaredHinge(),
    SmoothedHinge(0.5),
    PerceptronLoss(),
    Poisson(),
    Exponential(),
    Multinomial(),
]


def draw(loss, seed, n, features=2):
    """Return points and truths that suit a loss."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, features))
    f = np.sin(2 * X[:, 0]) + X[:, 0] * X[:, -1] + 0.3 * rng.normal(size=n)
    y = {
        "label": lambda: np.where(f > 0, 1.0, -1.0),
        "count": lambda: rng.poisson(np.exp(0.5 * f)).astype(float),
        "class": lambda: np.digitize(f, [-0.5, 0.5]).astype(float),
    }.get(getattr(loss, "target", "real"), lambda: f)()
    return X, y


@dataclass
class Program:
    """Minimise 1/2 x'Px + q'x under cone constraints, put together a variable and a row at a time."""

    size: int = 0

    def __post_init__(self):
        self.linear, self.square = {}, {}
        self.zero, self.above, self.cones = [], [], []

    def new(self, count):
        at = np.arange(self.size, self.size + count)
        self.size += count
        return at

    def cost(self, index, linear=0.0, square=0.0):
        """Add linear x + square x^2 / 2."""
        self.linear[index] = self.linear.get(index, 0.0) + linear
        self.square[index] = self.square.get(index, 0.0) + square

    def solve(self, tol=1e-9):
        n = self.size
        rows, right, kinds = [], [], []

        def add(terms, constant):
            row = np.zeros(n)
            for index, factor in terms:
                np.add.at(row, index, factor)
            rows.append(-row)
            right.append(constant)

        for part, kind in ((self.zero, clarabel.ZeroConeT), (self.above, clarabel.NonnegativeConeT)):
            for terms, constant in part:
                add(terms, constant)
            if part:
                kinds.append(kind(len(part)))
        for kind, members in self.cones:
            for terms, constant in members:
                add(terms, constant)
            kinds.append(kind)
        P, q = np.zeros(n), np.zeros(n)
        for i, value in self.square.items():
            P[i] = value
        for i, value in self.linear.items():
            q[i] = value
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tol
        A = sparse.csc_array(np.array(rows))
        return clarabel.DefaultSolver(sparse.csc_array(np.diag(P)), q, A, np.array(right), kinds, settings).solve()


def minimum(K, y, loss, penalty, weights, intercept):
    """Return the smallest value of sum_i w_i L(y_i, f(x_i) + b) + R(|f|), and the functions' values at the points."""
    n = len(y)
    values, vectors = np.linalg.eigh(K)
    kept = values > 1e-12 * max(values[-1], 1e-300)
    F = vectors[:, kept] * np.sqrt(values[kept])  # f(x_i) = F_i c, |f| = |c|
    k = int(max(2, y.max() + 1)) if isinstance(loss, Multinomial) else 1
    program = Program()
    c = [program.new(F.shape[1]) for _ in range(k)]
    b = [program.new(1) if intercept else None for _ in range(k)]
    everything = np.concatenate(c)
    if isinstance(penalty, SquaredNorm):
        for i in everything:
            program.cost(i, square=penalty.strength)
    else:
        if isinstance(penalty, Norm):
            (t,) = program.new(1)
            program.cost(t, linear=penalty.strength)
            first = ([(t, 1.0)], 0.0)
        else:
            assert isinstance(penalty, Ball)
            first = ([], penalty.radius)
        members = [first] + [([(i, 1.0)], 0.0) for i in everything]
        program.cones.append((clarabel.SecondOrderConeT(len(members)), members))

    def v(i, j=0, factor=1.0):
        return [(c[j], factor * F[i])] + ([(b[j], factor)] if intercept else [])

    constant = 0.0
    for i in range(n):
        constant += _losses(program, loss, y[i], weights[i], lambda *a, i=i: v(i, *a), k)
    done = program.solve()
    x = np.asarray(done.x)
    found = np.stack([F @ x[c[j]] + (x[b[j]][0] if intercept else 0.0) for j in range(k)], axis=1)
    solved = done.status == clarabel.SolverStatus.Solved
    return done.obj_val + constant, found if k > 1 else found[:, 0], solved


def _losses(program, loss, y, w, v, k):
    """Add w L(y, v); return what is constant of it."""

    def at_least(index, terms, constant):  # x_index >= terms + constant
        program.above.append(([(index, 1.0)] + [(i, -np.asarray(f)) for i, f in terms], -constant))

    def exponential(terms, constant, index):  # exp(terms + constant) <= x_index
        members = [(terms, constant), ([], 1.0), ([(index, 1.0)], 0.0)]
        program.cones.append((clarabel.ExponentialConeT(), members))

    pieces = {
        Absolute: lambda: [(1.0, -y), (-1.0, y)],
        EpsilonInsensitive: lambda: [(1.0, -y - loss.epsilon), (-1.0, y - loss.epsilon), (0.0, 0.0)],
        Pinball: lambda: [(-loss.quantile, loss.quantile * y), (1 - loss.quantile, -(1 - loss.quantile) * y)],
        Hinge: lambda: [(-y, 1.0), (0.0, 0.0)],
        PerceptronLoss: lambda: [(-y, 0.0), (0.0, 0.0)],
        SquaredHinge: lambda: [(-y, 1.0), (0.0, 0.0)],
        SquaredEpsilonInsensitive: lambda: [(1.0, -y - loss.epsilon), (-1.0, y - loss.epsilon), (0.0, 0.0)],
        Squared: lambda: [(1.0, -y), (-1.0, y)],
    }.get(type(loss))
    if pieces is not None:
        (t,) = program.new(1)
        square = {SquaredHinge: 2.0, SquaredEpsilonInsensitive: 2.0, Squared: 1.0}.get(type(loss))
        program.cost(t, **({"linear": w} if square is None else {"square": w * square}))
        for slope, shift in pieces():
            at_least(t, v(0, slope), shift)
        return 0.0
    if isinstance(loss, Expectile):
        for slope, factor in ((-1.0, loss.quantile), (1.0, 1 - loss.quantile)):
            (t,) = program.new(1)
            program.cost(t, square=2 * w * factor)
            at_least(t, v(0, slope), -slope * y)
            at_least(t, [], 0.0)
        return 0.0
    if isinstance(loss, (Huber, SmoothedHinge)):  # a part that is squared, and one that is linear
        p, q = program.new(2)
        if isinstance(loss, Huber):
            program.cost(p, square=w)
            program.cost(q, linear=w * loss.delta)
            for sign in (1.0, -1.0):
                at_least(q, [*v(0, sign), (p, -sign)], -sign * y)
        else:
            program.cost(p, square=w / loss.width)
            program.cost(q, linear=w)
            at_least(q, [*v(0, -y), (p, -1.0)], 1.0)
            at_least(q, [], 0.0)
        return 0.0
    if isinstance(loss, (Poisson, Exponential)):
        (e,) = program.new(1)
        program.cost(e, linear=w)
        if isinstance(loss, Exponential):
            exponential(v(0, -y), 0.0, e)
            return 0.0
        exponential(v(0, 1.0), 0.0, e)
        for index, factor in v(0, -w * y):
            for i, f in zip(np.atleast_1d(index), np.broadcast_to(factor, np.shape(index)), strict=True):
                program.cost(int(i), linear=float(f))
        return w * (y * np.log(y) - y if y > 0 else 0.0)
    (t,) = program.new(1)
    program.cost(t, linear=w)
    if isinstance(loss, Logistic):
        parts = [[], v(0, -y)]
    else:
        assert isinstance(loss, Multinomial)
        parts = [[*v(j, 1.0), *v(int(y), -1.0)] for j in range(k)]
    p = program.new(len(parts))
    for index, terms in zip(p, parts, strict=True):
        exponential([*terms, (t, -1.0)], 0.0, index)
    program.above.append(([(p, -np.ones(len(p)))], 1.0))
    return 0.0
