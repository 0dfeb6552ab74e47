"""The objectives by which solvers are compared: float64, plain NumPy, from what a fitted model says of itself.

Nothing here calls mercer or any solver. A machine is read as libsvm lays it out: `support_`, `n_support_`,
`dual_coef_`. `python _objective.py --selfcheck` compares with the dual written out as a quadratic program.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

BLOCK = 1_024  # rows of the kernel matrix at a time


@dataclass
class Value:
    """A dual objective and how far the coefficients are from being allowed.

    Parameters
    ----------
    dual
        To be maximised, summed over the pairs of classes.
    box
        By how much a coefficient is outside of [0, C] at most, relative to C.
    balance
        The largest |sum of y alpha| of a pair of classes, relative to the sum of alpha.
    """

    dual: float
    box: float
    balance: float


def kernel_rows(
    A: np.ndarray, B: np.ndarray, kernel: str, gamma: float, degree: int = 3, coef0: float = 0.0
) -> np.ndarray:
    """Return the kernel matrix of two sets of rows."""
    K = A @ B.T
    if kernel == "linear":
        return K
    if kernel == "poly":
        return (gamma * K + coef0) ** degree
    if kernel != "rbf":
        raise ValueError(f"kernel={kernel!r} is none of linear, poly, rbf.")
    K *= -2.0
    K += np.einsum("ij,ij->i", A, A)[:, None]
    K += np.einsum("ij,ij->i", B, B)
    np.maximum(K, 0.0, out=K)
    K *= -gamma
    return np.exp(K, out=K)


def quadratic(A: np.ndarray, a: np.ndarray, kernel: dict[str, Any]) -> np.ndarray:
    """Return a_r' K(A, A) a_r for each row r of a, by blocks of the upper triangle."""
    total = np.zeros(len(a))
    for i in range(0, len(A), BLOCK):
        strip = kernel_rows(A[i : i + BLOCK], A[i:], **kernel)
        inside = strip.shape[0]
        left = a[:, i : i + BLOCK]
        total += np.einsum("ri,ri->r", left @ strip[:, :inside], left)
        if strip.shape[1] > inside:
            total += 2 * np.einsum("ri,ri->r", left, a[:, i + inside :] @ strip[:, inside:].T)
    return total


def bilinear(A: np.ndarray, a: np.ndarray, B: np.ndarray, b: np.ndarray, kernel: dict[str, Any]) -> float:
    """Return a' K(A, B) b."""
    return float(
        sum(a[i : i + BLOCK] @ (kernel_rows(A[i : i + BLOCK], B, **kernel) @ b) for i in range(0, len(A), BLOCK))
    )


def attributes(model: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return support_ and dual_coef_ as int64 and float64."""
    coefficients = np.atleast_2d(np.asarray(model.dual_coef_, dtype=np.float64))
    return np.asarray(model.support_, dtype=np.int64), coefficients


def svc_dual(model: Any, X: np.ndarray, y: np.ndarray, C: float, kernel: dict[str, Any]) -> Value:
    """Return the sum over all pairs of classes of sum(alpha) - 1/2 alpha' Q alpha.

    In the machine of classes i < j, support vectors of class i have their coefficient y alpha in row j - 1 of
    `dual_coef_`, those of class j in row i. They are put in the order of their classes here: oneDAL leaves those of
    two classes in the order of the rows.
    """
    support, coefficients = attributes(model)
    classes, codes = np.unique(y, return_inverse=True)
    order = np.argsort(codes[support], kind="stable")
    support, coefficients = support[order], coefficients[:, order]
    counts = np.bincount(codes[support], minlength=len(classes))
    if not np.array_equal(counts, model.n_support_) or coefficients.shape != (len(classes) - 1, len(support)):
        raise ValueError(
            f"dual_coef_ has shape {coefficients.shape} and n_support_ is {model.n_support_}, but support_ has "
            f"{counts} rows of each class."
        )
    ends = np.cumsum(counts)
    parts = [slice(e - n, e) for e, n in zip(ends, counts, strict=True)]
    rows = [np.asarray(X[support[part]], dtype=np.float64) for part in parts]
    dual = -0.5 * sum(quadratic(rows[i], coefficients[:, part], kernel).sum() for i, part in enumerate(parts))
    box = balance = 0.0
    for i, left in enumerate(parts):
        for j in range(i + 1, len(parts)):
            a, b = coefficients[j - 1, left], coefficients[i, parts[j]]
            dual -= bilinear(rows[i], a, rows[j], b, kernel)
            # scikit-learn turns the sign round where there are only two classes.
            alpha = np.append(a, -b) * (1.0 if a.sum() >= b.sum() else -1.0)
            dual += alpha.sum()
            box = max(box, alpha.max(initial=0.0) / C - 1.0, -alpha.min(initial=0.0) / C)
            balance = max(balance, abs(a.sum() + b.sum()) / max(np.abs(alpha).sum(), 1e-300))
    return Value(float(dual), float(box), float(balance))


def svr_dual(model: Any, X: np.ndarray, y: np.ndarray, C: float, epsilon: float, kernel: dict[str, Any]) -> Value:
    """Return y'b - epsilon |b|_1 - 1/2 b'Kb."""
    support, coefficients = attributes(model)
    b = coefficients[0]
    rows = np.asarray(X[support], dtype=np.float64)
    dual = y[support] @ b - epsilon * np.abs(b).sum() - 0.5 * quadratic(rows, coefficients[:1], kernel)[0]
    size = np.abs(b).sum()
    balance = abs(b.sum()) / size if size else 0.0
    return Value(float(dual), max(0.0, np.abs(b).max(initial=0.0) / C - 1.0), float(balance))


def linear_primal(w: np.ndarray, X: np.ndarray, y: np.ndarray, C: float, squared: bool) -> tuple[float, float]:
    """Return 1/2 |w|^2 + C sum(loss) with the best unpenalised offset, and that offset; y is -1 or 1.

    The offset at which a sample starts or ceases to cost is y - w.x. The slope of the sum of hinges grows by one at
    each of these, from minus the number of positive samples, so that the best offset is an order statistic. That of
    squared hinges is piecewise linear and grows, and Newton's method on it, kept inside a bracket, ends exactly.
    """
    w = np.asarray(w, dtype=np.float64).ravel()
    kinks = y - X @ w
    positive = int((y > 0).sum())
    low, high = kinks.min(), kinks.max()
    if not squared:
        b = float(np.partition(kinks, positive - 1)[positive - 1]) if 0 < positive < len(y) else float(high)
        return 0.5 * float(w @ w) + C * float(np.maximum(y * (kinks - b), 0.0).sum()), b
    b = 0.5 * (low + high)
    for _ in range(200):
        excess = np.maximum(y * (kinks - b), 0.0)
        slope = -float(y @ excess)  # half the derivative in b
        low, high = (b, high) if slope < 0 else (low, b)
        active = int((excess > 0).sum())
        step = b - slope / active if active else 0.5 * (low + high)
        step = step if low < step < high else 0.5 * (low + high)
        if abs(step - b) <= 1e-15 * max(1.0, abs(b)):
            break
        b = step
    return 0.5 * float(w @ w) + C * float(np.square(np.maximum(y * (kinks - b), 0.0)).sum()), float(b)


def selfcheck() -> None:
    """Compare with explicit quadratic programs on iris, and the offset with a search."""
    from scipy.optimize import minimize_scalar
    from sklearn.datasets import load_iris
    from sklearn.metrics.pairwise import pairwise_kernels
    from sklearn.svm import SVC, SVR

    X, y = load_iris(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    for params in (
        {"kernel": "rbf", "gamma": 0.3},
        {"kernel": "poly", "gamma": 0.1, "coef0": 1.0},
        {"kernel": "linear", "gamma": 1.0},
    ):
        kernel = {"degree": 3, "coef0": 0.0} | params
        own = {k: v for k, v in params.items() if k != "kernel" and params["kernel"] != "linear"}
        K = pairwise_kernels(X, metric=params["kernel"], **own)
        model = SVC(C=2.0, tol=1e-9, **params).fit(X, y)
        ours = svc_dual(model, X, y, 2.0, kernel)
        expected = 0.0
        for i in range(3):
            for j in range(i + 1, 3):  # each pair by itself, as a program in alpha with Q = y y' K
                pair = np.flatnonzero((y == i) | (y == j))
                signs = np.where(y[pair] == i, 1.0, -1.0)
                alone = SVC(C=2.0, tol=1e-9, **params).fit(X[pair], signs)
                alpha = np.zeros(len(pair))
                alpha[alone.support_] = np.abs(alone.dual_coef_[0])
                Q = signs[:, None] * signs * K[np.ix_(pair, pair)]
                expected += alpha.sum() - 0.5 * alpha @ Q @ alpha
                primal = (
                    0.5 * alpha @ Q @ alpha + 2.0 * np.maximum(1 - signs * alone.decision_function(X[pair]), 0.0).sum()
                )
                # Strong duality, up to libsvm's float32 copy of the kernel matrix.
                assert abs(primal - (alpha.sum() - 0.5 * alpha @ Q @ alpha)) < 1e-4 * primal
        print(f"SVC {params}: {ours.dual:.10g}, pair by pair {expected:.10g}; {ours}")
        assert abs(ours.dual - expected) < 1e-8 * expected
        assert ours.box < 1e-9
        assert ours.balance < 1e-9
        target = X[:, 3]
        machine = SVR(C=2.0, epsilon=0.05, tol=1e-9, **params).fit(X[:, :3], target)
        K3, b = pairwise_kernels(X[:, :3], metric=params["kernel"], **own), np.zeros(150)
        b[machine.support_] = machine.dual_coef_[0]
        explicit = target @ b - 0.05 * np.abs(b).sum() - 0.5 * b @ K3 @ b
        slack = np.maximum(np.abs(target - machine.predict(X[:, :3])) - 0.05, 0.0).sum()
        value = svr_dual(machine, X[:, :3], target, 2.0, 0.05, kernel)
        print(f"SVR {params}: {value.dual:.10g}, written out {explicit:.10g}; {value}")
        assert abs(value.dual - explicit) < 1e-10 * abs(explicit)
        assert abs(0.5 * b @ K3 @ b + 2.0 * slack - explicit) < 1e-4 * abs(explicit)
    signs, w = np.where(y == 2, 1.0, -1.0), np.array([0.1, -0.2, 0.5, 0.7])
    for squared in (False, True):
        value, offset = linear_primal(w, X, signs, 0.5, squared)

        def cost(b: float, power: int = 1 + squared) -> float:
            return 0.5 * w @ w + 0.5 * float((np.maximum(1 - signs * (X @ w + b), 0.0) ** power).sum())

        found = minimize_scalar(cost, bounds=(-20, 20), method="bounded", options={"xatol": 1e-10}).fun
        print(f"offset, squared={squared}: {value:.12g} at {offset:.6g}, by search {found:.12g}")
        assert value <= found * (1 + 1e-12)
        assert abs(value - cost(offset)) < 1e-12 * value
    print("all agree")


if __name__ == "__main__":
    if "--selfcheck" in sys.argv:
        selfcheck()
    else:
        print(__doc__)
