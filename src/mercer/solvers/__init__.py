"""Solvers: from a problem to a solution with its certificate."""

from mercer.solvers.control import Control, Progress
from mercer.solvers.dual.problem import Infeasible, Solution, SVMDual, plan
from mercer.solvers.dual.solve import solve
from mercer.solvers.representer.plug_in import plug_in

__all__ = ["Control", "Infeasible", "Progress", "SVMDual", "Solution", "plan", "plug_in", "solve"]
