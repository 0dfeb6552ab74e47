"""Losses: what a prediction f costs when the truth is y."""

from mercer.losses.base import Loss
from mercer.losses.epsilon_insensitive import EpsilonInsensitive
from mercer.losses.hinge import Hinge
from mercer.losses.perceptron import PerceptronLoss
from mercer.losses.squared_epsilon_insensitive import SquaredEpsilonInsensitive
from mercer.losses.squared_hinge import SquaredHinge

__all__ = ["Loss", "Hinge", "SquaredHinge", "PerceptronLoss", "EpsilonInsensitive", "SquaredEpsilonInsensitive"]
