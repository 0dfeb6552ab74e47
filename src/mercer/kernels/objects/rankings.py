"""Kernels on rankings: Kendall's tau and Mallows' kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import array_api_compat
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer

from mercer.kernels.base import Kernel, check_number, kernel
from mercer.kernels.rules.pullback import Applied
from mercer.kernels.vectors.cosine import UnitVectors
from mercer.machine.budget import Budget
from mercer.points import Pair, Points
from mercer.points.formulas.dual import number

_LARGE = 1 << 26  # bytes of signs that are taken without looking at the memory


@kernel
class Kendall(Kernel):
    r"""Kendall's rank correlation (tau-b) of two rankings of the same items.

    .. math:: k(x, z) = \frac{\sum_{i<j} s_{ij}(x) s_{ij}(z)}{|s(x)| |s(z)|}, \quad s_{ij}(x) = \mathrm{sign}(x_i - x_j)

    A point is a row of numbers, one for each item: its rank, or a score. Only their order counts. (Of a list of items
    from first to last, `numpy.argsort` makes the ranks.) Without ties k is the share of pairs of items in the same
    order minus the share in opposite orders; ties are allowed, and a row whose items are all tied has the value 0.

    Notes
    -----
    The feature map is that of Jiao and Vert (2015): it has n (n - 1) / 2 coordinates for n items, which are held.

    Examples
    --------
    >>> from mercer.kernels import Kendall
    >>> Kendall()([[1, 2, 3, 4], [1, 2, 4, 3], [4, 3, 2, 1]]).round(4)
    array([[ 1.    ,  0.6667, -1.    ],
           [ 0.6667,  1.    , -0.6667],
           [-1.    , -0.6667,  1.    ]])
    """

    _because = "feature map", "k is the cosine of the vectors of the signs of all pairs of items."

    def of(self, pair: Pair) -> Any:
        return pair.through(Signs(pair.width)).through(UnitVectors()).dot

    def feature_map(self) -> Any:
        return make_pipeline(FunctionTransformer(Applied(Signs())), Normalizer())


@kernel
class Mallows(Kernel):
    r"""The Mallows kernel of two rankings of the same items.

    .. math:: k(x, z) = \exp\Bigl(-\frac{r}{2} \sum_{i<j} |s_{ij}(x) - s_{ij}(z)|\Bigr),
        \quad s_{ij}(x) = \mathrm{sign}(x_i - x_j)

    Without ties that is :math:`e^{-r n_d}` with the number :math:`n_d` of discordant pairs, which x and z put in
    opposite orders. A pair that is tied in one of them only counts a half (Kemeny's distance). Points are as for
    `Kendall`.

    Parameters
    ----------
    rate
        r: how fast similarity falls with each discordant pair.

    Notes
    -----
    Positive semidefinite by Jiao and Vert (2015), with the same coordinates as `Kendall`.

    Examples
    --------
    >>> from mercer.kernels import Mallows
    >>> Mallows(rate=0.5)([[1, 2, 3], [1, 3, 2], [3, 2, 1]]).round(4)
    array([[1.    , 0.6065, 0.2231],
           [0.6065, 1.    , 0.3679],
           [0.2231, 0.3679, 1.    ]])
    """

    rate: float = 1.0

    _because = "Schoenberg", "a sum of |s - t|, as of the signs of pairs of items, is conditionally negative definite."

    def _validate(self) -> None:
        check_number(self, "rate", self.rate)

    def of(self, pair: Pair) -> Any:
        return pair.xp.exp(-0.5 * number(self.rate) * pair.through(Signs(pair.width)).l1())


@dataclass(frozen=True)
class Signs:
    """The signs of x_i - x_j for all pairs i < j of the items that each point ranks.

    Parameters
    ----------
    items
        How many items there must be; None for any number.
    """

    items: int | None = None

    def __call__(self, points: Points) -> Any:
        ranks, n = points.vectors, points.width
        if self.items not in (None, n):
            raise ValueError(
                f"{points.name} ranks {n} items and is compared with rankings of {self.items}; both must rank the same "
                "items in the same columns."
            )
        if n < 2:
            raise ValueError(f"{points.name} ranks 1 item, which has no order; at least 2 are needed.")
        size = 16 * len(points) * (n * (n - 1) // 2)  # two copies, one of them in parts
        if size > _LARGE:
            Budget(None).require(
                size,
                f"the order of all pairs of {n} items in {len(points)} rankings",
                "rank fewer items, or compare the rankings pair by pair with "
                "FromFunction(lambda x, z: scipy.stats.kendalltau(x, z).statistic).",
            )
        if sparse.issparse(ranks):
            ranks = ranks.toarray()
        xp = array_api_compat.array_namespace(ranks)
        return xp.concat([xp.sign(ranks[:, i : i + 1] - ranks[:, i + 1 :]) for i in range(n - 1)], axis=1)
