"""Properties that are computed once, without a lock."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property as cached_property
else:

    class cached_property(functools.cached_property):  # noqa: N801 - it stands in for that one
        """`functools.cached_property` as it is from Python 3.12 on.

        Before, all objects of a class share a lock per property. A thread that computes one while another forks would
        leave that lock closed in the child for ever, and meanwhile keep the property of other objects waiting. Here two
        threads that ask at once may both compute the value; both get the one that was there first.

        Examples
        --------
        >>> class Circle:
        ...     radius = 2.0
        ...     @cached_property
        ...     def area(self):
        ...         print("computed")
        ...         return 3.14 * self.radius**2
        >>> circle = Circle()
        >>> circle.area, circle.area
        computed
        (12.56, 12.56)
        """

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            """Compute the value and put it where Python finds it next time before it asks here."""
            if instance is None:
                return self
            return instance.__dict__.setdefault(self.attrname, self.func(instance))
