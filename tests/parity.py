"""How far two solutions of one machine may differ, from their duality gaps alone.

The objective is strongly convex in f: |f - f*|^2 / 2 <= gap, and |f(x) - f*(x)| <= |f - f*| k(x, x)^(1/2). The offset
of either is fixed by its support vectors up to the worst KKT residual.
"""

from __future__ import annotations

import math

import numpy as np

from mercer.certify import check_svm


def radius(certificate, largest):
    """How far f can be from the best one, where k(x, x) <= largest, offset included."""
    return 2 * math.sqrt(2 * max(certificate.gap, 0.0) * largest) + certificate.kkt


def svc_certificate(peer, kernel, X, y, C, weights=None):
    """The certificate of scikit-learn's two-class SVC, by our independent check."""
    signs = np.where(y == peer.classes_[1], 1.0, -1.0)
    bound = C * (np.ones(len(y)) if weights is None else weights)
    b = np.zeros(len(y))
    b[np.flatnonzero(bound)[peer.support_]] = peer.dual_coef_[0]  # it counts without the samples of weight 0
    return check_svm(
        kernel,
        X,
        plus=np.clip(b, 0, None),
        minus=np.clip(-b, 0, None),
        linear=-signs,
        upper=np.where(signs > 0, bound, 0),
        lower=np.where(signs < 0, bound, 0),
        offset=float(peer.intercept_[0]),
        tol=1e-3,
    )


def svr_certificate(peer, kernel, X, y, C, epsilon, weights=None):
    """The certificate of scikit-learn's SVR, by our independent check."""
    bound = C * (np.ones(len(y)) if weights is None else weights)
    b = np.zeros(len(y))
    b[np.flatnonzero(bound)[peer.support_]] = peer.dual_coef_[0]
    return check_svm(
        kernel,
        X,
        plus=np.clip(b, 0, None),
        minus=np.clip(-b, 0, None),
        linear=-y,
        width=epsilon,
        upper=bound,
        lower=bound,
        offset=float(peer.intercept_[0]),
        tol=1e-3,
    )
