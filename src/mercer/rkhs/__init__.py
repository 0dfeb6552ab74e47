"""Functions of a reproducing kernel Hilbert space."""

from mercer.rkhs.function import RKHSFunction

__all__ = ["RKHSFunction"]
