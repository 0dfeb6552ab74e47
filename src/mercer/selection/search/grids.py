"""Default grids: scales from the distances of the data, penalties on a logarithmic scale."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import Pipeline

from mercer.gram import Gram
from mercer.kernels import RBF, Kernel
from mercer.points import Points

_SAMPLE_POINTS = 400  # points whose distances are looked at
_SCALE_FACTORS = (0.1, 3.0)  # times the quantiles below: the smallest and the largest scale
_KERNEL_PARAMETERS = ("kernel", "gamma", "degree", "coef0")  # parameters that say which kernel

# The price of errors goes up in half decades; what it is called differs from model to model.
_GRIDS: dict[str, np.ndarray] = {
    "C": np.logspace(-2, 3, 11),
    "alpha": np.logspace(-6, 2, 17),
    "strength": np.logspace(-6, 2, 17),
    "nu": np.array([0.05, 0.1, 0.2, 0.3, 0.4, 0.5]),
}


def scales(X: Any, count: int = 10, seed: int = 0) -> np.ndarray:
    """Return scales for kernels of distances: a logarithmic grid about the distances between points of X.

    From a tenth of the 10% quantile, where a point is like nobody else, to three times the 90% quantile, where all
    points are alike and the kernel is nearly linear.

    Parameters
    ----------
    X
        The points: a matrix, a table of numbers, or `Points`.
    count
        How many scales.
    seed
        Which points are looked at where there are more than some hundreds.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.selection import scales
    >>> grid = scales(np.random.default_rng(0).normal(size=(200, 5)), 5)
    >>> grid.round(1)
    array([ 0.2,  0.5,  1.5,  4.3, 12.6])
    """
    points = Points.of(X)
    if len(points) > _SAMPLE_POINTS:
        some = np.sort(np.random.default_rng(seed).choice(len(points), _SAMPLE_POINTS, replace=False))
        points = points.take(some)
    squares = np.asarray(Gram.of_formula(lambda pair: pair.sqdist(1.0), points).fill(), dtype=np.float64)
    distances = np.sqrt(squares[np.triu_indices(len(points), 1)])
    distances = distances[distances > 0]
    low, high = np.quantile(distances, [0.1, 0.9]) if distances.size else (1.0, 1.0)
    return np.geomspace(_SCALE_FACTORS[0] * low, _SCALE_FACTORS[1] * high, count)


def default_grid(estimator: Any) -> dict[str, Any]:
    """Return values to try for the strength of an estimator's penalty, under the name that it has there.

    Examples
    --------
    >>> from mercer import SVC, KernelRidge
    >>> list(default_grid(SVC())), list(default_grid(KernelRidge()))
    (['C'], ['alpha'])
    """
    known = estimator.get_params(deep=False)
    for name, values in _GRIDS.items():
        if known.get(name) is not None:
            return {name: values}
    raise ValueError(
        f"there is no default grid for {type(estimator).__name__}, which has none of the parameters "
        f"{', '.join(_GRIDS)}; give param_grid."
    )


def expand(kernels: Any, X: Any) -> list[Any]:
    """Return the kernels to try; a class such as RBF stands for itself at ten scales."""
    tried: list[Any] = []
    for k in listed(kernels):
        if isinstance(k, type) and issubclass(k, Kernel):
            if "scale" not in getattr(k, "__annotations__", {}):
                raise ValueError(
                    f"kernels contains the class {k.__name__}, which has no scale to try; give kernels of that class, "
                    f"such as {k.__name__}()."
                )
            tried += [k(scale=float(s)) for s in scales(X)]  # type: ignore[call-arg]
        else:
            tried.append(k)
    if not tried:
        raise ValueError("kernels is empty; name at least one, or leave it None for RBF at ten scales.")
    return tried


def candidates(estimator: Any, kernels: Any, param_grid: Any, X: Any, y: Any = None) -> list[dict[str, Any]]:
    """Return the parameters to try, in the order of scikit-learn's ParameterGrid, each kernel with each of the rest.

    Of a pipeline, kernels and the default grid are those of its last step; scales follow the points that reach it.
    """
    front, prefix = None, ""
    if isinstance(estimator, Pipeline):
        front, (name, estimator) = estimator[:-1], estimator.steps[-1]
        prefix = f"{name}__"
    kernels, grids = _asked(kernels, param_grid)
    chosen = grids is not None and any(_names_kernel(name, prefix) for grid in grids for name in grid)
    if kernels is not None and chosen:
        raise ValueError(
            "both kernels and param_grid say which kernels to try; put the kernels in one of them (a key 'kernel' of "
            "param_grid is the same as kernels)."
        )
    name = f"{prefix}kernel"
    alone = grids is not None and kernels is None
    tried = [grid.get(name) for grid in grids or []] if alone else [listed(kernels)]
    if front is not None and len(front) and any(map(_waits, tried)):
        X = clone(front).fit_transform(X, y)
    if grids is not None and alone:
        return list(ParameterGrid([{**g, name: expand(g[name], X)} if _waits(g.get(name)) else g for g in grids]))
    if grids is None:
        grids = [{prefix + name: values for name, values in default_grid(estimator).items()}]
    rest = list(ParameterGrid(grids))
    if "kernel" not in estimator.get_params(deep=False):
        raise ValueError(
            f"{type(estimator).__name__} has no parameter 'kernel'; give param_grid with the names that it has."
        )
    return [{**others, name: k} for k in expand(kernels, X) for others in rest]


def _asked(kernels: Any, param_grid: Any) -> tuple[Any, list[Any] | None]:
    """Return kernels and grids; in the call of GridSearchCV, the grid stands where the kernels do."""
    parts = [kernels] if isinstance(kernels, dict) else kernels
    if isinstance(parts, list | tuple) and any(isinstance(part, dict) for part in parts):
        if not all(isinstance(part, dict) for part in parts):
            raise ValueError(
                f"kernels={kernels!r:.120} holds kernels and grids of parameters; put the kernels into the grids, "
                "under the name 'kernel'."
            )
        if param_grid is not None:
            raise ValueError(
                f"kernels={kernels!r:.120} is a grid of parameters, and param_grid is one, too; join them in one."
            )
        kernels, param_grid = None, parts
    iterable = kernels is None or _is_kernel(kernels) or hasattr(kernels, "__iter__")
    if not iterable or not all(map(_is_kernel, listed(kernels))):
        raise TypeError(
            f"kernels={kernels!r:.120} must be kernels such as RBF(2.0), names, functions or classes of kernels, or a "
            "grid of parameters such as {'kernel': ['rbf'], 'C': [1.0, 10.0]}."
        )
    return kernels, [param_grid] if isinstance(param_grid, dict) else param_grid


def listed(kernels: Any) -> list[Any]:
    """Return kernels, or one kernel, as a list; None stands for RBF."""
    if kernels is None:
        return [RBF]
    return [kernels] if _is_kernel(kernels) else list(kernels)


def _is_kernel(kernel: Any) -> bool:
    return isinstance(kernel, Kernel | str) or callable(kernel)


def _waits(kernels: Any) -> bool:
    """Whether there is a class among kernels, whose scales wait for the data."""
    return isinstance(kernels, list | tuple) and any(isinstance(k, type) and issubclass(k, Kernel) for k in kernels)


def _names_kernel(name: str, prefix: str) -> bool:
    return name.startswith(prefix) and name[len(prefix) :].split("__")[0] in _KERNEL_PARAMETERS
