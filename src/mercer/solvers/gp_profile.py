"""The likelihood of a Gaussian process whose amplitude is always the best one."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from mercer.solvers.gp import Evidence, Factored


class Profile(Evidence):
    r"""The log marginal likelihood under s (K + alpha I), at the s under which the data are most likely.

    .. math:: \max_s \log N(y; 0, s M) = -\tfrac n2 \log \frac{y' M^{-1} y}{n} - \tfrac12 \log\det M
              - \tfrac n2 (1 + \log 2\pi)

    Ridge regression does not know s: only the ratio of K to alpha matters for what it predicts. As s is the best one,
    its own change has no share in the slopes, which are those of `Evidence` for the targets in units of its root.

    Examples
    --------
    >>> from mercer import RBF
    >>> from mercer.points import Points
    >>> X = np.linspace(0, 1, 9)[:, None]
    >>> profile = Profile(Points(X), np.sin(6 * X))
    >>> found = [profile.factor(c * RBF(0.5), 0.1 * c).likelihood for c in (1.0, 9.0)]
    >>> bool(np.isclose(*found))
    True
    """

    def _factored(self, L: np.ndarray, jitter: float) -> Factored:
        found = super()._factored(L, jitter)
        size = self.Y.size
        fit = float(np.vdot(self.Y, found.A))
        amplitude = max(fit / size, 1e-300)
        likelihood = found.likelihood + 0.5 * fit - 0.5 * size * (1.0 + math.log(amplitude))
        return replace(found, A=found.A / math.sqrt(amplitude), likelihood=likelihood)
