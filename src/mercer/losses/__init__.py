"""Losses: what a prediction f costs when the truth is y. Penalties: what the norm of a function costs."""

from mercer.losses.base import Box, Loss
from mercer.losses.epsilon_insensitive import EpsilonInsensitive, LargestErrors, SquaredEpsilonInsensitive
from mercer.losses.hinge import Hinge, PerceptronLoss, SmoothedHinge, SquaredHinge
from mercer.losses.huber import Huber
from mercer.losses.logistic import Exponential, Logistic
from mercer.losses.multinomial import Multinomial
from mercer.losses.penalties import Ball, Norm, Penalty, SquaredNorm
from mercer.losses.poisson import Poisson
from mercer.losses.quantile import Absolute, Expectile, Pinball
from mercer.losses.squared import Squared
from mercer.losses.zero_one import ZeroOne

__all__ = [
    "Loss",
    "Box",
    "Squared",
    "Absolute",
    "EpsilonInsensitive",
    "SquaredEpsilonInsensitive",
    "Huber",
    "Pinball",
    "Expectile",
    "LargestErrors",
    "Logistic",
    "Hinge",
    "SquaredHinge",
    "SmoothedHinge",
    "PerceptronLoss",
    "Exponential",
    "Poisson",
    "Multinomial",
    "ZeroOne",
    "Penalty",
    "SquaredNorm",
    "Norm",
    "Ball",
]
