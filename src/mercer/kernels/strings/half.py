"""Half of a logarithm at a point paired with itself, to normalize what is computed in logarithms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mercer.points import PairRule, Points, diagonal


@dataclass(frozen=True)
class Half:
    """rule(x, x) / 2 at each point."""

    rule: PairRule

    def __call__(self, points: Points) -> Any:
        return diagonal(lambda pair: pair.compare(self.rule), points) / 2
