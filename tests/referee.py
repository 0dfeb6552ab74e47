"""Clarabel, an interior-point solver that shares nothing with ours, on the dual of every SVM (M16)."""

from __future__ import annotations

from dataclasses import dataclass

import clarabel
import numpy as np
from scipy import sparse


@dataclass
class Dual:
    """Minimise 1/2 b'Kb + linear'b + width'(p + m), b = p - m, in a box, with sums prescribed (see SVMDual)."""

    K: np.ndarray
    linear: np.ndarray
    upper: np.ndarray
    lower: np.ndarray
    width: float = 0.0
    offset: str = "free"
    total: object = 0.0

    def arguments(self):
        """What `check_svm` takes of the problem."""
        names = ("linear", "upper", "lower", "width", "total")
        return {name: getattr(self, name) for name in names} | {"offset_kind": self.offset}


@dataclass
class Referee:
    """Clarabel's word: the coefficients, cut to the box, and the offsets."""

    plus: np.ndarray
    minus: np.ndarray
    offset: float
    half_width: float
    dual: float
    solved: bool  # whether it is sure of itself

    def arguments(self):
        return {name: getattr(self, name) for name in ("plus", "minus", "offset", "half_width")}


def solve(problem: Dual, tol: float = 1e-11) -> Referee:
    K, n = problem.K, len(problem.K)
    P = np.block([[K, -K], [-K, K]])
    q = np.concatenate([problem.linear + problem.width, -problem.linear + problem.width])
    high = np.concatenate([problem.upper, problem.lower])
    bounded = np.isfinite(high)
    eye = sparse.eye_array(2 * n, format="csr")
    one = np.ones(n)
    sums = {
        "none": np.zeros((0, 2 * n)),
        "free": np.concatenate([one, -one])[None, :],
        "split": np.stack([np.concatenate([one, 0 * one]), np.concatenate([0 * one, one])]),
    }[problem.offset]
    A = sparse.vstack([sparse.csr_array(sums), -eye, eye[bounded]]).tocsc()
    rhs = np.concatenate([np.atleast_1d(problem.total)[: len(sums)], np.zeros(2 * n), high[bounded]]).astype(float)
    cones = [clarabel.ZeroConeT(len(sums))] if len(sums) else []
    cones += [clarabel.NonnegativeConeT(2 * n + int(bounded.sum()))]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tol
    done = clarabel.DefaultSolver(sparse.triu(sparse.csc_array(P)).tocsc(), q, A, rhs, cones, settings).solve()
    x, z = np.asarray(done.x), np.asarray(done.z)
    mu = (*z[: len(sums)], 0.0, 0.0)
    offset, half = {
        "none": (0.0, 0.0),
        "free": (mu[0], 0.0),
        "split": ((mu[0] - mu[1]) / 2, -(mu[0] + mu[1]) / 2),
    }[problem.offset]
    x = np.clip(x, 0.0, high)
    solved = done.status == clarabel.SolverStatus.Solved and max(done.r_prim, done.r_dual) < 1e-9
    return Referee(x[:n], x[n:], float(offset), float(half), -float(done.obj_val), solved)


def svc(K, y, C):
    C = np.broadcast_to(C, y.shape)
    return Dual(K, -y, np.where(y > 0, C, 0.0), np.where(y < 0, C, 0.0))


def no_offset(K, y, C):
    problem = svc(K, y, C)
    problem.offset = "none"
    return problem


def svr(K, y, C, epsilon):
    C = np.broadcast_to(np.float64(C), y.shape)
    return Dual(K, -y, C, C, width=epsilon)


def one_class(K, nu):
    n = len(K)
    return Dual(K, np.zeros(n), np.ones(n), np.zeros(n), total=nu * n)


def nu_svc(K, y, nu):
    half = nu * len(y) / 2
    return Dual(K, 0 * y, (y > 0) * 1.0, (y < 0) * 1.0, offset="split", total=(half, half))


def nu_svr(K, y, C, nu):
    half = C * nu * len(y) / 2
    C = np.broadcast_to(np.float64(C), y.shape)
    return Dual(K, -y, C, C, offset="split", total=(half, half))
