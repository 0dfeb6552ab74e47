"""Pictures of the theory, as matplotlib figures that need no display.

Every function returns a `matplotlib.figure.Figure` (save it with `figure.savefig("name.png")`) or draws into the
axes it is given. Nothing here touches pyplot's global state.
"""

from mercer.plots.before_after import lift
from mercer.plots.decision import boundary
from mercer.plots.learned import metric
from mercer.plots.lifts import LIFTS, Lift
from mercer.plots.matrix import gram, spectrum

__all__ = ["LIFTS", "Lift", "boundary", "gram", "lift", "metric", "spectrum"]
