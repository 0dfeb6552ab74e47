"""The independent check of a kernel SVM: the definition of its primal and its dual, and nothing of the solver."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from mercer.certify.certificate import Certificate, Stop, without_duality
from mercer.certify.positive import why_indefinite
from mercer.certify.values import diagonal, product
from mercer.kernels import Kernel

# What a constraint may be off by rounding: units of the box, and of the sum of all coefficients.
_BOX = 1e-10
_SUM = 1e-8
# A coefficient this small beside the others is 0, one this close to its bound is there.
_ZERO = 1e-12
# The most, in units of the targets, that rounding may move a point at the edge of a hard tube.
_EDGE = 1e-6


def check_svm(
    kernel: Kernel,
    X: Any,
    *,
    plus: Any,
    minus: Any,
    linear: Any,
    upper: Any,
    lower: Any,
    width: Any = 0.0,
    offset: float = 0.0,
    offset_kind: Literal["free", "split", "none"] = "free",
    half_width: float = 0.0,
    total: Any = 0.0,
    tol: float = 1e-3,
) -> Certificate:
    r"""Recompute both objectives of a kernel SVM from its coefficients, in plain NumPy and float64.

    The dual, in the form that `mercer.solvers.dual.problem.SVMDual` describes, with b = plus - minus:

    .. math:: D = -\left(\tfrac12 b'Kb + l'b + w'(p + m)\right), \quad 0 \le p \le u, \ 0 \le m \le v

    Its constraints on sums have the multipliers :math:`\mu_+` (of the p) and :math:`\mu_-` (of the m). With
    :math:`r_+ = Kb + l + w + \mu_+` and :math:`r_- = -(Kb + l) + w + \mu_-` the primal value is

    .. math:: P = \tfrac12 b'Kb + \sum_i u_i \max(0, -r_{+i}) + v_i \max(0, -r_{-i})
              + \mu_+ \textstyle\sum p + \mu_- \sum m

    so that :math:`P - D = \sum_i [p r_+ + u \max(0, -r_+)]_i + [m r_- + v \max(0, -r_-)]_i`, of which no term
    is negative: weak duality, point by point. It needs a kernel that is positive semidefinite on X. If a kernel without
    a proof has a negative eigenvalue there, the certificate is that of a stationary point.

    Parameters
    ----------
    kernel, X
        The kernel and the training points.
    plus, minus
        The two parts of the coefficients.
    linear, width, upper, lower
        The problem: l, w, u and v above, one number per point or one for all. If one bound of a
        point is infinite (hard margin), the primal is evaluated at f divided by its smallest margin, and is infinite
        if that is not positive. If both are (hard tube), it is taken at a multiple of f within the tube, to rounding.
    offset, half_width
        The offset of f, and for "split" the rho of NuSVC or minus the epsilon of NuSVR.
    offset_kind
        "free": mu_+ = offset, mu_- = -offset. "split": mu_+ = offset - half_width, mu_- = -offset - half_width.
        "none": both are 0.
    total
        What the constraints prescribe. "free": the sum of b (0, or nu n for OneClassSVM). "split": the pair
        (sum of plus, sum of minus).
    tol
        The relative gap that was asked for.

    Returns
    -------
    Certificate
        Its `kkt` is the worst violation of complementary slackness over the points, in units of f.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Linear
    >>> y = np.array([1.0, -1.0])
    >>> check_svm(Linear(), [[1.0], [-1.0]], plus=[0.5, 0], minus=[0, 0.5], linear=-y, upper=y > 0, lower=y < 0).gap
    0.0
    """
    started = time.perf_counter()
    p, u = _part("plus", plus, "upper", upper)
    m, v = _part("minus", minus, "lower", lower)
    n = len(p)
    if len(m) != n:
        raise ValueError(f"plus has {n} entries and minus has {len(m)}; both need one per training point.")
    lin = _vector("linear", linear, n)
    wide = _vector("width", width, n)
    sums = _sums(p, m, offset_kind, total)
    mu = {
        "free": (offset, -offset),
        "split": (offset - half_width, -offset - half_width),
        "none": (0.0, 0.0),
    }[offset_kind]

    b = p - m
    Kb = product(kernel, X, b)
    quadratic = float(b @ Kb)
    dual = -(0.5 * quadratic + float(lin @ b) + float(wide @ (p + m)))
    above = Kb + lin + wide + mu[0]
    below = -(Kb + lin) + wide + mu[1]
    constants = mu[0] * sums[0] + mu[1] * sums[1]
    if np.isinf(u).any() or np.isinf(v).any():
        lengths = np.sqrt(np.abs(diagonal(kernel, X)))
        off = (
            16.0 * float(np.finfo(np.float64).eps) * (float(np.abs(b) @ lengths) * lengths + np.abs(lin) + abs(offset))
        )
        # A margin holds at a multiple of f; that a target is at the edge of a tube can only be known up to rounding.
        edge = np.where(np.isinf(u) & np.isinf(v), np.minimum(off, _EDGE * np.abs(lin).max()), 0.0)
        primal = _hard(quadratic, Kb, lin, wide + edge, u, v, mu, constants)
    else:
        primal = 0.5 * quadratic + _loss(u, above) + _loss(v, below) + constants
    largest = max(float(p.max()), float(m.max()))
    kkt = max(_slackness(p, u, above, largest), _slackness(m, v, below, largest))
    certificate = Certificate(
        primal,
        dual,
        kkt,
        tol,
        solver="independent check",
        seconds=time.perf_counter() - started,
        rounding=_rounding(diagonal(kernel, X), b, np.where(np.isinf(u), p, u) + np.where(np.isinf(v), m, v)),
    )
    certificate = certificate if certificate.converged else replace(certificate, stopped=Stop.LARGE_GAP)
    return without_duality(certificate, why_indefinite(kernel, X))


def _rounding(diag: np.ndarray, b: np.ndarray, bound: np.ndarray) -> float:
    """Return the error of the two objectives from float64 sums of terms b_j K_ij, of size b_j sqrt(K_ii K_jj)."""
    length = np.sqrt(np.abs(diag))
    terms = float(np.linalg.norm(b * length))
    return 4.0 * float(np.finfo(np.float64).eps) * terms * (terms + float(bound @ length))


def _vector(name: str, value: Any, n: int) -> np.ndarray:
    vector = np.asarray(value, dtype=np.float64)
    if vector.shape not in ((), (1,), (n,)):
        raise ValueError(f"{name} has shape {vector.shape}; one number per training point is needed: ({n},).")
    if np.isnan(vector).any():
        raise ValueError(f"{name} contains NaN.")
    return np.broadcast_to(vector, (n,))


def _part(name: str, value: Any, bound_name: str, bound: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return coefficients and their bounds, or say which one lies outside; rounding is cut off."""
    a = np.asarray(value, dtype=np.float64)
    if a.ndim != 1 or not len(a):
        raise ValueError(f"{name} has shape {a.shape}; one number per training point is needed.")
    high = _vector(bound_name, bound, len(a))
    if not np.isfinite(a).all():
        i = int(np.argmin(np.isfinite(a)))
        raise ValueError(f"{name}[{i}] is {a[i]}; coefficients must be finite.")
    slack = _BOX * np.where(np.isinf(high), np.abs(a), high)
    outside = np.maximum(a - high - slack, -a - slack)
    i = int(np.argmax(outside))
    if outside[i] > 0:
        raise ValueError(
            f"{name}[{i}] = {a[i]:.17g} lies outside its box, 0 to {bound_name}[{i}] = {high[i]:.17g}: these "
            "coefficients are not feasible, and their dual value bounds nothing."
        )
    return np.clip(a, 0.0, high), high


def _sums(p: np.ndarray, m: np.ndarray, kind: str, total: Any) -> tuple[float, float]:
    """Return the sums that belong to the multipliers of plus and minus, after a look at the constraints."""
    if kind not in ("free", "split", "none"):
        raise ValueError(f"offset_kind is {kind!r}; it must be 'free', 'split' or 'none'.")
    if kind == "none":
        return 0.0, 0.0
    size = _SUM * float(p.sum() + m.sum())
    wanted = np.asarray(total, dtype=np.float64)
    if kind == "free":
        if wanted.shape != ():
            raise ValueError(f"total is {total!r}; with one free offset it is one number, the prescribed sum of b.")
        _require("plus - minus", float(p.sum() - m.sum()), float(wanted), size)
        return float(wanted), 0.0
    if wanted.shape != (2,):
        raise ValueError(f"total is {total!r}; with offset_kind='split' it is the pair of sums, of plus and of minus.")
    _require("plus", float(p.sum()), float(wanted[0]), size)
    _require("minus", float(m.sum()), float(wanted[1]), size)
    return float(wanted[0]), float(wanted[1])


def _require(name: str, seen: float, wanted: float, rounding: float) -> None:
    if not abs(seen - wanted) <= rounding + _SUM * abs(wanted):
        raise ValueError(
            f"the sum of {name} is {seen:.17g}, but the problem prescribes {wanted:.17g}: these coefficients are not "
            "feasible, and their dual value bounds nothing."
        )


def _loss(bound: np.ndarray, residual: np.ndarray) -> float:
    return float(bound @ np.maximum(0.0, -residual))


def _hard(
    quadratic: float,
    Kb: np.ndarray,
    lin: np.ndarray,
    wide: np.ndarray,
    u: np.ndarray,
    v: np.ndarray,
    mu: tuple[float, float],
    constants: float,
) -> float:
    """Return the primal value of a problem with losses that are constraints: at a multiple of f that meets them."""
    hard = np.concatenate([np.isinf(u), np.isinf(v)])
    rest = np.where(hard, 0.0, np.concatenate([u, v]))
    score = np.concatenate([Kb + mu[0], -Kb + mu[1]])
    need = np.concatenate([-lin - wide, lin - wide])  # residual = score - need, and score is linear in f
    s, t = score[hard], need[hard]
    if (s[t > 0] <= 0).any():
        return math.inf
    least = float((t[t > 0] / s[t > 0]).max(initial=0.0))
    most = float((t[(t <= 0) & (s < 0)] / s[(t <= 0) & (s < 0)]).min(initial=math.inf))
    if least > most:
        return math.inf
    factor = least if least > 0 and not rest.any() else min(max(1.0, least), most)
    return 0.5 * factor**2 * quadratic + _loss(rest, factor * score - need) + factor * constants


def _slackness(a: np.ndarray, bound: np.ndarray, residual: np.ndarray, largest: float) -> float:
    """Return the worst violation of: residual >= 0 below the upper bound, residual <= 0 above the lower one."""
    rounding = _ZERO * np.minimum(bound, largest)
    violation = np.maximum(
        np.where(a > rounding, residual, 0.0),
        np.where(a < bound - rounding, -residual, 0.0),
    )
    return max(0.0, float(violation[bound > 0].max(initial=0.0)))
