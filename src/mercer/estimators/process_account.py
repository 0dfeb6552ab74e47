"""What a fit of a Gaussian process did with its parameters, in words."""

from __future__ import annotations

from scipy.linalg import LinAlgWarning
from sklearn.exceptions import ConvergenceWarning

from mercer.points.warn import warn
from mercer.solvers.gp.search import Tuned
from mercer.solvers.gp.space import Space


def said_of_search(space: Space, tuned: Tuned | None, n: int, wanted: bool) -> str:
    """Return the end of a plan: on which rows the parameters were found, and which were held.

    Parameters
    ----------
    space
        The parameters.
    tuned
        What was found; None where nothing was looked for.
    n
        The number of rows.
    wanted
        Whether parameters should have been found.
    """
    held = "; held: " + ", ".join(f"{name} ({why})" for name, why in space.held.items())
    end = held if space.held and wanted else ""
    if tuned is None:
        return "; parameters as given" + end
    starts, first = tuned.starts
    said = f"; {len(tuned.theta)} parameters by the likelihood of "
    said += f"all {n} rows" if tuned.rows == n else f"{tuned.rows} of {n} rows"
    if starts > 1 or first < tuned.rows:
        said += f", from {starts} start{'s' if starts > 1 else ''} on {first}"
    return said + f" ({tuned.evaluations[0]} evaluations, {tuned.evaluations[1]} in all)" + end


def warn_of_search(space: Space, tuned: Tuned | None, jitter: float) -> None:
    """Warn, in the name of the caller's caller, where something should be done about the parameters."""
    if tuned is not None and tuned.stopped != "converged":
        warn(
            f"the search for parameters ended early ({tuned.stopped}); those are taken that are best so far.",
            ConvergenceWarning,
        )
    if tuned is not None and (ends := space.at_bounds(tuned.theta)):
        warn(
            f"{'; '.join(ends)}: the likelihood may be larger beyond. Widen `bounds` there, or name the parameter in "
            "`fixed` if that value will do.",
            ConvergenceWarning,
        )
    if jitter:
        warn(
            "K + noise is singular to rounding (repeated points, or scales far beyond the data): "
            f"{jitter:.2g} was added to the noise variance. Take a larger noise to choose it yourself.",
            LinAlgWarning,
        )
