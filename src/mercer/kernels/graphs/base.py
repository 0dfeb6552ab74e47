"""The base of kernels on graphs."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from mercer.features.named import NamedFeatures
from mercer.kernels.base import Kernel
from mercer.points import Pair, PointMap


class GraphKernel(Kernel):
    """A kernel whose points are graphs, in any form that `Graph.of` reads."""

    _of_objects: ClassVar[bool] = True


class CountKernel(GraphKernel):
    """The inner product of counts of named features."""

    @property
    @abstractmethod
    def _map(self) -> PointMap:
        """The map from graphs to their counts."""

    def of(self, pair: Pair) -> Any:
        return pair.through(self._map).dot

    def feature_map(self) -> Any:
        return NamedFeatures(self._map)


def check_bool(owner: Any, name: str, value: Any) -> None:
    """Raise unless `value` is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} of {type(owner).__name__} must be True or False; it is {value!r:.60}.")
