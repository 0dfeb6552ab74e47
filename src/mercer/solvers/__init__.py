"""Solvers: from a problem to a solution with its certificate."""

from mercer.solvers.control import Control, Progress
from mercer.solvers.dual import Infeasible, Solution, SVMDual
from mercer.solvers.planning import plan
from mercer.solvers.svm import solve

__all__ = ["Control", "Infeasible", "Progress", "SVMDual", "Solution", "plan", "solve"]
