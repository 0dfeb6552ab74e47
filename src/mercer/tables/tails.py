"""Long tails: numbers such as incomes, of which a few are far larger than all others."""

from __future__ import annotations

import numpy as np

KNEE = 3.0  # standard deviations up to which numbers stay as they are; those beyond are drawn nearer
LONG = 6.0  # and those beyond which a tail is long enough to be spoken of


def bend(standard: np.ndarray, knee: float) -> np.ndarray:
    r"""Return standardised numbers, those beyond the knee c drawn nearer by a logarithm.

    .. math:: z \mapsto z \text{ for } |z| \le c, \qquad \operatorname{sign}(z) (c + \log(1 + |z| - c)) \text{ beyond}

    Their order stays, and so do the distances of most rows. A row that is 50 deviations away from all others, to which
    a kernel such as RBF would see no likeness whatever its other columns say, is 7 away.

    Examples
    --------
    >>> bend(np.array([-1.0, 2.5, 50.0]), 3.0).round(2)
    array([-1.  ,  2.5 ,  6.87])
    """
    far = np.maximum(np.abs(standard) - knee, 0.0)
    return np.where(far > 0, np.sign(standard) * (knee + np.log1p(far)), standard)
