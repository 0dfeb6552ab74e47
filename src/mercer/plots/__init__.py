"""Pictures of the theory, as matplotlib figures that need no display.

Each picture is a class in the manner of scikit-learn's displays, `BoundaryDisplay.from_estimator(model, X, y)`, which
keeps its axes and artists, and a function, `boundary(model, X, y)`, which returns the `matplotlib.figure.Figure`: save
it with `figure.savefig("name.png")`. Both draw into axes that they are given. Nothing here touches pyplot's global
state.
"""

from mercer.plots.before_after import LiftDisplay, lift
from mercer.plots.boundaries import BoundariesDisplay, boundaries
from mercer.plots.convergence import ConvergenceDisplay, DualityDisplay, convergence, duality
from mercer.plots.decision import BoundaryDisplay, boundary
from mercer.plots.eigen import EigenfunctionsDisplay, SpectrumDisplay, eigenfunctions, spectrum
from mercer.plots.learned import MetricDisplay, metric
from mercer.plots.lifts import LIFTS, Lift
from mercer.plots.losses import LossesDisplay, losses
from mercer.plots.matrix import GramDisplay, gram
from mercer.plots.proof import ProofDisplay, proof
from mercer.plots.regression import RegressionDisplay, regression
from mercer.plots.search import SearchDisplay, search
from mercer.plots.slackness import KKTDisplay, kkt

__all__ = [
    "LIFTS",
    "BoundariesDisplay",
    "BoundaryDisplay",
    "ConvergenceDisplay",
    "DualityDisplay",
    "EigenfunctionsDisplay",
    "GramDisplay",
    "KKTDisplay",
    "Lift",
    "LiftDisplay",
    "LossesDisplay",
    "MetricDisplay",
    "ProofDisplay",
    "RegressionDisplay",
    "SearchDisplay",
    "SpectrumDisplay",
    "boundaries",
    "boundary",
    "convergence",
    "duality",
    "eigenfunctions",
    "gram",
    "kkt",
    "lift",
    "losses",
    "metric",
    "proof",
    "regression",
    "search",
    "spectrum",
]
